// From unknowns to the deformation gradients of some points: F = I + J u, linear. A map knows J; what happens
// at the points is none of its business. Unknowns come in nodes of three numbers, so that the matrix of the
// unknowns is a BlockMatrix whatever they are: mesh nodes, or the columns of a basis.
#pragma once

#include <limber/linalg/block_matrix.hpp>

#include <memory>
#include <span>
#include <vector>

namespace limber {

class DeformationMap {
 public:
  virtual ~DeformationMap() = default;
  Index nodes() const { return pattern()->n; }
  virtual Index points() const = 0;
  virtual const std::shared_ptr<const BlockPattern>& pattern() const = 0;

  // F = J u, 9 numbers a point (column-major), without the identity.
  virtual void gradients(const VecX& u, std::vector<double>& F) const = 0;
  // g += J^T P, 9 numbers a point.
  virtual void add_transposed(const std::vector<double>& P, VecX& g) const = 0;
  // A += J^T H J. H: 54 numbers a point, six 3x3 blocks (xx, yy, zz, xy, xz, yz) between rows of F; entry
  // (j, l) of block (i, k) belongs to F_ij and F_kl.
  virtual void add_congruence(const std::vector<double>& H, BlockMatrix& A) const = 0;
  virtual double congruence_flops() const = 0;
};

// Every pair of n nodes.
std::shared_ptr<const BlockPattern> dense_pattern(Index n);

// x = X + sum over j of Phi_j u_j with scalar functions Phi_j and u_j in R^3: B = Phi (x) I3, and J_c = b_c
// (x) I3 with the gradients b_c of the functions. Skinning is of this kind. `gradients`: 3 columns a point,
// one row per function.
std::unique_ptr<DeformationMap> make_kronecker_map(const MatX& gradients);

// Any basis: `jacobian` has 9 rows a point and one column per unknown; columns are padded to whole nodes.
std::unique_ptr<DeformationMap> make_dense_map(const MatX& jacobian);

}  // namespace limber
