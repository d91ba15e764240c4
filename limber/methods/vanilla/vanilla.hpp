// VANILLA: the full-space, linearly implicit method that the others are measured against (ConJac paper, Eq.
// 10 and Algorithm 2).
#pragma once

#include <limber/scene/scene.hpp>
#include <limber/sim/stepper.hpp>

#include <memory>

namespace limber {

std::unique_ptr<Stepper> make_vanilla(const Scene& scene);

}  // namespace limber
