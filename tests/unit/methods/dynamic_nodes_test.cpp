#include "../../physics/scenes.hpp"

#include <limber/core/error.hpp>
#include <limber/methods/conjac/dynamic_nodes.hpp>
#include <limber/methods/conjac/rigid_motion.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

using test::bar;

VecX rest_positions(const Model& model) {
  VecX x(3 * model.nodes());
  for (Index i = 0; i < model.nodes(); ++i) node(x, i) = model.mesh.rest[i];
  return x;
}

TEST(DynamicNodes, AutoSpreadsNodesAwayFromTheHeldEnd) {
  auto s = bar({.04, .04, .20}, {3, 3, 11}, 1e4, .4);
  const std::vector<DynamicChoice> three = {{.automatic = 3}};
  const Model model = build_model(s);
  const DynamicNodes nodes = choose_dynamic_nodes(model, three);
  ASSERT_EQ(nodes.chosen, 3);
  EXPECT_EQ(nodes.nodes.size(), 3u);  // the held end fixes the bar: no reserve
  EXPECT_NEAR(model.mesh.rest[nodes.nodes[0]].z(), .20, 1e-12);
  for (Index i : nodes.nodes) {
    EXPECT_GT(model.mesh.rest[i].z(), .03);
    for (Index j : nodes.nodes) {
      if (i != j) {
        EXPECT_GT((model.mesh.rest[i] - model.mesh.rest[j]).norm(), .035);
      }
    }
  }
  EXPECT_EQ(choose_dynamic_nodes(model, three).nodes, nodes.nodes);
}

TEST(DynamicNodes, MoreThanThereAreIsAnError) {
  auto s = bar({.04, .04, .04}, {2, 2, 2}, 1e4, .4);
  // Four of the eight nodes are held.
  EXPECT_THROW(choose_dynamic_nodes(build_model(s), {{.automatic = 5}}), Error);
}

TEST(RigidMotion, CountsWhatIsFree) {
  const Model model = build_model(bar({.04, .04, .08}, {2, 2, 3}, 1e4, .4, false));
  const VecX x = rest_positions(model);
  std::vector<std::uint8_t> held(static_cast<std::size_t>(x.size()), 0);
  Vec3 center;
  auto free_motions = [&] { return free_rigid_motions(model, model.pieces[0], x, held, center).cols(); };
  EXPECT_EQ(free_motions(), 6);
  for (std::size_t k = 0; k < 3; ++k) held[k] = 1;  // a point: it can still turn
  EXPECT_EQ(free_motions(), 3);
  for (std::size_t k = 3; k < 6; ++k) held[k] = 1;  // a second one: it turns about the line
  EXPECT_EQ(free_motions(), 1);
  held[6] = held[7] = held[8] = 1;
  EXPECT_EQ(free_motions(), 0);
}

TEST(RigidMotion, ReliefLeavesNoNetForceOrTorque) {
  const Model model = build_model(bar({.04, .04, .08}, {3, 3, 4}, 1e4, .4, false));
  const VecX x = rest_positions(model);
  const std::vector<std::uint8_t> held(static_cast<std::size_t>(x.size()), 0);
  VecX f(x.size()), v = VecX::Zero(x.size());
  for (Eigen::Index d = 0; d < f.size(); ++d) f[d] = std::sin(1.7 * static_cast<double>(d));
  relieve_inertia(model, x, v, held, f);
  Vec3 force = Vec3::Zero(), torque = Vec3::Zero();
  for (Index i = 0; i < model.nodes(); ++i) {
    const Vec3 r = node(x, i), g = node(f, i);
    force += g;
    torque +=
        Vec3(r.y() * g.z() - r.z() * g.y(), r.z() * g.x() - r.x() * g.z(), r.x() * g.y() - r.y() * g.x());
  }
  EXPECT_LT(force.norm(), 1e-12);
  EXPECT_LT(torque.norm(), 1e-12);
}

}  // namespace
}  // namespace limber
