#include <limber/sim/method.hpp>

#include <limber/core/error.hpp>

#include <fmt/format.h>

namespace limber {
namespace {

struct MethodTable {
  std::vector<const Method*> all;
  int version = 0;
};

MethodTable& method_table() {
  static MethodTable table{{built_in_methods().begin(), built_in_methods().end()}, 0};
  return table;
}

}  // namespace

std::span<const Method* const> methods() { return method_table().all; }

void register_method(const Method& method) {
  for (const Method* m : methods())
    if (m->spec.name == method.spec.name)
      throw Error(ErrorKind::kUsage, fmt::format("there is a method \"{}\" already", method.spec.name));
  method_table().all.push_back(&method);
  ++method_table().version;
}

const Method& method_named(std::string_view name) {
  std::string names;
  for (const Method* m : methods()) {
    if (m->spec.name == name) return *m;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", m->spec.name);
  }
  throw Error(ErrorKind::kInput,
              fmt::format("/method/type: \"{}\" is not a method; expected one of {}", name, names));
}

std::vector<const MethodSpec*> method_specs() {
  std::vector<const MethodSpec*> out;
  for (const Method* m : methods()) out.push_back(&m->spec);
  return out;
}

int methods_version() { return method_table().version; }

std::vector<std::string> capability_names(const Capabilities& can) {
  std::vector<std::string> out;
  const auto add = [&](bool has, const char* name) {
    if (has) out.emplace_back(name);
  };
  add(can.bodies, "soft bodies");
  add(can.bodies && can.plane, "plane strain");
  add(can.bodies && can.cloth, "cloth");
  add(can.bodies && can.bending, "bending");
  add(can.wires, "wires and nails");
  add(can.links, can.bodies ? "links" : "links alone");
  add(can.link_contact, "contact with links");
  add(can.obstacles, "obstacles");
  add(can.body_contact, "contact between bodies");
  add(can.bodies && can.cuts, "cuts");
  add(can.bodies && can.free_bodies, "free bodies");
  return out;
}

}  // namespace limber
