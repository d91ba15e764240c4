// Nonlinear implicit integrators (dissertation, chapter 5 and appendix C): BDF1, BDF2, SDIRK2, quasistatic
// steps, and the one linearised step of Baraff and Witkin, each with the choice of solvers of
// newton_solvers.hpp.
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

extern const Method implicit_method;  // options.cpp
std::unique_ptr<Stepper> make_implicit(const Model& model, const nlohmann::json& options,
                                       const Preparation& preparation);

}  // namespace limber
