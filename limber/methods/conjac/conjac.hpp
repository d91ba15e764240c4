// ConJac: a few dynamic nodes carry the motion, all others follow quasistatically.
// N. J. Weidner, T. Kim, S. Sueda, "Condensation Jacobian with Adaptivity". Sections, equations and
// algorithms named in conjac.cpp are that paper's.
#pragma once

#include <limber/scene/scene.hpp>
#include <limber/sim/stepper.hpp>

#include <memory>

namespace limber {

std::unique_ptr<Stepper> make_conjac(const Scene& scene);

}  // namespace limber
