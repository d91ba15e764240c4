// ConJac with dynamic modes: against dense eigenvalues, the full method, theory, and its own promises.
#include "scenes.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/io/replay.hpp>
#include <limber/methods/conjac/condensation.hpp>
#include <limber/methods/conjac/dynamic_nodes.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/describe_run.hpp>
#include <limber/sim/frame.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/static_solve.hpp>

#include <gtest/gtest.h>
#include <Eigen/Eigenvalues>
#include <Eigen/Geometry>

#include <cmath>
#include <filesystem>
#include <numbers>

namespace limber::test {
namespace {

using nlohmann::json;

std::shared_ptr<Scene> soft_modal_bar(int modes, const std::string& rule = "guarded") {
  auto s = bar({.04, .04, .14}, {4, 4, 8}, 1e4, .4);
  s->h = 5e-3;
  use_conjac(*s, {}, conjac_options(rule));
  if (modes > 0) s->method_options["dynamic"] = json::array({{{"modes", modes}}});
  return s;
}

Diagnostics measured(const Simulation& sim) { return measure(sim.model(), sim.state(), {}); }

// Angle by which the end of a bar has turned about its axis [rad].
double end_twist(const Simulation& sim) {
  double turn = 0, inertia = 0;
  for (Index i = 0; i < sim.model().nodes(); ++i) {
    const Vec3 p = sim.model().mesh.rest[i];
    if (p.z() < .14 - 1e-9) continue;
    const Vec3 r(p.x() - .02, p.y() - .02, 0), d = node(sim.state().x, i) - p;
    turn += r.x() * d.y() - r.y() * d.x();
    inertia += r.squaredNorm();
  }
  return turn / inertia;
}

void twist(Simulation& sim, double angle) {
  State state = sim.state();
  for (Index i = 0; i < sim.model().nodes(); ++i) {
    const Vec3 p = sim.model().mesh.rest[i];
    const Eigen::Rotation2Dd turn(angle * p.z() / .14);
    const Vec2 q = turn * Vec2(p.x() - .02, p.y() - .02);
    node(state.x, i) = Vec3(q.x() + .02, q.y() + .02, p.z());
  }
  sim.restore(state);
}

// The modes at rest are the lowest eigenpairs of the dense problem, with and without dynamic nodes, and
// following them from a neighbouring shape leads to the same.
TEST(Modes, AreTheLowestEigenpairs) {
  for (const std::vector<Vec3>& nodes : {std::vector<Vec3>{}, std::vector<Vec3>{{.02, .02, .14}}}) {
    auto s = bar({.04, .04, .14}, {3, 3, 5}, 1e4, .4);
    use_conjac(*s, nodes);
    Simulation sim = simulate(s);
    const Model& model = sim.model();
    StepInput in;
    script_input(model, sim.state(), s->h, in);
    VecX x = sim.state().x;
    fem::Assembled system;
    fem::assemble(*model.elements, x, in.activation, system);
    const DynamicNodes chosen =
        choose_dynamic_nodes(model, ConJacOptions::read(*model.scene->method_options).dynamic);
    std::vector<std::uint8_t> taken = in.fixed;
    for (const Index i : chosen.nodes) std::fill_n(taken.begin() + 3 * i, 3, std::uint8_t{1});
    std::vector<Eigen::Index> Q;
    for (Eigen::Index d = 0; d < x.size(); ++d)
      if (!taken[static_cast<std::size_t>(d)]) Q.push_back(d);
    MatX K(x.size(), x.size());
    for (Eigen::Index d = 0; d < x.size(); ++d) {
      VecX y;
      multiply(system.K, VecX::Unit(x.size(), d), y);
      K.col(d) = y;
    }
    const VecX mass = model.mass(Q);
    const Eigen::GeneralizedSelfAdjointEigenSolver<MatX> exact(MatX(K(Q, Q)), MatX(mass.asDiagonal()));

    Condensation c(model, chosen.nodes, {{6, 0}}, {}, false);
    PhaseClock clock;
    ContactStep contact;
    contact.begin(model.contact, {}, x, sim.state().v, Vec3::Zero(), s->h, 0);
    const auto modes_at = [&](const VecX& shape) {
      EXPECT_TRUE(c.assemble(shape, in, contact, nullptr, clock));
      VecX b = VecX::Zero(x.size());
      const std::vector<std::uint8_t> dynamic(chosen.nodes.size(), 1);
      EXPECT_TRUE(c.condense(dynamic, contact, {}, b, sim.state().v, b, clock));
      return c.modes(0).values.head(6).eval();
    };
    const VecX expected = exact.eigenvalues().head(6);
    EXPECT_LT(((modes_at(x) - expected).cwiseQuotient(expected)).cwiseAbs().maxCoeff(), 1e-7);
    EXPECT_EQ(c.new_modes, 1);
    const MatX M = model.mass.asDiagonal();
    const MatX phi = c.modes(0).shapes.leftCols(6);
    EXPECT_LT((phi.transpose() * M * phi - MatX::Identity(6, 6)).norm(), 1e-9);
    const MatX off = K * phi - c.modes(0).pull;
    EXPECT_LT(MatX(off(Q, Eigen::all)).norm(), 1e-6 * c.modes(0).pull.norm());
    // Away and back, a sweep at a time.
    VecX bent = x;
    for (Index i = 0; i < model.nodes(); ++i) bent[3 * i] += 1.5 * x[3 * i + 2] * x[3 * i + 2];
    modes_at(bent);
    EXPECT_EQ(c.new_modes, 0);
    for (int k = 0; k < 6; ++k) modes_at(x);
    EXPECT_LT(((modes_at(x) - expected).cwiseQuotient(expected)).cwiseAbs().maxCoeff(), 1e-6);
    EXPECT_EQ(c.new_modes, 0);
  }
}

// All modes, or nodes and all other modes, span everything: the paper's rule is then VANILLA's.
TEST(Modes, AllOfThemAreVanilla) {
  for (const bool nodes : {false, true}) {
    auto full = bar({.04, .04, .06}, {3, 3, 4}, 2e4, .45);
    full->gravity = {0, -9.81, 0};
    full->damping_mass = .3;
    full->damping_stiffness = 1e-3;
    MotionKey start, end;
    end.t = .1;
    end.translation = {0, .01, .005};
    end.rotation = {0, 0, .5};
    full->constraints[0].motion = {start, end};
    auto reduced = std::make_shared<Scene>(*full);
    use_vanilla(*full, .7);
    json options = conjac_options("linear-implicit");
    options["beta"] = .7;
    use_conjac(*reduced, nodes ? std::vector<Vec3>{{0, 0, .06}, {.04, .02, .04}} : std::vector<Vec3>{},
               options);
    reduced->method_options["dynamic"].push_back({{"modes", 81}});
    Simulation a = simulate(full), b = simulate(reduced);
    for (int k = 0; k < 40; ++k) {
      a.step();
      EXPECT_EQ(b.step().dofs, 81);
      ASSERT_LT((a.state().x - b.state().x).cwiseAbs().maxCoeff(), 1e-9) << "step " << k;
    }
    EXPECT_GT(measured(a).max_displacement, 5e-3);
  }
}

TEST(Modes, RestWhereStaticsSays) {
  for (const char* rule : {"guarded", "linear-implicit", "trapezoidal", "modal", "midpoint"}) {
    auto s = soft_modal_bar(4, rule);
    s->gravity = {0, -9.81, 0};
    s->damping_mass = 15;
    Simulation sim = simulate(s);
    run(sim, 1200);
    EXPECT_LT(measured(sim).max_speed, 1e-8) << rule;
    StepInput in;
    State state = initial_state(sim.model());
    script_input(sim.model(), state, s->h, in);
    ASSERT_TRUE(solve_static(sim.model(), in, state.x, 1e-12).converged);
    EXPECT_LT((sim.state().x - state.x).cwiseAbs().maxCoeff() / sim.model().size, 1e-8) << rule;
  }
}

// A small swing in the first mode has its frequency, and its energy stays in that mode.
TEST(Modes, TheFirstModeSwingsAtItsFrequency) {
  auto s = soft_modal_bar(4);
  s->h = 2e-3;
  s->end = 5;
  Simulation sim = simulate(s);
  sim.step();  // makes the modes
  const ConJacMemory& memory = *memory_of<ConJacMemory>(sim.state());
  ASSERT_EQ(memory.modes.count, std::vector<std::int64_t>{4});
  const VecX phi = memory.modes.shapes.head(sim.state().x.size());
  fem::Assembled system;
  fem::assemble(*sim.model().elements, sim.state().x, {}, system);
  VecX Kphi;
  multiply(system.K, phi, Kphi);
  const double f = std::sqrt(phi.dot(Kphi)) / (2 * std::numbers::pi);
  State state = sim.state();
  state.v = 1e-4 * phi;
  sim.restore(state);
  const double energy = measured(sim).kinetic;
  std::vector<double> up;
  double before = 0;
  while (!sim.done() && up.size() < 4) {
    const StepReport report = sim.step();
    EXPECT_NEAR(report.extra.at("mode_energy/1"), energy, .01 * energy);
    EXPECT_LT(report.extra.at("mode_energy/2"), .01 * energy);
    const double q = phi.dot(sim.model().mass.cwiseProduct(sim.state().x - initial_state(sim.model()).x));
    if (before < 0 && q >= 0) up.push_back(sim.state().t - s->h * q / (q - before));
    before = q;
  }
  ASSERT_EQ(up.size(), 4u);
  EXPECT_NEAR(3 / (up[3] - up[0]), f, 2e-3 * f);
}

// Nodes on the axis of a bar cannot carry torsion at all; modes can. Reference: the full method with steps of
// a twentieth.
TEST(Modes, CarryTorsion) {
  const auto angles = [](std::shared_ptr<Scene> s, int every) {
    s->end = .2;
    Simulation sim = simulate(s);
    twist(sim, std::numbers::pi / 4);
    VecX out(40);
    for (Eigen::Index k = 0; k < out.size(); ++k) {
      run(sim, every);
      out[k] = end_twist(sim);
    }
    return out;
  };
  auto full = soft_modal_bar(0), nodes = soft_modal_bar(0), modes = soft_modal_bar(6);
  use_vanilla(*full, .5);
  full->h = 2.5e-4;
  use_conjac(*nodes, {{.02, .02, .035}, {.02, .02, .07}, {.02, .02, .105}, {.02, .02, .14}});
  const VecX reference = angles(full, 20);
  const auto error = [&](const VecX& a) { return (a - reference).norm() / reference.norm(); };
  EXPECT_GT(error(angles(nodes, 1)), .8);
  EXPECT_LT(error(angles(modes, 1)), .2);
}

// The guard holds: energy after a violent release never grows, and a swing from a bent shape at rest keeps
// nearly all of it.
TEST(Modes, KeepEnergyAndNeverGainIt) {
  for (const double pull : {.015, .6}) {
    auto s = soft_modal_bar(6);
    Simulation sim = simulate(s);
    State state = sim.state();
    StepInput in;
    script_input(sim.model(), state, s->h, in);
    for (int k = 1; k <= 5; ++k) {
      for (Index i = 0; i < sim.model().nodes(); ++i)
        if (sim.model().mesh.rest[i].z() > .14 - 1e-9)
          node(in.force, i) =
              .2 * k * pull * 1e4 * .04 * .04 / 16 * (pull > .1 ? Vec3(.2, 0, 1) : Vec3(1, 0, 0));
      ASSERT_TRUE(solve_static(sim.model(), in, state.x, 1e-8).converged);
    }
    sim.restore(state);
    const double start = measured(sim).total();
    for (int k = 0; k < 100; ++k) {
      sim.step();
      ASSERT_LT(measured(sim).total(), 1.002 * start) << "step " << k;
    }
    if (pull < .1) {
      EXPECT_GT(measured(sim).total(), .9 * start);
    }
  }
}

// A body that nothing holds falls as a point does, undeformed, and keeps momentum and spin.
TEST(Modes, FreeBodiesFallAndSpin) {
  auto s = bar({.04, .04, .14}, {4, 4, 8}, 3e4, .4, false);
  s->h = 5e-3;
  s->gravity = {0, -9.81, 0};
  use_conjac(*s, {});
  s->method_options["dynamic"] = json::array({{{"modes", 6}}});
  Simulation sim = simulate(s);
  run(sim, 40);
  const double t = sim.state().t;
  EXPECT_NEAR(measured(sim).momentum.y(), -9.81 * t * sim.model().mass.sum() / 3, 1e-9);
  EXPECT_LT(measured(sim).elastic, 1e-12);

  auto spin = std::make_shared<Scene>(*s);
  spin->gravity.setZero();
  spin->bodies[0].velocity = {.1, 0, 0};
  spin->bodies[0].angular_velocity = {2, 1, 0};
  Simulation turning = simulate(spin);
  const Diagnostics before = measured(turning);
  run(turning, 100);
  const Diagnostics after = measured(turning);
  EXPECT_LT((after.momentum - before.momentum).norm(), 1e-9 * before.momentum.norm());
  EXPECT_LT((after.angular_momentum - before.angular_momentum).norm(), .05 * before.angular_momentum.norm());
}

// A ball falls on a floor and comes to rest on it.
TEST(Modes, TouchAnObstacleAndComeToRest) {
  auto s = bar({.1, .1, .1}, {5, 5, 5}, 5e4, .4, false);
  s->h = 5e-3;
  s->gravity = {0, 0, -9.81};
  s->damping_stiffness = 4e-3;
  ObstacleSpec floor;
  floor.shape = "plane";
  floor.normal = {0, 0, 1};
  s->obstacles.push_back(floor);
  s->bodies[0].rotation = {.5, .2, 0};
  s->bodies[0].translation = {0, 0, .08};
  use_conjac(*s, {});
  s->method_options["dynamic"] = json::array({{{"modes", 6}}});
  Simulation sim = simulate(s);
  double least = measured(sim).total();
  const double fall = least;
  for (int k = 0; k < 500; ++k) {
    sim.step();
    const double e = measured(sim).total();
    EXPECT_LT(e - least, 3e-3 * fall) << "step " << k;
    least = std::min(least, e);
  }
  EXPECT_LT(measured(sim).max_speed, 1e-3);
  EXPECT_GT(measured(sim).center_of_mass.z(), .045);
}

// Two bars with modes move as each does alone; a run in parts and with any number of threads has the same
// bits.
TEST(Modes, OfSeveralBodiesAndAfterARestart) {
  const auto scene = [](bool first, bool second) {
    auto s = bar({.03, .03, .12}, {3, 3, 7}, 2e4, .4);
    s->h = 5e-3;
    s->gravity = {0, -9.81, 0};
    s->constraints[0].nodes.kind = "formula";
    s->constraints[0].nodes.name = "z < 1e-6";
    BodySpec other = s->bodies[0];
    other.name = "other";
    other.translation = {.2, 0, 0};
    other.material.young = {5e4};
    if (!first) s->bodies.clear();
    if (second) s->bodies.push_back(other);
    use_conjac(*s, {}, conjac_options("midpoint"));
    s->method_options["dynamic"] = json::array({{{"modes", 5}}});
    return s;
  };
  Simulation both = simulate(scene(true, true)), first = simulate(scene(true, false)),
             second = simulate(scene(false, true));
  run(both, 30);
  run(first, 30);
  run(second, 30);
  const Eigen::Index n = first.state().x.size();
  EXPECT_LT((both.state().x.head(n) - first.state().x).cwiseAbs().maxCoeff(), 1e-9);
  EXPECT_LT((both.state().x.tail(n) - second.state().x).cwiseAbs().maxCoeff(), 1e-9);

  Simulation whole = simulate(scene(true, true));
  run(whole, 12);
  const int threads_before = threads();
  for (const int count : {1, 2}) {
    set_threads(count);
    Simulation one = simulate(scene(true, true));
    run(one, 7);
    Simulation two = simulate(scene(true, true));
    two.restore(one.state());
    run(two, 5);
    EXPECT_EQ(hash_state(two.state()), hash_state(whole.state()));
  }
  set_threads(threads_before);
}

// A body at rest that rounding alone moves, by less than a bit of its positions: its matrix stays the same,
// and a run that goes on from a copy of its state has no factor of it yet.
TEST(Modes, ABodyAtRestGoesOnExactly) {
  const auto scene = std::make_shared<Scene>(read_scene(R"({"limber": 1, "gravity": [0, 0, 0],
    "time": {"step": 0.01, "end": 0.2}, "method": {"type": "conjac"},
    "bodies": [{"mesh": {"shape": "bar", "size": [0.4, 0.1, 0.1], "nodes": [9, 3, 3]}, "material": {"young": 1e5, "poisson": 0.3}}],
    "constraints": [{"nodes": {"set": "x0"}, "axes": "x"}, {"nodes": {"set": "y0"}, "axes": "y"},
                    {"nodes": {"set": "z0"}, "axes": "z"}]})",
                                                        "rest.json"));
  Simulation whole = simulate(scene), one = simulate(scene), two = simulate(scene);
  run(whole, 8);
  run(one, 4);
  two.restore(one.state());
  run(two, 4);
  EXPECT_LT(measured(whole).max_speed, 1e-12);
  EXPECT_EQ(hash_state(two.state()), hash_state(whole.state()));
}

// A cut leaves pieces with modes of their own; when a hold ends, the modes are those without it.
TEST(Modes, AreFoundAgainAfterACutAndARelease) {
  auto s = soft_modal_bar(5);
  s->gravity = {0, -9.81, 0};
  ConstraintSpec hand;
  hand.nodes.kind = "set";
  hand.nodes.name = "z1";
  hand.until = .02;
  s->constraints.push_back(hand);
  EventSpec cut;
  cut.time = .05;
  cut.point = {.02, .02, .08};
  cut.normal = {0, 0, 1};
  s->events.push_back(cut);
  Simulation sim = simulate(s);
  std::vector<int> made;
  for (int k = 0; k < 40; ++k) {
    const StepReport r = sim.step();
    if (r.extra.at("new_modes") > 0) made.push_back(k);
    ASSERT_TRUE(sim.state().x.allFinite());
  }
  EXPECT_EQ(made, (std::vector<int>{0, 4, 10}));
  EXPECT_EQ(memory_of<ConJacMemory>(sim.state())->modes.count, (std::vector<std::int64_t>{5, 5}));
}

// After a cut the search begins with the modes from before, and finds what a search from nothing does.
TEST(Modes, ThoseAfterACutComeFromThoseBefore) {
  auto s = soft_modal_bar(5);
  s->gravity = {0, -9.81, 0};
  EventSpec cut;
  cut.time = .05;
  cut.point = {.02, .02, .08};
  cut.normal = {0, 0, 1};
  s->events.push_back(cut);
  Simulation carried = simulate(s), anew = simulate(s);
  run(carried, 10);
  State before = carried.state();
  before.memory.get<ConJacMemory>()->modes = {};
  anew.restore(before);
  const StepReport from_old = carried.step(), from_nothing = anew.step();
  EXPECT_EQ(from_old.extra.at("new_modes"), 2);
  EXPECT_EQ(from_old.extra.at("modes_from_old"), 2);
  EXPECT_EQ(from_nothing.extra.at("new_modes"), 2);
  EXPECT_EQ(from_nothing.extra.at("modes_from_old"), 0);
  const ModeMemory &a = memory_of<ConJacMemory>(carried.state())->modes,
                   &b = memory_of<ConJacMemory>(anew.state())->modes;
  ASSERT_EQ(a.count, b.count);
  ASSERT_EQ(a.values.size(), b.values.size());
  for (std::size_t k = 0; k < a.values.size(); ++k) EXPECT_NEAR(a.values[k], b.values[k], 1e-6 * b.values[k]);
  EXPECT_LT((carried.state().x - anew.state().x).cwiseAbs().maxCoeff(), 1e-8);
  // A run that goes on from a checkpoint right before the cut has the same bits.
  Simulation again = simulate(s);
  run(again, 10);
  Simulation resumed = simulate(s);
  resumed.restore(again.state());
  resumed.step();
  EXPECT_EQ(hash_state(resumed.state()), hash_state(carried.state()));
}

// The recording has each mode once, and the first that is missed, which is perpendicular to the others.
TEST(Modes, AreRecordedAsShapes) {
  const auto s = soft_modal_bar(4);
  Simulation sim = simulate(s);
  EXPECT_TRUE(replay_shapes(sim).empty());  // before the first step
  const StepReport first = sim.step();
  const std::vector<ReplayShape> shapes = replay_shapes(sim);
  ASSERT_EQ(shapes.size(), 5u);
  EXPECT_TRUE(shapes[0].name.starts_with("01 mode 1, ")) << shapes[0].name;
  EXPECT_TRUE(shapes[4].name.starts_with("05 not followed: body ")) << shapes[4].name;
  EXPECT_FALSE(followed_text(sim.model(), first).empty());
  const Index n = sim.model().nodes();
  const auto moved = [&](std::size_t k, Index i) {
    return Eigen::Map<const Eigen::Vector3f>(&shapes[k].values[3 * i]);
  };
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    ASSERT_EQ(shapes[k].values.size(), 3 * static_cast<std::size_t>(n));
    float longest = 0;
    for (Index i = 0; i < n; ++i) longest = std::max(longest, moved(k, i).norm());
    EXPECT_NEAR(longest, 1, 1e-6);
    for (std::size_t l = 0; l < k; ++l) {
      double product = 0, own = 0, other = 0;
      for (Index i = 0; i < n; ++i) {
        const double m = sim.model().mass[3 * i];
        product += m * double(moved(k, i).dot(moved(l, i)));
        own += m * double(moved(k, i).squaredNorm());
        other += m * double(moved(l, i).squaredNorm());
      }
      EXPECT_LT(std::abs(product), 1e-4 * std::sqrt(own * other)) << k << " " << l;
    }
  }
  EXPECT_NEAR(moved(4, static_cast<Index>(first.extra.at("missed_node"))).norm(), 1, 1e-6);

  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "shapes.lmr";
  ReplayWriter writer = ReplayWriter::create(file, replay_header(sim, {}));
  writer.add_topology(replay_topology(sim));
  writer.add_shapes(1, shapes);
  writer.add_shapes(2, {});
  EXPECT_THROW(writer.add_shapes(3, {{"short", {1, 2, 3}}}), Error);
  const ReplayReader reader(file);
  const std::vector<ReplayShape> read = reader.shapes(0);
  EXPECT_EQ(reader.damage(), "");
  ASSERT_EQ(read.size(), shapes.size());
  for (std::size_t k = 0; k < read.size(); ++k) {
    EXPECT_EQ(read[k].name, shapes[k].name);
    EXPECT_EQ(read[k].values, shapes[k].values);
  }
  ReplayWriter::resume(file, 0, 1);  // what comes after step 0 is dropped
  EXPECT_TRUE(ReplayReader(file).shapes(0).empty());
  std::filesystem::remove(file);
}

TEST(Modes, BelowAFrequency) {
  auto s = soft_modal_bar(12);
  Simulation twelve = simulate(s);
  twelve.step();
  const double all = twelve.step().extra.at("followed_below");
  auto below = soft_modal_bar(1);
  below->method_options["dynamic"] = json::array({{{"below", .999 * all}}});
  Simulation sim = simulate(below);
  const StepReport r = sim.step();
  EXPECT_EQ(r.dofs, 12);
  EXPECT_NEAR(r.extra.at("followed_below"), all, 1e-6 * all);
}

// A scene that names nothing dynamic has six modes.
TEST(Modes, SixAreTheDefault) {
  const auto bits = [](const char* dynamic) {
    const std::string text =
        std::string(R"({"limber": 1, "time": {"step": 0.005, "end": 0.05}, "method": {"type": "conjac")") +
        dynamic +
        R"(}, "bodies": [{"mesh": {"shape": "bar", "size": [0.02, 0.02, 0.08], "nodes": [3, 3, 9]},
                                 "material": {"young": 1e4, "poisson": 0.4}}], "constraints": [{"nodes": {"set": "z0"}}]})";
    Simulation sim = simulate(std::make_shared<Scene>(read_scene(text, "default.json")));
    const Index dofs = sim.step().dofs;
    run(sim, 9);
    return std::pair(dofs, hash_state(sim.state()));
  };
  const auto none = bits(""), six = bits(R"(, "dynamic": [{"modes": 6}])");
  EXPECT_EQ(none.first, 6);
  EXPECT_EQ(none.second, six.second);
  EXPECT_NE(none.second, bits(R"(, "dynamic": [{"modes": 5}])").second);
}

}  // namespace
}  // namespace limber::test
