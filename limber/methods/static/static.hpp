// "static": every step jumps to the equilibrium under the loads of its end. The reference that reduced
// methods are compared with.
#pragma once

#include <limber/scene/scene.hpp>
#include <limber/sim/stepper.hpp>

#include <memory>

namespace limber {

std::unique_ptr<Stepper> make_static(const Scene& scene);

}  // namespace limber
