#include <limber/methods/rigidify/newton.hpp>

#include <limber/core/motion.hpp>
#include <limber/methods/common/system.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber::rigidify {
namespace {

constexpr int kNewtonHalvings = 12, kContactRounds = 4;

}  // namespace

void MixedNewton::evaluate(const VecX& u, MixedSystem& system, const RowContact& contact,
                           Point& point) const {
  const StepInput& in = *in_;
  const double h = in.h, a = model_.scene->damping_mass, b = model_.scene->damping_stiffness;
  point.x = state_->x;
  point.pieces.assign(start_.begin(), start_.end());
  std::vector<Mat3> turn(start_.size());
  for (std::size_t j = 0; j < start_.size(); ++j) {
    const Index block = system.piece_block(j);
    if (block < 0) continue;
    turn[j] = rotation_of(turn_of(start_[j], node(u, block + 1), h));
    point.pieces[j].c += h * node(u, block);
  }
  for (Index i = 0; i < model_.nodes(); ++i) {
    const Index block = system.node_block(i);
    if (block < 0) {
      if (known_->size() > 0) node(point.x, i) += h * node(*known_, i);
      continue;
    }
    if (system.rigid(i)) {
      const std::size_t j = at(system.piece_of(i));
      node(point.x, i) = point.pieces[j].c + turn[j] * (node(state_->x, i) - start_[j].c);
    } else {
      node(point.x, i) += h * node(u, block);
    }
  }
  const MixedSystem::Elastic& elastic = system.assemble_force(point.x, in.activation);
  point.finite = elastic.first_bad < 0;
  if (!point.finite) return;
  VecX force = constant_, touch = VecX::Zero(force.size());
  system.add_force(1 + b / h, force);
  const VecX moved = point.x - state_->x;
  const double contact_energy = contact.add_force(moved, touch);
  const VecX Mu = system.multiply_mass(u, start_);
  point.r = (1 + h * a) * Mu - momenta_ - h * system.reduce(force + touch, point.x, point.pieces);
  for (Eigen::Index d = 0; d < point.r.size(); ++d)
    if (system.fixed()[static_cast<std::size_t>(d)]) point.r[d] = 0;
  point.norm = point.r.norm();
  point.energy = 0.5 * (1 + h * a) * u.dot(Mu) - momenta_.dot(u) + (1 + b / h) * elastic.energy -
                 constant_.dot(moved) + contact_energy;
}

bool MixedNewton::solve(const State& state, const StepInput& in, std::span<const RigidPiece> pieces,
                        const VecX& known, MixedSystem& system, RowContact& contact, VecX& u,
                        StepReport& report, PhaseClock& clock) {
  state_ = &state;
  in_ = &in;
  start_ = pieces;
  known_ = &known;
  const double h = in.h, a = model_.scene->damping_mass, b = model_.scene->damping_stiffness;
  constant_ = external_force(model_, in);
  system.set_fixed(in);
  {
    auto phase = clock.phase("force");
    if (b > 0) {
      if (system.assemble_force(state.x, in.activation).first_bad >= 0) {
        fail(report, bad_element(system.elastic()));
        return false;
      }
      system.add_force(-b / h, constant_);
    }
  }
  momenta_ = system.momenta(state.v, pieces);
  u = system.velocities(state.v, pieces);
  system.impose_fixed(u);
  report.iterations = 0;
  Point now, next;
  for (int round = 0;; ++round) {
    {
      auto phase = clock.phase("force");
      evaluate(u, system, contact, now);
    }
    if (!now.finite) {  // the motion going on leads nowhere: begin at rest
      u.setZero();
      system.impose_fixed(u);
      evaluate(u, system, contact, now);
      ++report.fallbacks["start_at_rest"];
    }
    if (!now.finite) {
      fail(report, "an element gave a force that is not finite at the start of the step");
      return false;
    }
    const double enough = h * std::max(options_.absolute, options_.relative * now.norm / h);
    bool converged = now.norm <= enough;
    for (int k = 0; !converged && k < options_.max_iterations; ++k) {
      ++report.iterations;
      {
        auto phase = clock.phase("assemble");
        if (system.assemble(now.x, in.activation).first_bad >= 0) {
          fail(report, bad_element(system.elastic()));
          return false;
        }
        system.set_couplings(contact.couplings());
      }
      {
        auto phase = clock.phase("analyse");
        system.prepare();
      }
      {
        auto phase = clock.phase("assemble");
        for (RigidPiece& piece : now.pieces)
          piece.I = start_[static_cast<std::size_t>(&piece - now.pieces.data())].I;
        system.form(1 + h * a, h * h + h * b, now.x, now.pieces, false);
        const VecX moved = now.x - state.x;
        contact.add_stiffness(h, 0, now.x, now.pieces, system, &moved);
      }
      {
        auto phase = clock.phase("factor");
        const FactorStatus status = system.factor_held();
        if (!status.ok) {
          fail(report, fmt::format("the system matrix is not positive definite: pivot {:.3g} at unknown {}",
                                   status.pivot, status.node));
          return false;
        }
      }
      VecX d = -now.r;
      {
        auto phase = clock.phase("solve");
        system.solve(d);
      }
      auto phase = clock.phase("force");
      const double slope = now.r.dot(d);
      double s = 1;
      bool down = false;
      for (int trial = 0; trial <= kNewtonHalvings && !down; ++trial, s *= 0.5) {
        evaluate(u + s * d, system, contact, next);
        // Turns are not quite the gradient of an energy: a smaller residual counts as well.
        down = next.finite && (next.energy <= now.energy + 1e-4 * s * slope || next.norm < now.norm);
        if (down) u += s * d;
      }
      if (!down) {
        converged = now.norm <= 1e3 * enough;  // rounding
        if (converged) ++report.fallbacks["rounding"];
        break;
      }
      std::swap(now, next);
      converged = now.norm <= enough;
    }
    report.residual = now.norm / h;
    if (!converged) {
      fail(report, fmt::format("Newton's method did not converge: residual {:.3g} N after {} iterations",
                               report.residual, report.iterations));
      return false;
    }
    auto phase = clock.phase("contact");
    if (!contact.possible() || !contact.revise((now.x - state.x) / h)) return true;
    if (round == kContactRounds) {
      ++report.fallbacks["contacts_unsettled"];
      return true;
    }
  }
}

}  // namespace limber::rigidify
