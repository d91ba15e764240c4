// Contact of `rigidify` where bodies rest on each other and touch themselves.
#include "physics/rigidify_scenes.hpp"

#include <limber/scene/load.hpp>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

namespace limber::test {
namespace {

// Two fingers on a palm are pushed against each other: the body touches itself, comes to rest so, becomes
// rigid with its contacts, and springs back when the push ends.
TEST(Rigidify, ABodyThatTouchesItselfRestsAndWakes) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "rigidify_fork";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "fork.shape") << R"(tets 800
blend 0.03
cone -0.4 0 -0.12 -0.4 0 0.12 0.14 0.14
cone -0.4 0 -0.14 0.4 0 -0.14 0.1 0.09
cone -0.4 0 0.14 0.4 0 0.14 0.1 0.09
)";
  double free = 0;  // how far a finger goes when they do not meet
  for (const std::string contact : {"none", "penalty", "pgs"}) {
    std::array<Vec3, 2> rest{Vec3::Zero(), Vec3::Zero()};
    for (const bool adaptive : {false, true}) {
      const bool meet = contact != "none";
      if (!meet && adaptive) continue;
      const std::string text = fmt::format(
          R"({{"limber": 1, "time": {{"step": 0.01, "end": 6}}, "gravity": [0, 0, 0],
    "bodies": [{{"name": "fork", "mesh": "fork.shape",
                 "material": {{"young": 1e5, "poisson": 0.3, "density": 300}}}}],
    "damping": {{"mass": 0.5, "stiffness": 0.05}},
    "constraints": [{{"name": "palm", "nodes": {{"formula": "x < -0.4"}}}}],
    "forces": [{{"name": "up", "nodes": {{"formula": "x > 0.3 && z < 0"}}, "acceleration": [0, 0, 20], "until": 4}},
               {{"name": "down", "nodes": {{"formula": "x > 0.3 && z > 0"}}, "acceleration": [0, 0, -20], "until": 4}}],
    "contact": {{"friction": 0.1}},
    "method": {{"type": "rigidify", "tolerance": {}, "body_contact": {}, "contact": "{}", "compliance": 0.01}}}})",
          adaptive ? 0.3 : 0.0, meet, meet ? contact : "penalty");
      Simulation sim(std::make_shared<const Scene>(read_scene(text, (folder / "fork.json").string())));
      const VecX start = sim.state().x;
      Index tip = 0;
      for (Index i = 0; i < sim.model().nodes(); ++i)
        if (start[3 * i + 2] < 0 && start[3 * i] > start[3 * tip]) tip = i;
      StepReport last;
      for (int k = 0; k < 395; ++k) {
        last = sim.step();
        ASSERT_EQ(last.status, StepStatus::kOk) << last.why;
      }
      rest[adaptive] = node(sim.state().x, tip) - node(start, tip);
      if (!meet) {
        free = rest[0][2];
        continue;
      }
      EXPECT_GT(last.extra.at("body_contacts"), 0) << contact << adaptive;
      EXPECT_LT(measure(sim.model(), sim.state(), {}).max_speed, 5e-3) << contact << adaptive;
      EXPECT_GT(rest[adaptive][2], 0.045) << contact << adaptive;  // half of the gap between them
      EXPECT_LT(rest[adaptive][2], 0.5 * free) << contact << adaptive;
      EXPECT_TRUE(!adaptive || rigid_share(sim) > 0.9) << contact;
      for (int k = 0; k < 200; ++k) last = sim.step();
      EXPECT_EQ(last.extra.at("body_contacts"), 0) << contact << adaptive;
      // What creeps back more slowly than the tolerance stops on its way.
      EXPECT_LT((node(sim.state().x, tip) - node(start, tip)).norm(), adaptive ? 0.025 : 0.01) << contact;
    }
    EXPECT_TRUE(contact == "none" || (rest[0] - rest[1]).norm() < 0.05 * rest[0].norm()) << contact;
  }
}

// Blocks in a heap that has come to rest are not looked at pair by pair in every step, and what is known of
// them goes on in a new stepper.
TEST(Rigidify, AStackThatRestsKeepsItsPairs) {
  auto s = stack_of_two();
  add_ground(*s);
  Simulation sim = simulate(s);
  run(sim, 500);
  const RigidifyMemory& m = memory_in(sim);
  EXPECT_EQ(std::count(m.still.begin(), m.still.end(), 1), 2);
  EXPECT_GT(m.still_pairs.size(), 3u);
  Simulation rest = simulate(s);
  rest.restore(sim.state());
  run(sim, 60);
  run(rest, 60);
  EXPECT_TRUE(sim.state().x == rest.state().x);
  EXPECT_GT(sim.step().extra.at("body_contacts"), 0);
  // Struck from the side, they part.
  Guidance push;
  push.force = VecX::Zero(sim.state().x.size());
  for (Index i = 0; i < sim.model().nodes(); ++i)
    if (sim.model().piece_of_node[at(i)] == 1) node(push.force, i) = Vec3(3, 0, 0);
  sim.set_guidance(push);
  run(sim, 60);
  double apart = 0;
  for (Index i = 0; i < sim.model().nodes(); ++i)
    if (sim.model().piece_of_node[at(i)] == 1) apart = std::max(apart, sim.state().x[3 * i]);
  EXPECT_GT(apart, 1.0);
}

}  // namespace
}  // namespace limber::test
