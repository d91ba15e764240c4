#include <limber/methods/conjac/report.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/conjac/adaptive_modes.hpp>
#include <limber/sim/describe_run.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace limber {
namespace {

constexpr int kMostModeColumns = 64;
constexpr std::size_t kMostPiecesTold = 16;
constexpr int kMostShapes = 24;        // that are recorded
constexpr double kStepsResolve = 0.1;  // frequency times time step below which a motion could be seen
constexpr double kSuddenDrift = 0.01;  // of the size of the scene

// Forces that the script brings after the beginning, faster than the slowest motion that is missed: how far
// they push the quasistatic nodes at once.
void tell_fast_loads(const Model& model, const State& start, double h, const Condensation::Missed& missed,
                     Condensation& condensation, StepReport& report) {
  StepInput in;
  const auto force_at = [&](double t) {
    State then = start;
    then.t = t;
    script_input(model, then, h, in);
    return in.force;
  };
  for (const Load& load : model.loads) {
    const ForceSpec& spec = model.scene->forces[load.force];
    if (spec.spring || spec.from < h || spec.ramp * missed.frequency >= 1) continue;
    VecX pushed = force_at(spec.from + spec.ramp + h) - force_at(spec.from - h);
    condensation.solve_quasistatic(pushed);
    const double way = pushed.cwiseAbs().maxCoeff();
    if (!(way > kSuddenDrift * model.size)) continue;
    report.warnings.push_back(fmt::format(
        "force \"{}\" comes at t = {:.3g} s within {:.2g} s, faster than what the dynamic nodes and modes do "
        "not "
        "follow ({:.3g} Hz, {}): it moves nodes by {:.2g} m at once. A longer \"ramp\", or more modes "
        "(method/dynamic)",
        spec.name, spec.from, spec.ramp, missed.frequency, place_of(model, missed.node), way));
  }
}

}  // namespace

void tell_modes(const Condensation& condensation, const Linearisation& at, const Moved& moved,
                StepReport& report) {
  double count = 0, sweeps = 0, missed = std::numeric_limits<double>::infinity();
  for (std::size_t p = 0; p < condensation.pieces().size(); ++p) {
    const PieceModes& modes = condensation.modes(p);
    const ModeState now = mode_state(condensation, p, at, moved.motion);
    const std::string name = condensation.pieces().size() == 1 ? "" : fmt::format("{}/", p + 1);
    for (Index k = 0; k < modes.count && count < kMostModeColumns; ++k, ++count)
      report.extra[fmt::format("mode_energy/{}{}", name, k + 1)] =
          0.5 * (now.speed[k] * now.speed[k] + now.force[k] * now.force[k] / modes.values[k]);
    sweeps = std::max(sweeps, static_cast<double>(modes.sweeps));
    if (modes.values.size() > modes.available)
      missed = std::min(missed, frequency(modes.values[modes.available]));
  }
  report.extra["mode_sweeps"] = sweeps;
  if (std::isfinite(missed)) report.extra["followed_below"] = missed;  // [Hz]
  report.extra["new_modes"] = condensation.new_modes;
  if (condensation.new_modes > 0) report.extra["modes_from_old"] = condensation.modes_from_old;
}

Condensation::Missed tell_missed(const Model& model, const State& start,
                                 const std::vector<std::uint8_t>& dynamic, double h, bool static_start,
                                 Condensation& condensation, StepReport& report) {
  Condensation::Missed missed;
  if (condensation.pieces().size() > kMostPiecesTold) return missed;
  try {
    missed = condensation.missed(dynamic);
  } catch (const Error&) {
    ++report.fallbacks["missed_frequency_unknown"];  // Lanczos did not converge: the run does not need it
    return missed;
  }
  if (missed.node < 0) return missed;
  report.extra["followed_below"] = missed.frequency;  // [Hz]
  report.extra["missed_node"] = missed.node;
  if (missed.frequency * h >= kStepsResolve) return missed;  // too fast to be seen
  const double drift = report.extra["drift"];
  if (drift > kSuddenDrift * model.size && !static_start)
    report.warnings.push_back(
        fmt::format("the dynamic nodes and modes follow what is slower than {:.3g} Hz; the rest, most of all "
                    "{}, goes to its "
                    "equilibrium at once, which the loads of the first step have moved by {:.2g} m. "
                    "\"static_start\" begins "
                    "there; more modes (method/dynamic) swing there",
                    missed.frequency, place_of(model, missed.node), drift));
  tell_fast_loads(model, start, h, missed, condensation, report);
  return missed;
}

void name_shapes(const Model& model, const ModeMemory& modes, const Condensation& condensation,
                 const Condensation::Missed& missed, MethodFields& fields) {
  const std::size_t pieces = condensation.pieces().size();
  const auto n = 3 * static_cast<Eigen::Index>(model.nodes());
  const std::size_t columns = pieces == 0 ? 0 : modes.values.size() / pieces;
  int number = 0;
  for (std::size_t p = 0; p < modes.count.size() && modes.count.size() == pieces; ++p)
    for (std::int64_t k = 0; k < modes.available[p] && number < kMostShapes; ++k) {
      std::vector<double>& shape =
          fields.node[fmt::format("shape/{:02} mode {}{}, {:.3g} Hz", ++number, k + 1,
                                  pieces == 1 ? "" : fmt::format(" of piece {}", p + 1),
                                  frequency(modes.values[p * columns + static_cast<std::size_t>(k)]))];
      shape.assign(static_cast<std::size_t>(n), 0.0);
      for (const Index i : condensation.nodes(p))
        for (Eigen::Index d = 3 * i; d < 3 * i + 3; ++d)
          shape[static_cast<std::size_t>(d)] = modes.shapes[n * k + d];
    }
  if (missed.node < 0 || missed.shape.size() != n) return;
  fields
      .node[fmt::format("shape/{:02} not followed: {}, {:.3g} Hz", ++number, place_of(model, missed.node),
                        missed.frequency)]
      .assign(missed.shape.begin(), missed.shape.end());
}

}  // namespace limber
