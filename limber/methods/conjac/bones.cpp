#include <limber/methods/conjac/bones.hpp>

#include <limber/linalg/dense.hpp>

#include <algorithm>
#include <functional>
#include <iterator>

namespace limber {

Index add_attached_nodes(const LinkCoupling& links, DynamicNodes& nodes) {
  const std::vector<Index> attached = links.nodes();
  const auto is_attached = [&](Index i) { return std::binary_search(attached.begin(), attached.end(), i); };
  DynamicNodes all;
  all.regions = nodes.regions;
  for (std::size_t i = 0; i < static_cast<std::size_t>(nodes.chosen); ++i) {
    if (is_attached(nodes.nodes[i])) continue;
    all.nodes.push_back(nodes.nodes[i]);
    all.region.push_back(nodes.region[i]);
  }
  all.nodes.insert(all.nodes.end(), attached.begin(), attached.end());
  all.region.resize(all.nodes.size(), -1);
  all.chosen = static_cast<Index>(all.nodes.size());
  std::copy_if(nodes.nodes.begin() + nodes.chosen, nodes.nodes.end(), std::back_inserter(all.nodes),
               std::not_fn(is_attached));
  nodes = std::move(all);
  return static_cast<Index>(attached.size());
}

BoneMotion step_with_bones(const BoneStep& step, const Advance& how, LinkCoupling& links, State& state) {
  const MatX& B = links.B();
  const std::vector<Index>& attached = links.dofs();
  std::vector<Eigen::Index> a, d;  // places of attached and of all other unknowns in the reduced system
  for (const Index dof : attached)
    a.push_back(std::find(step.dofs.begin(), step.dofs.end(), dof) - step.dofs.begin());
  for (Eigen::Index i = 0; i < step.reduced.M.rows(); ++i)
    if (std::find(a.begin(), a.end(), i) == a.end()) d.push_back(i);
  auto [A, r] = step.reduced.equations(how);
  // Attached nodes alone start with the velocity of the turned link. All others, those that follow them too,
  // start with that of the step before, whose difference to the new one has the turning in it.
  for (std::size_t i = 0; i < a.size(); ++i)
    r[a[i]] -= step.in.h * step.mass[attached[i]] * links.bias()[static_cast<Eigen::Index>(i)];
  const MatX A_dd = A(d, d), A_ad = A(a, d), A_aa = A(a, a);
  const DenseCholesky<Eigen::Dynamic> cholesky(A_dd);
  const VecX r_d = r(d), r_a = r(a);
  const VecX at_rest = cholesky.solve(r_d);
  const MatX follow = -cholesky.solve_all(A_ad.transpose() * B);
  const VecX u = links.step(r_a - A_ad * at_rest, A_aa * B + A_ad * follow, step.in, state);
  BoneMotion out;
  ReducedMotion& m = out.motion;
  m.velocity.resize(r.size());
  m.velocity(d) = at_rest + follow * u;
  m.velocity(a) = B * u;
  m.displacement = step.reduced.displacement(how, m.velocity);
  // Impulses of the bones on the flesh [N s]: what speeds up its mass, and what elastic forces and loads
  // take. Velocities and their differences belong to the pose at the start of the step, which lies between
  // the middles of two; forces belong to the way that is gone.
  const VecX all = A_ad * m.velocity(d) + A_aa * m.velocity(a) - r_a;
  VecX inertial = step.reduced.M(a, Eigen::all) * m.velocity - step.reduced.momentum(a);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    inertial[k] += step.in.h * step.mass[attached[i]] * links.bias()[k];
  }
  if (how.by == Advance::By::kTheta) {  // Eq. 11 stays the paper's: all follow the velocities
    VecX x = step.start.x, v = step.start.v;
    links.place(state, x, v);
    m.displacement(a) = x(attached) - step.start.x(attached);
  }
  out.work = 0.5 * inertial.dot(step.start.v(attached) + m.velocity(a)) +
             (all - inertial).dot(m.displacement(a)) / step.in.h;
  out.bones.setZero(r.size());
  out.bones(a) = m.velocity(a);
  return out;
}

}  // namespace limber
