// What the scene reader must know about a method: its name, its part of the scene format, what it can do.
#pragma once

#include <limber/scene/spec.hpp>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace limber {

// What a method can do. Scene checks and `limber list` are made from it.
struct Capabilities {
  bool bodies = true;         // soft bodies
  bool links = false;         // links and robots: with soft bodies if it moves these, else alone
  bool link_contact = false;  // bodies stop at links whose shapes are there for contact
  bool obstacles = false;     // bodies (or links) stop at obstacles
  bool body_contact = false;  // bodies touch each other and themselves, where the scene asks for it
  bool plane = true;          // plane-strain bodies of triangles
  bool cloth = false;         // triangles in space
  bool bending = false;       // cloth resists bending, where the scene gives it a stiffness
  bool wires = false;         // obstacles without thickness: wires and nails
  bool own_energies = true;   // materials that are formulas, or a program's own
  bool cuts = true;           // the topology may change during a run
  bool free_bodies =
      true;  // a piece that nothing holds moves as a whole (inertia relief where it is condensed)
};

// The names of what it can do, for listings: "soft bodies", "links", ...
std::vector<std::string> capability_names(const Capabilities& can);

struct MethodSpec {
  std::string_view name;           // of /method/type
  std::string_view summary;        // one line for listings and the reference page
  std::span<const Entry> entries;  // "/method[NAME]/..." and definitions that only they use
  Capabilities can = {};
  // Rules between the method's options and the rest of the scene (resolved: defaulted, of the right form
  // where no problem has been reported). May be null.
  using Report = std::function<void(const std::string& pointer, const std::string& message)>;
  void (*check)(const Json& scene, const Report& problem) = nullptr;
  // What to try when a step fails.
  std::string_view remedy = "try a smaller time step (time/step), or more damping (damping/stiffness)";
};

// All methods there are, in the order of listings (sim/method.cpp). Others may be added; `methods_version()`
// then changes.
std::vector<const MethodSpec*> method_specs();
int methods_version();

}  // namespace limber
