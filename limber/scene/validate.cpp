// Walks a scene along the spec table: checks every value, fills in every default.
#include <limber/core/error.hpp>
#include <limber/material/energy_formula.hpp>
#include <limber/material/own_energy.hpp>
#include <limber/scene/formula.hpp>
#include <limber/scene/load.hpp>
#include <limber/scene/spec.hpp>
#include <limber/scene/suggest.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

std::string shown(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return fmt::format("a list of {}", value.size());
    case Json::value_t::string: {
      const std::string text = value.dump();
      return text.size() <= 60 ? text : text.substr(0, 40) + "...\"";
    }
    default:
      return value.dump();
  }
}

bool is_number_text(const Json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0;
}

class Walker {
 public:
  Walker(const Marks& marks, std::vector<Problem>& problems) : marks_(marks), problems_(problems) {}

  Json walk(const SpecNode& at, const Json& value, const std::string& pointer) {
    const SpecNode& node = follow(at);
    const Entry& entry = *node.entry;
    const Entry& outer = *at.entry;  // where a definition is used: unit and range are the ones from there
    switch (entry.type) {
      case Type::kObject:
        if (value.is_object()) return object(node, value, pointer);
        if (entry.otherwise != Type::kNone) return leaf(entry.otherwise, entry, outer, value, pointer);
        break;
      case Type::kList:
        if (!value.is_array()) {
          Json out = Json::array();
          out.push_back(walk(*node.item, value, pointer));
          return out;
        }
        return array(node, value, pointer);
      case Type::kArray:
        if (value.is_array()) return array(node, value, pointer);
        break;
      case Type::kMap:
        if (value.is_object()) {
          Json out = Json::object();
          for (const auto& [key, child] : value.items())
            out[key] = walk(*node.item, child, pointer + "/" + escape_key(key));
          return out;
        }
        break;
      default:
        return leaf(entry.type, entry, outer, value, pointer);
    }
    mismatch(entry, outer, value, pointer);
    return value;
  }

 private:
  void problem(const std::string& pointer, const std::string& message) {
    problems_.push_back({marks_.find(pointer), pointer, message});
  }

  void mismatch(const Entry& entry, const Entry& outer, const Json& value, const std::string& pointer) {
    std::string hint;
    if (is_number_text(value))
      hint = "; remove the quotes";
    else if (value.is_string() && entry.otherwise == Type::kEnum)
      hint = fmt::format("; a named set is written {{\"set\": {}}}", shown(value));
    problem(pointer, fmt::format("expected {}, found {}{}", expected_text(entry, outer), shown(value), hint));
  }

  void default_in(Json& out, const SpecNode& node, const std::string& key, const std::string& pointer) {
    // Defaults go through the same checks and fill their own objects.
    if (!node.entry->fallback.empty())
      out[key] = walk(node, Json::parse(node.entry->fallback), pointer + "/" + escape_key(key));
  }

  Json object(const SpecNode& node, const Json& value, const std::string& pointer) {
    Json out = Json::object();
    std::string tag;
    bool tag_known = true;
    if (const SpecNode::Child* child = node.tag()) {
      const Entry& entry = *child->node->entry;
      const auto given = value.find(child->key);
      if (given != value.end() && given->is_string())
        tag = given->get<std::string>();
      else if (given == value.end() && !entry.fallback.empty())
        tag = Json::parse(entry.fallback).get<std::string>();
      const std::vector<std::string> known = split_words(entry.values);
      tag_known = std::find(known.begin(), known.end(), tag) != known.end();
    }
    for (const SpecNode::Child& child : node.children) {
      if (!child.when.empty() && std::find(child.when.begin(), child.when.end(), tag) == child.when.end())
        continue;
      const auto given = value.find(child.key);
      if (given != value.end()) {
        out[child.key] = walk(*child.node, *given, pointer + "/" + escape_key(child.key));
      } else if (child.node->entry->required) {
        const Entry& missing = *child.node->entry;
        problem(pointer, fmt::format("\"{}\" is missing: expected {}; {}", child.key,
                                     expected_text(*follow(*child.node).entry, missing), missing.text));
      } else {
        default_in(out, *child.node, child.key, pointer);
      }
    }
    std::size_t known_keys = 0;
    for (const auto& [key, child] : value.items()) {
      if (node.child(key, tag))
        ++known_keys;
      else if (tag_known || !belongs_to_some_tag(node, key))
        unknown_key(node, key, tag, pointer);
    }
    const Entry& entry = *node.entry;
    if (known_keys < entry.least || known_keys > entry.most) {
      std::string keys;
      for (const SpecNode::Child& child : node.children) keys += (keys.empty() ? "" : ", ") + child.key;
      problem(pointer, fmt::format("expected {} of {}, found {}", entry.most == 1 ? "one" : "at least one",
                                   keys, known_keys));
    }
    relations(entry.path, out, pointer);
    return out;
  }

  // What must hold between the values of one object. Values of the wrong form have been reported already.
  void relations(std::string_view path, const Json& o, const std::string& pointer) {
    const auto numbers_of = [&](const char* key) {
      std::vector<double> values;
      if (o.contains(key) && o[key].is_array())
        for (const Json& v : o[key]) values.push_back(v.is_number() ? v.get<double>() : NAN);
      return values;
    };
    const auto number_of = [&](const char* key) {
      return o.contains(key) && o[key].is_number() ? o[key].get<double>() : NAN;
    };
    if (path == "#selection/box") {
      const std::vector<double> low = numbers_of("min"), high = numbers_of("max");
      for (std::size_t i = 0; i < std::min(low.size(), high.size()); ++i)
        if (low[i] > high[i])
          return problem(pointer, fmt::format("min {} is more than max {} on axis {}; swap them", low[i],
                                              high[i], "xyz"[std::min<std::size_t>(i, 2)]));
    } else if (path == "#varying/layers") {
      const std::vector<double> bounds = numbers_of("bounds"), values = numbers_of("values");
      if (!values.empty() && values.size() != bounds.size() + 1)
        problem(pointer + "/values", fmt::format("expected {} values (one more than bounds), found {}",
                                                 bounds.size() + 1, values.size()));
      for (std::size_t i = 1; i < bounds.size(); ++i)
        if (!(bounds[i - 1] < bounds[i]))
          return problem(pointer + "/bounds",
                         fmt::format("bounds must ascend, but {} follows {}", bounds[i], bounds[i - 1]));
    } else if (number_of("tube_radius") >= number_of("radius")) {
      problem(pointer + "/tube_radius", fmt::format("must be less than the radius {}", number_of("radius")));
    } else if (number_of("until") <= number_of("from")) {
      problem(pointer + "/until",
              fmt::format("{} s is not after \"from\", {} s", number_of("until"), number_of("from")));
    } else if (path == "/time" && number_of("step") > number_of("end")) {
      problem(pointer + "/end", fmt::format("the end {} s is before the first step of {} s ends",
                                            number_of("end"), number_of("step")));
    } else if (path == "/time" && number_of("step") > 0 &&
               number_of("end") / number_of("step") > static_cast<double>(kMostSteps)) {
      problem(pointer + "/end", fmt::format("{} s is {:.3g} steps of {} s; a run has at most {:.0e}",
                                            number_of("end"), number_of("end") / number_of("step"),
                                            number_of("step"), static_cast<double>(kMostSteps)));
    }
    for (const char* list : {"motion", "keys"}) ascending(o, list, pointer);
    const std::vector<double> normal = numbers_of("normal");
    if (!normal.empty() && std::all_of(normal.begin(), normal.end(), [](double v) { return v == 0; }))
      problem(pointer + "/normal", "a normal must not be zero");
  }

  void ascending(const Json& o, const char* key, const std::string& pointer) {
    if (!o.contains(key) || !o[key].is_array()) return;
    double last = -1;
    for (std::size_t i = 0; i < o[key].size(); ++i) {
      const Json& item = o[key][i];
      const Json& time = item.is_array() && !item.empty()         ? item[0]
                         : item.is_object() && item.contains("t") ? item["t"]
                                                                  : item;
      if (!time.is_number()) return;
      const double t = time.get<double>();
      if (t <= last)
        return problem(fmt::format("{}/{}/{}", pointer, key, i),
                       fmt::format("times must ascend, but {} s follows {} s", t, last));
      last = t;
    }
  }

  static bool belongs_to_some_tag(const SpecNode& node, std::string_view key) {
    return std::any_of(node.children.begin(), node.children.end(),
                       [&](const SpecNode::Child& c) { return c.key == key; });
  }

  void unknown_key(const SpecNode& node, const std::string& key, const std::string& tag,
                   const std::string& pointer) {
    const std::string at = pointer + "/" + escape_key(key);
    std::vector<std::string> known, owners;
    std::string alias_of;
    for (const SpecNode::Child& child : node.children) {
      if (!child.when.empty() && std::find(child.when.begin(), child.when.end(), tag) == child.when.end()) {
        if (child.key == key) owners.insert(owners.end(), child.when.begin(), child.when.end());
        continue;
      }
      known.push_back(child.key);
      for (const std::string& alias : split_words(child.node->entry->aliases))
        if (edit_distance(alias, key) == 0) alias_of = child.key;
    }
    if (!owners.empty()) {
      const SpecNode::Child* tag_child = node.tag();
      return problem(at, fmt::format("a {} of \"{}\" has no such key; it belongs to {}", tag_child->key, tag,
                                     joined(owners, ", ")));
    }
    const std::string near = alias_of.empty() ? nearest_name(key, known) : alias_of;
    if (!near.empty()) {
      const std::string_view unit = node.child(near, tag)->entry->unit;
      return problem(at, fmt::format("unknown key, did you mean \"{}\"?{}", near,
                                     unit.empty() ? "" : fmt::format(" [{}]", unit)));
    }
    for (const Entry& entry : spec_entries())
      if (entry.path.ends_with("/" + key) && entry.path[0] == '/')
        return problem(at, fmt::format("unknown key; \"{}\" stands at {}", key, entry.path));
    problem(at, fmt::format("unknown key; known here: {}", joined(known, ", ")));
  }

  Json array(const SpecNode& node, const Json& value, const std::string& pointer) {
    const Entry& entry = *node.entry;
    const Entry& item = *follow(*node.item).entry;
    if (item.type == Type::kNumbers && value.size() == static_cast<std::size_t>(item.count) &&
        std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_number(); })) {
      problem(pointer, fmt::format("expected a list of such lists, found one: write [{}]", value.dump()));
      return Json::array();
    }
    if (value.size() < entry.least)
      problem(pointer, fmt::format("expected at least {} item{}, found {}", entry.least,
                                   entry.least == 1 ? "" : "s", value.size()));
    if (value.size() > entry.most)
      problem(pointer, fmt::format("expected at most {} items, found {}", entry.most, value.size()));
    Json out = Json::array();
    for (std::size_t i = 0; i < value.size(); ++i)
      out.push_back(walk(*node.item, value[i], fmt::format("{}/{}", pointer, i)));
    return out;
  }

  bool numbers(const Entry& outer, const Json& value, const std::string& pointer, bool whole) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (whole ? !value[i].is_number_integer() : !value[i].is_number()) return false;
      if (!outer.range.holds(value[i].get<double>()))
        problem(fmt::format("{}/{}", pointer, i),
                fmt::format("expected a number {}{}, found {}", range_text(outer.range),
                            outer.unit.empty() ? "" : fmt::format(" [{}]", outer.unit), shown(value[i])));
    }
    return true;
  }

  bool formula(const Json& value, const std::string& pointer) {
    try {
      Formula(value.get<std::string>());
    } catch (const Error& e) {
      problem(pointer, e.what());
    }
    return true;
  }

  bool energy(const Json& value, const std::string& pointer) {
    try {
      const auto parsed = material::parse_energy(value.get<std::string>());
      if (const std::string why = material::rest_misfit(material::rest_state(*parsed, 1e5, 1e5));
          !why.empty())
        problem(pointer, fmt::format("{} (with mu = lambda = 1e5 Pa)", why));
    } catch (const Error& e) {
      problem(pointer, e.what());
    }
    return true;
  }

  // Whether the value has the right form; what is wrong inside is reported here.
  bool fits(Type type, const Entry& entry, const Entry& outer, const Json& value,
            const std::string& pointer) {
    switch (type) {
      case Type::kBoolean:
        return value.is_boolean();
      case Type::kInteger:
        // 3.0 counts as whole: other programs write it so.
        return (value.is_number_integer() ||
                (value.is_number() && value.get<double>() == std::floor(value.get<double>()) &&
                 std::abs(value.get<double>()) < 9e15)) &&
               outer.range.holds(value.get<double>());
      case Type::kNumber:
        return value.is_number() && outer.range.holds(value.get<double>());
      case Type::kString:
        return value.is_string();
      case Type::kName:
        return value.is_string() && is_plain_name(value.get_ref<const std::string&>());
      case Type::kFile:
        return value.is_string() && !value.get_ref<const std::string&>().empty() &&
               value.get_ref<const std::string&>().find('\0') == std::string::npos;
      case Type::kFormula:
        return value.is_string() && formula(value, pointer);
      case Type::kEnergy:
        return value.is_string() && energy(value, pointer);
      case Type::kNumberOrFormula:
        if (value.is_number()) return outer.range.holds(value.get<double>());
        return value.is_string() && formula(value, pointer);
      case Type::kEnum:
      case Type::kTag: {
        if (!value.is_string()) return false;
        const std::vector<std::string> known = split_words(entry.values);
        const auto& text = value.get_ref<const std::string&>();
        if (std::find(known.begin(), known.end(), text) != known.end()) return true;
        const std::string near = nearest_name(text, known);
        if (near.empty()) return false;
        problem(pointer, fmt::format("found {}, did you mean \"{}\"?", shown(value), near));
        return true;
      }
      case Type::kNumbers:
      case Type::kIntegers:
        return value.is_array() && value.size() == static_cast<std::size_t>(entry.count) &&
               numbers(outer, value, pointer, type == Type::kIntegers);
      case Type::kScale:
        if (value.is_number()) return outer.range.holds(value.get<double>());
        return value.is_array() && value.size() == 3 && numbers(outer, value, pointer, false);
      case Type::kDirection: {
        if (!value.is_array() || value.size() != 3) return false;
        const bool texts =
            std::all_of(value.begin(), value.end(), [](const Json& v) { return v.is_string(); });
        if (!texts && !numbers(outer, value, pointer, false)) return false;
        for (std::size_t i = 0; i < 3 && texts; ++i) formula(value[i], fmt::format("{}/{}", pointer, i));
        if (!texts && value[0].get<double>() == 0 && value[1].get<double>() == 0 &&
            value[2].get<double>() == 0)
          problem(pointer, "the direction must not be zero");
        return true;
      }
      case Type::kNodeVector:
        if (!value.is_array() || value.size() != 3) return false;
        for (std::size_t i = 0; i < 3; ++i) {
          if (!value[i].is_number() && !value[i].is_string()) return false;
          if (value[i].is_string()) formula(value[i], fmt::format("{}/{}", pointer, i));
        }
        return true;
      case Type::kTimeValue:
        return value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number() &&
               value[0].get<double>() >= 0 && outer.range.holds(value[1].get<double>());
      case Type::kExpected:
        return value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number() &&
               value[1].get<double>() >= 0;
      case Type::kAny:
        return true;
      default:
        return false;
    }
  }

  Json leaf(Type type, const Entry& entry, const Entry& outer, const Json& value,
            const std::string& pointer) {
    if (!fits(type, entry, outer, value, pointer)) {
      mismatch(entry, outer, value, pointer);
    } else if (type == Type::kScale && value.is_number()) {
      return Json::array({value, value, value});
    } else if (type == Type::kInteger && !value.is_number_integer()) {
      return static_cast<std::int64_t>(value.get<double>());
    }
    return value;
  }

  const Marks& marks_;
  std::vector<Problem>& problems_;
};

void files_in(const SpecNode& at, Json& value, const std::string& pointer,
              const std::function<void(Json&, const std::string&)>& f) {
  const SpecNode& node = follow(at);
  const Type type = node.entry->type;
  if (type == Type::kFile || (node.entry->otherwise == Type::kFile && value.is_string())) {
    f(value, pointer);
  } else if (type == Type::kObject && value.is_object()) {
    std::string tag;
    if (const SpecNode::Child* child = node.tag();
        child && value.contains(child->key) && value[child->key].is_string())
      tag = value[child->key].get<std::string>();
    for (auto& [key, child] : value.items())
      if (const SpecNode* next = node.child(key, tag))
        files_in(*next, child, pointer + "/" + escape_key(key), f);
  } else if (value.is_array() && node.item) {
    for (std::size_t i = 0; i < value.size(); ++i)
      files_in(*node.item, value[i], fmt::format("{}/{}", pointer, i), f);
  } else if (value.is_object() && node.item) {
    for (auto& [key, child] : value.items()) files_in(*node.item, child, pointer + "/" + escape_key(key), f);
  }
}

}  // namespace

Json apply_spec(const Json& scene, const Marks& marks, std::vector<Problem>& problems) {
  return Walker(marks, problems).walk(spec_root(), scene, "");
}

void for_each_file(Json& resolved, const std::function<void(Json& value, const std::string& pointer)>& f) {
  files_in(spec_root(), resolved, "", f);
}

}  // namespace limber
