// Subspace mixed FEM (Trusty, Benchekroun, Grinspun, Kaufman, Levin 2023). See docs/methods/mixed.md.
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

extern const Method mixed_method;  // options.cpp
std::unique_ptr<Stepper> make_mixed(const Model& model, const nlohmann::json& options,
                                    const Preparation& preparation);

}  // namespace limber
