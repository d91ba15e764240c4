// A place in a file that is being read, for the readers of limber/io. Nothing is believed before it is
// checked: a count is compared with the bytes that are left, so that no file can make a reader allocate more
// than a small multiple of its own size.
#pragma once

#include <limber/core/types.hpp>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

namespace limber::io {

class Cursor {
 public:
  Cursor(const std::string& name, std::string_view data) : name_(name), data_(data) {}

  const std::string& name() const { return name_; }
  std::size_t position() const { return at_; }
  void seek(std::size_t position) { at_ = std::min(position, data_.size()); }
  std::size_t remaining() const { return data_.size() - at_; }
  std::string_view rest() const { return data_.substr(at_); }
  bool at_end() const { return at_ == data_.size(); }

  // --- text
  // From `mark` to the end of the line is a comment ('#'), everywhere from now on.
  void comments(char mark) { comment_ = mark; }
  // Skips white space, ends of lines and comments; false at the end of the file.
  bool skip_space();
  // Skips blanks and a comment, but stays in the line; true when something is left in it.
  bool more_in_line();
  // Up to the next white space. Empty at the end of the file.
  std::string_view token();
  std::string_view token(const char* expected);  // an error when there is none
  // The rest of the line, without its end.
  std::string_view line();
  double number(const char* what);
  std::int64_t integer(const char* what, std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t most = std::numeric_limits<std::int64_t>::max());
  Vec3 point(const char* what);
  void expect(std::string_view word);

  // --- binary
  void swap_bytes(bool on) { swap_ = on; }
  std::string_view bytes(std::size_t n, const char* what);
  template <class T>
  T read(const char* what) {
    static_assert(std::is_arithmetic_v<T>);
    char raw[sizeof(T)];
    std::memcpy(raw, bytes(sizeof(T), what).data(), sizeof(T));
    if (swap_)
      for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(raw[i], raw[sizeof(T) - 1 - i]);
    T value;
    std::memcpy(&value, raw, sizeof(T));
    if constexpr (std::is_floating_point_v<T>) check_finite(value, what);
    return value;
  }

  // --- both
  // `n` as a count of things that take at least `least_bytes` each from here on.
  std::size_t count(std::int64_t n, std::size_t least_bytes, const char* what) const;
  // "file:line: message" or, for binary data, "file, byte n: message".
  [[noreturn]] void fail(const std::string& message) const;
  void binary(bool on) { binary_ = on; }

 private:
  void check_finite(double value, const char* what) const;
  void skip_comment();

  std::string name_;
  std::string_view data_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;  // of what was read last: the place an error names
  char comment_ = 0;
  bool swap_ = false, binary_ = false;
};

// A token as a number; an error of `cursor` when it is none.
double to_number(const Cursor& cursor, std::string_view text, const char* what);
std::int64_t to_integer(const Cursor& cursor, std::string_view text, const char* what);
// What was found, for messages: quoted, shortened, without control characters.
std::string in_quotes(std::string_view text);

}  // namespace limber::io
