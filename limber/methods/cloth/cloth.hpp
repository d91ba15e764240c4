// CLOTH: triangles in space with membrane and bending stiffness, in contact with obstacles by bounds on
// velocities; with "eol" its vertices on sharp edges let the material slide through (dissertation of N.
// Weidner, chapter 2).
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

extern const Method cloth_method;
std::unique_ptr<Stepper> make_cloth(const Model& model, const nlohmann::json& options,
                                    const Preparation& preparation);

}  // namespace limber
