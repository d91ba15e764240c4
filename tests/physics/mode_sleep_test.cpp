// ConJac with modes that fall asleep: against the run in which all stay awake, statics, and theory.
#include "scenes.hpp"

#include <limber/core/parallel.hpp>
#include <limber/methods/conjac/memory.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/static_solve.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace limber::test {
namespace {

using nlohmann::json;

std::shared_ptr<Scene> sleepy_bar(bool adaptive, int modes = 6) {
  auto s = bar({.04, .04, .14}, {4, 4, 8}, 1e4, .4);
  s->h = 5e-3;
  json options = conjac_options();
  if (adaptive)
    options["adaptive"] = {{"threshold", .02},
                           {"hysteresis", .5},
                           {"window", 10},
                           {"start_dynamic", false},
                           {"regions", json::array()}};
  use_conjac(*s, {}, options);
  s->method_options["dynamic"] = json::array({{{"modes", modes}}});
  return s;
}

double total(const Simulation& sim) { return measure(sim.model(), sim.state(), {}).total(); }

ForceSpec push(const Vec3& force, double from, double until, double ramp = 0) {
  ForceSpec f;
  f.nodes.kind = "set";
  f.nodes.name = "z1";
  f.force = force;
  f.from = from;
  f.until = until;
  f.ramp = ramp;
  return f;
}

// A bar falls under its weight, swings and comes to rest: its modes sleep, the highest first, it rests where
// statics says, and has been where it is with all modes awake.
TEST(SleepingModes, FallAsleepAndRestWhereStaticsSays) {
  const auto scene = [](bool adaptive) {
    auto s = sleepy_bar(adaptive);
    s->gravity = {0, -9.81, 0};
    s->damping_mass = 4;
    s->damping_stiffness = 2e-3;
    return s;
  };
  Simulation sim = simulate(scene(true)), awake = simulate(scene(false));
  StepReport r;
  double switches = 0, before = 6, apart = 0, moved = 0, after_sleep = -1;
  for (int k = 0; k < 1000; ++k) {
    r = sim.step();
    awake.step();
    switches += r.extra.at("switches");
    ASSERT_EQ(r.symbolic_analyses, 1);
    const double now = r.extra.at("dynamic_modes");
    if (now == 0 && after_sleep < 0) after_sleep = k;
    ASSERT_LE(now, before + 6);
    before = now;
    apart = std::max(apart, (sim.state().x - awake.state().x).cwiseAbs().maxCoeff());
    moved = std::max(moved, measure(sim.model(), sim.state(), {}).max_displacement);
  }
  EXPECT_EQ(r.dofs, 0);
  EXPECT_EQ(r.iterations, 0);  // in balance: no matrix at all
  EXPECT_GT(after_sleep, 100);
  EXPECT_LT(after_sleep, 900);
  EXPECT_LE(switches, 20);  // no chatter
  EXPECT_GT(moved, .02);
  EXPECT_LT(apart, 1e-2 * moved);
  StepInput in;
  State rest = initial_state(sim.model());
  script_input(sim.model(), rest, sim.scene().h, in);
  ASSERT_TRUE(solve_static(sim.model(), in, rest.x, 1e-12).converged);
  EXPECT_LT((sim.state().x - rest.x).cwiseAbs().maxCoeff(), 1e-9 * sim.model().size);
}

// Without damping a swing of the first mode keeps its energy while others sleep, and nothing jumps: nodes go
// as far in a step as in the run in which all modes are awake.
TEST(SleepingModes, KeepTheEnergyAndDoNotPop) {
  const auto swinging = [](bool adaptive) {
    Simulation sim = simulate(sleepy_bar(adaptive, 8));
    sim.step();
    State state = sim.state();
    state.v = .02 * memory_of<ConJacMemory>(state).modes.shapes.head(state.x.size());
    sim.restore(state);
    return sim;
  };
  Simulation sim = swinging(true), awake = swinging(false);
  const double start = total(sim);
  double apart = 0, moved = 0, jump = 0, fastest = 0, mean = 0;
  for (int k = 0; k < 400; ++k) {
    const VecX x = sim.state().x, y = awake.state().x;
    mean += sim.step().extra.at("dynamic_modes") / 400;
    awake.step();
    apart = std::max(apart, (sim.state().x - awake.state().x).cwiseAbs().maxCoeff());
    moved = std::max(moved, measure(awake.model(), awake.state(), {}).max_displacement);
    jump = std::max(jump, ((sim.state().x - x) - (awake.state().x - y)).cwiseAbs().maxCoeff());
    fastest = std::max(fastest, (awake.state().x - y).cwiseAbs().maxCoeff());
  }
  EXPECT_GT(total(sim), .98 * start);
  EXPECT_GT(total(sim), .995 * total(awake));
  EXPECT_LT(total(sim), 1.005 * total(awake));
  EXPECT_GT(moved, .005);
  EXPECT_LT(mean, 7);  // some slept
  EXPECT_LT(apart, 1e-2 * moved);
  EXPECT_LT(jump, 1e-2 * fastest);
}

// A body that sleeps swings as if it had been awake when it is pushed, in the very step.
TEST(SleepingModes, WakeInTheStepThatExcitesThem) {
  const auto scene = [](bool adaptive) {
    auto s = sleepy_bar(adaptive);
    s->forces.push_back(push({.01, 0, 0}, 0, 1));
    s->forces.push_back(push({-.02, .01, 0}, 3, 9));
    s->damping_mass = 12;
    s->damping_stiffness = 2e-3;
    return s;
  };
  Simulation sim = simulate(scene(true)), awake = simulate(scene(false));
  run(sim, 600);
  run(awake, 600);
  EXPECT_EQ(sim.step().extra.at("dynamic_modes"), 6);  // the step from t = 3 s
  awake.step();
  double apart = 0, moved = 0;
  for (int k = 0; k < 100; ++k) {
    EXPECT_LE(total(sim), total(awake) + 1e-3);
    apart = std::max(apart, (sim.state().x - awake.state().x).cwiseAbs().maxCoeff());
    moved = std::max(moved, measure(awake.model(), awake.state(), {}).max_displacement);
    sim.step();
    awake.step();
  }
  EXPECT_GT(moved, .005);
  EXPECT_LT(apart, 1e-3 * moved);
}

// After a swing that sets the scale, a weak push that is repeated in time with a mode builds up a motion; the
// same push out of time, or a load that grows slowly to far more, does not wake anybody.
TEST(SleepingModes, HearARhythmAndSleepThroughSlowLoads) {
  constexpr double kBegin = 7, kStrong = .05;  // [s], [N]
  const auto woken = [=](double period, double force, double ramp) {
    auto s = sleepy_bar(true, 4);
    s->end = 20;
    s->damping_mass = 3;
    s->forces.push_back(push({kStrong, 0, 0}, 0, .5));
    for (int k = 0; k < 10 && period > 0; ++k)
      s->forces.push_back(push({force, 0, 0}, kBegin + k * period, kBegin + (k + .5) * period));
    if (period == 0) s->forces.push_back(push({force, 0, 0}, kBegin, 19, ramp));
    Simulation sim = simulate(s);
    run(sim, 1390);
    EXPECT_EQ(sim.step().extra.at("dynamic_modes"), 0);
    int first = -1;
    for (int k = -9; k < 1200 && first < 0; ++k)
      if (sim.step().extra.at("dynamic_modes") > 0) first = k;
    return first;
  };
  // The period of the first mode that moves the end along x.
  Simulation sim = simulate(sleepy_bar(false, 4));
  sim.step();
  const ConJacMemory& memory = *memory_of<ConJacMemory>(sim.state());
  const Eigen::Index last = sim.state().x.size() - 3;
  const Eigen::Map<const MatX> shapes(memory.modes.shapes.data(), sim.state().x.size(), 6);
  const std::size_t along = std::abs(shapes(last, 0)) > std::abs(shapes(last, 1)) ? 0 : 1;
  const double period = 2 * std::numbers::pi / std::sqrt(memory.modes.values[along]);
  EXPECT_GT(period, .2);
  const double weak = 9e-3 * kStrong;
  const int rhythm = woken(period, weak, 0);
  EXPECT_GT(rhythm, static_cast<int>(.4 * period / 5e-3));  // not at once
  EXPECT_EQ(woken(period / 8, weak, 0), -1);
  EXPECT_EQ(woken(0, 20 * weak, 10), -1);  // what grows in many periods makes no swing
  EXPECT_GE(woken(0, 20 * weak, .05), 0);  // what comes at once does
}

// A run in parts, and with any number of threads, has the same bits, asleep or not.
TEST(SleepingModes, AFreshStepperAndOtherThreadsGiveTheSameBits) {
  const auto scene = [] {
    auto s = sleepy_bar(true);
    s->gravity = {0, -9.81, 0};
    s->damping_mass = 8;
    s->damping_stiffness = 4e-3;
    s->forces.push_back(push({.01, 0, 0}, .9, 1.2));
    return s;
  };
  Simulation whole = simulate(scene());
  std::vector<double> dynamic;
  for (int k = 0; k < 260; ++k) dynamic.push_back(whole.step().extra.at("dynamic_modes"));
  EXPECT_LT(*std::min_element(dynamic.begin(), dynamic.end()), 6);
  const int threads_before = threads();
  for (const int count : {1, 2}) {
    set_threads(count);
    Simulation part = simulate(scene());
    for (int k = 0; k < 260; k += 13) {
      Simulation next = simulate(scene());
      next.restore(part.state());
      run(next, 13);
      part.restore(next.state());
    }
    EXPECT_EQ(hash_state(part.state()), hash_state(whole.state()));
  }
  set_threads(threads_before);
}

// Two bodies: each has its own measure of what is small. A free one falls as ever.
TEST(SleepingModes, OfSeveralBodies) {
  auto s = sleepy_bar(true, 4);
  s->gravity = {0, 0, -9.81};
  s->damping_mass = 3;
  s->constraints[0].nodes.kind = "formula";
  s->constraints[0].nodes.name = "z < 1e-6 and x < 0.1";
  BodySpec other = s->bodies[0];
  other.name = "free";
  other.translation = {.2, 0, 0};
  other.velocity = {0, .1, 0};
  s->bodies.push_back(other);
  Simulation sim = simulate(s);
  double least = 8;
  for (int k = 0; k < 300; ++k) least = std::min(least, sim.step().extra.at("dynamic_modes"));
  EXPECT_LT(least, 8);
  const ConJacMemory& memory = *memory_of<ConJacMemory>(sim.state());
  EXPECT_EQ(memory.modes.count[1], 0);  // undeformed: nothing to swing
  EXPECT_GT(memory.sleep.peak[0], 1e-8);
  EXPECT_LT(memory.sleep.peak[1], 1e-20);
}

}  // namespace
}  // namespace limber::test
