#include <limber/methods/conjac/report.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/conjac/adaptive_modes.hpp>

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

// Body, set and coordinates of a node.
std::string place_of(const Model& model, Index i) {
  const Vec3 p = model.mesh.rest[i];
  const std::string& body = model.bodies[model.body_of_node[i]].name;
  const std::vector<Index>* smallest = nullptr;
  std::string set;
  for (const auto& [name, nodes] : model.node_sets)
    if (name.starts_with(body + "/") && (!smallest || nodes.size() < smallest->size()) &&
        std::find(nodes.begin(), nodes.end(), i) != nodes.end()) {
      smallest = &nodes;
      set = fmt::format(", set \"{}\"", name.substr(body.size() + 1));
    }
  return fmt::format("body \"{}\"{} at ({:.3g}, {:.3g}, {:.3g})", body, set, p.x(), p.y(), p.z());
}

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
}

void tell_missed(const Model& model, const State& start, const std::vector<std::uint8_t>& dynamic, double h,
                 bool static_start, Condensation& condensation, StepReport& report) {
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
  report.extra["missed_node"] = missed.node;
  if (missed.frequency * h >= kStepsResolve) return;  // too fast to be seen
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
}

}  // namespace limber
