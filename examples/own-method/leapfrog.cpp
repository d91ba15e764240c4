#include "leapfrog.hpp"

#include <limber/core/error.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/sim/model.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace limber;

namespace {

// 1. The options: rows of the scene format, and the struct that they are read into.

// clang-format off
constexpr Entry kEntries[] = {
    {.path = "/method[leapfrog]/safety", .type = Type::kNumber, .fallback = "0.5", .range = {0, 1, true, false},
     .text = "Length of a small step as a share of the longest one that is stable."},
    {.path = "/method[leapfrog]/max_substeps", .type = Type::kInteger, .fallback = "10000", .range = {1, 1e6, false, false},
     .text = "Small steps in a time step from which on the run stops: another method would be faster."},
};
// clang-format on

struct Options {
  double safety;
  std::int64_t max_substeps;

  static Options read(const nlohmann::json& o) { return {o.at("safety"), o.at("max_substeps")}; }
};

// 2. The memory: what the next step needs to know of this one. The fastest vibration of the body changes
// slowly; one iteration a step follows it, if it goes on from where it was.
struct LeapfrogMemory {
  VecX mode;         // the fastest vibration, largest entry 1
  double omega = 0;  // its angular frequency [rad/s]

  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("mode", m.mode);
    visitor("omega", m.omega);
  }
};

// 3. The step.
class Leapfrog final : public Stepper {
 public:
  Leapfrog(const Model& model, const Options& options, const Preparation& preparation) : options_(options) {
    // The preparation: the fastest vibration of the body at rest. From a vector without any symmetry.
    first_.mode.resize(3 * model.nodes());
    for (Eigen::Index d = 0; d < first_.mode.size(); ++d)
      first_.mode[d] = std::cos(1.0 + 12.9898 * static_cast<double>(d));
    VecX x(first_.mode.size());
    for (Index i = 0; i < model.nodes(); ++i) node(x, i) = model.mesh.rest[static_cast<std::size_t>(i)];
    const std::vector<double> relaxed(model.activations.size(), 0.0);
    constexpr int kIterations = 30;
    for (int k = 0; k < kIterations; ++k) {
      fem::assemble_force(*model.elements, x, relaxed, here_);
      iterate(model, x, relaxed, here_.f, first_);
      preparation.say("fastest vibration", (k + 1.0) / kIterations);
    }
  }

  StepReport step(const Model& model, State& state, const StepInput& in) override {
    StepReport report;
    LeapfrogMemory& memory = memory_of<LeapfrogMemory>(state);
    if (memory.mode.size() == 0) memory = first_;

    fem::assemble_force(*model.elements, state.x, in.activation, here_);
    if (!here_.finite) return fail(report, fmt::format("element {} is not finite", here_.first_bad));
    iterate(model, state.x, in.activation, here_.f, memory);
    // Central differences are stable for h omega < 2.
    const double wanted = std::ceil(in.h * memory.omega / (2 * options_.safety));
    if (!(wanted <= static_cast<double>(options_.max_substeps)))
      return fail(report, fmt::format("it would take {} small steps of {:.2g} s", wanted, in.h / wanted));
    const auto substeps = std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted));
    const double h = in.h / static_cast<double>(substeps);

    // Kick, drift, kick: second order, and it keeps momentum and (a shadow of) the energy.
    for (std::int64_t k = 0; k < substeps; ++k) {
      kick(model, in, 0.5 * h, state.v);
      state.x += h * state.v;
      fem::assemble_force(*model.elements, state.x, in.activation, here_);
      if (!here_.finite) return fail(report, fmt::format("element {} is not finite", here_.first_bad));
      kick(model, in, 0.5 * h, state.v);
    }
    report.iterations = static_cast<Index>(substeps);
    report.dofs = static_cast<Index>(state.x.size());
    report.inverted = here_.inverted;
    report.extra["substeps"] = static_cast<double>(substeps);
    report.extra["omega"] = memory.omega;
    return report;
  }

  // 4. What the page shows, and what a checkpoint must fulfil.
  MethodFields fields(const Model& model, const State& state) const override {
    const LeapfrogMemory* memory = memory_of<LeapfrogMemory>(state);
    const VecX& mode = memory && memory->mode.size() > 0 ? memory->mode : first_.mode;
    MethodFields f;
    for (Index i = 0; i < model.nodes(); ++i) f.node["fastest"].push_back(node(mode, i).norm());
    return f;
  }

  std::string misfit(const Model& model, const State& state) const override {
    const LeapfrogMemory* memory = memory_of<LeapfrogMemory>(state);
    if (!memory || memory->mode.size() == 0) return {};
    if (memory->mode.size() != 3 * model.nodes()) return "\"mode\" has another number of nodes";
    if (!memory->mode.allFinite() || !(memory->omega >= 0)) return "\"mode\" or \"omega\" is not finite";
    return {};
  }

 private:
  static StepReport& fail(StepReport& report, const std::string& why) {
    report.status = StepStatus::kFailed;
    report.why = why;
    return report;
  }

  // v += h (f/M + g), held degrees of freedom at their prescribed velocity.
  void kick(const Model& model, const StepInput& in, double h, VecX& v) const {
    const double decay = std::exp(-h * model.scene->damping_mass);
    for (Eigen::Index d = 0; d < v.size(); ++d)
      v[d] = in.fixed[static_cast<std::size_t>(d)]
                 ? in.fixed_velocity[d]
                 : decay * v[d] + h * ((here_.f[d] + in.force[d]) / model.mass[d] + in.gravity[d % 3]);
  }

  // One power iteration with M^-1 K at x; K m by a difference of forces.
  void iterate(const Model& model, const VecX& x, const std::vector<double>& activation, const VecX& f,
               LeapfrogMemory& memory) {
    const double epsilon = 1e-6 * model.size;
    fem::assemble_force(*model.elements, x + epsilon * memory.mode, activation, there_);
    VecX next = (f - there_.f).cwiseQuotient(model.mass) / epsilon;
    const double along = memory.mode.dot(model.mass.cwiseProduct(next));
    const double size = memory.mode.dot(model.mass.cwiseProduct(memory.mode));
    // The quotient is at most the largest eigenvalue; it is within a few percent after some iterations, and
    // the options' safety stands between that and the limit.
    if (there_.finite && along > 0) memory.omega = std::sqrt(along / size);
    const double largest = next.cwiseAbs().maxCoeff();
    if (std::isfinite(largest) && largest > 0) memory.mode = next / largest;
  }

  const Options options_;
  LeapfrogMemory first_;
  fem::Assembled here_, there_;  // scratch
};

}  // namespace

// 5. The method: everything that Limber needs to know about it.
constinit const Method leapfrog_method{
    .spec = {.name = "leapfrog",
             .summary = "explicit: many small steps without any linear system",
             .entries = kEntries,
             .can = {.bodies = true, .links = false, .obstacles = false, .plane = true, .cuts = true},
             .remedy = "try a smaller safety (method/safety)"},
    .make = [](const Model& model, const nlohmann::json& options,
               const Preparation& preparation) -> std::unique_ptr<Stepper> {
      return std::make_unique<Leapfrog>(model, Options::read(options), preparation);
    },
    .memory = [] { return MethodMemory::of(LeapfrogMemory{}, 0); }};
