#include <limber/scene/json_text.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cstdint>

namespace limber {

Mark Marks::find(std::string pointer) const {
  for (;;) {
    const auto found = at_.find(pointer);
    if (found != at_.end()) return found->second;
    if (pointer.empty()) return {};
    pointer.resize(pointer.rfind('/'));
  }
}

void Marks::copy(const Marks& from, const std::string& pointer, const Json& value) {
  const auto found = from.at_.find(pointer);
  if (found != from.at_.end())
    at_[pointer] = found->second;
  else
    at_.erase(pointer);
  if (value.is_object()) {
    for (const auto& [key, child] : value.items()) copy(from, pointer + "/" + escape_key(key), child);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) copy(from, fmt::format("{}/{}", pointer, i), value[i]);
  }
}

std::string escape_key(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~')
      out += "~0";
    else if (c == '/')
      out += "~1";
    else
      out += c;
  }
  return out;
}

std::string place(const Mark& mark, const std::string& pointer) {
  std::string out = mark.file;
  if (mark.line > 0) out += fmt::format("{}{}", out.empty() ? "line " : ":", mark.line);
  if (!pointer.empty()) out += (out.empty() ? "" : ": ") + pointer;
  return out;
}

std::string to_string(const Problem& problem) {
  const std::string at = place(problem.mark, problem.pointer);
  return at.empty() ? problem.message : at + ": " + problem.message;
}

namespace {

struct SyntaxError {};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file, Marks& marks, std::vector<Problem>& problems,
         const JsonLimits& limits)
      : text_(text), file_(file), marks_(marks), problems_(problems), limits_(limits) {}

  Json run() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // byte order mark
    space();
    Json value = this->value();
    space();
    if (at_ < text_.size()) fail("expected the end of the file after the scene's closing brace");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& message) {
    std::string found;
    if (at_ >= text_.size()) {
      found = ", found the end of the file";
    } else if (static_cast<unsigned char>(text_[at_]) < 0x20) {
      found = text_[at_] == '\n' || text_[at_] == '\r' ? ", found the end of the line"
                                                       : fmt::format(", found the byte {:#04x}", text_[at_]);
    } else {
      std::size_t end = at_ + 1;
      while (end < text_.size() && end - at_ < 20 && static_cast<unsigned char>(text_[end]) > 0x20 &&
             std::string_view(",:{}[]\"").find(text_[end]) == std::string_view::npos)
        ++end;
      while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
      found = ", found " + std::string(text_.substr(at_, end - at_));
    }
    problems_.push_back({{file_, line_}, pointer_, message + found});
    throw SyntaxError{};
  }

  bool at(std::string_view token) const { return text_.substr(at_, token.size()) == token; }

  void space() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
      } else if (at("//")) {
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (at("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) fail("a comment that begins with /* needs its */");
        for (; at_ <= end; ++at_) line_ += text_[at_] == '\n';
      } else if (c != ' ' && c != '\t' && c != '\r') {
        return;
      }
    }
  }

  Json value() {
    if (at_ >= text_.size()) fail("expected a value");
    const char c = text_[at_];
    if (c == '{') return object();
    if (c == '[') return array();
    if (c == '"') return string();
    if (c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9')) return number();
    const auto word = [&](std::string_view w) {
      if (!at(w)) return false;
      const char next = at_ + w.size() < text_.size() ? text_[at_ + w.size()] : ' ';
      return !(next == '_' || (next >= '0' && next <= '9') || (next >= 'a' && next <= 'z') ||
               (next >= 'A' && next <= 'Z'));
    };
    const auto taken = [&](std::string_view w) {
      if (!word(w)) return false;
      at_ += w.size();
      return true;
    };
    if (taken("true")) return true;
    if (taken("false")) return false;
    if (taken("null")) return nullptr;
    if (word("True") || word("False") || word("None")) fail("JSON spells it true, false, null");
    if (word("NaN") || word("nan") || word("Infinity") || word("inf") || word("Inf"))
      fail("expected a finite number");
    if (c == '\'') fail("text stands in double quotes");
    fail("expected a value (number, \"text\", true, false, [list] or {object})");
  }

  Json object() {
    const Enter enter(*this);
    Json out = Json::object();
    const std::size_t parent = pointer_.size();
    ++at_;
    space();
    if (at("}")) return ++at_, out;
    for (;;) {
      if (!at("\"")) fail("expected a key in double quotes");
      const int key_line = line_;
      const std::string key = string();
      pointer_ += "/" + escape_key(key);
      space();
      if (!at(":")) fail("expected : after the key");
      ++at_;
      space();
      if (out.size() >= limits_.keys) fail(fmt::format("more than {} keys in one object", limits_.keys));
      if (out.contains(key))
        problems_.push_back({{file_, key_line},
                             pointer_,
                             fmt::format("the key is given twice, first on line {}; keep one of them",
                                         marks_.find(pointer_).line)});
      marks_.set(pointer_, {file_, key_line});
      out[key] = value();
      pointer_.resize(parent);
      space();
      if (at("}")) return ++at_, out;
      if (!at(",")) fail("expected , or }");
      ++at_;
      space();
      if (at("}")) fail("a comma before } is not allowed");
    }
  }

  Json array() {
    const Enter enter(*this);
    Json out = Json::array();
    const std::size_t parent = pointer_.size();
    const int list_line = line_;
    ++at_;
    space();
    if (at("]")) return ++at_, out;
    for (;;) {
      pointer_ += fmt::format("/{}", out.size());
      if (line_ != list_line) marks_.set(pointer_, {file_, line_});
      out.push_back(value());
      pointer_.resize(parent);
      space();
      if (at("]")) return ++at_, out;
      if (!at(",")) fail("expected , or ]");
      ++at_;
      space();
      if (at("]")) fail("a comma before ] is not allowed");
    }
  }

  void digits() {
    if (at_ >= text_.size() || text_[at_] < '0' || text_[at_] > '9') fail("expected a digit");
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
  }

  Json number() {
    const std::size_t start = at_;
    bool whole = true;
    const auto fail_here = [&](const char* why) {
      at_ = start;
      fail(why);
    };
    if (at("+")) fail_here("a number has no leading +");
    if (at("-")) ++at_;
    if (at("Inf") || at("inf")) fail_here("expected a finite number");
    if (at(".")) fail_here("a number needs a digit before the point");
    if (at("0") && at_ + 1 < text_.size() && text_[at_ + 1] >= '0' && text_[at_ + 1] <= '9')
      fail_here("a number has no leading zero");
    digits();
    if (at(".")) {
      whole = false;
      ++at_;
      digits();
    }
    if (at("e") || at("E")) {
      whole = false;
      ++at_;
      if (at("+") || at("-")) ++at_;
      digits();
    }
    const char *first = text_.data() + start, *last = text_.data() + at_;
    if (whole) {
      std::int64_t i = 0;
      if (std::from_chars(first, last, i).ec == std::errc()) return i;
    }
    double d = 0;
    const auto r = std::from_chars(first, last, d);
    if (r.ec == std::errc::result_out_of_range) {
      // Too small is zero; too large has no double.
      const std::string copy(first, last);
      d = std::strtod(copy.c_str(), nullptr);
      if (d > 1 || d < -1) fail_here("expected a number that a double can hold");
    }
    return d;
  }

  unsigned hex4() {
    unsigned value = 0;
    if (text_.size() - at_ < 4) fail("expected four hexadecimal digits after \\u");
    const auto r = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, value, 16);
    if (r.ec != std::errc() || r.ptr != text_.data() + at_ + 4)
      fail("expected four hexadecimal digits after \\u");
    at_ += 4;
    return value;
  }

  void append_utf8(std::string& out, unsigned code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0 | code >> 6);
      out += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
      out += static_cast<char>(0xE0 | code >> 12);
      out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
      out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
      out += static_cast<char>(0xF0 | code >> 18);
      out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
      out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
      out += static_cast<char>(0x80 | (code & 0x3F));
    }
  }

  // Bytes of the UTF-8 sequence that begins at at_; 0 when it is not one.
  std::size_t utf8_length() const {
    const auto byte = [&](std::size_t i) {
      return i < text_.size() ? static_cast<unsigned char>(text_[i]) : 0u;
    };
    const unsigned a = byte(at_), b = byte(at_ + 1);
    const auto tail = [&](std::size_t i) { return (byte(at_ + i) & 0xC0) == 0x80; };
    if (a >= 0xC2 && a <= 0xDF) return tail(1) ? 2 : 0;
    if (a >= 0xE0 && a <= 0xEF) {
      const bool fits = !(a == 0xE0 && b < 0xA0) && !(a == 0xED && b > 0x9F);  // overlong, surrogates
      return tail(1) && tail(2) && fits ? 3 : 0;
    }
    if (a >= 0xF0 && a <= 0xF4) {
      const bool fits = !(a == 0xF0 && b < 0x90) && !(a == 0xF4 && b > 0x8F);
      return tail(1) && tail(2) && tail(3) && fits ? 4 : 0;
    }
    return 0;
  }

  std::string string() {
    std::string out;
    ++at_;
    for (;;) {
      if (at_ >= text_.size()) fail("expected the closing quote of a text");
      const unsigned char c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') {
        ++at_;
        return out;
      }
      if (c < 0x20) fail("expected the closing quote of a text on the same line");
      if (c == '\\') {
        ++at_;
        if (at_ >= text_.size()) fail("expected the closing quote of a text");
        const char e = text_[at_++];
        const std::string_view codes = "\"\\/bfnrt", meaning = "\"\\/\b\f\n\r\t";
        const std::size_t which = codes.find(e);
        if (which != std::string_view::npos) {
          out += meaning[which];
        } else if (e == 'u') {
          unsigned code = hex4();
          if (code >= 0xD800 && code < 0xDC00 && at("\\u")) {
            at_ += 2;
            const unsigned low = hex4();
            code =
                low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xD800;
          }
          if (code >= 0xD800 && code < 0xE000) fail("\\u escapes of a surrogate pair do not fit together");
          append_utf8(out, code);
        } else {
          --at_;
          fail("unknown escape after \\ (a backslash itself is written \\\\)");
        }
      } else if (c < 0x80) {
        out += text_[at_++];
      } else {
        const std::size_t length = utf8_length();
        if (length == 0) {
          problems_.push_back({{file_, line_}, pointer_, "the text is not valid UTF-8"});
          throw SyntaxError{};
        }
        out += text_.substr(at_, length);
        at_ += length;
      }
    }
  }

  struct Enter {
    explicit Enter(Parser& p) : p_(p) {
      if (++p_.depth_ > p_.limits_.depth)
        p_.fail(fmt::format("nested more than {} levels deep", p_.limits_.depth));
    }
    ~Enter() { --p_.depth_; }
    Parser& p_;
  };

  std::string_view text_;
  const std::string& file_;
  Marks& marks_;
  std::vector<Problem>& problems_;
  const JsonLimits& limits_;
  std::size_t at_ = 0;
  int line_ = 1, depth_ = 0;
  std::string pointer_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& file, Marks& marks, std::vector<Problem>& problems,
                const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    problems.push_back({{file, 0},
                        "",
                        fmt::format("{} bytes are too many for a scene (at most {}); keep meshes "
                                    "and arrays in files of their own",
                                    text.size(), limits.bytes)});
    return Json(Json::value_t::discarded);
  }
  marks.set("", {file, 1});
  try {
    return Parser(text, file, marks, problems, limits).run();
  } catch (const SyntaxError&) {
    return Json(Json::value_t::discarded);
  }
}

}  // namespace limber
