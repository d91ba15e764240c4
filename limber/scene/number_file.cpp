#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/scene/number_file.hpp>

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace limber {
namespace {

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw Error(ErrorKind::kInput, path + ": " + what);
}

// The value of a key in the header's Python dictionary literal, as text.
std::string_view header_value(const std::string& path, std::string_view header, std::string_view key) {
  const std::size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos) bad(path, fmt::format("the .npy header has no '{}'", key));
  std::size_t from = header.find(':', at);
  if (from == std::string_view::npos) bad(path, "the .npy header is damaged");
  ++from;
  while (from < header.size() && header[from] == ' ') ++from;
  const char close = from < header.size() && header[from] == '(' ? ')' : ',';
  const std::size_t to = header.find(close, from);
  if (to == std::string_view::npos) bad(path, "the .npy header is damaged");
  return header.substr(from, to - from);
}

template <class T>
void convert(std::string_view bytes, std::vector<double>& out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<double>(value);
  }
}

NumberFile read_npy(const std::string& path, std::string_view bytes) {
  // 6 bytes of magic, major, minor, header length (2 or 4 bytes), header, data.
  if (bytes.size() < 12) bad(path, "the .npy file is cut off");
  const int major = static_cast<unsigned char>(bytes[6]);
  if (major < 1 || major > 3) bad(path, fmt::format("unknown .npy version {}", major));
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const std::size_t start = major == 1 ? 10 : 12;
  const std::size_t length =
      major == 1 ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start) bad(path, "the .npy file is cut off");
  const std::string_view header = bytes.substr(start, length);
  const std::string_view data = bytes.substr(start + length);

  if (header_value(path, header, "fortran_order").starts_with("True"))
    bad(path, "the array is in Fortran order; save numpy.ascontiguousarray(a) instead");
  NumberFile file;
  std::size_t count = 1, axes = 0;
  const std::string_view shape = header_value(path, header, "shape");
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < '0' || shape[i] > '9') continue;
    std::size_t extent = 0;
    const auto r = std::from_chars(shape.data() + i, shape.data() + shape.size(), extent);
    if (r.ec != std::errc() || (extent > 0 && count > data.size() / extent))
      bad(path, "the .npy file is shorter than its shape says");
    i = static_cast<std::size_t>(r.ptr - shape.data());
    count *= extent;
    if (axes > 0) file.columns *= static_cast<int>(extent);
    ++axes;
  }
  if (axes == 0 || axes > 2) bad(path, fmt::format("expected an array of one or two axes, found {}", axes));
  std::string_view type = header_value(path, header, "descr");
  if (type.size() >= 2) type = type.substr(1, type.size() - 2);  // the quotes
  const std::size_t width = type.size() == 3 ? static_cast<std::size_t>(type[2] - '0') : 0;
  if (width == 0 || width > 8 || count > data.size() / width)
    bad(path, fmt::format("the .npy file of type {} is cut off or unknown", type));
  file.values.resize(count);
  if (type == "<f8")
    convert<double>(data, file.values);
  else if (type == "<f4")
    convert<float>(data, file.values);
  else if (type == "<i8")
    convert<std::int64_t>(data, file.values);
  else if (type == "<i4")
    convert<std::int32_t>(data, file.values);
  else if (type == "<u4")
    convert<std::uint32_t>(data, file.values);
  else if (type == "|u1")
    convert<std::uint8_t>(data, file.values);
  else if (type == "|i1")
    convert<std::int8_t>(data, file.values);
  else
    bad(path, fmt::format("numbers of type {} are not read; save as float64", type));
  return file;
}

NumberFile read_text(const std::string& path, std::string_view text) {
  NumberFile file;
  file.columns = 0;
  std::size_t line = 1, at = 0;
  int in_line = 0;
  const auto end_line = [&] {
    if (in_line > 0 && file.columns > 0 && in_line != file.columns)
      bad(fmt::format("{}:{}", path, line),
          fmt::format("{} numbers where the lines before have {}", in_line, file.columns));
    if (in_line > 0) file.columns = in_line;
    in_line = 0;
  };
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n') {
      end_line();
      ++line;
      ++at;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == ',' || c == ';') {
      ++at;
    } else if (c == '#') {
      while (at < text.size() && text[at] != '\n') ++at;
    } else {
      if (c == '+') ++at;
      double value = 0;
      const auto r = std::from_chars(text.data() + at, text.data() + text.size(), value);
      if (r.ec != std::errc())
        bad(fmt::format("{}:{}", path, line),
            fmt::format(
                "expected a number, found \"{}\"",
                text.substr(at, std::min<std::size_t>(20, text.find_first_of(" \t\r\n,;", at) - at))));
      at = static_cast<std::size_t>(r.ptr - text.data());
      file.values.push_back(value);
      ++in_line;
    }
  }
  end_line();
  if (file.columns == 0) file.columns = 1;
  return file;
}

}  // namespace

NumberFile read_numbers(const std::string& path) {
  const std::string bytes = read_file(path);
  if (bytes.starts_with("\x93NUMPY")) return read_npy(path, bytes);
  return read_text(path, bytes);
}

}  // namespace limber
