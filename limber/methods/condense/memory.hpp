// What `condense` remembers from step to step.
#pragma once

#include <limber/sim/state.hpp>

#include <cstdint>
#include <vector>

namespace limber::condense {

struct CondenseMemory {
  std::int64_t subspace = 0;       // hash of basis and points that all this belongs to
  VecX q;                          // coordinates of the subspace; empty: no step yet
  std::vector<std::int32_t> keep;  // of every node: steps that the oracles keep it in full space
  std::vector<std::uint8_t> full;  // of every node: whether it was in full space in the last step
  VecX anchor;                     // reduced force that stands for points that are switched off [N]
  VecX local_velocity;             // bdf1, 3n: rate of the displacement in the skinned frame [m/s]
  double speed = 0, change = 0;    // bdf1: means over the full nodes [m/s, m/s^2]

  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("subspace", m.subspace);
    visitor("q", m.q);
    visitor("keep", m.keep);
    visitor("full", m.full);
    visitor("anchor", m.anchor);
    visitor("local_velocity", m.local_velocity);
    visitor("speed", m.speed);
    visitor("change", m.change);
  }
};

}  // namespace limber::condense
