// The spec table as JSON Schema 2020-12, for editors.
#include <limber/material/evaluate.hpp>
#include <limber/material/lame.hpp>
#include <limber/scene/spec.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>

namespace limber {
namespace {

Json schema_of(const SpecNode& at);

// JSON Schema writes whole numbers without a point.
Json plain_number(double v) {
  if (v == std::floor(v) && std::abs(v) < 1e15) return static_cast<std::int64_t>(v);
  return v;
}

void add_range(Json& out, const Range& r) {
  if (std::isfinite(r.min)) out[r.min_open ? "exclusiveMinimum" : "minimum"] = plain_number(r.min);
  if (std::isfinite(r.max)) out[r.max_open ? "exclusiveMaximum" : "maximum"] = plain_number(r.max);
}

Json list_of(Json item, std::size_t least, std::size_t most) {
  Json out;
  out["type"] = "array";
  out["items"] = std::move(item);
  out["minItems"] = least;
  out["maxItems"] = most;
  return out;
}

Json typed(const char* type) { return Json{{"type", type}}; }

// `range`: of the place where the value stands.
Json leaf(Type type, const Entry& entry, const Range& range) {
  const auto number = [&](const char* name) {
    Json out = typed(name);
    add_range(out, range);
    return out;
  };
  const auto text = [] {
    Json out = typed("string");
    out["minLength"] = 1;
    return out;
  };
  const std::size_t count = static_cast<std::size_t>(entry.count);
  switch (type) {
    case Type::kBoolean:
      return typed("boolean");
    case Type::kInteger:
      return number("integer");
    case Type::kNumber:
      return number("number");
    case Type::kName: {
      Json out = typed("string");
      out["pattern"] = "^[A-Za-z0-9_-][A-Za-z0-9._-]*$";
      out["maxLength"] = 100;
      return out;
    }
    case Type::kFile:
    case Type::kFormula:
    case Type::kEnergy:
      return text();
    case Type::kNumberOrFormula:
      return Json{{"anyOf", Json::array({number("number"), text()})}};
    case Type::kEnum:
    case Type::kTag:
      return Json{{"enum", split_words(entry.values)}};
    case Type::kNumbers:
      return list_of(number("number"), count, count);
    case Type::kIntegers:
      return list_of(number("integer"), count, count);
    case Type::kScale:
      return Json{{"anyOf", Json::array({number("number"), list_of(number("number"), 3, 3)})}};
    case Type::kDirection:
      return Json{{"anyOf", Json::array({list_of(typed("number"), 3, 3), list_of(text(), 3, 3)})}};
    case Type::kNodeVector:
      return list_of(Json{{"anyOf", Json::array({typed("number"), text()})}}, 3, 3);
    case Type::kTimeValue:
    case Type::kExpected: {
      Json out = typed("array");
      Json bound = typed("number");
      bound["minimum"] = 0;
      out["prefixItems"] = type == Type::kTimeValue ? Json::array({bound, number("number")})
                                                    : Json::array({number("number"), bound});
      out["minItems"] = 2;
      out["maxItems"] = 2;
      return out;
    }
    case Type::kAny:
      return Json::object();
    default:
      return typed("string");
  }
}

Json properties_of(const SpecNode& node, std::string_view tag, Json& required) {
  Json out = Json::object();
  for (const SpecNode::Child& child : node.children) {
    const bool here = tag.empty() ? child.when.empty()
                                  : std::find(child.when.begin(), child.when.end(), tag) != child.when.end();
    if (!here) continue;
    out[child.key] = schema_of(*child.node);
    if (child.node->entry->required) required.push_back(child.key);
  }
  return out;
}

Json object_schema(const SpecNode& node) {
  Json out = typed("object");
  Json required = Json::array();
  out["properties"] = properties_of(node, "", required);
  if (!required.empty()) out["required"] = required;
  if (node.entry->least > 0) out["minProperties"] = node.entry->least;
  if (node.entry->most < 1000) out["maxProperties"] = node.entry->most;
  const SpecNode::Child* tag = node.tag();
  if (!tag) {
    out["additionalProperties"] = false;
    return out;
  }
  const Entry& entry = *tag->node->entry;
  Json cases = Json::array();
  for (const std::string& value : split_words(entry.values)) {
    Json needs = Json::array(), then;
    then["properties"] = properties_of(node, value, needs);
    if (then["properties"].empty()) continue;
    if (!needs.empty()) then["required"] = needs;
    Json condition;
    condition["properties"][tag->key]["const"] = value;
    // Without the tag, the default one counts.
    if (entry.fallback.empty() || Json::parse(entry.fallback) != value)
      condition["required"] = Json::array({tag->key});
    cases.push_back(Json{{"if", condition}, {"then", then}});
  }
  if (!cases.empty()) out["allOf"] = cases;
  out["unevaluatedProperties"] = false;
  return out;
}

Json body_of(const SpecNode& node, const Range& range) {
  const Entry& entry = *node.entry;
  switch (entry.type) {
    case Type::kObject: {
      Json object = object_schema(node);
      if (entry.otherwise == Type::kNone) return object;
      return Json{{"anyOf", Json::array({leaf(entry.otherwise, entry, range), object})}};
    }
    case Type::kArray:
      return list_of(schema_of(*node.item), entry.least, entry.most);
    case Type::kList:
      return Json{{"anyOf", Json::array({schema_of(*node.item),
                                         list_of(schema_of(*node.item), entry.least, entry.most)})}};
    case Type::kMap: {
      Json out = typed("object");
      out["additionalProperties"] = schema_of(*node.item);
      return out;
    }
    default:
      return leaf(entry.type, entry, range);
  }
}

Json schema_of(const SpecNode& at) {
  const Entry& entry = *at.entry;
  Json out;
  if (entry.type == Type::kRef) {
    out["$ref"] = "#/$defs/" + std::string(entry.ref);
    add_range(out, entry.range);  // only says something about numbers
  } else {
    out = body_of(at, entry.range);
  }
  out["description"] =
      std::string(entry.text) + (entry.unit.empty() ? "" : " [" + std::string(entry.unit) + "]");
  if (!entry.fallback.empty()) out["default"] = Json::parse(entry.fallback);
  return out;
}

}  // namespace

std::string json_schema() {
  Json out;
  out["$schema"] = "https://json-schema.org/draft/2020-12/schema";
  out["title"] = "Limber scene";
  out.update(schema_of(spec_root()));
  // What an included file brings need not be repeated.
  Json always = Json::array(), alone = Json::array();
  for (const Json& key : out["required"]) (key == "limber" ? always : alone).push_back(key);
  out["required"] = always;
  out["if"]["not"]["required"] = Json::array({"include"});
  if (!alone.empty()) out["then"]["required"] = alone;
  // Something must be there to be moved.
  for (const char* list : {"bodies", "links", "robots"}) {
    Json some;
    some["required"] = Json::array({list});
    some["properties"][list]["minItems"] = 1;
    out["then"]["anyOf"].push_back(some);
  }
  // Poisson's ratio below 0 is not for every model (material/lame.hpp).
  Json& body = out["properties"]["bodies"]["items"]["properties"]["material"];
  std::map<double, Json> models;  // by least ratio
  for (const auto& [name, meaning] : value_meanings("/bodies/*/material/model"))
    models[material::least_poisson(name)].push_back(name);
  for (const auto& [least, names] : models) {
    if (least <= -1) continue;
    Json condition;
    condition["properties"]["model"]["enum"] = names;
    // Without a model, the default one counts.
    if (std::find(names.begin(), names.end(), body["properties"]["model"]["default"]) == names.end())
      condition["required"] = Json::array({"model"});
    Json then;
    then["properties"]["poisson"]["minimum"] = plain_number(least);
    body["allOf"].push_back(Json{{"if", condition}, {"then", then}});
  }
  for (const auto& [name, node] : spec_definitions()) {
    Json definition = body_of(*node, {});
    definition["description"] = std::string(node->entry->text);
    out["$defs"][name] = definition;
  }
  return out.dump(2) + "\n";
}

}  // namespace limber
