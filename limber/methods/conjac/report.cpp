#include <limber/methods/conjac/report.hpp>

#include <limber/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace limber {
namespace {

constexpr int kMostModeColumns = 64;
constexpr std::size_t kMostPiecesTold = 16;
constexpr double kStepsResolve = 0.1;  // frequency times time step below which a motion could be seen
constexpr double kSuddenDrift = 0.01;  // of the size of the scene

}  // namespace

void tell_modes(const Condensation& condensation, const Linearisation& at, const Moved& moved,
                StepReport& report) {
  double count = 0, sweeps = 0, missed = std::numeric_limits<double>::infinity();
  for (std::size_t p = 0; p < condensation.pieces().size(); ++p) {
    const CondensedPiece& piece = condensation.pieces()[p];
    const PieceModes& modes = condensation.modes(p);
    const Eigen::Index r = piece.J.cols();
    const ReducedMotion own{moved.motion.displacement.segment(piece.begin, r),
                            moved.motion.velocity.segment(piece.begin, r)};
    const VecX force = at.reduced.pieces[p].force_after(own).tail(modes.count);
    const VecX speed = own.velocity.tail(modes.count);
    const std::string name = condensation.pieces().size() == 1 ? "" : fmt::format("{}/", p + 1);
    for (Index k = 0; k < modes.count && count < kMostModeColumns; ++k, ++count)
      report.extra[fmt::format("mode_energy/{}{}", name, k + 1)] =
          0.5 * (speed[k] * speed[k] + force[k] * force[k] / modes.values[k]);
    sweeps = std::max(sweeps, static_cast<double>(modes.sweeps));
    if (modes.values.size() > modes.count) missed = std::min(missed, frequency(modes.values[modes.count]));
  }
  report.extra["mode_sweeps"] = sweeps;
  if (std::isfinite(missed)) report.extra["followed_below"] = missed;  // [Hz]
  report.extra["new_modes"] = condensation.new_modes;
}

void tell_missed(const Model& model, const std::vector<std::uint8_t>& dynamic, double h, bool static_start,
                 Condensation& condensation, StepReport& report) {
  if (condensation.pieces().size() > kMostPiecesTold) return;
  Condensation::Missed missed;
  try {
    missed = condensation.missed(dynamic);
  } catch (const Error&) {
    ++report.fallbacks["missed_frequency_unknown"];  // Lanczos did not converge: the run does not need it
    return;
  }
  if (missed.node < 0) return;
  report.extra["followed_below"] = missed.frequency;  // [Hz]
  const double drift = report.extra["drift"];
  if (missed.frequency * h >= kStepsResolve) return;  // too fast to be seen
  if (drift <= kSuddenDrift * model.size || static_start) return;
  const Vec3 p = model.mesh.rest[missed.node];
  report.warnings.push_back(fmt::format(
      "the dynamic nodes and modes follow what is slower than {:.3g} Hz; the rest, most of all body \"{}\" "
      "at ({:.3g}, {:.3g}, {:.3g}), goes to its equilibrium at once, which the loads of the first step "
      "have "
      "moved by {:.2g} m. \"static_start\" begins there; more modes (method/dynamic) swing there",
      missed.frequency, model.bodies[model.body_of_node[missed.node]].name, p.x(), p.y(), p.z(), drift));
}

}  // namespace limber
