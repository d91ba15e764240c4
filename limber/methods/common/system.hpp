// Small pieces that the steps of several methods share.
#pragma once

#include <limber/fem/assemble.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/sim/model.hpp>
#include <limber/sim/stepper.hpp>

#include <cstddef>
#include <string>

namespace limber {

// Gravity and the script's forces [N].
VecX external_force(const Model& model, const StepInput& in);

// A = scale K + diag(mass), in place.
void scale_and_add_mass(BlockMatrix& K, double scale, const VecX& mass);

// Sets held degrees of freedom to their prescribed velocity, exactly.
void restore_fixed(const StepInput& in, VecX& v);

Index free_dofs(const StepInput& in);

// What the state amounts to with this elastic energy of the bodies [J], for rows between two measurements.
void report_energy(const Model& model, const State& state, double elastic, StepReport& report);

StepReport& fail(StepReport& report, const std::string& why);
std::string not_finite(const fem::Assembled& assembled);
std::string bad_pivot(const FactorStatus& status);
// For Stepper::misfit: `"v_prev" has 12 numbers, expected 30`.
std::string wrong_size(const char* name, std::ptrdiff_t found, std::ptrdiff_t expected);

}  // namespace limber
