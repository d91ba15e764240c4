#include <limber/methods/conjac/adaptive_modes.hpp>

#include <limber/methods/common/system.hpp>
#include <limber/sim/model.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace limber {
namespace {

// Of the most energy that there has been: motions a hundredth as large, and a tenth of the error that the
// energy guard lets pass. A mode sleeps below a quarter of that.
constexpr double kLivelyShare = 1e-4;
constexpr double kCalmShare = kLivelyShare / 4;
constexpr double kRoundedLength = 1e-12;  // of the size of the scene: motions that rounding makes

}  // namespace

ModeState mode_state(const Condensation& condensation, std::size_t p, const Linearisation& at,
                     const ReducedMotion& motion) {
  const CondensedPiece& piece = condensation.pieces()[p];
  const Index m = condensation.modes(p).count;
  const Eigen::Index r = piece.J.cols();
  const ReducedMotion own{motion.displacement.segment(piece.begin, r),
                          motion.velocity.segment(piece.begin, r)};
  // What moves a piece as a whole is carried by its nodes, and belongs to no mode's equilibrium.
  const VecX whole = condensation.mode_forces(p, at.force - at.unbalanced);
  const Eigen::Index begin = r - piece.twists - m;
  return {own.velocity.segment(begin, m),
          at.reduced.pieces[p].force_after(own).segment(begin, m) - whole.head(m)};
}

ModeAdaptivity::ModeAdaptivity(const ConJacOptions& options, Condensation& condensation)
    : condensation_(condensation),
      most_(static_cast<std::size_t>(condensation.most_modes())),
      window_(options.adaptive->window),
      left_(options.newton_steps > 0 ? 0 : 1 - options.gamma) {
  condensation_.modes_sleep = true;
}

bool ModeAdaptivity::calm(std::int64_t step, ConJacMemory& memory) {
  ModeSleepMemory& sleep = memory.sleep;
  const std::size_t pieces = condensation_.pieces().size();
  if (sleep.peak.size() != pieces) {
    sleep.peak.assign(pieces, 0.0);
    sleep.calm.assign(pieces * most_, 0);
    for (auto* list : {&sleep.force, &sleep.swing, &sleep.speed}) list->assign(pieces * most_, 0.0);
  }
  before_ = sleep;
  count_ = memory.modes.count;
  force_.assign(pieces, {});
  // What a sleeping mode looks like is not followed in every step.
  condensation_.sweep_all = step % window_ == 0;
  for (std::size_t p = 0; p < memory.modes.count.size(); ++p) {
    std::int64_t& count = memory.modes.count[p];
    while (count > 0 && sleep.calm[slot(p, count - 1)] >= window_) --count;
  }
  return memory.modes.count != count_;
}

// How a sleeping mode would swing after its equilibrium has moved to where this step finds it.
ModeAdaptivity::Swing ModeAdaptivity::excited(std::size_t p, Index mode) const {
  const std::size_t k = slot(p, mode);
  const double moved = (force_[p][mode] - before_.force[k]) / condensation_.modes(p).values[mode];
  return {before_.swing[k] - moved, before_.speed[k]};
}

// The most energy so far, this moment included [J].
double ModeAdaptivity::reference(std::size_t p) const {
  const PieceModes& modes = condensation_.modes(p);
  double sum = 0;
  for (Index k = 0; k < modes.available; ++k) {
    const Swing last{before_.swing[slot(p, k)], before_.speed[slot(p, k)]};
    sum += (k < modes.count ? last : excited(p, k)).energy(modes.values[k]);
  }
  return std::max(before_.peak[p], sum);
}

bool ModeAdaptivity::rouse(const Model& model, const VecX& force) {
  bool any = false;
  for (std::size_t p = 0; p < condensation_.pieces().size(); ++p) {
    const PieceModes& modes = condensation_.modes(p);
    if (modes.available == 0) continue;
    force_[p] = condensation_.mode_forces(p, force);
    if (modes.count == modes.available) continue;
    const double lively = kLivelyShare * reference(p);
    for (Index k = modes.available - 1; k >= modes.count; --k) {
      const double energy = excited(p, k).energy(modes.values[k]);
      if (!(energy > lively && energy > rounding(model, p, k))) continue;
      condensation_.use_modes(p, k + 1);
      any = true;
      break;
    }
  }
  return any;
}

ModeAdaptivity::Swing ModeAdaptivity::swung(const Scene& scene, double value, double h, const Swing& start) {
  const double decay = 0.5 * (scene.damping_mass + scene.damping_stiffness * value);
  const ImpulseResponse unit = impulse_response(value, decay, h);
  return {start.place * (unit.speed + 2 * decay * unit.place) + start.speed * unit.place,
          start.speed * unit.speed - start.place * value * unit.place};
}

void ModeAdaptivity::rest(const Model& model, double h, ConJacMemory& memory) const {
  ModeSleepMemory& sleep = memory.sleep;
  for (std::size_t p = 0; p < condensation_.pieces().size(); ++p)
    for (Index k = 0; k < condensation_.modes(p).available; ++k) {
      const std::size_t here = slot(p, k);
      const Swing swing = swung(*model.scene, condensation_.modes(p).values[k], h,
                                {before_.swing[here], before_.speed[here]});
      sleep.swing[here] = swing.place;
      sleep.speed[here] = swing.speed;
    }
}

// What rounding makes [J].
double ModeAdaptivity::rounding(const Model& model, std::size_t p, Index mode) const {
  const double length = kRoundedLength * model.size;
  return 0.5 * condensation_.modes(p).values[mode] * condensation_.mass(p) * length * length;
}

void ModeAdaptivity::record(const Model& model, double h, const Linearisation& at,
                            const ReducedMotion& motion, ConJacMemory& memory) const {
  ModeSleepMemory& sleep = memory.sleep;
  sleep = before_;
  for (std::size_t p = 0; p < condensation_.pieces().size(); ++p) {
    const PieceModes& modes = condensation_.modes(p);
    const ModeState now = mode_state(condensation_, p, at, motion);
    VecX energy = VecX::Zero(modes.available);
    for (Index k = 0; k < modes.available; ++k) {
      const std::size_t here = slot(p, k);
      const double value = modes.values[k];
      Swing swing;
      if (k < modes.count) {
        swing = {-now.force[k] / value, now.speed[k]};
        sleep.force[here] = now.force[k];
      } else {
        swing = swung(*model.scene, value, h, excited(p, k));
        sleep.force[here] = left_ * force_[p][k];
      }
      sleep.swing[here] = swing.place;
      sleep.speed[here] = swing.speed;
      energy[k] = swing.energy(value);
    }
    sleep.peak[p] = std::max(sleep.peak[p], energy.sum());
    for (Index k = 0; k < modes.available; ++k) {
      std::int64_t& calm = sleep.calm[slot(p, k)];
      const bool woke = p < count_.size() && k >= count_[p] && k < modes.count;
      const double small = std::max(kCalmShare * sleep.peak[p], 0.25 * rounding(model, p, k));
      calm = woke || energy[k] > small ? 0 : calm + 1;
    }
  }
}

Index ModeAdaptivity::dynamic() const {
  Index sum = 0;
  for (std::size_t p = 0; p < condensation_.pieces().size(); ++p) sum += condensation_.modes(p).count;
  return sum;
}

int ModeAdaptivity::switches(const ConJacMemory& memory) const {
  std::int64_t sum = 0;
  for (std::size_t p = 0; p < count_.size() && p < memory.modes.count.size(); ++p)
    sum += std::abs(memory.modes.count[p] - count_[p]);
  return static_cast<int>(sum);
}

bool ModeAdaptivity::asleep(const ConJacMemory& memory) {
  return !memory.modes.count.empty() && std::all_of(memory.modes.count.begin(), memory.modes.count.end(),
                                                    [](std::int64_t n) { return n == 0; });
}

std::string ModeAdaptivity::misfit(const ConJacMemory& memory) const {
  const ModeSleepMemory& sleep = memory.sleep;
  if (sleep.peak.empty()) return {};  // before the first step
  const auto size = [](const auto& list) { return static_cast<std::ptrdiff_t>(list.size()); };
  const std::size_t pieces = condensation_.pieces().size();
  const auto all = static_cast<std::ptrdiff_t>(pieces * most_);
  if (sleep.peak.size() != pieces)
    return wrong_size("mode_peak", size(sleep.peak), static_cast<std::ptrdiff_t>(pieces));
  if (size(sleep.calm) != all) return wrong_size("mode_calm", size(sleep.calm), all);
  if (size(sleep.force) != all) return wrong_size("mode_force", size(sleep.force), all);
  if (size(sleep.swing) != all) return wrong_size("mode_swing", size(sleep.swing), all);
  if (size(sleep.speed) != all) return wrong_size("mode_speed", size(sleep.speed), all);
  for (const auto* list : {&sleep.peak, &sleep.force, &sleep.swing, &sleep.speed})
    if (!std::all_of(list->begin(), list->end(), [](double v) { return std::isfinite(v); }))
      return "the memory of the modes has a number that is not finite";
  return {};
}

}  // namespace limber
