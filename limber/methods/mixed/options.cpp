#include <limber/methods/mixed/options.hpp>

#include <limber/methods/mixed/memory.hpp>
#include <limber/methods/mixed/mixed.hpp>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace limber {
namespace {

// clang-format off
constexpr Entry kMixedEntries[] = {
    {.path = "/method[mixed]/space", .type = Type::kEnum, .fallback = "\"reduced\"", .values = "reduced full", .text = "reduced: skinning modes and cubature points; full: every node an unknown, every tetrahedron a point."},
    {.path = "/method[mixed]/variant", .type = Type::kEnum, .fallback = "\"mixed\"", .values = "mixed fem", .text = "mixed: stretches and multipliers at the points (Eq. 4); fem: Newton's method on positions alone, with the same basis and points."},
    {.path = "/method[mixed]/integrator", .type = Type::kEnum, .fallback = "\"bdf1\"", .values = "bdf1 bdf2", .text = "bdf1: implicit Euler; bdf2: second order."},
    {.path = "/method[mixed]/basis", .type = Type::kEnum, .fallback = "\"skinning\"", .values = "skinning homogeneous handles linear", .text = "Weights: eigenmodes of the elastic energy Laplacian (Eq. 9); of the plain one, blind to materials; smooth ones of spread handles. linear: no weights, but vibration modes and their modal derivatives, as many as fit into 12 unknowns per mode; for comparison."},
    {.path = "/method[mixed]/modes", .type = Type::kInteger, .fallback = "16", .range = ranges::within(1, 500), .aliases = "m", .text = "Weights m; there are 12 unknowns for each."},
    {.path = "/method[mixed]/points", .type = Type::kInteger, .fallback = "0", .range = ranges::within(0, 1000000), .aliases = "cubature_points C", .text = "Cubature points C; 0: 20 per mode, or all elements where there are fewer. Fewer than 5 per mode are refused."},
    {.path = "/method[mixed]/features", .type = Type::kEnum, .fallback = "\"strain\"", .values = "strain weights", .text = "What elements are clustered by: their weights and, where weights vary, their places; or weights alone (Eq. 11)."},
    {.path = "/method[mixed]/training", .type = Type::kFile, .text = "Text or .npy file with poses, the positions of all nodes in each row: points and their weights are trained to give the forces of these poses (non-negative least squares) instead of clustered. There may be fewer points than asked for."},
    {.path = "/method[mixed]/exponent", .type = Type::kNumber, .fallback = "0", .range = ranges::within(0, 4), .text = "Weights are multiplied with their eigenvalue to minus this before elements are clustered (Eq. 11; the paper has 2)."},
    {.path = "/method[mixed]/seed", .type = Type::kInteger, .fallback = "1", .range = ranges::within(0, 1000000000), .text = "Of the clustering or training."},
    {.path = "/method[mixed]/iterations", .type = Type::kInteger, .fallback = "2", .range = ranges::within(1, 10000), .text = "Iterations per step, at most."},
    {.path = "/method[mixed]/tolerance", .type = Type::kNumber, .fallback = "0", .range = ranges::at_least(0), .text = "Change of an iteration, relative to the body's size, at which a step ends; 0: always all iterations, and friction has the normal forces of the step before."},
    {.path = "/method[mixed]/twist_from", .type = Type::kInteger, .fallback = "2", .range = ranges::within(0, 10000), .text = "Iteration from which the second derivative of the stretch joins the matrix; 0: never, as in the paper."},
    {.path = "/method[mixed]/start", .type = Type::kEnum, .fallback = "\"extrapolated\"", .values = "extrapolated current", .text = "Where iterations begin: u + h v, or u."},
    {.path = "/method[mixed]/pins", .type = Type::kEnum, .fallback = "\"auto\"", .values = "auto weights penalty", .text = "Nodes that are pinned for ever: weights vanish there, or springs hold them; auto: springs for fewer than three nodes."},
    {.path = "/method[mixed]/hold_stiffness", .type = Type::kNumber, .unit = "N/m", .fallback = "0", .range = ranges::at_least(0), .text = "Stiffness of the springs of each constraint in all; 0: a thousand times mass over squared time step."},
    {.path = "/method[mixed]/contact_samples", .type = Type::kInteger, .fallback = "300", .range = ranges::within(1, 1000000), .text = "Surface nodes that touch obstacles."},
    {.path = "/method[mixed]/contact_damping", .type = Type::kNumber, .unit = "s", .fallback = "0", .range = ranges::at_least(0), .text = "Damping of contact, as a time: resists going deeper with this times the penalty stiffness."},
    {.path = "/method[mixed]/slip_speed", .type = Type::kNumber, .unit = "m/s", .fallback = "0.005", .range = ranges::above(0), .text = "Speed below which friction is viscous instead of Coulomb's."},
};
// clang-format on

// Under-sampled cubature has motions without energy (paper, section 7.5).
void check_mixed(const Json& scene, const MethodSpec::Report& problem) {
  const Json& method = scene.at("method");
  const auto integer = [&](const char* key) -> Index {
    const auto found = method.find(key);
    return found != method.end() && found->is_number_integer() ? found->get<Index>() : 0;
  };
  const Index modes = integer("modes"), points = integer("points");
  if (method.value("space", "reduced") == "reduced" && points > 0 && points < 5 * modes)
    problem(
        "/method/points",
        fmt::format("found {} for {} modes, expected at least {} (5 per mode; 20 per mode are safe): with "
                    "fewer there are motions without energy, and the body falls apart",
                    points, modes, 5 * modes));
}

}  // namespace

mixed::MixedOptions mixed::MixedOptions::read(const nlohmann::json& o) {
  MixedOptions out;
  out.full_space = o.at("space") == "full";
  out.fem = o.at("variant") == "fem";
  out.bdf2 = o.at("integrator") == "bdf2";
  out.extrapolate = o.at("start") == "extrapolated";
  out.basis = o.at("basis");
  out.modes = o.at("modes");
  out.points = o.at("points");
  out.weights_only = o.at("features") == "weights";
  out.exponent = o.at("exponent");
  out.training = o.value("training", "");
  out.seed = o.at("seed").get<std::uint64_t>();
  out.iterations = o.at("iterations");
  out.tolerance = o.at("tolerance");
  out.twist_from = o.at("twist_from");
  out.pins = o.at("pins");
  out.hold_stiffness = o.at("hold_stiffness");
  out.contact_samples = o.at("contact_samples");
  out.contact_damping = o.at("contact_damping");
  out.slip_speed = o.at("slip_speed");
  return out;
}

constinit const Method mixed_method{
    .spec = {.name = "mixed",
             .summary = "subspace mixed FEM: skinning modes and stretches at a few points, whatever the mesh",
             .entries = kMixedEntries,
             .can = {.obstacles = true, .plane = false, .own_energies = false, .cuts = false},
             .check = check_mixed,
             .remedy = "try more iterations, a smaller time step (time/step), or more points"},
    .make = make_mixed,
    .memory = [] { return MethodMemory::of(mixed::MixedMemory{}, 0); }};

}  // namespace limber
