// Nonlinear implicit integrators (dissertation, chapter 5 and appendix C): BDF1, BDF2, SDIRK2, quasistatic
// steps, and the one linearised step of Baraff and Witkin, each with the choice of solvers of
// newton_solvers.hpp.
#pragma once

#include <limber/scene/scene.hpp>
#include <limber/sim/stepper.hpp>

#include <memory>

namespace limber {

// Options (all of /method): integrator, solver, tolerance_relative, tolerance_absolute [N], max_iterations,
// quasi_iterations, pcg_tolerance, history, keep, matrix, max_halvings, strain_damping.
std::unique_ptr<Stepper> make_implicit(const Scene& scene);

}  // namespace limber
