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
  const std::vector<Index>& attached = links.dofs();
  const Eigen::Index n = step.reduced.M.rows(), twists = step.touches.J.rows(),
                     held = static_cast<Eigen::Index>(attached.size());
  // Places in the reduced system: of attached unknowns, of these and the twists of links, and of all others.
  std::vector<Eigen::Index> a, b, d;
  for (const Index dof : attached)
    a.push_back(std::find(step.dofs.begin(), step.dofs.end(), dof) - step.dofs.begin());
  b = a;
  for (Eigen::Index i = n - twists; i < n; ++i) b.push_back(i);
  for (Eigen::Index i = 0; i < n; ++i)
    if (std::find(b.begin(), b.end(), i) == b.end()) d.push_back(i);
  // v_b = B u - o
  MatX B(held + twists, links.B().cols());
  B.topRows(held) = links.B();
  VecX o = VecX::Zero(held + twists);
  if (twists > 0) {
    B.bottomRows(twists) = step.touches.J;
    o.tail(twists) = step.touches.predicted;
  }
  auto [A, r] = step.reduced.equations(how);
  // Attached nodes alone start with the velocity of the turned link. All others, those that follow them too,
  // start with that of the step before, whose difference to the new one has the turning in it.
  for (std::size_t i = 0; i < a.size(); ++i)
    r[a[i]] -= step.in.h * step.mass[attached[i]] * links.bias()[static_cast<Eigen::Index>(i)];
  const MatX A_dd = A(d, d), A_bd = A(b, d), A_bb = A(b, b);
  const DenseCholesky<Eigen::Dynamic> cholesky(A_dd);
  const VecX r_d = r(d) + A_bd.transpose() * o, r_b = r(b) + A_bb * o;
  const VecX at_rest = cholesky.solve(r_d);
  const MatX follow = -cholesky.solve_all(A_bd.transpose() * B);
  const VecX g = r_b - A_bd * at_rest;
  const MatX G = A_bb * B + A_bd * follow;
  const VecX u = links.step(g.head(held), G.topRows(held), step.in, state,
                            {step.touches.links, g.tail(twists), G.bottomRows(twists)});
  BoneMotion out;
  ReducedMotion& m = out.motion;
  m.velocity.resize(r.size());
  m.velocity(d) = at_rest + follow * u;
  m.velocity(b) = B * u - o;
  m.displacement = step.reduced.displacement(how, m.velocity);
  // Impulses of the links on the flesh [N s]: what speeds up its mass, and what elastic forces and loads
  // take. Velocities and their differences belong to the pose at the start of the step, which lies between
  // the middles of two; forces belong to the way that is gone.
  const VecX all = A(b, Eigen::all) * m.velocity - r(b);
  VecX inertial = step.reduced.M(b, Eigen::all) * m.velocity - step.reduced.momentum(b);
  for (Eigen::Index i = 0; i < held; ++i)
    inertial[i] += step.in.h * step.mass[attached[static_cast<std::size_t>(i)]] * links.bias()[i];
  if (how.by == Advance::By::kTheta) {  // Eq. 11 stays the paper's: all follow the velocities
    VecX x = step.start.x, v = step.start.v;
    links.place(state, x, v);
    m.displacement(a) = x(attached) - step.start.x(attached);
    m.displacement.tail(twists) = step.in.h * m.velocity.tail(twists);
  }
  VecX mean = B * u, way = mean;
  mean.head(held) += step.start.v(attached);
  way.head(held) = m.displacement(a) / step.in.h;
  if (twists > 0) mean.tail(twists) += step.touches.start;
  out.work = 0.5 * inertial.dot(mean) + (all - inertial).dot(way);
  out.bones.setZero(r.size());
  out.bones(a) = m.velocity(a);
  out.twists.setZero(r.size());
  if (twists > 0) out.twists.tail(twists) = -step.touches.predicted;
  return out;
}

}  // namespace limber
