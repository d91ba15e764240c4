#include <limber/methods/conjac/options.hpp>

#include <limber/methods/conjac/conjac.hpp>
#include <limber/methods/conjac/memory.hpp>
#include <limber/scene/load.hpp>
#include <limber/scene/suggest.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace limber {
namespace {

// clang-format off
constexpr Entry kConJacEntries[] = {
    {.path = "/method[conjac]/dynamic", .type = Type::kList, .fallback = "[{\"modes\": 6}]", .text = "The dynamic nodes and modes; all else follows quasistatically. An empty list makes the whole body quasistatic."},
    {.path = "/method[conjac]/dynamic/*", .type = Type::kRef, .ref = "dynamic", .text = "A selection of nodes, how many nodes to choose, or modes."},
    {.path = "/method[conjac]/beta", .type = Type::kNumber, .fallback = "0.5", .range = ranges::at_least(0), .text = "Weight of the stiffness in the reduced system, for the linear-implicit time rule (Eq. 11); 0: explicit."},
    {.path = "/method[conjac]/gamma", .type = Type::kNumber, .fallback = "0.3333333333333333", .range = ranges::within(0, 1), .text = "Share of the quasistatic correction taken in each step."},
    {.path = "/method[conjac]/time_rule", .type = Type::kEnum, .fallback = "\"guarded\"", .values = "guarded linear-implicit trapezoidal modal midpoint", .text = "Time integration of the dynamic nodes."},
    {.path = "/method[conjac]/newton_steps", .type = Type::kInteger, .fallback = "0", .range = ranges::within(0, 1000), .text = "Extra quasi-Newton steps that pull the quasistatic nodes to equilibrium."},
    {.path = "/method[conjac]/static_start", .type = Type::kBoolean, .fallback = "false", .text = "Begin in the static equilibrium instead of the initial shape."},
    {.path = "/method[conjac]/body_contact", .type = Type::kBoolean, .fallback = "false", .text = "Bodies touch each other and themselves."},
    {.path = "/method[conjac]/precision", .type = Type::kEnum, .fallback = "\"double\"", .values = "double single", .text = "Of the factors of K, from which modes and quasistatic motions come. In single precision they are made in about two thirds of the time and are off by about 0.1 %; where it would be more than 1 %, and for pieces with dynamic nodes, factors are made in double precision all the same (double_precision in steps.csv counts them). Forces, energies and positions are always in double precision."},
    {.path = "/method[conjac]/adaptive", .type = Type::kObject, .aliases = "adaptivity liveliness", .text = "Makes the nodes of dynamic representative ones: each is dynamic only while the region around it is lively. Modes are dynamic only while their energy is not small against the most that there has been; there is nothing to choose."},
    {.path = "/method[conjac]/adaptive/threshold", .type = Type::kNumber, .unit = "1/s", .fallback = "0.02", .range = ranges::above(0), .text = "A node becomes dynamic in the step in which the mean stretching speed of its region would be above this."},
    {.path = "/method[conjac]/adaptive/hysteresis", .type = Type::kNumber, .fallback = "0.5", .range = ranges::within(0, 1), .text = "It becomes quasistatic again when the stretching speed, averaged over the window, is below this share of the threshold."},
    {.path = "/method[conjac]/adaptive/window", .type = Type::kInteger, .fallback = "10", .range = ranges::within(1, 10000), .text = "Steps over which the stretching speed is averaged, and for which a node stays dynamic at least; steps for which a mode is calm before it falls asleep."},
    {.path = "/method[conjac]/adaptive/start_dynamic", .type = Type::kBoolean, .fallback = "false", .text = "Begin with all representative nodes dynamic instead of quasistatic."},
    {.path = "/method[conjac]/adaptive/regions", .type = Type::kArray, .fallback = "[]", .text = "The region of each node of dynamic, in their order (nodes of one entry by index); empty: every element belongs to the nearest node."},
    {.path = "/method[conjac]/adaptive/regions/*", .type = Type::kObject, .text = "One region."},
    {.path = "/method[conjac]/adaptive/regions/*/name", .type = Type::kName, .text = "For steps.csv and the page; its number from 1 when absent."},
    {.path = "/method[conjac]/adaptive/regions/*/body", .type = Type::kString, .text = "Name of the body of elements; may be absent when there is only one."},
    {.path = "/method[conjac]/adaptive/regions/*/elements", .type = Type::kRef, .ref = "selection", .text = "Its elements, by centroid; those nearest to the node when absent. Later regions win."},
    {.path = "#dynamic", .type = Type::kObject, .values = "all", .least = 1, .ref = "selection", .otherwise = Type::kEnum, .text = "What is dynamic: a selection of nodes, how many nodes to choose automatically, or modes."},
    {.path = "#dynamic/body", .type = Type::kString, .text = "Name of the body; all bodies when absent."},
    {.path = "#dynamic/auto", .type = Type::kInteger, .range = ranges::within(1, 1000000), .text = "Choose this many nodes, one after another, each where the slowest motion moves most that those before it leave, or far from each other, whatever misses less."},
    {.path = "#dynamic/modes", .type = Type::kInteger, .range = ranges::within(1, 500), .text = "The lowest modes of vibration of every piece, dynamic and held nodes fixed, follow the body as it deforms; so many, or at most so many with below (where 32 is the default)."},
    {.path = "#dynamic/below", .type = Type::kNumber, .unit = "Hz", .range = ranges::above(0), .text = "The modes below this frequency, when dynamic and held nodes are those of the moment."},
};
// clang-format on

constexpr Index kMostModes = 32;

bool scene_has(const Json& scene, const char* list) { return scene.contains(list) && !scene[list].empty(); }

// What conjac cannot do with links, and selections that contradict themselves.
void check_conjac(const Json& scene, const MethodSpec::Report& problem) {
  const Json& method = scene["method"];
  if (scene_has(scene, "links") || scene_has(scene, "robots")) {
    if (method.value("time_rule", "") == "modal")
      problem("/method/time_rule",
              "\"modal\" moves no links; expected \"guarded\", \"linear-implicit\", \"trapezoidal\" or "
              "\"midpoint\"");
  }
  if (!method.contains("dynamic") || !method["dynamic"].is_array()) return;
  std::vector<std::string> bodies;
  if (scene.contains("bodies") && scene["bodies"].is_array())
    for (const Json& body : scene["bodies"])
      if (body.is_object() && body.contains("name") && body["name"].is_string())
        bodies.push_back(body["name"].get<std::string>());
  for (std::size_t i = 0; i < method["dynamic"].size(); ++i) {
    const Json& item = method["dynamic"][i];
    const std::string pointer = fmt::format("/method/dynamic/{}", i);
    if (!item.is_object()) continue;
    if (const auto body = item.find("body"); body != item.end() && body->is_string()) {
      const auto& name = body->get_ref<const std::string&>();
      if (std::find(bodies.begin(), bodies.end(), name) == bodies.end())
        problem(pointer + "/body",
                fmt::format("there is no body \"{}\"{}", name, did_you_mean_one_of(name, bodies)));
    }
    const bool modes = item.contains("modes") || item.contains("below");
    const std::size_t known =
        item.contains("body") + item.contains("auto") + item.contains("modes") + item.contains("below");
    if (item.contains("auto") && (modes || item.size() > known))
      problem(pointer, "\"auto\" stands alone or with \"body\"; give a selection or a number, not both");
    else if (modes && item.size() > known)
      problem(pointer,
              "\"modes\" and \"below\" stand alone or with \"body\"; give modes and nodes as two entries "
              "of the list");
  }
}

}  // namespace

static AdaptiveOptions read_adaptive(const nlohmann::json& o, const std::string& prefix) {
  AdaptiveOptions out{o.at("threshold"), o.at("hysteresis"), o.at("window"), o.at("start_dynamic"), {}};
  const nlohmann::json& regions = o.at("regions");
  for (std::size_t r = 0; r < regions.size(); ++r) {
    RegionChoice region{regions[r].value("name", ""), regions[r].value("body", ""), {}};
    if (regions[r].contains("elements"))
      region.elements = read_selection(regions[r]["elements"],
                                       fmt::format("{}/method/adaptive/regions/{}/elements", prefix, r));
    out.regions.push_back(std::move(region));
  }
  return out;
}

ConJacOptions ConJacOptions::read(const nlohmann::json& o, const std::string& file) {
  const std::string prefix = file.empty() ? "" : file + ": ";
  ConJacOptions out;
  out.beta = o.at("beta");
  out.gamma = o.at("gamma");
  out.rule = time_rule(o.at("time_rule"));
  out.newton_steps = o.at("newton_steps");
  out.static_start = o.at("static_start");
  out.body_contact = o.value("body_contact", false);
  out.single = o.value("precision", "double") == "single";
  const nlohmann::json dynamic = o.value("dynamic", nlohmann::json::array());
  for (std::size_t i = 0; i < dynamic.size(); ++i) {
    DynamicChoice choice;
    choice.where = fmt::format("{}/method/dynamic/{}", prefix, i);
    choice.nodes = read_selection(dynamic[i], choice.where);
    if (dynamic[i].is_object()) {
      choice.automatic = dynamic[i].value("auto", Index{0});
      choice.modes.below = dynamic[i].value("below", 0.0);
      choice.modes.count = dynamic[i].value("modes", choice.modes.below > 0 ? kMostModes : Index{0});
      choice.body = dynamic[i].value("body", "");
    }
    out.dynamic.push_back(std::move(choice));
  }
  if (o.contains("adaptive")) out.adaptive = read_adaptive(o["adaptive"], prefix);
  return out;
}

constinit const Method conjac_method{
    .spec = {.name = "conjac",
             .summary = "condensation Jacobian: a few dynamic nodes move the whole body",
             .entries = kConJacEntries,
             .can = {.links = true, .link_contact = true, .obstacles = true, .body_contact = true},
             .check = check_conjac,
             .remedy = "try a smaller time step (time/step), or more damping (method/beta)"},
    .make = make_conjac,
    .memory = [] { return MethodMemory::of(ConJacMemory{}, 0); }};

}  // namespace limber
