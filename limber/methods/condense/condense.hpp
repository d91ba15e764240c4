// Method `condense`: bodies on a skeleton move in a subspace that was trained for them, and in full space
// where that fails (Teng, Meyer, DeRose, Kim 2015, Subspace Condensation). docs/methods/condense.md
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

extern const Method condense_method;  // options.cpp
std::unique_ptr<Stepper> make_condense(const Model& model, const nlohmann::json& options,
                                       const Preparation& preparation);

}  // namespace limber
