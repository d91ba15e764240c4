#include <limber/core/error.hpp>
#include <limber/view/npz.hpp>

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace limber::view {
namespace {

constexpr std::uint64_t kLimit = 0xffffffffu;  // of a zip archive without its 64-bit extension

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Raw deflate, as zip has it.
std::string raw_deflated(const std::string& data, int level) {
  z_stream z{};
  if (deflateInit2(&z, level, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw Error(ErrorKind::kIo, "npz: not enough memory to compress");
  std::string out(deflateBound(&z, static_cast<uLong>(data.size())), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  z.avail_in = static_cast<uInt>(data.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

}  // namespace

NpzWriter::NpzWriter(const std::filesystem::path& path, int level) : path_(path), part_(path), level_(level) {
  part_ += ".part";
  out_.open(part_, std::ios::binary);
  if (!out_)
    throw Error(ErrorKind::kIo,
                fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
}

NpzWriter::~NpzWriter() {
  if (out_.is_open()) {  // finish() was not reached
    out_.close();
    std::error_code ignored;
    std::filesystem::remove(part_, ignored);
  }
}

void NpzWriter::add_bytes(const std::string& name, const char* type, const std::vector<std::size_t>& shape,
                          std::size_t count, const void* data, std::size_t size) {
  std::size_t product = 1;
  std::string dims;
  for (std::size_t d : shape) {
    product *= d;
    dims += fmt::format("{}, ", d);
  }
  if (product != count)
    throw Error(ErrorKind::kUsage, fmt::format("npz: the shape of '{}' does not fit", name));
  if (shape.size() > 1) dims.resize(dims.size() - 2);
  std::string head = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, dims);
  // Magic, version, length of the head; padded so that the numbers begin at a multiple of 64.
  head.resize((10 + head.size() + 1 + 63) / 64 * 64 - 10 - 1, ' ');
  head += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  put(file, static_cast<std::uint16_t>(head.size()));
  file += head;
  file.append(static_cast<const char*>(data), size);

  Entry e{name + ".npy",
          static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(file.data()), file.size())),
          file.size(),
          file.size(),
          offset_,
          0};
  if (level_ > 0 && file.size() < kLimit) {
    std::string packed = raw_deflated(file, level_);
    if (packed.size() < file.size()) {
      file = std::move(packed);
      e.method = 8;
      e.stored = file.size();
    }
  }
  if (e.size > kLimit || e.offset + e.stored > kLimit)
    throw Error(
        ErrorKind::kIo,
        fmt::format("{}: more than 4 GB; export fewer frames with --every, or one --body", path_.string()));
  std::string local;
  put(local, std::uint32_t{0x04034b50});
  put(local, std::uint16_t{20});
  put(local, std::uint16_t{0});
  put(local, e.method);
  put(local, std::uint32_t{0x00210000});  // 1 January 1980: the same input gives the same file
  put(local, e.crc);
  put(local, static_cast<std::uint32_t>(e.stored));
  put(local, static_cast<std::uint32_t>(e.size));
  put(local, static_cast<std::uint16_t>(e.name.size()));
  put(local, std::uint16_t{0});
  local += e.name;
  out_.write(local.data(), static_cast<std::streamsize>(local.size()));
  out_.write(file.data(), static_cast<std::streamsize>(file.size()));
  offset_ += local.size() + file.size();
  entries_.push_back(std::move(e));
}

void NpzWriter::add(const std::string& name, const std::vector<std::size_t>& shape,
                    std::span<const float> v) {
  add_bytes(name, "<f4", shape, v.size(), v.data(), v.size_bytes());
}
void NpzWriter::add(const std::string& name, const std::vector<std::size_t>& shape,
                    std::span<const double> v) {
  add_bytes(name, "<f8", shape, v.size(), v.data(), v.size_bytes());
}
void NpzWriter::add(const std::string& name, const std::vector<std::size_t>& shape,
                    std::span<const std::int32_t> v) {
  add_bytes(name, "<i4", shape, v.size(), v.data(), v.size_bytes());
}
void NpzWriter::add(const std::string& name, const std::vector<std::size_t>& shape,
                    std::span<const std::int64_t> v) {
  add_bytes(name, "<i8", shape, v.size(), v.data(), v.size_bytes());
}

void NpzWriter::finish() {
  std::string directory;
  for (const Entry& e : entries_) {
    put(directory, std::uint32_t{0x02014b50});
    put(directory, std::uint16_t{20});
    put(directory, std::uint16_t{20});
    put(directory, std::uint16_t{0});
    put(directory, e.method);
    put(directory, std::uint32_t{0x00210000});
    put(directory, e.crc);
    put(directory, static_cast<std::uint32_t>(e.stored));
    put(directory, static_cast<std::uint32_t>(e.size));
    put(directory, static_cast<std::uint16_t>(e.name.size()));
    for (int k = 0; k < 4; ++k) put(directory, std::uint16_t{0});  // extra, comment, disk, inner attributes
    put(directory, std::uint32_t{0});
    put(directory, static_cast<std::uint32_t>(e.offset));
    directory += e.name;
  }
  std::string end;
  put(end, std::uint32_t{0x06054b50});
  put(end, std::uint32_t{0});
  put(end, static_cast<std::uint16_t>(entries_.size()));
  put(end, static_cast<std::uint16_t>(entries_.size()));
  put(end, static_cast<std::uint32_t>(directory.size()));
  put(end, static_cast<std::uint32_t>(offset_));
  put(end, std::uint16_t{0});
  directory += end;
  out_.write(directory.data(), static_cast<std::streamsize>(directory.size()));
  out_.close();
  std::error_code error;
  if (!out_) error = std::make_error_code(std::errc::io_error);
  if (!error) std::filesystem::rename(part_, path_, error);
  if (error)
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot be written: {}", path_.string(), error.message()));
}

}  // namespace limber::view
