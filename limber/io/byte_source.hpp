// Bytes inside a text file, as they are or in base64.
#pragma once

#include <limber/io/cursor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace limber::io {

// Where the bytes of an array come from: as they are, or base64. A padded group ends a stream and the next
// one may follow, which is how a header that was encoded on its own is joined to its data.
class ByteSource {
 public:
  ByteSource(const Cursor& in, std::string_view text, bool base64) : in_(in), text_(text), base64_(base64) {}

  // Bytes that could be left.
  std::uint64_t remaining() const { return base64_ ? text_.size() / 4 * 3 + 3 : text_.size(); }

  std::vector<std::uint8_t> read(std::uint64_t n) {
    if (n > remaining()) end();
    std::vector<std::uint8_t> out;
    out.reserve(n);
    if (!base64_) {
      out.assign(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(n));
      text_.remove_prefix(n);
      return out;
    }
    while (out.size() < n) {
      if (left_ == 0) group();
      out.push_back(buffer_[size_ - left_]);
      --left_;
    }
    return out;
  }

 private:
  [[noreturn]] void end() const {
    in_.fail("an array is shorter than its header says, or the file is cut off");
  }

  static int digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    if (c == '+') return 62;
    if (c == '/') return 63;
    return -1;
  }

  // Decodes the next four digits.
  void group() {
    std::uint32_t bits = 0;
    int have = 0, padding = 0;
    while (have < 4) {
      if (text_.empty()) end();
      const char c = text_[0];
      text_.remove_prefix(1);
      if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
      const int d = digit(c);
      if (c == '=' && have >= 2)
        ++padding;
      else if (d < 0 || padding > 0)
        in_.fail(fmt::format("found {} in base64 data", in_quotes(std::string_view(&c, 1))));
      bits = bits << 6 | static_cast<std::uint32_t>(std::max(d, 0));
      ++have;
    }
    for (int k = 0; k < 3; ++k) buffer_[k] = static_cast<std::uint8_t>(bits >> (16 - 8 * k));
    size_ = left_ = 3 - padding;
  }

  const Cursor& in_;
  std::string_view text_;
  bool base64_;
  std::uint8_t buffer_[3]{};
  int size_ = 0, left_ = 0;
};

}  // namespace limber::io
