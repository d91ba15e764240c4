#include <limber/methods/conjac/energy_guard.hpp>

#include <limber/methods/conjac/rigid_motion.hpp>
#include <limber/sim/contact_state.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace limber {
namespace {

constexpr std::array kThetas{0.5, 0.55, 0.65, 0.8, 1.0};
// A link that is touched goes the way of its new velocity, while the force on it is that of theta's share of
// the way. With a spring of frequency w between both that is stable for any w h where 4 theta^2 - 2 theta
// >= 1.
constexpr std::array kLinkThetas{0.85, 1.0};
// The midpoint rule turns the velocity of a very stiff mode around in every step and never lets it die out. A
// dynamic node that is pressed against an obstacle is such a mode: bodies that touch get a little damping.
constexpr double kTouchingTheta = 0.55;
constexpr double kEnergyTolerance = 1e-3;  // of elastic plus kinetic energy
constexpr double kTouchingTolerance = 1e-9;
// The work of a link that is touched is known to the first order of the step only. Implicit Euler is taken
// for good, unless it gains a large share of the energy that there is.
constexpr double kLinkTolerance = 0.25;
constexpr double kRounding =
    1e-12;  // of the energy that is summed up: a body that begins to fall has no other
constexpr double kReturnedShare = 0.25;  // of the kinetic energy, per step
constexpr int kMostHalvings = 12;
constexpr double kOvershoot = 0.1;  // of the kinetic energy

double kinetic_energy(const Model& model, const VecX& v) { return 0.5 * v.dot(model.mass.cwiseProduct(v)); }

}  // namespace

const fem::Assembled& ElasticForces::at(const Model& model, const VecX& x,
                                        const std::vector<double>& activation) {
  for (const std::size_t k : {latest_, 1 - latest_})
    if (known_[k].x.size() == x.size() && known_[k].x == x && known_[k].activation == activation) {
      latest_ = k;
      return known_[k].value;
    }
  latest_ = 1 - latest_;
  Known& known = known_[latest_];
  known.x = x;
  known.activation = activation;
  fem::assemble_force(*model.elements, x, activation, known.value);
  return known.value;
}

EnergyGuard::Balance EnergyGuard::measure(const Model& model, const State& state, const StepInput& in,
                                          const StepStart& start, double excess, PhaseClock& clock) const {
  auto phase = clock.phase("guard");
  return {elastic_.at(model, start.x, in.activation).energy, kinetic_energy(model, start.v),
          contact_energy(model, state), excess};
}

bool EnergyGuard::touches(const Step& step) {
  return step.contact.active() > 0 || (step.bodies && step.bodies->active() > 0);
}

bool EnergyGuard::overshoots(const Balance& balance, double elastic, double work_of_forces) {
  const double beyond = elastic - balance.elastic + work_of_forces;
  return std::abs(beyond) > kOvershoot * balance.kinetic + kRounding * (std::abs(elastic) + balance.elastic);
}

std::optional<Moved> EnergyGuard::advance(const Step& step, const Move& move, StepReport& report) const {
  // A gain is tolerated while the sum of gains not lost again stays small: errors of both signs pass, growth
  // does not. Bodies that touch lose energy anyway and need no such room; it would only keep small motions
  // alive, forward in one step and back in the next.
  const bool touching = touches(step);
  const double energy = step.balance.elastic + step.balance.kinetic;
  double tolerated =
      std::max(0.0, (touching ? kTouchingTolerance : kEnergyTolerance) * energy - step.balance.excess);
  const bool links = !step.at.touches.empty();
  const double least = links ? kLinkThetas[0] : touching ? kTouchingTheta : 0.5;
  const auto thetas = links ? std::span<const double>(kLinkThetas) : std::span<const double>(kThetas);
  for (const double theta : thetas) {
    if (theta < least) continue;
    Moved moved = move({Advance::By::kTheta, theta}, 1);
    if (links && theta == 1) tolerated = kLinkTolerance * (energy + std::abs(moved.bones));
    if (gain(step, moved) > tolerated + kRounding * kinetic_energy(step.model, moved.v)) continue;
    if (theta > least) ++report.fallbacks["damped_step"];
    return moved;
  }
  if (step.at.fraction > 0) {
    ++report.fallbacks["start_linearisation"];
    return std::nullopt;
  }
  ++report.fallbacks["overdamped_step"];
  return overdamped(step, move, tolerated);
}

// Implicit Euler gained energy all the same: take ever less of the motion, of the stabilisation, and of what
// closes contacts. In the limit the body stays where it is.
Moved EnergyGuard::overdamped(const Step& step, const Move& move, double tolerated) const {
  Moved moved;
  double beta = 1;
  for (int halvings = 1; halvings <= kMostHalvings; ++halvings) {
    beta *= 4;
    moved = move({Advance::By::kEq11, beta}, std::ldexp(1.0, -halvings));
    if (gain(step, moved) <= tolerated) break;
  }
  return moved;
}

// How much more energy the body has than at the start of the step, less the work that loads, held nodes
// and bones did on it and plus what Rayleigh damping took. Held nodes work through w, the motion that they
// impose: wᵀ(M dv - h f).
double EnergyGuard::gain(const Step& step, const Moved& moved) const {
  auto phase = step.clock.phase("guard");
  const fem::Assembled& end = elastic_.at(step.model, moved.x, step.in.activation);
  if (!end.finite) return std::numeric_limits<double>::infinity();
  const Linearisation& at = step.at;
  double work = at.loads.dot(moved.x - step.start.x) + moved.bones - moved.dissipated;
  const VecX& w = moved.w.size() > 0 ? moved.w : step.w;
  if (!w.isZero(0)) {
    const VecX mean_force = at.fraction > 0 ? at.force : VecX(0.5 * (at.force + end.f + at.loads));
    work += w.dot(step.model.mass.cwiseProduct(moved.v - step.start.v)) - step.in.h * w.dot(mean_force);
  }
  double contact = 0;
  if (step.bodies)
    contact = step.bodies->energy(moved.x - step.start.x) - step.bodies->energy(VecX::Zero(moved.x.size()));
  if (!step.contact.empty()) {
    const auto obstacles = static_cast<Index>(step.model.contact.obstacles.size());  // links come after them
    contact += step.contact.energy(moved.x, step.in.t + step.in.h) - step.balance.contact;
    for (const ContactLaw& law : step.contact.laws())
      if (law.active && law.contact.obstacle < obstacles)
        work += step.in.h * law.contact.velocity.dot(law.force(node(moved.x, law.contact.node)));
  }
  return end.energy + kinetic_energy(step.model, moved.v) + contact - step.balance.elastic -
         step.balance.kinetic - work;
}

// The condensed motion of an undamped body keeps its energy; the step loses some where J turns and where
// quasistatic nodes are pulled back to their equilibrium. That goes back to the motion, up to a share of its
// kinetic energy, so that a real loss (a sudden release, a grab) stays lost. Impact and friction lose energy
// for good.
double EnergyGuard::settle(const Step& step, bool give_back, Moved& moved) const {
  if (!step.at.touches.empty()) return step.balance.excess;
  const double balance = step.balance.excess + gain(step, moved);
  const double excess = std::max(0.0, balance);
  if (!give_back || touches(step) || !(balance < 0)) return excess;
  auto phase = step.clock.phase("guard");
  // Only what the body does beyond following its held nodes and moving as a rigid body may grow, so that
  // momentum is kept.
  const VecX base = moved.imposed + rigid_velocity(step.model, moved.x, moved.v - moved.imposed, step.held);
  const VecX own = moved.v - base;
  const double own_own = own.dot(step.model.mass.cwiseProduct(own)),
               own_base = own.dot(step.model.mass.cwiseProduct(base));
  if (own_own == 0) return excess;
  // kinetic(s own + base) = kinetic(own + base) - balance
  const double s =
      (-own_base +
       std::sqrt(std::max(0.0, own_base * own_base + own_own * (own_own + 2 * own_base - 2 * balance)))) /
      own_own;
  moved.v = base + std::clamp(s, 1.0, std::sqrt(1 + kReturnedShare)) * own;
  return excess;
}

}  // namespace limber
