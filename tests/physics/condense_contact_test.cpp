// Subspace condensation with contact of a body with itself and between bodies, against `implicit`.
#include "physics/condense_scenes.hpp"

#include <limber/sim/hash.hpp>

#include <gtest/gtest.h>

#include <fstream>

namespace limber::condense_tests {
namespace {

// Two fingers on a palm, about one long; the one bends against the other and comes back.
std::shared_ptr<const Scene> fork(const std::string& method) {
  const std::filesystem::path folder = test_cache();
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "fork.shape") << R"(tets 3000
blend 0.03
cone -0.4 0 -0.12 -0.4 0 0.12 0.14 0.14
cone -0.4 0 -0.14 0.4 0 -0.14 0.1 0.09
cone -0.4 0 0.14 0.4 0 0.14 0.1 0.09
)";
  const std::string text =
      fmt::format(R"({{"limber": 1, "time": {{"step": 0.05, "end": 1}}, "gravity": [0, 0, 0],
    "bodies": [{{"name": "fork", "mesh": "fork.shape", "material": {{"young": 1e5, "poisson": 0.4}}}}],
    "bones": [{{"name": "palm", "head": [-0.42, 0, -0.12], "tail": [-0.42, 0, 0.12], "radius": 0.06}},
              {{"name": "a", "parent": "palm", "joint": [-0.25, 0, -0.14], "head": [-0.08, 0, -0.14],
                "tail": [0.38, 0, -0.14], "radius": 0.035,
                "motion": [{{"t": 0}}, {{"t": 0.6, "rotation": [0, -0.22, 0]}}, {{"t": 1}}]}},
              {{"name": "b", "parent": "palm", "head": [-0.08, 0, 0.14], "tail": [0.38, 0, 0.14],
                "radius": 0.035}}],
    "contact": {{"friction": 0}}, "method": {}}})",
                  method);
  return std::make_shared<const Scene>(read_scene(text, (folder / "fork.json").string()));
}

struct Difference {
  double max = 0, contacts = 0, other_contacts = 0, full = 0, grown = 0, last_full = 0;
};

Difference compare_runs(Simulation& a, Simulation& b, int steps, double energy_tolerance) {
  Difference d;
  for (int k = 0; k < steps; ++k) {
    const StepReport r = a.step(), other = b.step();
    EXPECT_EQ(r.status, StepStatus::kOk) << r.why;
    EXPECT_EQ(other.status, StepStatus::kOk) << other.why;
    d.max = std::max(d.max, max_distance(a.state().x, b.state().x));
    d.contacts += r.extra.at("body_contacts");
    d.other_contacts += other.extra.at("body_contacts");
    d.full = std::max(d.full, r.extra.at("full_share"));
    d.grown += r.fallbacks.count("region_grown") ? r.fallbacks.at("region_grown") : 0;
    d.last_full = r.extra.at("full_nodes");
    const double energy = measure(a.model(), a.state(), {}).elastic,
                 full = measure(b.model(), b.state(), {}).elastic;
    EXPECT_NEAR(energy, full, energy_tolerance * full + 1e-3) << k;
  }
  return d;
}

// The fingers meet where the subspace knows nothing of it: the region wakes up, the shape is that of full
// space, and afterwards the subspace is alone again.
TEST(CondenseContact, BodyTouchesItself) {
  const auto scene = fork(R"({"type": "condense", "body_contact": true, "poses": 20, "modes": 12,
                              "least_spread": 1e-7, "radius": 0.3})");
  Simulation run(scene, with_cache()), full(fork(R"({"type": "implicit", "integrator": "quasistatic",
                                                     "body_contact": true})"),
                                            with_cache());
  const Difference d = compare_runs(run, full, 20, 0.03);
  RecordProperty("max", fmt::format("{}", d.max));
  EXPECT_GT(d.contacts, 20);
  EXPECT_NEAR(d.contacts, d.other_contacts, 0.15 * d.other_contacts);
  EXPECT_LT(d.max, 0.01);
  EXPECT_GT(d.full, 0.1);
  EXPECT_LT(d.full, 0.7);
  EXPECT_EQ(d.last_full, 0);

  // The kept factor has the pairs of contacts in it: from a copy of the state it is made again.
  Simulation first(scene, with_cache());
  for (int k = 0; k < 10; ++k) first.step();
  Simulation again(scene, with_cache());
  again.restore(first.state());
  for (int k = 0; k < 3; ++k) {
    first.step();
    EXPECT_GT(again.step().extra.at("body_contacts"), 0);
  }
  EXPECT_EQ(hash_state(first.state()), hash_state(again.state()));
}

// With all nodes in full space it is the problem of `implicit`, when that measures gaps in the same way.
TEST(CondenseContact, AllNodesFullAreThoseOfTheNearestSurface) {
  std::string ids;
  {
    const Simulation any(fork(R"({"type": "implicit", "integrator": "quasistatic"})"), with_cache());
    for (Index i = 0; i < any.model().nodes(); ++i) ids += (i ? ", " : "") + std::to_string(i);
  }
  Simulation run(fork(fmt::format(R"({{"type": "condense", "body_contact": true, "poses": 20, "modes": 12,
                                      "least_spread": 1e-7, "radius": 0.3, "tolerance_relative": 1e-9,
                                      "full": [{{"nodes": {{"ids": [{}]}}, "from": 0}}]}})",
                                  ids)),
                 with_cache());
  const auto implicit = [](const std::string& gap) {
    return fork(R"({"type": "implicit", "integrator": "quasistatic", "tolerance_relative": 1e-9,
                    "body_contact": true, "contact_gap": ")" +
                gap + "\"}");
  };
  Simulation nearest(implicit("nearest"), with_cache()), plane(implicit("plane"), with_cache());
  double same = 0, other = 0, contacts = 0, slid = 0;
  for (int k = 0; k < 12; ++k) {
    const StepReport a = run.step(), b = nearest.step(), c = plane.step();
    ASSERT_EQ(a.status, StepStatus::kOk) << a.why;
    ASSERT_EQ(b.status, StepStatus::kOk) << b.why;
    ASSERT_EQ(c.status, StepStatus::kOk) << c.why;
    same = std::max(same, max_distance(run.state().x, nearest.state().x));
    other = std::max(other, max_distance(plane.state().x, nearest.state().x));
    contacts = std::max(contacts, b.extra.at("body_contacts"));
    slid += b.extra.at("faces_found_again");
    EXPECT_EQ(a.extra.at("body_contacts"), b.extra.at("body_contacts")) << k;
    EXPECT_EQ(c.extra.count("faces_found_again"), 0u);
  }
  RecordProperty("same", fmt::format("{}", same));
  RecordProperty("other", fmt::format("{}", other));
  EXPECT_GT(contacts, 5);
  EXPECT_GT(slid, 0);
  EXPECT_LT(same, 1e-7);
  EXPECT_GT(other, 100 * same);  // planes are another problem, though nearly the same one
  EXPECT_LT(other, 5e-3);
}

// The same when training poses have met: the contact has points of its own, and nothing is in full space.
TEST(CondenseContact, TrainedContactStaysInTheSubspace) {
  const auto scene = fork(R"({"type": "condense", "body_contact": true, "trained_contact": true, "poses": 20,
                              "modes": 16, "least_spread": 1e-7, "radius": 0.3})");
  Simulation run(scene, with_cache()),
      full(fork(R"({"type": "implicit", "integrator": "quasistatic", "body_contact": true})"), with_cache());
  double max = 0, trained = 0, contacts = 0, other = 0;
  State half;
  for (int k = 0; k < 20; ++k) {
    const StepReport r = run.step(), reference = full.step();
    ASSERT_EQ(r.status, StepStatus::kOk) << r.why;
    EXPECT_EQ(r.extra.at("full_nodes"), 0) << k;
    EXPECT_EQ(r.fallbacks.count("full_space_after_failure"), 0u) << k;
    max = std::max(max, max_distance(run.state().x, full.state().x));
    trained = std::max(trained, r.extra.at("trained_contacts"));
    contacts += r.extra.at("body_contacts");
    other += reference.extra.at("body_contacts");
    if (k == 9) half = run.state();
  }
  RecordProperty("max", fmt::format("{}", max));
  RecordProperty("trained", fmt::format("{}", trained));
  RecordProperty("contacts", fmt::format("{} {}", contacts, other));
  EXPECT_GT(trained, 3);
  EXPECT_GT(contacts, 0.5 * other);
  EXPECT_LT(max, 0.01);

  Simulation again(scene, with_cache());
  again.restore(half);
  for (int k = 10; k < 20; ++k) again.step();
  EXPECT_EQ(hash_state(run.state()), hash_state(again.state()));
}

// A soft ball on a bone of its own is pressed into the capsule and drawn along it, with friction.
TEST(CondenseContact, BodiesTouchEachOther) {
  const auto scene = [](const std::string& method) {
    std::string text = capsule_text(method);
    replace(text, R"("step": 0.25, "end": 2)", R"("step": 0.05, "end": 0.6)");
    replace(text, R"({"t": 2, "rotation": [1.4, 0, 0]})", R"({"t": 0.6, "rotation": [0.4, 0, 0]})");
    replace(
        text, R"("bones": [)",
        R"("bones": [{"name": "ball core", "body": "ball", "head": [0.2, 0, -0.03], "tail": [0.2, 0, 0.03],
      "radius": 0.04, "motion": [{"t": 0}, {"t": 0.4, "translation": [-0.035, 0, 0]},
                                 {"t": 0.6, "translation": [-0.035, 0, 0.02]}]},)");
    replace(text, R"("name": "lower", )", R"("name": "lower", "body": "capsule", )");
    replace(text, R"("name": "upper", )", R"("name": "upper", "body": "capsule", )");
    replace(text, R"("bodies": [)", R"("bodies": [{"name": "ball", "mesh": {"shape": "sphere", "radius": 0.08,
      "edge": 0.03}, "translation": [0.2, 0, 0], "material": {"young": 2e5, "poisson": 0.4}},)");
    replace(text, R"("friction": 0)", R"("friction": 0.3)");
    return std::make_shared<const Scene>(read_scene(text, "two.json"));
  };
  Simulation run(scene(R"({"type": "condense", "body_contact": true, "poses": 12, "modes": 11,
                           "least_spread": 1e-7, "radius": 0.15})"),
                 with_cache()),
      full(scene(R"({"type": "implicit", "integrator": "quasistatic", "body_contact": true})"), with_cache());
  const Difference d = compare_runs(run, full, 12, 0.1);
  RecordProperty("max", fmt::format("{}", d.max));
  EXPECT_GT(d.contacts, 10);
  EXPECT_NEAR(d.contacts, d.other_contacts, 0.15 * d.other_contacts);
  EXPECT_LT(d.max, 0.01);
  EXPECT_LT(d.full, 0.7);
}

}  // namespace
}  // namespace limber::condense_tests
