// The methods, by name. A method is a folder here and a line in this table; common/ is what several use.
#pragma once

#include <limber/scene/scene.hpp>
#include <limber/sim/stepper.hpp>

#include <memory>
#include <span>

namespace limber {

struct Method {
  const char* name;     // of "method": {"type": ...}
  const char* summary;  // one line for `limber list`
  std::unique_ptr<Stepper> (*make)(const Scene&);
};

std::span<const Method> methods();
// Throws Error(kInput) when the scene names a method that does not exist. Simulation is given this function.
std::unique_ptr<Stepper> make_stepper(const Scene& scene);

}  // namespace limber
