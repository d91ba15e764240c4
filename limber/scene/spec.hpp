// The scene format as one table. Parsing, defaults, validation, the JSON Schema and the reference page all
// come from it (spec_table.cpp); nothing about the format is written down anywhere else.
#pragma once

#include <limber/scene/json_text.hpp>
#include <limber/scene/scene.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace limber {

enum class Type {
  kNone,
  kBoolean,
  kInteger,
  kNumber,
  kString,
  kName,             // letters, digits, . _ -: it becomes a folder or file name
  kFile,             // relative to the file it is written in
  kFormula,          // of x, y, z
  kEnergy,           // a formula of invariants (material/energy_formula.hpp)
  kNumberOrFormula,  //
  kEnum,             // one of `values`
  kTag,              // one of `values`; decides which other keys its object may have
  kNumbers,          // `count` of them
  kIntegers,         // `count` of them
  kScale,            // a number, or three; three in the resolved scene
  kDirection,        // three numbers or three formulas, not zero
  kNodeVector,       // three numbers or formulas
  kTimeValue,        // [time, value]; range and unit are the value's
  kExpected,         // [value, tolerance]
  kAny,              // checked elsewhere
  kObject,           // keys: the entries below it
  kArray,            // items: the entry below it called *
  kList,             // the same, but one item may stand without the brackets
  kMap,              // names of the user's choice; values: the entry below it called *
  kRef,              // a definition (`ref`), shared by several places
};

struct Entry {
  // "/bodies/*/mesh[sphere,torus]/radius": * is a list item or map value; [..] says that the key belongs to
  // an object only if the object's tag is one of these. Definitions begin with "#name" instead of "/".
  std::string_view path;
  Type type = Type::kNone;
  std::string_view unit = "";
  std::string_view fallback = "";  // the default as JSON; empty: none
  bool required = false;
  Range range = {};
  std::string_view values = "";    // of kEnum and kTag: "a b c"
  std::string_view meanings = "";  // of the values, one line each, for listings
  int count = 3;                   // of kNumbers and kIntegers
  std::size_t least = 0;           // items of a list, keys of an object
  std::size_t most = 1000000;
  std::string_view ref = "";      // of kRef; of kObject: a definition whose keys it has as well
  Type otherwise = Type::kNone;   // of kObject: a shorter form
  std::string_view aliases = "";  // what people write instead; only for suggestions
  std::string_view text = "";     // one line of description
};

// Short forms for tables.
namespace ranges {
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Range above(double min) { return {min, kInf, true, false}; }
constexpr Range at_least(double min) { return {min, kInf, false, false}; }
constexpr Range within(double min, double max) { return {min, max, false, false}; }
constexpr Range inside(double min, double max) { return {min, max, true, true}; }
}  // namespace ranges

// All rows: those of spec_table.cpp, and those of the methods.
std::span<const Entry> spec_entries();
int spec_version();  // changes when a method or a material is added

// The table as a tree.
struct SpecNode {
  struct Child {
    std::string key;
    std::vector<std::string> when;  // values of the parent's tag; empty: always
    std::unique_ptr<SpecNode> node;
  };
  const Entry* entry = nullptr;
  std::vector<Child> children;     // of an object, in the order of the table
  std::unique_ptr<SpecNode> item;  // of a list or map

  const Child* tag() const;                                                 // the child of type kTag, if any
  const SpecNode* child(std::string_view key, std::string_view tag) const;  // nullptr: no such key
};

const SpecNode& spec_root();
const SpecNode& spec_definition(std::string_view name);
// Definitions in the order of the table.
const std::vector<std::pair<std::string, std::unique_ptr<SpecNode>>>& spec_definitions();
// The node itself, or the definition it refers to.
const SpecNode& follow(const SpecNode& node);

// The values of an entry and what they mean, for listings.
std::vector<std::pair<std::string, std::string>> value_meanings(std::string_view path);

std::vector<std::string> split_words(std::string_view text, char separator = ' ');
// Whether it is one as kName says: folders and files are called so.
bool is_plain_name(std::string_view text);
// "(0, 0.5)", "more than 0", "at least 0"; empty without bounds.
std::string range_text(const Range& range);
// What a value of this entry looks like: `a number more than 0 [Pa]`. `outer`: the entry that refers to it.
std::string expected_text(const Entry& entry, const Entry& outer);

// Checks a scene (after includes and overrides) against the table. Returns it with all defaults filled in and
// keys in the order of the table, and adds everything that is wrong to `problems`.
Json apply_spec(const Json& scene, const Marks& marks, std::vector<Problem>& problems);

// Calls f(value, pointer) for every file name in a resolved scene.
void for_each_file(Json& resolved, const std::function<void(Json& value, const std::string& pointer)>& f);

// What editors read, and what people read.
std::string json_schema();
std::string scene_reference();

}  // namespace limber
