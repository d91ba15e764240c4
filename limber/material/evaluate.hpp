// One element's material at one deformation gradient: base model plus fibres. For tests, plots and methods
// that work with few elements; fem/assemble is the fast path over all of them.
#pragma once

#include <limber/material/material.hpp>

namespace limber::material {

using Mat9 = Eigen::Matrix<double, 9, 9>;

double psi(const ElementMaterial& m, const Mat3& F, double activation = 0);  // [J/m^3], 0 in the rest shape
Mat3 pk1(const ElementMaterial& m, const Mat3& F, double activation = 0);    // dpsi/dF [Pa]
// d2psi/dF2 [Pa] on vec(F), columns stacked. Projected: negative eigenvalues of the base model's part and of
// the fibres' part set to zero, each by itself.
Mat9 dpk1(const ElementMaterial& m, const Mat3& F, double activation = 0, bool projected = false);

// The names in scene files; parsing throws Error(kInput) that lists the known names.
const char* name(MaterialModel model);
const char* name(FibreModel model);
MaterialModel parse_material_model(const char* text);
FibreModel parse_fibre_model(const char* text);

}  // namespace limber::material
