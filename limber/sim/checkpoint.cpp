#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/sim/checkpoint.hpp>
#include <limber/sim/hash.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <type_traits>

namespace limber {
namespace {

constexpr std::string_view kMagic = "LIMBERCK";
constexpr std::uint32_t kVersion = 1;

// Item types in the file.
template <class T>
constexpr std::uint32_t item_type() {
  if constexpr (std::is_same_v<T, double>) return 1;
  if constexpr (std::is_same_v<T, std::int64_t>) return 2;
  if constexpr (std::is_same_v<T, std::uint8_t>) return 3;
  if constexpr (std::is_same_v<T, std::int32_t>) return 4;
}

template <class T>
void put(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", name_, why));
  }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - at_) fail("the checkpoint is cut off");
    const std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

 private:
  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
};

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  std::string out(kMagic);
  put(out, kVersion);
  put(out, std::uint32_t{0});
  put(out, checkpoint.scene_hash);
  const std::string notes = checkpoint.notes.dump();
  put(out, static_cast<std::uint64_t>(notes.size()));
  out += notes;
  std::uint32_t fields = 0;
  visit(checkpoint.state, [&](const char*, const auto&) { ++fields; });
  put(out, fields);
  visit(checkpoint.state, [&](const char* name, const auto& value) {
    using T = std::decay_t<decltype(value)>;
    const std::string_view text(name);
    put(out, static_cast<std::uint32_t>(text.size()));
    out += text;
    if constexpr (std::is_arithmetic_v<T>) {
      put(out, item_type<T>());
      put(out, std::uint64_t{1});
      put(out, value);
    } else {
      using Item = std::decay_t<decltype(*value.data())>;
      put(out, item_type<Item>());
      put(out, static_cast<std::uint64_t>(value.size()));
      if (value.size() > 0)
        out.append(reinterpret_cast<const char*>(value.data()),
                   static_cast<std::size_t>(value.size()) * sizeof(Item));
    }
  });
  put(out, hash_bytes(out));
  write_file_atomic(path.string(), out, true);
}

Checkpoint parse_checkpoint(std::string_view bytes, const std::string& name) {
  Reader in(bytes, name);
  if (bytes.size() < kMagic.size() + 16 || in.take(kMagic.size()) != kMagic) in.fail("not a checkpoint");
  const auto version = in.get<std::uint32_t>();
  if (version != kVersion)
    in.fail(fmt::format("checkpoint format {}; this limber reads {}", version, kVersion));
  std::uint64_t checksum;
  std::memcpy(&checksum, bytes.data() + bytes.size() - 8, 8);
  if (checksum != hash_bytes(bytes.substr(0, bytes.size() - 8)))
    in.fail("the checkpoint is damaged (its checksum does not fit)");
  in.get<std::uint32_t>();

  Checkpoint out;
  out.scene_hash = in.get<std::uint64_t>();
  out.notes = nlohmann::json::parse(in.take(in.get<std::uint64_t>()), nullptr, false);
  std::uint32_t left = in.get<std::uint32_t>();
  visit(out.state, [&](const char* field, auto& value) {
    using T = std::decay_t<decltype(value)>;
    if (left-- == 0) in.fail(fmt::format("\"{}\" is missing; the checkpoint is from another version", field));
    const std::string_view found = in.take(in.get<std::uint32_t>());
    if (found != field)
      in.fail(
          fmt::format("found \"{}\", expected \"{}\"; the checkpoint is from another version", found, field));
    const auto type = in.get<std::uint32_t>();
    const auto count = in.get<std::uint64_t>();
    const auto expect = [&](std::uint32_t wanted) {
      if (type != wanted)
        in.fail(fmt::format("\"{}\" has items of type {}, expected {}", field, type, wanted));
    };
    if constexpr (std::is_arithmetic_v<T>) {
      expect(item_type<T>());
      if (count != 1) in.fail(fmt::format("\"{}\" has {} items, expected 1", field, count));
      value = in.get<T>();
    } else {
      using Item = std::decay_t<decltype(*value.data())>;
      expect(item_type<Item>());
      if (count > bytes.size() / sizeof(Item)) in.fail("the checkpoint is cut off");
      const std::string_view items = in.take(count * sizeof(Item));
      value.resize(static_cast<decltype(value.size())>(count));
      if (count > 0) std::memcpy(value.data(), items.data(), items.size());
    }
  });
  if (left != 0) in.fail("holds more than this version of limber knows");
  return out;
}

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  return parse_checkpoint(read_file(path.string()), path.string());
}

std::string checkpoint_name(std::int64_t step) { return fmt::format("{:06}.lmc", step); }

std::vector<CheckpointFile> list_checkpoints(const std::filesystem::path& folder) {
  std::vector<CheckpointFile> out;
  std::error_code ec;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ec)) {
    const std::string name = entry.path().filename().string();
    std::int64_t step = 0;
    const auto r = std::from_chars(name.data(), name.data() + name.size(), step);
    if (r.ec == std::errc() && checkpoint_name(step) == name) out.push_back({step, entry.path()});
  }
  std::sort(out.begin(), out.end(),
            [](const CheckpointFile& a, const CheckpointFile& b) { return a.step > b.step; });
  return out;
}

}  // namespace limber
