#include <limber/rigid/tree_solver.hpp>

#include <limber/core/error.hpp>

#include <fmt/core.h>
#include <Eigen/Cholesky>

namespace limber::rigid {
namespace {

// X^T P X with X = [1 0; -[arm] 1].
Mat6 carried_to_parent(const Vec3& arm, const Mat6& P) {
  const Mat3 r = skew(arm);
  Mat6 Q = P;
  // Q = X^T P: rows of torque gain r x (rows of force).
  Q.topRows<3>() += r * P.bottomRows<3>();
  // Q X: columns of omega gain (columns of v) * (-[arm]).
  const Eigen::Matrix<double, 6, 3> right = Q.rightCols<3>();
  Q.leftCols<3>() -= right * r;
  return Q;
}

}  // namespace

void TreeSolver::factor(const Mechanism& m, const Motion& motion, const std::vector<Mat6>& A, const VecX& R) {
  pivots_.resize(m.links.size());
  std::vector<Mat6> articulated = A;
  for (Index i = m.size() - 1; i >= 0; --i) {
    const Joint& j = m.joints[at(i)];
    const LinkMotion& l = motion.links[at(i)];
    Pivot& p = pivots_[at(i)];
    Mat6& P = articulated[at(i)];
    p.U = P * l.S;
    const Eigen::Index n = l.S.cols();
    if (n > 0) {
      Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, 6, 6> D = l.S.transpose() * p.U;
      D.diagonal() += R.segment(j.v_begin, n);
      const Eigen::LLT<Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, 6, 6>> llt(D);
      if (llt.info() != Eigen::Success)
        throw Error(
            ErrorKind::kSimulation,
            fmt::format(
                "joint \"{}\": the inertia it moves is not positive; look for links of almost no mass "
                "or a position that is not finite",
                j.name));
      p.D_inv.setIdentity(n, n);
      llt.solveInPlace(p.D_inv);
      if (j.parent_link >= 0) P -= p.U * p.D_inv * p.U.transpose();
    }
    if (j.parent_link >= 0) articulated[at(j.parent_link)] += carried_to_parent(l.arm, P);
  }
}

void TreeSolver::solve(const Mechanism& m, const Motion& motion, Eigen::Ref<VecX> b) const {
  // Forward substitution, leaves to root: b_i becomes b_i - S^T (impulses of the subtree).
  VecX wrench = VecX::Zero(6 * m.size());
  for (Index i = m.size() - 1; i >= 0; --i) {
    const Joint& j = m.joints[at(i)];
    const LinkMotion& l = motion.links[at(i)];
    const Pivot& p = pivots_[at(i)];
    const Eigen::Index n = l.S.cols();
    Vec6 w = wrench.segment<6>(6 * i);
    auto bi = b.segment(j.v_begin, n);
    bi -= l.S.transpose() * w;
    if (j.parent_link < 0) continue;
    if (n > 0) w += p.U * (p.D_inv * bi);
    wrench.segment<6>(6 * j.parent_link) += to_parent(l.arm, w);
  }
  // Backward, root to leaves.
  VecX& phi = wrench;
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    const LinkMotion& l = motion.links[at(i)];
    const Pivot& p = pivots_[at(i)];
    const Eigen::Index n = l.S.cols();
    Vec6 carried = Vec6::Zero();
    if (j.parent_link >= 0) carried = to_child(l.arm, phi.segment<6>(6 * j.parent_link));
    auto bi = b.segment(j.v_begin, n);
    if (n > 0) {
      bi = (p.D_inv * (bi - p.U.transpose() * carried)).eval();
      carried += l.S * bi;
    }
    phi.segment<6>(6 * i) = carried;
  }
}

}  // namespace limber::rigid
