#include <limber/methods/rigidify/links.hpp>

namespace limber::rigidify {

const StepInput& MixedLinks::begin(const State& state, const StepInput& script) {
  coupling_.begin(state, script);
  held_ = script;
  held_.fixed = coupling_.held(script.fixed);
  return held_;
}

void MixedLinks::mark(std::vector<std::uint8_t>& hold) const {
  for (const rigid::Attachment& a : coupling_.articulation().attachments)
    hold[at(a.node)] = static_cast<std::uint8_t>(HoldKind::kMoving);
}

// u = rest + C w, w the joint velocities: a column of C is how bodies follow a joint, attached nodes first.
VecX MixedLinks::solve(const MixedSystem& system, const VecX& rhs, const VecX& rest, State& state) {
  const std::vector<Index>& dofs = coupling_.dofs();
  const MatX& B = coupling_.B();
  std::vector<Index> places;  // of dofs among the unknowns
  for (const Index d : dofs) places.push_back(3 * system.node_block(d / 3) + d % 3);
  const VecX out_of_balance = rhs - system.times_whole(rest);
  const VecX mass = model_.mass(dofs);
  const VecX g = VecX(out_of_balance(places)) - held_.h * mass.cwiseProduct(coupling_.bias());
  MatX columns = MatX::Zero(rest.size(), B.cols()), response(B.rows(), B.cols());
  for (Eigen::Index j = 0; j < B.cols(); ++j) {
    VecX v = VecX::Zero(rest.size());
    v(places) = B.col(j);
    columns.col(j) = -system.times_whole(v);
  }
  for (Eigen::Index d = 0; d < columns.rows(); ++d)
    if (system.fixed()[static_cast<std::size_t>(d)]) columns.row(d).setZero();
  system.solve_many(columns);
  for (Eigen::Index j = 0; j < B.cols(); ++j) {
    for (std::size_t k = 0; k < places.size(); ++k)
      columns(places[k], j) += B(static_cast<Eigen::Index>(k), j);
    const VecX load = system.times_whole(columns.col(j));
    response.col(j) = load(places);
  }
  const VecX velocities = coupling_.step(g, response, held_, state);
  VecX u = rest;
  for (Eigen::Index j = 0; j < columns.cols(); ++j) u += velocities[j] * columns.col(j);
  return u;
}

}  // namespace limber::rigidify
