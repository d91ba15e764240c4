#include <limber/methods/condense/options.hpp>

#include <limber/methods/condense/condense.hpp>
#include <limber/methods/condense/memory.hpp>
#include <limber/scene/load.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace limber {
namespace {

// clang-format off
constexpr Entry kCondenseEntries[] = {
    {.path = "/method[condense]/integrator", .type = Type::kEnum, .fallback = "\"quasistatic\"", .values = "quasistatic bdf1 bdf2", .text = "quasistatic: equilibrium at every step; bdf1: implicit Euler; bdf2: second order."},
    {.path = "/method[condense]/skinning", .type = Type::kEnum, .fallback = "\"dual-quaternion\"", .values = "dual-quaternion linear", .text = "How bones move the flesh before it is corrected."},
    {.path = "/method[condense]/training", .type = Type::kEnum, .fallback = "\"animation\"", .values = "animation bones", .text = "Poses that the subspace is made from: the scene's animation at equal intervals, or the motion of each bone by itself."},
    {.path = "/method[condense]/poses", .type = Type::kInteger, .fallback = "12", .range = ranges::within(1, 10000), .text = "Poses of the animation, or of each bone."},
    {.path = "/method[condense]/basis", .type = Type::kEnum, .fallback = "\"body\"", .values = "body bones", .text = "body: columns that move the whole body; bones: the flesh around each bone has columns of its own, which overlap where skinning weights do."},
    {.path = "/method[condense]/coupling", .type = Type::kNumber, .fallback = "0", .range = ranges::at_least(0), .text = "Springs that hold overlapping domains of the basis together, relative to the flesh between them; 0: the elements that both move do that."},
    {.path = "/method[condense]/modes", .type = Type::kInteger, .fallback = "40", .range = ranges::within(0, 1000), .aliases = "rank r", .text = "Most columns of the basis that poses give, of all domains together; there are no more than poses (of a domain), and none with less than least_spread."},
    {.path = "/method[condense]/least_spread", .type = Type::kNumber, .fallback = "1e-5", .range = ranges::inside(0, 1), .text = "Columns whose singular value is below this, relative to the first, are left out."},
    {.path = "/method[condense]/linear_modes", .type = Type::kInteger, .fallback = "0", .range = ranges::within(0, 500), .text = "Vibration modes of the rest shape that are added to the basis."},
    {.path = "/method[condense]/points", .type = Type::kInteger, .fallback = "0", .range = ranges::within(0, 100000), .aliases = "cubature_points", .text = "Cubature points, at most; 0: ten for each column of the basis."},
    {.path = "/method[condense]/samples", .type = Type::kInteger, .fallback = "4", .range = ranges::within(1, 1000), .text = "Samples of the forces that cubature is trained with, for each pose."},
    {.path = "/method[condense]/noise", .type = Type::kNumber, .fallback = "0.3", .range = ranges::at_least(0), .text = "How far samples are from equilibrium, in spreads of each coordinate over the poses. Not 0: poses in equilibrium have no forces to train with."},
    {.path = "/method[condense]/seed", .type = Type::kInteger, .fallback = "1", .range = ranges::within(0, 1000000000), .text = "Of the training."},
    {.path = "/method[condense]/cubature", .type = Type::kEnum, .fallback = "\"trained\"", .values = "trained exact", .text = "Energy of the subspace region: by trained points, or by all its elements."},
    {.path = "/method[condense]/anchor", .type = Type::kBoolean, .fallback = "true", .text = "A constant reduced force stands for the cubature points that a full region switches off; without it bodies jump when regions come and go."},
    {.path = "/method[condense]/full_share", .type = Type::kNumber, .fallback = "0.7", .range = ranges::within(0, 1), .text = "Share of the free nodes in full space above which all of them are."},
    {.path = "/method[condense]/radius", .type = Type::kNumber, .fallback = "0.1", .range = ranges::at_least(0), .aliases = "rho influence_radius", .text = "Influence radius of a contact, relative to the longest side of the bodies' box at rest: nodes that are this near are in full space. 0: touching nodes alone."},
    {.path = "/method[condense]/slack", .type = Type::kNumber, .fallback = "0.1", .range = ranges::within(0, 10), .text = "A region that must grow is taken wider by this share of the radius, and stays while it holds what is needed and at most half as many nodes besides: its factor can be kept as long. 0: exactly what is needed, in every step."},
    {.path = "/method[condense]/memory", .type = Type::kInteger, .fallback = "2", .range = ranges::within(0, 10000), .text = "Steps that nodes stay in full space after the oracle has chosen them last."},
    {.path = "/method[condense]/quiet_speed", .type = Type::kNumber, .unit = "1/s", .fallback = "0.05", .range = ranges::at_least(0), .text = "bdf1 and bdf2: full regions stay while their mean speed against the skeleton is above this, in longest sides per second, or quiet_change is exceeded."},
    {.path = "/method[condense]/quiet_change", .type = Type::kNumber, .unit = "1/s^2", .fallback = "1", .range = ranges::at_least(0), .text = "bdf1 and bdf2: the same for their mean acceleration, in longest sides per squared second."},
    {.path = "/method[condense]/full", .type = Type::kArray, .fallback = "[]", .text = "Nodes that are in full space whatever touches."},
    {.path = "/method[condense]/full/*", .type = Type::kObject, .text = "Some nodes."},
    {.path = "/method[condense]/full/*/body", .type = Type::kString, .text = "Name of the body; may be absent when there is only one."},
    {.path = "/method[condense]/full/*/nodes", .type = Type::kRef, .required = true, .ref = "selection", .text = "Which nodes."},
    {.path = "/method[condense]/full/*/from", .type = Type::kNumber, .unit = "s", .fallback = "0", .range = ranges::at_least(0), .text = "From this time on."},
    {.path = "/method[condense]/full/*/until", .type = Type::kNumber, .unit = "s", .range = ranges::above(0), .text = "Until this time; for ever when absent."},
    {.path = "/method[condense]/solver", .type = Type::kEnum, .fallback = "\"auto\"", .values = "auto direct pcg l-bfgs jacobi", .text = "direct: Newton's method with a factor of the region in every iteration; pcg: conjugate gradients on each of these systems, with a factor that is kept; l-bfgs: on a factor that is kept, over steps as long as that pays; jacobi: conjugate gradients with the blocks of the diagonal, for steps that inertia rules and shapes that snap; auto: direct where the region is so small that its factor costs less than two evaluations of the forces, l-bfgs elsewhere."},
    {.path = "/method[condense]/tolerance_relative", .type = Type::kNumber, .fallback = "1e-6", .range = ranges::inside(0, 1), .text = "Residual, relative to that of the initial guess, at which a solve ends."},
    {.path = "/method[condense]/tolerance_absolute", .type = Type::kNumber, .unit = "N", .fallback = "1e-6", .range = ranges::above(0), .text = "Norm of the residual force at which a solve ends."},
    {.path = "/method[condense]/max_iterations", .type = Type::kInteger, .fallback = "100", .range = ranges::within(1, 100000), .text = "Newton iterations after which a solve counts as failed."},
    {.path = "/method[condense]/body_contact", .type = Type::kBoolean, .fallback = "false", .text = "Bodies touch each other and themselves; nodes that do are in full space, unless trained_contact knows them."},
    {.path = "/method[condense]/trained_contact", .type = Type::kBoolean, .fallback = "false", .text = "With body_contact: training poses touch as well, and what touches in them has trained points of contact and stays in the subspace; all other contacts are in full space."},
    {.path = "/method[condense]/contact_damping", .type = Type::kNumber, .unit = "s", .fallback = "0", .range = ranges::at_least(0), .text = "Damping of contact, as a time: resists going deeper with this times the penalty stiffness."},
    {.path = "/method[condense]/slip_speed", .type = Type::kNumber, .unit = "m/s", .fallback = "0.005", .range = ranges::above(0), .text = "Speed below which friction is viscous instead of Coulomb's."},
};
// clang-format on

// Bones are what the subspace is made around, and what holds the rest must be as lasting.
void check_condense(const Json& scene, const MethodSpec::Report& problem) {
  const auto list = [&](const char* key) -> const Json& {
    static const Json none = Json::array();
    const auto found = scene.find(key);
    return found != scene.end() && found->is_array() ? *found : none;
  };
  if (list("bones").empty() && list("constraints").empty() && list("attachments").empty())
    problem("/bones",
            "\"condense\" moves bodies on a skeleton, and there is none: expected bones, constraints, or "
            "attachments to links");
  const Json& holds = list("constraints");
  for (std::size_t c = 0; c < holds.size(); ++c) {
    if (!holds[c].is_object()) continue;
    if (holds[c].value("axes", "xyz") != "xyz" || holds[c].contains("until") ||
        holds[c].value("from", 0.0) > 0)
      problem(
          fmt::format("/constraints/{}", c),
          "\"condense\" takes what is held for a skeleton: expected nodes that are held in all axes for the "
          "whole run (no axes, from or until)");
  }
  for (const char* key : {"constraints", "bones"}) {
    const Json& all = list(key);
    for (std::size_t c = 0; c < all.size(); ++c) {
      if (!all[c].is_object() || !all[c].contains("motion") || !all[c]["motion"].is_array()) continue;
      for (const Json& k : all[c]["motion"])
        if (k.is_object() && k.contains("scale") && k["scale"].is_number() && k["scale"].get<double>() != 1)
          return problem(fmt::format("/{}/{}/motion", key, c),
                         "\"condense\" takes what is held for rigid bones: expected keys without scale");
    }
  }
}

}  // namespace

condense::CondenseOptions condense::CondenseOptions::read(const nlohmann::json& o) {
  CondenseOptions out;
  out.dynamics = o.at("integrator") != "quasistatic";
  out.bdf2 = o.at("integrator") == "bdf2";
  out.linear_skinning = o.at("skinning") == "linear";
  out.each_bone = o.at("training") == "bones";
  out.poses = o.at("poses");
  out.bone_domains = o.at("basis") == "bones";
  out.coupling = o.at("coupling");
  out.modes = o.at("modes");
  out.least_spread = o.at("least_spread");
  out.linear_modes = o.at("linear_modes");
  out.points = o.at("points");
  out.samples = o.at("samples");
  out.noise = o.at("noise");
  out.seed = o.at("seed").get<std::uint64_t>();
  out.exact = o.at("cubature") == "exact";
  out.anchor = o.at("anchor");
  out.full_share = o.at("full_share");
  out.radius = o.at("radius");
  out.slack = o.at("slack");
  out.memory = o.at("memory");
  out.quiet_speed = o.at("quiet_speed");
  out.quiet_change = o.at("quiet_change");
  const nlohmann::json& given = o.at("full");
  for (std::size_t k = 0; k < given.size(); ++k) {
    GivenRegion region;
    region.body = given[k].value("body", "");
    region.nodes = read_selection(given[k].at("nodes"), fmt::format("/method/full/{}/nodes", k));
    region.from = given[k].value("from", 0.0);
    if (given[k].contains("until")) region.until = given[k]["until"].get<double>();
    out.given.push_back(std::move(region));
  }
  const std::string solver = o.at("solver");
  out.solver = solver == "direct"   ? RegionSolver::kDirect
               : solver == "pcg"    ? RegionSolver::kPcg
               : solver == "l-bfgs" ? RegionSolver::kLbfgs
               : solver == "jacobi" ? RegionSolver::kJacobi
                                    : RegionSolver::kAuto;
  out.relative = o.at("tolerance_relative");
  out.absolute = o.at("tolerance_absolute");
  out.max_iterations = o.at("max_iterations");
  out.contact_damping = o.at("contact_damping");
  out.slip_speed = o.at("slip_speed");
  out.body_contact = o.at("body_contact");
  out.trained_contact = out.body_contact && o.at("trained_contact").get<bool>();
  return out;
}

constinit const Method condense_method{
    .spec = {.name = "condense",
             .summary =
                 "subspace condensation: a trained subspace on a skeleton, full space where things touch",
             .entries = kCondenseEntries,
             .can = {.links = true,
                     .obstacles = true,
                     .body_contact = true,
                     .plane = false,
                     .cuts = false,
                     .free_bodies = false},
             .check = check_condense,
             .remedy = "try more steps (time/step), more poses, or a greater method/radius"},
    .make = make_condense,
    .memory = [] { return MethodMemory::of(condense::CondenseMemory{}, 0); },
    .prepared_with_loads = true};

}  // namespace limber
