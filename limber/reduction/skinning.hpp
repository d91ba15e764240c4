// Skinning bases: x_i = X_i + sum over k of W_ik A_k (X_i, 1), a 3 x 4 matrix A_k per weight (paper, Eq. 10).
#pragma once

#include <limber/fem/elements.hpp>
#include <limber/linalg/scalar_cholesky.hpp>

#include <cstdint>
#include <functional>
#include <string>

namespace limber {

using PrepareProgress = std::function<void(const std::string& what, double fraction)>;

struct SkinningWeights {
  MatX W;            // one column per weight, one row per node
  VecX gamma;        // eigenvalues [1/s^2]; empty for weights that are none
  int solves = 0;    // right-hand sides of the eigensolver
  double error = 0;  // its residual
};

// The m smallest eigenpairs of the elastic energy Laplacian, H_w W = M_w W Gamma (Eq. 9). `mass`: lumped, one
// number per node; `pinned`: nodes where all weights are zero (may be empty). `homogeneous`: every element
// has the same coefficient and density, so that weights know the shape alone. A body that is not pinned has
// the constant weight with eigenvalue 0, once per piece.
SkinningWeights skinning_eigenmodes(const fem::ElementInput& mesh,
                                    const std::shared_ptr<const BlockPattern>& pattern, const VecX& mass,
                                    const std::vector<std::uint8_t>& pinned, Index modes, bool homogeneous,
                                    const PrepareProgress& progress = {});

// For comparison: smooth weights that know nothing of materials. Handles by farthest-point sampling; the
// weight of a handle is a unit of heat at its node, diffused twice over `radius` of the body's size by the
// homogeneous Laplacian, and all are divided by their sum. Zero on pinned nodes. (Not bounded biharmonic
// weights, which need a quadratic program per handle; like them smooth, local, in [0, 1], with sum one.)
SkinningWeights diffused_handles(const fem::ElementInput& mesh,
                                 const std::shared_ptr<const BlockPattern>& pattern,
                                 const std::vector<std::uint8_t>& pinned, Index handles,
                                 double radius = 0.15);

// Functions Phi (n x p) with Phi^T M Phi = I whose span is that of the columns W_k (X - center, 1).
struct ScalarBasis {
  MatX Phi;
  MatX affine;  // 4m x p: Phi = (W_1 (X - c), W_1, W_2 (X - c), ...) affine
  Vec3 center = Vec3::Zero();
  Index dropped = 0;  // columns that depended on others

  Index functions() const { return static_cast<Index>(Phi.cols()); }
};

ScalarBasis skinning_basis(const MatX& W, std::span<const Vec3> rest, const VecX& mass);

// Gradients of the functions at some elements, three columns each [1/m]: what make_kronecker_map takes.
MatX basis_gradients(const MatX& Phi, const fem::ElementInput& mesh, std::span<const Index> elements);

}  // namespace limber
