// JSON text to values, remembering on which line everything stands, so that messages can say so.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace limber {

using Json = nlohmann::ordered_json;  // keeps the order of keys, for files that people read

// Where a value was written. Line 0: not in a file (the command line).
struct Mark {
  std::string file;
  int line = 0;
};

// JSON pointer -> where. A list item on the line of its list has no entry of its own.
class Marks {
 public:
  void set(const std::string& pointer, Mark mark) { at_[pointer] = std::move(mark); }
  void erase(const std::string& pointer) { at_.erase(pointer); }
  // Of the value, or of the nearest one around it.
  Mark find(std::string pointer) const;
  // Takes over the marks of `value` at `pointer` and everything inside it.
  void copy(const Marks& from, const std::string& pointer, const Json& value);

 private:
  std::unordered_map<std::string, Mark> at_;
};

// One thing that is wrong with a scene.
struct Problem {
  Mark mark;
  std::string pointer;  // JSON pointer, e.g. /bodies/0/material/young
  std::string message;
};

// `scene.json:14: /bodies/0/material/youngs: unknown key, did you mean "young"? [Pa]`
std::string to_string(const Problem& problem);
std::string place(const Mark& mark, const std::string& pointer);
std::string escape_key(std::string_view key);  // of a JSON pointer: ~ and /

struct JsonLimits {
  std::size_t bytes = std::size_t{16} << 20;
  int depth = 64;
  std::size_t keys = 10000;  // of one object
};

// Parses JSON with // and /* */ comments. Duplicate keys are problems, the later value wins; at the first
// error of syntax the rest is not read and the result is discarded (is_discarded()).
Json parse_json(std::string_view text, const std::string& file, Marks& marks, std::vector<Problem>& problems,
                const JsonLimits& limits = {});

}  // namespace limber
