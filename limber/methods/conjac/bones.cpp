#include <limber/methods/conjac/bones.hpp>

#include <limber/linalg/dense.hpp>

#include <algorithm>
#include <functional>
#include <iterator>

namespace limber {

Index add_attached_nodes(const LinkCoupling& links, DynamicNodes& nodes) {
  const std::vector<Index> attached = links.nodes();
  const auto is_attached = [&](Index i) { return std::binary_search(attached.begin(), attached.end(), i); };
  const auto chosen = nodes.nodes.begin() + nodes.chosen;
  std::vector<Index> all;
  std::copy_if(nodes.nodes.begin(), chosen, std::back_inserter(all), std::not_fn(is_attached));
  all.insert(all.end(), attached.begin(), attached.end());
  const auto count = static_cast<Index>(all.size());
  std::copy_if(chosen, nodes.nodes.end(), std::back_inserter(all), std::not_fn(is_attached));
  nodes.nodes = all;
  nodes.chosen = count;
  return static_cast<Index>(attached.size());
}

ReducedMotion step_with_bones(const ReducedSystem& reduced, const std::vector<Index>& dofs, double beta,
                              const VecX& mass, const StepInput& in, LinkCoupling& links, State& state) {
  const MatX& B = links.B();
  std::vector<Eigen::Index> a, d;  // places of attached and of all other unknowns in the reduced system
  for (const Index dof : links.dofs()) a.push_back(std::find(dofs.begin(), dofs.end(), dof) - dofs.begin());
  for (Eigen::Index i = 0; i < reduced.M.rows(); ++i)
    if (std::find(a.begin(), a.end(), i) == a.end()) d.push_back(i);
  MatX A;
  VecX r;
  reduced.linear_implicit_system(beta, A, r);
  // Attached nodes alone start with the velocity of the turned link. All others, those that follow them too,
  // start with that of the step before, whose difference to the new one has the turning in it.
  for (std::size_t i = 0; i < a.size(); ++i)
    r[a[i]] -= in.h * mass[links.dofs()[i]] * links.bias()[static_cast<Eigen::Index>(i)];
  const MatX A_dd = A(d, d), A_ad = A(a, d), A_aa = A(a, a);
  const DenseCholesky<Eigen::Dynamic> cholesky(A_dd);
  const VecX r_d = r(d), r_a = r(a);
  const VecX at_rest = cholesky.solve(r_d);
  const MatX follow = -cholesky.solve_all(A_ad.transpose() * B);
  const VecX u = links.step(r_a - A_ad * at_rest, A_aa * B + A_ad * follow, in, state);
  ReducedMotion m;
  m.velocity.resize(r.size());
  m.velocity(d) = at_rest + follow * u;
  m.velocity(a) = B * u;
  m.displacement = in.h * m.velocity;
  return m;
}

}  // namespace limber
