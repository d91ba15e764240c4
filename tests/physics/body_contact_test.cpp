#include "physics/implicit_scenes.hpp"

#include <limber/contact/body_contact.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

using test::bar_scene;

// Blocks of 0.1 m and 1 kg, one for each corner.
std::shared_ptr<Scene> blocks_scene(const std::vector<Vec3>& corners, const std::string& integrator,
                                    const std::string& solver = "newton-direct") {
  auto scene = bar_scene(integrator, solver, {4, 4, 4});
  scene->constraints.clear();
  BodySpec body = scene->bodies[0];
  scene->bodies.clear();
  body.generate->size = Vec3(0.1, 0.1, 0.1);
  body.material.poisson = Varying{0.3};
  for (const Vec3& corner : corners) {
    body.name = "block" + std::to_string(scene->bodies.size());
    body.translation = corner;
    scene->bodies.push_back(body);
  }
  scene->gravity.setZero();
  scene->method_options["body_contact"] = true;
  scene->contact.stiffness = 500;
  scene->contact.friction = 0;
  return scene;
}

BodyContact contact_of(const Model& model, double friction = 0, double damping = 0) {
  return BodyContact(model.mesh, {500, friction, damping, 5e-3});
}

TEST(BodyContact, NobodyTouchesAtRest) {
  const Model model = build_model(blocks_scene({Vec3::Zero(), Vec3(0.01, 0.01, 0.1001)}, "bdf1"));
  const State state = initial_state(model);
  EXPECT_TRUE(contact_of(model).detect(state.x).empty());
  // A bar that is bent by 90 degrees does not touch itself either.
  auto bar = bar_scene("bdf1", "newton-direct", {17, 4, 4});
  const Model bent = build_model(bar);
  VecX x = initial_state(bent).x;
  for (Index i = 0; i < bent.nodes(); ++i) {
    const Vec3 X = bent.mesh.rest[i];
    const double radius = 0.2 / (M_PI / 2), angle = X.x() / radius;
    node(x, i) = Vec3((radius + X.y()) * std::sin(angle), (radius + X.y()) * std::cos(angle), X.z());
  }
  EXPECT_TRUE(contact_of(bent).detect(x).empty());
}

TEST(BodyContact, FindsABodyThatIsFoldedIntoItself) {
  auto scene = bar_scene("bdf1", "newton-direct", {33, 3, 3});
  scene->bodies[0].generate->size = Vec3(0.4, 0.02, 0.02);
  const Model model = build_model(scene);
  VecX x = initial_state(model).x;
  for (Index i = 0; i < model.nodes(); ++i) {  // a ring of more than a whole turn
    const Vec3 X = model.mesh.rest[i];
    const double radius = 0.055, angle = X.x() / radius;
    node(x, i) =
        Vec3((radius + X.y()) * std::sin(angle), (radius + X.y()) * std::cos(angle), X.z() + 1e-3 * angle);
  }
  const auto pairs = contact_of(model).detect(x);
  EXPECT_GT(pairs.size(), 10u);
  for (const auto& pair : pairs)  // the two ends meet, not neighbours
    EXPECT_GT(std::abs(model.mesh.rest[pair.nodes[0]].x() - model.mesh.rest[pair.nodes[1]].x()), 0.3);
}

// A block slides on another by two faces within a solve.
TEST(BodyContact, NodesThatSlideFarStayOnTheSurface) {
  const Model model = build_model(blocks_scene({Vec3::Zero(), Vec3(0.013, 0.008, 0.097)}, "bdf1"));
  const VecX x0 = initial_state(model).x;
  BodyContactOptions options{500, 0, 0, 5e-3, true};
  BodyContact contact(model.mesh, options);
  contact.pose(x0, x0, x0, 0.01);
  ASSERT_GT(contact.pairs().size(), 8u);
  VecX x = x0;
  for (Index i = model.nodes() / 2; i < model.nodes(); ++i) node(x, i).x() += 0.07;
  int pressing = 0;
  for (const ContactRow& row : contact.rows(contact.pairs(), x)) {
    for (const double w : row.weight) {  // no levers
      EXPECT_GE(w, -1e-9);
      EXPECT_LE(w, 1 + 1e-9);
    }
    if (!(row.gap < 0)) continue;
    ++pressing;
    EXPECT_NEAR(row.gap, -0.003, 1e-9);
    // Only where both blocks are.
    EXPECT_GT(node(x, row.node).x(), 0.0829);
    EXPECT_LT(node(x, row.node).x(), 0.1001);
  }
  EXPECT_GT(pressing, 0);
  VecX f = VecX::Zero(x.size()), again = f;
  const double energy = contact.add_force(x, f);
  for (Index i = 0; i < model.nodes(); ++i) EXPECT_NEAR(node(f, i).x(), 0, 1e-9) << i;  // faces are level
  // Which faces pairs remember makes no difference.
  EXPECT_GT(contact.follow(x), 0);
  EXPECT_EQ(contact.follow(x), 0);
  EXPECT_EQ(contact.add_force(x, again), energy);
  EXPECT_EQ(again, f);
}

// Over faces, edges and corners.
TEST(BodyContact, ForceOfTheNearestSurfaceIsItsGradient) {
  const Model model = build_model(blocks_scene({Vec3::Zero(), Vec3(0.013, 0.008, 0.097)}, "bdf1"));
  const VecX x0 = initial_state(model).x;
  BodyContact contact(model.mesh, BodyContactOptions{500, 0, 0, 5e-3, true});
  contact.pose(x0, x0, x0, 0.01);
  for (const double slide : {0.0, 0.021, 0.047}) {
    VecX x = x0, d(x.size());
    for (Eigen::Index k = 0; k < x.size(); ++k) {
      x[k] += 2e-3 * std::sin(7.1 * static_cast<double>(k) + slide);
      d[k] = std::cos(3.7 * static_cast<double>(k));
    }
    for (Index i = model.nodes() / 2; i < model.nodes(); ++i) node(x, i).x() += slide;
    VecX f = VecX::Zero(x.size()), scratch = f;
    contact.add_force(x, f);
    EXPECT_GT(f.norm(), 0.1);
    const double eps = 1e-7;
    const double slope =
        (contact.add_force(x + eps * d, scratch) - contact.add_force(x - eps * d, scratch)) / (2 * eps);
    EXPECT_NEAR(-f.dot(d), slope, 1e-4 * f.norm()) << slide;
    Vec3 sum = Vec3::Zero();
    for (Index i = 0; i < model.nodes(); ++i) sum += node(f, i);
    EXPECT_LT(sum.norm(), 1e-9 * f.norm());
  }
}

// A node that is inside its own body, under an uneven part of the surface some faces away, goes back to its
// own place: the energy is whole there, nothing here, and does not jump between.
TEST(BodyContact, EnergyFadesTowardsANodesOwnNeighbourhood) {
  auto scene = bar_scene("bdf1", "newton-direct", {17, 5, 5});
  scene->bodies[0].generate->size = Vec3(0.4, 0.1, 0.1);
  const Model model = build_model(scene);
  VecX rest = initial_state(model).x;
  const double edge = 0.025, depth = 0.25 * edge;
  Index v = -1;  // in the middle of the upper side
  double top = -1, left = 1;
  for (const Vec3& X : model.mesh.rest) {
    top = std::max(top, X.y());
    left = std::min(left, X.x());
  }
  const Vec3 middle(left + 0.2, top, model.mesh.rest.front().z() + 2 * edge);
  for (Index i = 0; i < model.nodes(); ++i) {
    const Vec3 X = model.mesh.rest[i];
    if (v < 0 || (X - middle).norm() < (model.mesh.rest[v] - middle).norm()) v = i;
    if (X.y() > top - 1e-9) node(rest, i).y() += 0.06 * edge * std::sin(3.1 * static_cast<double>(i));
  }
  ASSERT_LT((model.mesh.rest[v] - middle).norm(), 1e-9);
  const auto with_node_at = [&](double faces) {
    VecX x = rest;
    node(x, v) = middle + Vec3(faces * edge, -depth, 0.13 * edge);
    return x;
  };
  BodyContact contact(model.mesh, BodyContactOptions{500, 0, 0, 5e-3, true});
  const VecX x0 = with_node_at(5.2);
  contact.pose(x0, x0, x0, 0.01);
  // Elements that the node pulls along reach over others; it alone is looked at.
  contact.weigh([&](const BodyContact::Pair& pair) { return pair.nodes[0] == v ? 1.0 : 0.0; });
  const auto own = std::find_if(contact.pairs().begin(), contact.pairs().end(),
                                [&](const BodyContact::Pair& pair) { return pair.nodes[0] == v; });
  ASSERT_NE(own, contact.pairs().end());
  ASSERT_FALSE(own->near_at_rest);
  VecX f = VecX::Zero(x0.size()), scratch = f;
  const auto energy_at = [&](const VecX& x) { return contact.add_force(x, scratch); };
  const double whole = energy_at(x0);
  EXPECT_GT(whole, 0.3 * 500 * depth * depth);
  EXPECT_TRUE(contact.presses(*own, x0));
  constexpr int kSamples = 4000;
  double before = whole, steepest = 0, least = 1;
  int fading = 0;
  VecX half;
  for (int k = 1; k <= kSamples; ++k) {
    const VecX x = with_node_at(5.2 - 4.1 * k / kSamples);
    const double energy = energy_at(x);
    contact.follow(x);
    EXPECT_EQ(energy_at(x), energy) << k;
    // A way of a thousandth of a face changes it by no more than a hundredth.
    steepest = std::max(steepest, std::abs(energy - before));
    if (energy > 0.05 * whole && energy < 0.5 * whole) {
      ++fading;
      half = x;
    }
    least = std::min(least, energy);
    before = energy;
    if (k % 100 != 0 || energy == 0) continue;
    // The force, that on the corners too, is the gradient; it has no sum and no moment.
    f.setZero();
    contact.add_force(x, f);
    VecX d(x.size());
    for (Eigen::Index i = 0; i < x.size(); ++i) d[i] = std::cos(3.7 * static_cast<double>(i + k));
    constexpr double kEps = 1e-8;
    const double slope = (energy_at(x + kEps * d) - energy_at(x - kEps * d)) / (2 * kEps);
    EXPECT_NEAR(-f.dot(d), slope, 1e-5 * f.norm() + 1e-9) << k;
    Vec3 sum = Vec3::Zero(), moment = Vec3::Zero();
    for (Index i = 0; i < model.nodes(); ++i) {
      sum += node(f, i);
      moment += cross(Vec3(node(x, i)), Vec3(node(f, i)));
    }
    EXPECT_LT(sum.norm(), 1e-12 * f.norm() + 1e-15) << k;
    EXPECT_LT(moment.norm(), 1e-12 * f.norm() + 1e-15) << k;
  }
  EXPECT_LT(steepest, 0.01 * whole);
  EXPECT_GT(fading, 100);
  EXPECT_EQ(least, 0);
  EXPECT_FALSE(contact.presses(*own, with_node_at(1.1)));
  // Faded to nothing it stays so, wherever the node goes, until pairs are weighed again.
  EXPECT_EQ(energy_at(x0), 0);
  const auto weigh = [&] {
    contact.weigh([&](const BodyContact::Pair& pair) { return pair.nodes[0] == v ? 1.0 : 0.0; });
  };
  weigh();
  EXPECT_NEAR(energy_at(x0), whole, 1e-12 * whole);
  // What fades can be left out for a while, what is whole cannot.
  EXPECT_EQ(contact.drop_fading(x0), 0);
  ASSERT_TRUE(half.size() > 0 && energy_at(half) > 0);
  EXPECT_EQ(contact.drop_fading(half), 1);
  EXPECT_EQ(energy_at(half), 0);
  weigh();
  EXPECT_GT(energy_at(half), 0);
}

// Skin that crumples goes into its own neighbourhood; that is no contact.
TEST(BodyContact, CrumpledSkinDoesNotTouchItself) {
  const Model model = build_model(bar_scene("bdf1", "newton-direct", {17, 4, 4}));
  const BodyContact contact = contact_of(model);
  const double edge = contact.surfaces().edge();
  VecX x = initial_state(model).x;
  // A node in the middle of the upper side is pushed by one and a half faces, aslant into the next
  // tetrahedra.
  Index v = -1;
  const Vec3 top(0.5 * (model.mesh.rest.front().x() + model.mesh.rest.back().x()), 1e3, 0);
  for (const Index i : contact.surfaces().sites()) {
    const Vec3 X = model.mesh.rest[i];
    if (v < 0 || X.y() - std::abs(X.x() - top.x()) >
                     model.mesh.rest[v].y() - std::abs(model.mesh.rest[v].x() - top.x()))
      v = i;
  }
  ASSERT_GE(v, 0);
  node(x, v) += Vec3(1.2 * edge, -0.4 * edge, 0.1 * edge);
  EXPECT_TRUE(contact_of(model).detect(x).empty());
}

TEST(BodyContact, ForceIsTheGradientConservesMomentumAndStiffnessIsItsDerivative) {
  const Model model = build_model(blocks_scene({Vec3::Zero(), Vec3(0.013, 0.008, 0.097)}, "bdf1"));
  VecX x0 = initial_state(model).x, x = x0, d(x.size());
  for (Eigen::Index k = 0; k < x.size(); ++k) {
    x[k] += 3e-4 * std::sin(0.7 * static_cast<double>(k));
    d[k] = std::cos(2.1 * static_cast<double>(k));
  }
  BodyContact contact = contact_of(model, 0.4, 0.02);
  contact.pose(x0, x, x0, 0.01);
  ASSERT_GT(contact.pairs().size(), 8u);
  const double e = 1e-8;
  VecX f = VecX::Zero(x.size()), up = f, down = f;
  contact.add_force(x, f);
  const double more = contact.add_force(x + e * d, up), less = contact.add_force(x - e * d, down);
  EXPECT_GT(f.norm(), 1.0);
  EXPECT_NEAR((more - less) / (2 * e), -f.dot(d), 1e-5 * std::abs(f.dot(d)));

  // Without friction, whose normal is lagged, there is no moment either.
  BodyContact smooth = contact_of(model);
  smooth.pose(x0, x, x0, 0.01);
  VecX g = VecX::Zero(x.size());
  smooth.add_force(x, g);
  Vec3 sum = Vec3::Zero(), plain = Vec3::Zero(), moment = Vec3::Zero();
  for (Index i = 0; i < model.nodes(); ++i) {
    sum += node(f, i);
    plain += node(g, i);
    moment += cross(node(x, i), node(g, i));
  }
  EXPECT_LT(sum.norm(), 1e-12 * f.norm());
  EXPECT_LT(plain.norm(), 1e-12 * g.norm());
  EXPECT_LT(moment.norm(), 1e-12 * g.norm());

  std::vector<std::array<Index, 4>> cliques;
  for (const auto& pair : contact.pairs()) cliques.push_back(pair.nodes);
  BlockMatrix A(std::make_shared<const BlockPattern>(make_block_pattern(model.nodes(), cliques)));
  contact.add_stiffness(x, true, A);
  VecX Kd;
  multiply(A, d, Kd);
  EXPECT_LT((Kd + (up - down) / (2 * e)).norm(), 1e-5 * Kd.norm());
}

TEST(BodyContact, StackedBlocksCarryTheirWeight) {
  auto scene = blocks_scene({Vec3::Zero(), Vec3(0.002, 0.001, 0.1)}, "bdf1");
  scene->gravity = Vec3(0, 0, -9.81);
  scene->contact.friction = 0.3;
  scene->damping_stiffness = 0.01;
  scene->method_options["contact_damping"] = 0.02;
  ObstacleSpec floor;
  floor.name = "floor";
  floor.shape = "plane";
  floor.normal = Vec3::UnitZ();
  floor.friction = 0.3;
  scene->obstacles.push_back(floor);
  Simulation sim(scene);
  for (int k = 0; k < 250; ++k) sim.step();
  double ground = 0, between = 0;
  const VecX& x = sim.state().x;
  for (Index i = 0; i < sim.model().nodes(); ++i) ground += std::max(0.0, -x[3 * i + 2]);
  BodyContact contact = contact_of(sim.model());
  contact.pose(x, x, x, 0.01);
  VecX f = VecX::Zero(x.size());
  contact.add_force(x, f);
  for (Index i = 0; i < sim.model().nodes(); ++i)
    if (sim.model().body_of_node[i] == 1) between += f[3 * i + 2];
  EXPECT_NEAR(500 * ground, 2 * 9.81, 0.01 * 2 * 9.81);
  EXPECT_NEAR(between, 9.81, 0.02 * 9.81);
}

TEST(BodyContact, CollisionConservesMomentumAndGainsNoEnergy) {
  for (const std::string solver : {"newton-direct", "auto"}) {
    auto scene = blocks_scene({Vec3::Zero(), Vec3(0.02, 0.01, 0.11)}, "sdirk2", solver);
    scene->h = 2e-3;
    scene->method_options["tolerance_relative"] = 1e-9;
    scene->method_options["tolerance_absolute"] = 1e-8;
    Simulation sim(scene);
    State state = sim.state();
    for (Index i = 0; i < sim.model().nodes(); ++i)
      state.v[3 * i + 2] = sim.model().body_of_node[i] == 0 ? 0.5 : -0.5;
    sim.restore(state);
    const Diagnostics before = measure(sim.model(), sim.state(), {});
    double most = 0, energy = 0;
    for (int k = 0; k < 60; ++k) {
      const StepReport r = sim.step();
      most = std::max(most, r.extra.at("body_contacts"));
      const Diagnostics d = measure(sim.model(), sim.state(), {});
      energy = d.kinetic + d.elastic;
      EXPECT_LT(energy, (before.kinetic + before.elastic) * 1.02) << solver << " step " << k;
      EXPECT_LT((d.momentum - before.momentum).norm(), 1e-5) << solver << " step " << k;
      EXPECT_LT((d.angular_momentum - before.angular_momentum).norm(), 1e-4) << solver << " step " << k;
    }
    EXPECT_GT(most, 0) << solver;
    // They have bounced: the upper one goes up again.
    double up = 0;
    for (Index i = 0; i < sim.model().nodes(); ++i)
      if (sim.model().body_of_node[i] == 1) up += sim.model().mass[3 * i] * sim.state().v[3 * i + 2];
    EXPECT_GT(up, 0.2) << solver;
  }
}

TEST(BodyContact, RestartIsExact) {
  for (const std::string solver : {"newton-l1", "qlb", "auto"}) {
    auto scene = blocks_scene({Vec3::Zero(), Vec3(0.02, 0.01, 0.1)}, "bdf1", solver);
    scene->gravity = Vec3(0, 0, -9.81);
    ConstraintSpec root;
    root.name = "root";
    root.nodes.kind = "set";
    root.nodes.name = "block0/z0";
    scene->constraints.push_back(root);
    Simulation whole(scene), broken(scene);
    double contacts = 0;
    for (int k = 0; k < 15; ++k) {
      contacts += whole.step().extra.at("body_contacts");
      broken.restore(State(broken.state()));
      broken.step();
      ASSERT_EQ(whole.state().x, broken.state().x) << solver << " step " << k;
    }
    EXPECT_GT(contacts, 0) << solver;
  }
}

TEST(BodyContact, NoticesNodesThatGoThroughABody) {
  const Model model = build_model(blocks_scene({Vec3::Zero(), Vec3(0.013, 0.008, 0.15)}, "bdf1"));
  const VecX x0 = initial_state(model).x;
  const auto lowered = [&](double by) {
    VecX x = x0;
    for (Index i = 0; i < model.nodes(); ++i)
      if (model.body_of_node[i] == 1) x[3 * i + 2] -= by;
    return x;
  };
  BodyContact contact = contact_of(model);
  contact.pose(x0, x0, x0, 0.01);
  EXPECT_TRUE(contact.pairs().empty());
  EXPECT_FALSE(contact.revise(lowered(0.02)));  // still above
  EXPECT_TRUE(contact.revise(lowered(0.06)));   // 0.01 m into it: pairs are added
  EXPECT_TRUE(contact.tunnelled().empty());
  const std::size_t inside = contact.pairs().size();
  EXPECT_GT(inside, 8u);
  contact.pose(x0, x0, x0, 0.01);
  EXPECT_TRUE(contact.revise(lowered(0.35)));  // out below
  EXPECT_GT(contact.tunnelled().size(), 8u);
  // A guess that is in there shows them beforehand, and no revision is needed.
  contact.pose(x0, lowered(0.06), x0, 0.01);
  EXPECT_GE(contact.pairs().size(), inside);
  EXPECT_FALSE(contact.revise(lowered(0.06)));
}

// Soft blocks that fall into a box without a lid, one across the other.
std::shared_ptr<Scene> pile_scene(const std::string& solver) {
  auto scene = blocks_scene(
      {Vec3(-0.05, 0, 0.01), Vec3(0.055, 0.01, 0.015), Vec3(0.0, 0.005, 0.125), Vec3(0.01, 0.0, 0.235)},
      "sdirk2", solver);
  for (BodySpec& body : scene->bodies) body.generate->nodes = {3, 3, 3};
  scene->bodies[2].rotation = Vec3(0.1, -0.1, 0.7);
  scene->gravity = Vec3(0, 0, -9.81);
  scene->contact.stiffness = 0;  // from the material
  scene->contact.friction = 0.4;
  scene->method_options["strain_damping"] = 5e-3;
  scene->method_options["contact_damping"] = 5e-3;
  scene->method_options["slip_speed"] = 0.02;
  for (const Vec3& n : {Vec3(0, 0, 1), Vec3(1, 0, 0), Vec3(-1, 0, 0), Vec3(0, 1, 0), Vec3(0, -1, 0)}) {
    ObstacleSpec wall;
    wall.name = "wall" + std::to_string(scene->obstacles.size());
    wall.shape = "plane";
    wall.normal = n;
    wall.point = n.z() > 0 ? Vec3(0, 0, 0) : Vec3(-0.2 * n);
    wall.friction = 0.3;
    scene->obstacles.push_back(wall);
  }
  return scene;
}

TEST(BodyContact, APileComesToRestOnTheFloor) {
  auto scene = pile_scene("auto");
  Simulation sim(scene);
  double contacts = 0, depth = 0;
  for (int k = 0; k < 150; ++k) {
    const StepReport r = sim.step();
    contacts = r.extra.at("body_contacts");
    depth = std::max(depth, r.extra.at("body_depth"));
    EXPECT_EQ(r.extra.at("body_tunnelled"), 0) << "step " << k;
  }
  EXPECT_GT(contacts, 3);
  EXPECT_LT(depth, 0.01);  // of blocks of 0.1 m
  const Diagnostics d = measure(sim.model(), sim.state(), {});
  EXPECT_LT(d.kinetic, 2e-3);  // they came with 4 J
  // The lower two carry the upper two: everything's weight is on the floor, and nobody is under it.
  double ground = 0;
  for (std::size_t k = 0; k < sim.model().contact.nodes.size(); ++k) {
    const double z = sim.state().x[3 * sim.model().contact.nodes[k] + 2];
    EXPECT_GT(z, -0.005);
    ground += sim.model().contact.stiffness[k] * std::max(0.0, -z);
  }
  EXPECT_NEAR(ground, 4 * 9.81, 0.05 * 4 * 9.81);
}

TEST(BodyContact, SolversAgreeWhileBodiesCollide) {
  std::vector<VecX> x;
  for (const std::string solver : {"newton-direct", "newton-pcg", "newton-l0", "hybrid-l1", "qlb", "auto"}) {
    auto scene = pile_scene(solver);
    scene->method_options["tolerance_relative"] = 1e-9;
    scene->method_options["tolerance_absolute"] = 1e-8;
    Simulation sim(scene);
    double contacts = 0;
    for (int k = 0; k < 9; ++k) contacts += sim.step().extra.at("body_contacts");
    EXPECT_GT(contacts, 5) << solver;
    x.push_back(sim.state().x);
    EXPECT_LT((x.back() - x.front()).cwiseAbs().maxCoeff(), 1e-7) << solver;
  }
}

TEST(BodyContact, ThePatternOfContactsSurvivesARestart) {
  for (const std::string solver : {"newton-direct", "auto"}) {
    auto scene = pile_scene(solver);
    Simulation whole(scene), broken(scene);
    for (int k = 0; k < 16; ++k) {
      whole.step();
      if (k % 3 == 2) {  // another program goes on from the state
        const State state = broken.state();
        Simulation next(scene);
        next.restore(state);
        next.step();
        ASSERT_EQ(whole.state().x, next.state().x) << solver << " step " << k;
        ASSERT_EQ(memory_of<ImplicitMemory>(whole.state())->coupled_nodes,
                  memory_of<ImplicitMemory>(next.state())->coupled_nodes)
            << solver << " step " << k;
      }
      broken.restore(whole.state());
    }
    EXPECT_FALSE(memory_of<ImplicitMemory>(whole.state())->coupled_nodes.empty()) << solver;
  }
}

}  // namespace
}  // namespace limber
