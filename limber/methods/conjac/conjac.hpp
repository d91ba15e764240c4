// ConJac: a few dynamic nodes carry the motion, all others follow quasistatically.
// N. J. Weidner, T. Kim, S. Sueda, "Condensation Jacobian with Adaptivity". Sections, equations and
// algorithms named in conjac.cpp are that paper's.
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

extern const Method conjac_method;  // options.cpp
std::unique_ptr<Stepper> make_conjac(const Model& model, const nlohmann::json& options,
                                     const Preparation& preparation);

}  // namespace limber
