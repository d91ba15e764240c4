#include <limber/methods/rigidify/options.hpp>

#include <limber/methods/rigidify/memory.hpp>
#include <limber/methods/rigidify/rigidify.hpp>

#include <nlohmann/json.hpp>

namespace limber {
namespace {

// clang-format off
constexpr Entry kRigidifyEntries[] = {
    {.path = "/method[rigidify]/integrator", .type = Type::kEnum, .fallback = "\"linear\"", .values = "linear bdf1", .text = "linear: the linearly implicit step of the paper; bdf1: implicit Euler by Newton's method on the same unknowns."},
    {.path = "/method[rigidify]/tolerance", .type = Type::kNumber, .unit = "%/s", .fallback = "0.3", .range = ranges::at_least(0), .text = "Strain rate below which an element may become rigid (tau_R is its square: 1 %/s is 1e-4). 0: nothing becomes rigid."},
    {.path = "/method[rigidify]/threshold_ratio", .type = Type::kNumber, .fallback = "10", .range = ranges::at_least(1), .text = "tau_E / tau_R: a rigid element whose predicted squared strain rate exceeds tau_E becomes elastic."},
    {.path = "/method[rigidify]/quiet_steps", .type = Type::kInteger, .fallback = "3", .range = ranges::within(1, 1000), .text = "Steps in a row that an element must stay below the tolerance before it may become rigid."},
    {.path = "/method[rigidify]/foresight", .type = Type::kInteger, .fallback = "0", .range = ranges::within(0, 1000), .text = "An element is quiet only if its strain rate, changing as it does, stays below the tolerance for so many steps more: nothing then stops at the turning point of a swing. 0: as in the paper."},
    {.path = "/method[rigidify]/predict", .type = Type::kEnum, .fallback = "\"step\"", .values = "step swing", .text = "Which strain rate may not exceed the thresholds. step: that after the step, as in the paper; swing: the largest of the vibration that forces out of balance begin, so that nothing stops at the turning point of a swing."},
    {.path = "/method[rigidify]/predict_every", .type = Type::kInteger, .fallback = "4", .range = ranges::within(1, 1000), .text = "What must become elastic is looked for in every so many steps, and in each step that brings an object new loads."},
    {.path = "/method[rigidify]/grow_every", .type = Type::kInteger, .fallback = "4", .range = ranges::within(1, 1000), .text = "Rigid pieces take up new elements in every so many steps; they give them away at once."},
    {.path = "/method[rigidify]/least_share", .type = Type::kNumber, .fallback = "0.4", .range = ranges::within(0, 1), .text = "An object of whose nodes less than this share would be rigid stays elastic: so little costs more than it brings."},
    {.path = "/method[rigidify]/never_slower", .type = Type::kBoolean, .fallback = "true", .text = "Pieces cost no object more than a few steps in a hundred beyond what they save: those that do not pay stay elastic."},
    {.path = "/method[rigidify]/sleep", .type = Type::kBoolean, .fallback = "true", .text = "No prediction for objects that are rigid as a whole and whose loads have not changed since the last one."},
    {.path = "/method[rigidify]/body_contact", .type = Type::kBoolean, .fallback = "false", .text = "Bodies touch each other and themselves."},
    {.path = "/method[rigidify]/contact", .type = Type::kEnum, .fallback = "\"penalty\"", .values = "penalty pgs", .text = "penalty: springs with friction that holds on; pgs: impulses by projected Gauss-Seidel, as in the paper."},
    {.path = "/method[rigidify]/baumgarte", .type = Type::kNumber, .fallback = "0.2", .range = ranges::within(0, 1), .text = "pgs: share of a depth that is taken away in a step."},
    {.path = "/method[rigidify]/compliance", .type = Type::kNumber, .unit = "1/kg", .fallback = "1e-3", .range = ranges::at_least(0), .text = "pgs: a contact gives way by this velocity per impulse."},
    {.path = "/method[rigidify]/sweeps", .type = Type::kInteger, .fallback = "200", .range = ranges::within(1, 100000), .text = "pgs: sweeps over the contacts, at most."},
    {.path = "/method[rigidify]/max_iterations", .type = Type::kInteger, .fallback = "50", .range = ranges::within(1, 100000), .text = "bdf1: Newton iterations after which a step counts as failed."},
    {.path = "/method[rigidify]/tolerance_relative", .type = Type::kNumber, .fallback = "1e-6", .range = ranges::inside(0, 1), .text = "bdf1: residual, relative to that of the start, at which a step ends."},
    {.path = "/method[rigidify]/tolerance_absolute", .type = Type::kNumber, .unit = "N", .fallback = "1e-6", .range = ranges::above(0), .text = "bdf1: norm of the residual force at which a step ends."},
};
// clang-format on

void check_rigidify(const Json& scene, const MethodSpec::Report& problem) {
  const Json& method = scene.at("method");
  if (method.value("contact", "") == "pgs" && method.value("integrator", "") == "bdf1")
    problem(
        "/method/contact",
        "found \"pgs\" with the integrator \"bdf1\", expected \"penalty\": Gauss-Seidel's impulses belong to "
        "the step of \"linear\"");
  const auto any = [&](const char* key) { return scene.contains(key) && !scene.at(key).empty(); };
  if (any("links") || any("robots")) {
    if (method.value("integrator", "") == "bdf1")
      problem("/method/integrator",
              "found \"bdf1\" in a scene with links, expected \"linear\": joints are stepped with a linear "
              "response of the bodies");
    if (method.value("contact", "") == "pgs")
      problem("/method/contact",
              "found \"pgs\" in a scene with links, expected \"penalty\": Gauss-Seidel's impulses do not "
              "reach the links");
  }
  if (scene.contains("contact") && scene.at("contact").value("rule", "") == "filter")
    problem("/contact/rule",
            "found \"filter\", expected \"anchored\": filtering velocities is ConJac's; rigidify has springs "
            "that "
            "slip, or Gauss-Seidel (method/contact)");
}

}  // namespace

rigidify::RigidifyOptions rigidify::RigidifyOptions::read(const nlohmann::json& o) {
  RigidifyOptions out;
  out.newton = o.at("integrator") == "bdf1";
  const double rate = o.at("tolerance").get<double>() / 100;
  out.tau_rigid = rate * rate;
  out.tau_elastic = o.at("threshold_ratio").get<double>() * out.tau_rigid;
  out.quiet_steps = o.at("quiet_steps");
  out.foresight = o.at("foresight");
  out.swing = o.at("predict") == "swing";
  out.predict_every = o.at("predict_every");
  out.regrow = o.at("grow_every");
  out.least_share = o.at("least_share");
  out.never_slower = o.at("never_slower");
  out.sleep = o.at("sleep");
  out.body_contact = o.at("body_contact");
  out.pgs = o.at("contact") == "pgs";
  out.baumgarte = o.at("baumgarte");
  out.compliance = o.at("compliance");
  out.sweeps = o.at("sweeps");
  out.max_iterations = o.at("max_iterations");
  out.relative = o.at("tolerance_relative");
  out.absolute = o.at("tolerance_absolute");
  return out;
}

constinit const Method rigidify_method{
    .spec = {.name = "rigidify",
             .summary = "full space where bodies deform, rigid pieces where they do not, chosen step by step",
             .entries = kRigidifyEntries,
             .can = {.links = true, .obstacles = true, .body_contact = true},
             .check = check_rigidify},
    .make = make_rigidify,
    .memory = [] { return MethodMemory::of(rigidify::RigidifyMemory{}, 0); }};

}  // namespace limber
