// Pieces of material that nothing joins, in ConJac: each costs and moves as it would alone.
#include "scenes.hpp"

#include <limber/methods/conjac/condensation.hpp>
#include <limber/methods/conjac/dynamic_nodes.hpp>

#include <gtest/gtest.h>

#include <set>

namespace limber::test {
namespace {

// A bar that cuts through its middle leave in many pieces.
std::shared_ptr<Scene> shredded_bar(int cuts) {
  auto s = bar({.04, .04, .14}, {4, 4, 8}, 3e4, .4);
  s->gravity = {0, -9.81, 0};
  s->h = 5e-3;
  s->method = "conjac";
  *s->method_options = conjac_options();
  s->method_options["dynamic"] = nlohmann::json::array({{{"auto", 4}}});
  for (int k = 1; k <= cuts; ++k) {
    EventSpec cut;
    cut.time = 0;
    cut.point = {.02, .02, .07};
    cut.normal = Vec3(std::cos(k), std::sin(k), std::cos(2 * k));
    s->events.push_back(cut);
  }
  return s;
}

TEST(Pieces, NoDenseSystemSpansTwoOfThem) {
  Simulation sim = simulate(shredded_bar(6));
  sim.step();
  const Model& model = sim.model();
  ASSERT_GT(model.pieces.size(), 15u);
  const DynamicNodes nodes =
      choose_dynamic_nodes(model, ConJacOptions::read(*model.scene->method_options).dynamic);
  PhaseClock clock;
  ContactStep contact;
  contact.begin(model.contact, {}, sim.state().x, sim.state().v, Vec3::Zero(), 5e-3, 0);
  const VecX force = VecX::LinSpaced(sim.state().x.size(), -1, 1);
  const std::vector<std::uint8_t> all(nodes.nodes.size(), 1);
  VecX joined[2], follow[2];
  std::vector<Index> order[2];
  for (const bool together : {false, true}) {
    Condensation c(model, nodes.nodes, {}, {}, together);
    ASSERT_TRUE(c.assemble(sim.state().x, sim.input(), contact, nullptr, clock));
    follow[together] = force;
    ASSERT_TRUE(c.condense(all, contact, {}, force, sim.state().v, follow[together], clock));
    for (const CondensedPiece& p : c.pieces())
      order[together].insert(order[together].end(), p.dofs.begin(), p.dofs.end());
    if (!together) {
      for (const CondensedPiece& p : c.pieces()) {
        EXPECT_LE(p.J.cols(), 3 * 8);
        EXPECT_EQ(p.S.rows(), p.J.cols());
      }
    }
    // J applied to one velocity per dynamic degree of freedom, whatever their order, and J^T f.
    VecX y(c.unknowns);
    for (Eigen::Index k = 0; k < y.size(); ++k) y[k] = std::sin(static_cast<double>(order[together][k]));
    joined[together] = c.extend(y);
    EXPECT_NEAR(c.restrict_to_unknowns(force).dot(y), force.dot(joined[together]),
                1e-9 * force.norm() * joined[together].norm());
  }
  EXPECT_EQ(std::set<Index>(order[0].begin(), order[0].end()),
            std::set<Index>(order[1].begin(), order[1].end()));
  EXPECT_LT((joined[0] - joined[1]).norm(), 1e-9 * joined[1].norm());
  EXPECT_LT((follow[0] - follow[1]).norm(), 1e-7 * follow[1].norm());
}

// Two bars in one scene move as each does in a scene of its own.
TEST(Pieces, MoveAsTheyDoAlone) {
  const auto scene = [](bool first, bool second) {
    auto s = bar({.03, .03, .12}, {3, 3, 7}, 2e4, .4, false);
    s->h = 5e-3;
    s->bodies[0].angular_velocity = {2, 0, 1};
    BodySpec other = s->bodies[0];
    other.name = "other";
    other.translation = {.2, 0, 0};
    other.material.young = {5e4};
    other.angular_velocity = {0, 3, -1};
    if (!first) s->bodies.clear();
    if (second) s->bodies.push_back(other);
    std::vector<Vec3> near;
    if (first) near.insert(near.end(), {{0, 0, 0}, {.03, .03, .12}, {.03, 0, .06}, {0, .03, .12}});
    if (second) near.insert(near.end(), {{.2, 0, 0}, {.23, .03, .12}, {.23, 0, .06}, {.2, .03, .12}});
    use_conjac(*s, near, conjac_options("midpoint"));
    return s;
  };
  Simulation both = simulate(scene(true, true)), first = simulate(scene(true, false)),
             second = simulate(scene(false, true));
  for (int k = 0; k < 40; ++k) {
    both.step();
    first.step();
    second.step();
  }
  const Eigen::Index n = first.state().x.size();
  EXPECT_LT((both.state().x.head(n) - first.state().x).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LT((both.state().x.tail(n) - second.state().x).cwiseAbs().maxCoeff(), 1e-9);
}

}  // namespace
}  // namespace limber::test
