// What ConJac remembers from step to step.
#pragma once

#include <limber/contact/body_springs.hpp>
#include <limber/sim/state.hpp>

#include <cstdint>
#include <vector>

namespace limber {

// Modes are state: a step follows those of the step before.
struct ModeMemory {
  VecX shapes;                          // 3n numbers a column; column k has the k-th vector of every piece
  std::vector<std::int64_t> count;      // of each piece: dynamic modes,
  std::vector<std::int64_t> available;  // modes that may be, and
  std::vector<std::int64_t> vectors;    // all vectors
  std::vector<double> values;        // lambda of each vector, piece-major, as many as the piece with most has
  std::vector<std::uint8_t> active;  // 3n: degrees of freedom that were neither dynamic nor held
};

// Of modes that may fall asleep (adaptive_modes.hpp): piece-major, as many a piece as shapes has columns.
struct ModeSleepMemory {
  std::vector<double> peak;        // of each piece: the most energy that its modes have had together [J]
  std::vector<std::int64_t> calm;  // steps for which the energy has been small
  // Asleep: the force that is left, and how the mode would swing about its equilibrium. M-normalised.
  std::vector<double> force, swing, speed;
};

struct ConJacMemory {
  std::vector<std::uint8_t> dynamic;      // representative node i is dynamic
  std::vector<std::int64_t> region_age;   // steps that a region is dynamic; negative: quasistatic
  std::vector<double> liveliness_window;  // past metrics, region-major [1/s]
  std::int64_t liveliness_steps = 0;
  double energy_excess = 0;  // of the guard: energy gained and not yet lost again [J]
  ModeMemory modes = {};
  ModeSleepMemory sleep = {};
  BodySpringMemory bodies = {};

  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("dynamic", m.dynamic);
    visitor("region_age", m.region_age);
    visitor("liveliness_window", m.liveliness_window);
    visitor("liveliness_steps", m.liveliness_steps);
    visitor("energy_excess", m.energy_excess);
    visitor("mode_shapes", m.modes.shapes);
    visitor("mode_count", m.modes.count);
    visitor("mode_available", m.modes.available);
    visitor("mode_vectors", m.modes.vectors);
    visitor("mode_values", m.modes.values);
    visitor("mode_active", m.modes.active);
    visitor("mode_peak", m.sleep.peak);
    visitor("mode_calm", m.sleep.calm);
    visitor("mode_force", m.sleep.force);
    visitor("mode_swing", m.sleep.swing);
    visitor("mode_speed", m.sleep.speed);
    visitor("body_contact_ids", m.bodies.ids);
    visitor("body_contact_stretch", m.bodies.stretch);
    visitor("body_contact_coupled", m.bodies.coupled);
  }
};

}  // namespace limber
