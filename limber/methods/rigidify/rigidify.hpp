// Method `rigidify`: parts of bodies that do not deform move as rigid pieces, until they must deform
// (Mercier-Aubin et al. 2022, Adaptive Rigidification of Elastic Solids). docs/methods/rigidify.md
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

extern const Method rigidify_method;
std::unique_ptr<Stepper> make_rigidify(const Model& model, const nlohmann::json& options,
                                       const Preparation& preparation);

}  // namespace limber
