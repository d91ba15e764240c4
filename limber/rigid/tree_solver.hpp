// Solves (J^T A J + R) x = b in O(links), with A one 6x6 block per link (M + hD + h^2 K, the terms within a
// link) and R a diagonal (h d + h^2 k of the joints): the articulated-body recursion of Featherstone, which
// is a block Cholesky factorisation along the tree, without ever forming J^T A J.
#pragma once

#include <limber/rigid/kinematics.hpp>

namespace limber::rigid {

class TreeSolver {
 public:
  // Throws Error(kSimulation) that names the joint when a pivot is not positive.
  void factor(const Mechanism& mechanism, const Motion& motion, const std::vector<Mat6>& A, const VecX& R);
  // b <- (J^T A J + R)^-1 b, with the motion that was factored.
  void solve(const Mechanism& mechanism, const Motion& motion, Eigen::Ref<VecX> b) const;

 private:
  struct Pivot {
    Columns U;                                                             // A_articulated S
    Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, 6, 6> D_inv;  // (S^T U + R)^-1
  };
  std::vector<Pivot> pivots_;
};

}  // namespace limber::rigid
