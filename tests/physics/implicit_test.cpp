#include "physics/implicit_scenes.hpp"

#include <limber/contact/contact_energy.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/methods/implicit/implicit_stage.hpp>
#include <limber/methods/implicit/options.hpp>
#include <limber/sim/static_solve.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

namespace limber {
namespace {

using test::add_hand;
using test::bar_scene;

const std::vector<std::string> kSolvers{
    "newton-direct",   "newton-pcg", "newton-l0", "newton-l1", "quasi-newton-l0",
    "quasi-newton-l1", "hybrid-l0",  "hybrid-l1", "qlb",       "auto"};

double distance(const VecX& a, const VecX& b) { return (a - b).lpNorm<Eigen::Infinity>(); }

// The state after `time` seconds with steps of h.
State run(std::shared_ptr<Scene> scene, double h, double time) {
  scene->h = h;
  scene->end = time;
  Simulation sim(scene);
  while (!sim.done()) sim.step();
  return sim.state();
}

// A bar released from rest under gravity: large bending, geometrically and materially nonlinear.
std::shared_ptr<Scene> drop_scene(const std::string& integrator, double damping = 0) {
  auto scene = bar_scene(integrator, "newton-direct", {7, 3, 3});
  scene->bodies[0].material.young = Varying{1.5e4};
  scene->damping_stiffness = damping;
  scene->method_options["tolerance_relative"] = 1e-12;
  scene->method_options["tolerance_absolute"] = 1e-10;
  return scene;
}

// log2 of the ratio of successive differences under halving of h.
double observed_order(const std::string& integrator, double damping, double strain_damping, double coarsest) {
  std::vector<VecX> x;
  for (const double h : {coarsest, coarsest / 2, coarsest / 4}) {
    auto scene = drop_scene(integrator, damping);
    scene->method_options["strain_damping"] = strain_damping;
    x.push_back(run(scene, h, 0.16).x);
  }
  return std::log2((x[0] - x[1]).norm() / (x[1] - x[2]).norm());
}

TEST(ImplicitOrder, Bdf1IsOfFirstOrder) {
  EXPECT_NEAR(observed_order("bdf1", 0, 0, 1e-3), 1.0, 0.2);
  EXPECT_NEAR(observed_order("bdf1", 2e-3, 0, 1e-3), 1.0, 0.2);
}

TEST(ImplicitOrder, BaraffIsOfFirstOrder) { EXPECT_NEAR(observed_order("baraff", 0, 0, 1e-3), 1.0, 0.2); }

TEST(ImplicitOrder, Bdf2IsOfSecondOrder) {
  EXPECT_NEAR(observed_order("bdf2", 0, 0, 2e-3), 2.0, 0.2);
  EXPECT_NEAR(observed_order("bdf2", 2e-3, 0, 2e-3), 2.0, 0.2);
}

TEST(ImplicitOrder, Sdirk2IsOfSecondOrder) {
  EXPECT_NEAR(observed_order("sdirk2", 0, 0, 4e-3), 2.0, 0.2);
  EXPECT_NEAR(observed_order("sdirk2", 2e-3, 0, 4e-3), 2.0, 0.2);
}

TEST(Implicit, IntegratorsAgreeInTheLimit) {
  const VecX reference = run(drop_scene("sdirk2"), 5e-4, 0.1).x;
  EXPECT_LT(distance(run(drop_scene("bdf2"), 5e-4, 0.1).x, reference), 2e-5);
  EXPECT_LT(distance(run(drop_scene("bdf1"), 2e-4, 0.1).x, reference), 1e-3);
}

TEST(Implicit, BaraffIsLinearlyImplicitEuler) {
  auto scene = bar_scene("baraff", "newton-direct");
  add_hand(*scene);
  scene->damping_stiffness = 1e-3;
  scene->damping_mass = 0.5;
  auto plain = std::make_shared<Scene>(*scene);
  plain->method = "vanilla";
  *plain->method_options = {{"beta", 1.0}};
  Simulation a(scene), b(plain);
  for (int k = 0; k < 30; ++k) {
    a.step();
    b.step();
    ASSERT_LT(distance(a.state().x, b.state().x), 1e-11) << "step " << k;
    ASSERT_LT(distance(a.state().v, b.state().v), 1e-9) << "step " << k;
  }
}

TEST(Implicit, QuasistaticIsTheStaticShape) {
  auto scene = bar_scene("quasistatic", "newton-direct");
  scene->method_options["tolerance_relative"] = 1e-10;
  scene->method_options["tolerance_absolute"] = 1e-9;
  add_hand(*scene);
  scene->h = 0.05;
  Simulation sim(scene);
  for (int k = 0; k < 8; ++k) sim.step();
  VecX x = sim.state().x;
  for (Index i = 0; i < sim.model().nodes(); ++i)  // another starting point
    if (!sim.input().fixed[3 * i]) node(x, i) += Vec3(1e-3 * std::sin(i), 1e-3 * std::cos(2 * i), 0);
  const StaticResult result = solve_static(sim.model(), sim.input(), x);
  ASSERT_TRUE(result.converged) << result.why;
  EXPECT_LT(distance(x, sim.state().x), 1e-8);
}

class ImplicitSolvers : public testing::TestWithParam<std::tuple<std::string, std::string>> {};

// Every solver stops at a residual that moves x by less than a millionth of the bar.
TEST_P(ImplicitSolvers, ReachTheSameSolution) {
  const auto [solver, integrator] = GetParam();
  auto make = [&](const std::string& name) {
    auto scene = bar_scene(integrator, name);
    scene->bodies[0].material.poisson = Varying{0.45};
    add_hand(*scene);
    scene->h = integrator == "quasistatic" ? 0.05 : 0.02;
    scene->method_options["tolerance_relative"] = 1e-9;
    scene->method_options["tolerance_absolute"] = 1e-9;
    return scene;
  };
  Simulation reference(make("newton-direct")), sim(make(solver));
  for (int k = 0; k < 15; ++k) {
    // Each from the same state, so that differences do not add up.
    State start = reference.state();
    if (const ImplicitMemory* kept = memory_of<ImplicitMemory>(sim.state()))
      memory_of<ImplicitMemory>(start).factor = kept->factor;
    sim.restore(start);
    const StepReport a = reference.step(), b = sim.step();
    ASSERT_LT(distance(reference.state().x, sim.state().x), 2e-7) << "step " << k;
    ASSERT_EQ(b.fallbacks.count("halved_step"), 0u);
    ASSERT_GT(b.iterations, 0);
    EXPECT_LE(b.symbolic_analyses, 1);
    if (solver != "newton-pcg") {
      EXPECT_GE(a.extra.at("factorizations"), 1);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ImplicitSolvers,
                         testing::Combine(testing::ValuesIn(kSolvers),
                                          testing::Values("quasistatic", "bdf1", "bdf2", "sdirk2", "baraff")),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

class ImplicitRestart : public testing::TestWithParam<std::string> {};

// A stepper holds scratch only: a run that is broken off and taken up again by a new one in every step has
// the same bits, the kept factor included.
TEST_P(ImplicitRestart, IsExact) {
  for (const std::string integrator : {"bdf2", "quasistatic", "baraff"}) {
    auto scene = bar_scene(integrator, GetParam());
    add_hand(*scene);
    scene->h = 0.02;
    Simulation whole(scene), broken(scene);
    for (int k = 0; k < 12; ++k) {
      whole.step();
      broken.restore(State(broken.state()));
      broken.step();
      ASSERT_EQ(whole.state().x, broken.state().x) << "step " << k;
      ASSERT_EQ(whole.state().v, broken.state().v);
    }
  }
}

TEST_P(ImplicitRestart, ThreadsDoNotChangeBits) {
  auto scene = bar_scene("bdf2", GetParam());
  add_hand(*scene);
  auto final_state = [&](int n) {
    set_threads(n);
    Simulation sim(scene);
    for (int k = 0; k < 8; ++k) sim.step();
    set_threads(0);
    return sim.state().x;
  };
  EXPECT_EQ(final_state(1), final_state(2));
}

INSTANTIATE_TEST_SUITE_P(All, ImplicitRestart, testing::ValuesIn(kSolvers), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(Implicit, ResidualIsTheGradientOfTheEnergyAndMatrixItsDerivative) {
  auto scene = bar_scene("bdf2", "newton-direct", {4, 3, 3});
  scene->damping_mass = 0.7;
  scene->damping_stiffness = 3e-3;
  scene->method_options["strain_damping"] = 40.0;
  const Model model = build_model(scene);
  State state = initial_state(model);
  StepInput in;
  script_input(model, state, 0.01, in);
  VecX x0 = state.x, x1 = state.x, v = VecX::Zero(x0.size()), x = state.x, d(x.size());
  for (Eigen::Index k = 0; k < x.size(); ++k) {
    const bool held = in.fixed[static_cast<std::size_t>(k)];
    v[k] = held ? 0 : 0.1 * std::sin(1.3 * static_cast<double>(k));
    x1[k] += held ? 0 : 1e-3 * std::cos(static_cast<double>(k));
    x[k] += held ? 0 : 4e-3 * std::sin(0.7 * static_cast<double>(k));
    d[k] = held ? 0 : std::cos(2.1 * static_cast<double>(k));
  }
  ImplicitStage stage(model, ImplicitOptions::read(*scene->method_options).stage);
  stage.pose(in, {0.01 * 2 / 3, 4.0 / 3, -1.0 / 3, false}, {&x0, &v}, {&x1, &v});
  ImplicitStage::Point p, up, down;
  stage.evaluate(x, p);
  const double e = 1e-6;
  stage.evaluate(x + e * d, up);
  stage.evaluate(x - e * d, down);
  const double slope = p.r.dot(d);
  EXPECT_NEAR((up.energy - down.energy) / (2 * e), slope, 1e-6 * std::abs(slope));
  BlockMatrix A;
  VecX Ad;
  stage.matrix(x, stage.key(), A, fem::Projection::kNone);
  multiply(A, d, Ad);
  const VecX difference = (up.r - down.r) / (2 * e);
  EXPECT_LT((Ad - difference).norm(), 1e-6 * Ad.norm());
}

// x'' = -w^2 x by the test equation: BDF1 multiplies the amplitude by 1/sqrt(1 + z^2) a step, z = w h; BDF2
// and SDIRK2 by the moduli of their own characteristic roots. The bar's first bending mode at small amplitude
// is such an oscillator.
TEST(Implicit, AmplitudeDecaysAsTheoryOfEachIntegratorSays) {
  auto amplitude = [](const std::string& integrator, double z) {
    // One step on y' = i y with h = z: the modulus of the stability function.
    const std::complex<double> iz(0, z);
    if (integrator == "bdf1") return std::abs(1.0 / (1.0 - iz));
    const double a = 1 - std::sqrt(0.5);
    if (integrator == "sdirk2") return std::abs((1.0 + (1 - 2 * a) * iz) / ((1.0 - a * iz) * (1.0 - a * iz)));
    // BDF2: the larger root of (1 - 2/3 i z) q^2 - 4/3 q + 1/3 = 0.
    const std::complex<double> A(1, -2.0 / 3 * z),
        root = std::sqrt(std::complex<double>(16.0 / 9) - A * (4.0 / 3));
    return std::max(std::abs((4.0 / 3 + root) / (2.0 * A)), std::abs((4.0 / 3 - root) / (2.0 * A)));
  };
  for (const std::string integrator : {"bdf1", "bdf2", "sdirk2"}) {
    // A stiff bar moves as an almost linear oscillator; its axial mode is started by a velocity field and its
    // energy, which oscillates between kinetic and elastic only, measures the amplitude.
    auto scene = bar_scene(integrator, "newton-direct", {9, 2, 2});
    scene->gravity = Vec3::Zero();
    scene->bodies[0].material.poisson = Varying{0.0};
    scene->method_options["tolerance_relative"] = 1e-11;
    scene->method_options["tolerance_absolute"] = 1e-12;
    const double length = 0.2, speed = std::sqrt(5e4 / 1000);
    const double w = M_PI * speed / (2 * length);  // first axial mode of a rod held at one end, continuous
    scene->h = 0.1 / w;
    Simulation sim(scene);
    State state = sim.state();
    for (Index i = 0; i < sim.model().nodes(); ++i)
      state.v[3 * i] = 1e-4 * std::sin(M_PI * sim.model().mesh.rest[i].x() / (2 * length));
    sim.restore(state);
    const double before = measure(sim.model(), sim.state(), {}).kinetic;
    const double rest = measure(sim.model(), sim.state(), {}).elastic;
    const int steps = 126;  // two periods
    for (int k = 0; k < steps; ++k) sim.step();
    const Diagnostics end = measure(sim.model(), sim.state(), {});
    const double kept = std::sqrt((end.kinetic + end.elastic - rest) / before);
    // The discrete mode is a little faster than the continuous one (lumped mass: slower): 1 % of the decay.
    const double expected = std::pow(amplitude(integrator, 0.1), steps);
    EXPECT_NEAR(std::log(kept), std::log(expected), 0.03 * std::abs(std::log(expected)) + 2e-3) << integrator;
  }
}

TEST(Implicit, HalvesAStepThatFailsAndSaysSo) {
  auto scene = bar_scene("bdf1", "newton-direct");
  add_hand(*scene);
  scene->h = 0.05;
  scene->method_options["max_iterations"] = 3;
  Simulation sim(scene);
  int halved = 0;
  for (int k = 0; k < 6; ++k) {
    const StepReport r = sim.step();
    if (r.fallbacks.count("halved_step")) halved += r.fallbacks.at("halved_step");
  }
  EXPECT_GT(halved, 0);
  EXPECT_NEAR(sim.state().t, 0.3, 1e-12);
  // The held end is where the script says, whatever happened in between.
  StepInput in;
  State at_end = sim.state();
  const auto& hand = sim.model().holds[1].nodes;
  double x_mean = 0;
  for (Index i : hand) x_mean += node(at_end.x, i).x() / static_cast<double>(hand.size());
  const double s = 0.2, eased = s * s * (3 - 2 * s);
  EXPECT_NEAR(x_mean, 0.2 - 0.05 + 0.1 * eased, 1e-12);
}

// Newton's method converges quadratically with the exact matrix, linearly with a projected one.
TEST(Implicit, ExactMatrixNeedsFewerIterations) {
  int iterations[2] = {0, 0};
  VecX x[2];
  for (int k = 0; k < 2; ++k) {
    auto scene = bar_scene("quasistatic", "newton-direct");
    scene->method_options["matrix"] = k == 0 ? "exact" : "projected";
    scene->method_options["tolerance_relative"] = 1e-9;
    add_hand(*scene);
    scene->h = 0.025;
    Simulation sim(scene);
    for (int i = 0; i < 10; ++i) iterations[k] += sim.step().iterations;
    x[k] = sim.state().x;
  }
  EXPECT_LT(distance(x[0], x[1]), 1e-6);
  EXPECT_LT(2 * iterations[0], iterations[1]);
}

// Stiff bodies, and bodies far from the origin: their forces are never as exact as the tolerance asks for.
TEST(Implicit, StopsAtRoundingError) {
  for (const std::string solver : {"newton-direct", "newton-l0", "qlb", "auto"}) {
    for (const double shift : {0.0, 1000.0}) {
      auto scene = bar_scene("quasistatic", solver);
      scene->bodies[0].material.young = Varying{2e11};
      scene->bodies[0].scale = shift > 0 ? Vec3(1, 1, 1) : Vec3(100, 100, 100);
      scene->bodies[0].translation = Vec3(0, shift, 0);
      scene->method_options["tolerance_relative"] = 1e-14;
      scene->method_options["tolerance_absolute"] = 1e-14;
      Simulation sim(scene);
      for (int k = 0; k < 3; ++k) {
        const StepReport r = sim.step();
        ASSERT_TRUE(r.fallbacks.empty()) << solver << ", " << r.fallbacks.begin()->first;
        EXPECT_LT(r.residual, 0.05);  // it weighs 5 N, and 5 MN when it is large
      }
    }
  }
}

// No pairs of L-BFGS: quasi-Newton with a factor that is kept.
TEST(Implicit, HistoryMayBeEmpty) {
  auto scene = bar_scene("bdf2", "qlb"), other = bar_scene("bdf2", "newton-direct");
  scene->method_options["history"] = 0;
  Simulation a(scene), b(other);
  for (int k = 0; k < 5; ++k) {
    a.step();
    b.step();
  }
  EXPECT_LT(distance(a.state().x, b.state().x), 1e-6);
}

TEST(Implicit, StopsClearlyWhenNothingHelps) {
  auto scene = bar_scene("bdf1", "newton-direct");
  scene->method_options["max_iterations"] = 1;
  scene->method_options["tolerance_relative"] = 1e-13;
  scene->method_options["tolerance_absolute"] = 1e-13;
  scene->method_options["max_halvings"] = 2;
  Simulation sim(scene);
  try {
    sim.step();
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kSimulation);
    EXPECT_NE(std::string(e.what()).find("halved 2 times"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("node"), std::string::npos) << e.what();
  }
  EXPECT_EQ(sim.state().t, 0);
}

// A block of 0.1 m on a plane that is tilted by `angle` about y.
std::shared_ptr<Scene> block_scene(const std::string& integrator, const std::string& solver, double angle,
                                   double friction) {
  auto scene = bar_scene(integrator, solver, {4, 4, 4});
  scene->constraints.clear();
  scene->bodies[0].generate->size = Vec3(0.1, 0.1, 0.1);
  scene->bodies[0].material.poisson = Varying{0.3};
  scene->gravity = Vec3(9.81 * std::sin(angle), 0, -9.81 * std::cos(angle));
  ObstacleSpec floor;
  floor.name = "floor";
  floor.shape = "plane";
  floor.normal = Vec3::UnitZ();
  floor.friction = friction;
  scene->obstacles.push_back(floor);
  scene->contact.stiffness = 500;
  scene->method_options["contact_damping"] = 0.02;
  return scene;
}

// At rest the springs of the 16 nodes below carry the weight: the sum of the depths is m g / K.
TEST(ImplicitContact, ABlockRestsOnItsSprings) {
  for (const std::string integrator : {"bdf1", "sdirk2"}) {
    auto scene = block_scene(integrator, "newton-direct", 0, 0.5);
    scene->damping_stiffness = 5e-3;
    Simulation sim(scene);
    for (int k = 0; k < 300; ++k) sim.step();
    double depth = 0;
    for (Index i = 0; i < sim.model().nodes(); ++i) depth += std::max(0.0, -sim.state().x[3 * i + 2]);
    EXPECT_NEAR(depth, 1.0 * 9.81 / 500, 1e-3 * 9.81 / 500) << integrator;
    EXPECT_LT(measure(sim.model(), sim.state(), {}).max_speed, 1e-4) << integrator;
  }
}

// Coulomb on a slope of 20 degrees: with mu = 0.6 it stays, up to the slip speed; with mu = 0.1 it slides
// with g (sin - mu cos).
TEST(ImplicitContact, FrictionHoldsOrLetsSlide) {
  const double angle = 20 * M_PI / 180;
  for (const double mu : {0.6, 0.1}) {
    auto scene = block_scene("bdf2", "newton-direct", angle, mu);
    scene->damping_stiffness = 5e-3;
    Simulation sim(scene);
    for (int k = 0; k < 50; ++k) sim.step();
    const double v0 = measure(sim.model(), sim.state(), {}).momentum.x();  // of 1 kg [m/s]
    for (int k = 0; k < 50; ++k) sim.step();
    const double v1 = measure(sim.model(), sim.state(), {}).momentum.x();
    if (mu > 0.3) {
      EXPECT_LT(v1, 5.5e-3);
    } else {
      const double a = 9.81 * (std::sin(angle) - mu * std::cos(angle));
      EXPECT_NEAR((v1 - v0) / 0.5, a, 0.03 * a);
    }
  }
}

// Dropped without damping or friction: kinetic, elastic, contact and potential energy together never exceed
// what there was.
TEST(ImplicitContact, EnergyDoesNotGrow) {
  for (const std::string integrator : {"bdf1", "sdirk2"}) {
    auto scene = block_scene(integrator, "newton-direct", 0, 0);
    scene->method_options["contact_damping"] = 0.0;
    scene->h = 2e-3;
    Simulation sim(scene);
    State state = sim.state();
    for (Index i = 0; i < sim.model().nodes(); ++i) state.x[3 * i + 2] += 0.05;
    sim.restore(state);
    auto total = [&] {
      const Diagnostics d = measure(sim.model(), sim.state(), {});
      return d.kinetic + d.elastic + d.gravity + d.contact;
    };
    const double before = total();
    int contacts = 0;
    for (int k = 0; k < 200; ++k) {
      contacts += sim.step().contacts;
      ASSERT_LT(total(), before + 2e-3) << integrator << " step " << k;  // of 0.5 J that fall
    }
    EXPECT_GT(contacts, 0);
  }
}

TEST(ImplicitContact, ForceIsTheGradientAndStiffnessItsDerivative) {
  auto scene = block_scene("bdf1", "newton-direct", 0.3, 0.4);
  const Model model = build_model(scene);
  State state = initial_state(model);
  VecX x0 = state.x, x = state.x, d(x.size());
  for (Eigen::Index k = 0; k < x.size(); ++k) {
    x0[k] -= k % 3 == 2 ? 2e-3 : 0;
    x[k] = x0[k] + 1e-3 * std::sin(0.7 * static_cast<double>(k)) - (k % 3 == 2 ? 1e-3 : 0);
    d[k] = std::cos(2.1 * static_cast<double>(k));
  }
  ContactEnergy contact(model.contact, 0.02, 5e-3, 0.01);
  contact.pose(x0, 0, x, 0.01, x0, 0.01);
  const double e = 1e-7;
  VecX f = VecX::Zero(x.size()), up = f, down = f, Kd;
  contact.add_force(x, f);
  const double more = contact.add_force(x + e * d, up), less = contact.add_force(x - e * d, down);
  EXPECT_GT(f.norm(), 1.0);
  EXPECT_NEAR((more - less) / (2 * e), -f.dot(d), 1e-5 * std::abs(f.dot(d)));
  BlockMatrix K(model.pattern);
  contact.add_stiffness(x, K);
  multiply(K, d, Kd);
  EXPECT_LT((Kd + (up - down) / (2 * e)).norm(), 1e-4 * Kd.norm());
}

TEST(ImplicitContact, SolversAgreeAndRestartIsExact) {
  VecX reference;
  for (const std::string solver : {"newton-direct", "newton-l0", "hybrid-l1", "qlb", "auto"}) {
    auto scene = block_scene("sdirk2", solver, 0.2, 0.3);
    scene->method_options["tolerance_relative"] = 1e-9;
    scene->method_options["tolerance_absolute"] = 1e-8;
    Simulation whole(scene), broken(scene);
    for (int k = 0; k < 20; ++k) {
      whole.step();
      broken.restore(State(broken.state()));
      broken.step();
      ASSERT_EQ(whole.state().x, broken.state().x) << solver << " step " << k;
    }
    if (reference.size() == 0) reference = whole.state().x;
    EXPECT_LT(distance(reference, whole.state().x), 1e-6) << solver;
  }
}

}  // namespace
}  // namespace limber
