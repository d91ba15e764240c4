// Stress and stretch of the elements, for output. Nothing here is part of a step.
#pragma once

#include <limber/sim/model.hpp>

#include <array>
#include <vector>

namespace limber {

// Symmetric 3x3 tensors are given as xx yy zz xy yz xz, the order of VTK.
using SymmetricTensor = std::array<double, 6>;

// Cauchy stress P Fᵀ / det F of every element [Pa], fibres included, without damping. Of plane strain with
// the stress across the plane; of cloth in its plane. Zero where an element is inverted or flat (det F <= 0):
// force per area means nothing there.
std::vector<SymmetricTensor> cauchy_stresses(const Model& model, const std::vector<Mat3>& F, const VecX& x,
                                             const std::vector<double>& activation);
// (FᵀF - I)/2.
SymmetricTensor green_strain(const Mat3& F);

// Eigenvalues, descending.
Vec3 principal_values(const SymmetricTensor& a);
// sqrt(3/2 dev : dev).
double von_mises(const SymmetricTensor& stress);

}  // namespace limber
