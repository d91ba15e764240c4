// What `mixed` remembers from step to step.
#pragma once

#include <limber/sim/state.hpp>

#include <cstdint>
#include <vector>

namespace limber::mixed {

struct MixedMemory {
  std::int64_t basis = 0;          // hash of the basis and points that all this belongs to
  VecX u, v;                       // coordinates of displacements and velocities; empty in full space
  VecX u_prev, v_prev;             // BDF2: one step ago; empty: none
  std::vector<double> Z, Lambda;   // stretches and multipliers [Pa] of the points, 6 each
  std::vector<double> hold_begin;  // of each hold by springs: when it began [s]; -1: it is not active
  std::vector<double> hold_u;      // and the coordinates then, one after the other

  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("basis", m.basis);
    visitor("u", m.u);
    visitor("v", m.v);
    visitor("u_prev", m.u_prev);
    visitor("v_prev", m.v_prev);
    visitor("z", m.Z);
    visitor("lambda", m.Lambda);
    visitor("hold_begin", m.hold_begin);
    visitor("hold_u", m.hold_u);
  }
};

}  // namespace limber::mixed
