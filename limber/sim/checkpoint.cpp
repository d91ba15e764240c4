#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/sim/checkpoint.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/method.hpp>
#include <limber/sim/topology.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <type_traits>

namespace limber {
namespace {

constexpr std::string_view kMagic = "LIMBERCK";
constexpr std::uint32_t kVersion = 2;

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
  std::uint64_t left() const { return bytes_.size() - at_; }
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

class FieldWriter {
 public:
  template <class T>
  void add(const std::string& name, const T& value) {
    ++count_;
    put(bytes_, static_cast<std::uint32_t>(name.size()));
    bytes_ += name;
    if constexpr (std::is_arithmetic_v<T>) {
      put(bytes_, item_type<T>());
      put(bytes_, std::uint64_t{1});
      put(bytes_, value);
    } else {
      using Item = std::decay_t<decltype(*value.data())>;
      put(bytes_, item_type<Item>());
      put(bytes_, static_cast<std::uint64_t>(value.size()));
      if (value.size() > 0)
        bytes_.append(reinterpret_cast<const char*>(value.data()),
                      static_cast<std::size_t>(value.size()) * sizeof(Item));
    }
  }
  std::uint32_t count() const { return count_; }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::uint32_t count_ = 0;
};

// All fields of a checkpoint by name; each is taken once.
class FieldReader {
 public:
  FieldReader(Reader& in, std::uint32_t count) : in_(in) {
    for (; count > 0; --count) {
      const std::string name(in.take(in.get<std::uint32_t>()));
      Field f;
      f.type = in.get<std::uint32_t>();
      f.count = in.get<std::uint64_t>();
      const std::size_t size = f.type == 1 || f.type == 2 ? 8 : f.type == 3 ? 1 : f.type == 4 ? 4 : 0;
      if (size == 0) in.fail(fmt::format("\"{}\" has items of the unknown type {}", name, f.type));
      if (f.count > in.left() / size) in.fail("the checkpoint is cut off");
      f.items = in.take(f.count * size);
      if (!fields_.emplace(name, f).second) in.fail(fmt::format("there are two fields \"{}\"", name));
    }
  }

  // False: there is none, and `value` stays as it is.
  template <class T>
  bool take(const std::string& name, T& value) {
    const auto found = fields_.find(name);
    if (found == fields_.end()) return false;
    const Field& f = found->second;
    const auto expect = [&](std::uint32_t wanted) {
      if (f.type != wanted)
        in_.fail(fmt::format("\"{}\" has items of type {}, expected {}", name, f.type, wanted));
    };
    if constexpr (std::is_arithmetic_v<T>) {
      expect(item_type<T>());
      if (f.count != 1) in_.fail(fmt::format("\"{}\" has {} items, expected 1", name, f.count));
      std::memcpy(&value, f.items.data(), sizeof value);
    } else {
      expect(item_type<std::decay_t<decltype(*value.data())>>());
      value.resize(static_cast<decltype(value.size())>(f.count));
      if (f.count > 0) std::memcpy(value.data(), f.items.data(), f.items.size());
    }
    fields_.erase(found);
    return true;
  }

  void expect_empty() const {
    if (!fields_.empty())
      in_.fail(fmt::format("the field \"{}\" is not known to this limber{}", fields_.begin()->first,
                           fields_.size() > 1 ? fmt::format(", nor are {} others", fields_.size() - 1) : ""));
  }

 private:
  struct Field {
    std::uint32_t type = 0;
    std::uint64_t count = 0;
    std::string_view items;
  };
  const Reader& in_;
  std::map<std::string, Field> fields_;
};

// The members of a topology as flat lists.
struct FlatTopology {
  std::vector<double> rest;
  std::vector<std::int32_t> elements;
  Transfer nodes, element_values;

  template <class T, class Visitor>
  static void visit(T& t, Visitor&& visitor) {
    visitor("topology/rest", t.rest);
    visitor("topology/elements", t.elements);
    visitor("topology/node_begin", t.nodes.begin);
    visitor("topology/node_from", t.nodes.from);
    visitor("topology/node_weight", t.nodes.weight);
    visitor("topology/element_begin", t.element_values.begin);
    visitor("topology/element_from", t.element_values.from);
    visitor("topology/element_weight", t.element_values.weight);
  }
};

void write_topology(const Topology& t, FieldWriter& fields) {
  FlatTopology flat{{}, {}, t.nodes, t.element_values};
  for (const Vec3& x : t.rest) flat.rest.insert(flat.rest.end(), x.data(), x.data() + 3);
  for (const Tet& e : t.elements) flat.elements.insert(flat.elements.end(), e.begin(), e.end());
  FlatTopology::visit(flat, [&](const char* name, const auto& value) { fields.add(name, value); });
}

std::shared_ptr<const Topology> read_topology(FieldReader& fields, const Reader& in) {
  FlatTopology flat;
  int found = 0, all = 0;
  FlatTopology::visit(flat, [&](const char* name, auto& value) {
    found += fields.take(name, value);
    ++all;
  });
  if (found == 0) return nullptr;
  if (found != all || flat.rest.size() % 3 != 0 || flat.elements.size() % 4 != 0 ||
      flat.nodes.begin.empty() || flat.element_values.begin.empty())
    in.fail("the topology is not whole");
  auto out = std::make_shared<Topology>();
  for (std::size_t i = 0; i < flat.rest.size(); i += 3)
    out->rest.emplace_back(flat.rest[i], flat.rest[i + 1], flat.rest[i + 2]);
  for (std::size_t e = 0; e < flat.elements.size(); e += 4)
    out->elements.push_back(
        {flat.elements[e], flat.elements[e + 1], flat.elements[e + 2], flat.elements[e + 3]});
  out->nodes = std::move(flat.nodes);
  out->element_values = std::move(flat.element_values);
  out->digest = digest_of(*out);
  return out;
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  std::string out(kMagic);
  put(out, kVersion);
  put(out, std::uint32_t{0});
  put(out, checkpoint.scene_hash);
  const std::string notes = checkpoint.notes->dump();
  put(out, static_cast<std::uint64_t>(notes.size()));
  out += notes;
  FieldWriter fields;
  visit(checkpoint.state, [&](const char* name, const auto& value) { fields.add(name, value); });
  if (checkpoint.state.topology) write_topology(*checkpoint.state.topology, fields);
  const MethodMemory& memory = checkpoint.state.memory;
  if (!memory.empty()) {
    fields.add("method", std::vector<std::uint8_t>(checkpoint.method.begin(), checkpoint.method.end()));
    fields.add("memory_epoch", memory.epoch());
    memory.visit([&](const char* name, ConstFieldRef field) {
      std::visit([&](const auto* value) { fields.add(fmt::format("memory/{}", name), *value); }, field);
    });
  }
  put(out, fields.count());
  out += fields.bytes();
  put(out, hash_bytes(out));
  write_file_atomic(path.string(), out, true);
}

Checkpoint parse_checkpoint(std::string_view bytes, const std::string& name) {
  Reader in(bytes, name);
  if (bytes.size() < kMagic.size() + 16 || in.take(kMagic.size()) != kMagic) in.fail("not a checkpoint");
  const auto version = in.get<std::uint32_t>();
  if (version == 1)
    in.fail(
        "the checkpoint has layout 1, of limber before methods had a memory of their own; this limber reads "
        "layout 2: run the scene from the beginning, or go on with the limber that wrote it");
  if (version != kVersion)
    in.fail(fmt::format("checkpoint layout {}; this limber reads {}", version, kVersion));
  std::uint64_t checksum;
  std::memcpy(&checksum, bytes.data() + bytes.size() - 8, 8);
  if (checksum != hash_bytes(bytes.substr(0, bytes.size() - 8)))
    in.fail("the checkpoint is damaged (its checksum does not fit)");
  in.get<std::uint32_t>();

  Checkpoint out;
  out.scene_hash = in.get<std::uint64_t>();
  *out.notes = nlohmann::json::parse(in.take(in.get<std::uint64_t>()), nullptr, false);
  FieldReader fields(in, in.get<std::uint32_t>());
  visit(out.state, [&](const char* field, auto& value) {
    const std::string_view name(field);
    const bool needed = name == "t" || name == "step" || name == "epoch" || name == "x" || name == "v";
    if (!fields.take(field, value) && needed) in.fail(fmt::format("the field \"{}\" is missing", name));
  });
  out.state.topology = read_topology(fields, in);
  std::vector<std::uint8_t> method;
  if (fields.take("method", method)) {
    out.method.assign(method.begin(), method.end());
    const auto all = methods();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Method* m) { return m->spec.name == out.method; });
    if (found == all.end())
      in.fail(
          fmt::format("it was written by the method \"{}\", which this program does not have", out.method));
    if ((*found)->memory) out.state.memory = (*found)->memory();
    std::int64_t epoch = 0;
    fields.take("memory_epoch", epoch);
    out.state.memory.set_epoch(epoch);
    out.state.memory.visit([&](const char* field, FieldRef ref) {
      std::visit([&](auto* value) { fields.take(fmt::format("memory/{}", field), *value); }, ref);
    });
  }
  fields.expect_empty();
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
