#include <limber/scene/method_spec.hpp>
#include <limber/scene/spec.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <stdexcept>

namespace limber {
namespace {

using Definitions = std::vector<std::pair<std::string, std::unique_ptr<SpecNode>>>;

struct Tree {
  SpecNode root;
  Definitions definitions;
};

constexpr Entry kRootEntry{.path = "", .type = Type::kObject, .text = "A Limber scene."};

// Adds an entry below `node`; `path` is what is left of its path: "material/young".
void insert(SpecNode& node, std::string_view path, std::vector<std::string> when, const Entry& entry) {
  const std::size_t slash = path.find('/');
  std::string_view key = path.substr(0, slash);
  std::vector<std::string> next_when;
  if (const std::size_t bracket = key.find('['); bracket != std::string_view::npos) {
    std::string tags(key.substr(bracket + 1, key.size() - bracket - 2));
    std::replace(tags.begin(), tags.end(), ',', ' ');
    next_when = split_words(tags);
    key = key.substr(0, bracket);
  }
  SpecNode* next = nullptr;
  if (key == "*") {
    if (!node.item) node.item = std::make_unique<SpecNode>();
    next = node.item.get();
  } else {
    for (SpecNode::Child& c : node.children)
      if (c.key == key && (slash != std::string_view::npos || c.when == when)) next = c.node.get();
    if (!next) {
      node.children.push_back({std::string(key), std::move(when), std::make_unique<SpecNode>()});
      next = node.children.back().node.get();
    }
  }
  if (slash == std::string_view::npos)
    next->entry = &entry;
  else
    insert(*next, path.substr(slash + 1), std::move(next_when), entry);
}

Tree build() {
  Tree tree;
  tree.root.entry = &kRootEntry;
  const auto definition = [&](std::string_view name) -> SpecNode& {
    for (auto& [known, node] : tree.definitions)
      if (known == name) return *node;
    tree.definitions.emplace_back(std::string(name), std::make_unique<SpecNode>());
    return *tree.definitions.back().second;
  };
  for (const Entry& entry : spec_entries()) {
    if (entry.path[0] == '/') {
      insert(tree.root, entry.path.substr(1), {}, entry);
      continue;
    }
    const std::size_t slash = entry.path.find('/');
    SpecNode& node = definition(entry.path.substr(1, slash - 1));
    if (slash != std::string_view::npos)
      insert(node, entry.path.substr(slash + 1), {}, entry);
    else
      node.entry = &entry;
  }
  // A definition that builds on another one gets its keys after its own.
  for (const Entry& entry : spec_entries()) {
    if (entry.type != Type::kObject || entry.ref.empty() || entry.path[0] != '#') continue;
    const std::string base = fmt::format("#{}/", entry.ref);
    for (const Entry& inherited : spec_entries())
      if (inherited.path.starts_with(base))
        insert(definition(entry.path.substr(1)), inherited.path.substr(base.size()), {}, inherited);
  }
  return tree;
}

// A method that is registered makes a new tree; references into an old one stay good.
const Tree& tree() {
  static std::mutex mutex;
  static std::vector<std::pair<int, std::unique_ptr<const Tree>>> trees;
  const std::lock_guard lock(mutex);
  if (trees.empty() || trees.back().first != spec_version())
    trees.emplace_back(spec_version(), std::make_unique<const Tree>(build()));
  return *trees.back().second;
}

}  // namespace

const SpecNode::Child* SpecNode::tag() const {
  for (const Child& c : children)
    if (c.node->entry->type == Type::kTag) return &c;
  return nullptr;
}

const SpecNode* SpecNode::child(std::string_view key, std::string_view tag) const {
  for (const Child& c : children)
    if (c.key == key && (c.when.empty() || std::find(c.when.begin(), c.when.end(), tag) != c.when.end()))
      return c.node.get();
  return nullptr;
}

const SpecNode& spec_root() { return tree().root; }

const Definitions& spec_definitions() { return tree().definitions; }

const SpecNode& spec_definition(std::string_view name) {
  for (const auto& [known, node] : tree().definitions)
    if (known == name) return *node;
  throw std::logic_error("the spec table has no definition " + std::string(name));
}

const SpecNode& follow(const SpecNode& node) {
  return node.entry->type == Type::kRef ? spec_definition(node.entry->ref) : node;
}

std::vector<std::pair<std::string, std::string>> value_meanings(std::string_view path) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Entry& entry : spec_entries()) {
    if (entry.path != path) continue;
    const std::vector<std::string> meanings = split_words(entry.meanings, '\n');
    for (const std::string& value : split_words(entry.values))
      out.emplace_back(value, out.size() < meanings.size() ? meanings[out.size()] : "");
  }
  return out;
}

std::vector<std::string> split_words(std::string_view text, char separator) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) words.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

bool is_plain_name(std::string_view text) {
  return !text.empty() && text.size() <= 100 && text[0] != '.' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                  c == '_' || c == '-';
         });
}

std::string range_text(const Range& r) {
  const bool low = std::isfinite(r.min), high = std::isfinite(r.max);
  if (low && high && r.min == r.max) return fmt::format("equal to {}", r.min);
  if (low && high)
    return fmt::format("in {}{}, {}{}", r.min_open ? "(" : "[", r.min, r.max, r.max_open ? ")" : "]");
  if (low) return fmt::format("{} {}", r.min_open ? "more than" : "at least", r.min);
  if (high) return fmt::format("{} {}", r.max_open ? "less than" : "at most", r.max);
  return "";
}

std::string expected_text(const Entry& entry, const Entry& outer) {
  const std::string range = range_text(outer.range);
  const std::string suffix =
      (range.empty() ? "" : " " + range) + (outer.unit.empty() ? "" : fmt::format(" [{}]", outer.unit));
  const auto leaf = [&](Type type) -> std::string {
    const auto several = [&](const char* what) {
      return fmt::format("{} {}", entry.count == 2 ? "two" : "three", what) +
             (range.empty() ? "" : ", each " + range) +
             (outer.unit.empty() ? "" : fmt::format(" [{}]", outer.unit));
    };
    switch (type) {
      case Type::kBoolean:
        return "true or false";
      case Type::kInteger:
        return "a whole number" + suffix;
      case Type::kNumber:
        return "a number" + suffix;
      case Type::kString:
        return "a text";
      case Type::kName:
        return "a name of letters, digits, '.', '_' and '-'";
      case Type::kFile:
        return "a file name";
      case Type::kFormula:
        return "a formula of x, y, z";
      case Type::kEnergy:
        return "a formula of I1, I2, J, mu, lambda";
      case Type::kNumberOrFormula:
        return "a number" + suffix + " or a formula of x, y, z";
      case Type::kEnum:
      case Type::kTag: {
        std::string list;
        for (const std::string& v : split_words(entry.values))
          list += (list.empty() ? "\"" : ", \"") + v + "\"";
        return list.find(',') == std::string::npos ? list : "one of " + list;
      }
      case Type::kNumbers:
        return several("numbers");
      case Type::kIntegers:
        return several("whole numbers");
      case Type::kScale:
        return "a number or three numbers" + suffix;
      case Type::kDirection:
        return "three numbers or three formulas of x, y, z";
      case Type::kNodeVector:
        return "three numbers" + (outer.unit.empty() ? "" : fmt::format(" [{}]", outer.unit)) +
               " or formulas of x, y, z";
      case Type::kTimeValue:
        return "[time in s, number" + suffix + "]";
      case Type::kExpected:
        return "[number" + suffix + ", tolerance]";
      case Type::kAny:
        return "a value";
      case Type::kArray:
        return "a list";
      case Type::kList:
        return "a value or a list of them";
      default:
        return "an object";
    }
  };
  if (entry.otherwise != Type::kNone) return leaf(entry.otherwise) + ", or an object";
  return leaf(entry.type);
}

}  // namespace limber
