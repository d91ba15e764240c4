// What `rigidify` remembers from step to step.
#pragma once

#include <limber/sim/state.hpp>

#include <cstdint>
#include <vector>

namespace limber::rigidify {

// Numbers of a piece in RigidifyMemory::piece_state: momentum p [kg m/s], angular momentum L about the centre
// of mass [kg m^2/s], centre of mass c [m], inertia about it in world axes (xx yy zz xy xz yz) [kg m^2], mass
// [kg], and how the script holds it (PieceHold).
inline constexpr std::size_t kPieceNumbers = 17;

struct RigidifyMemory {
  std::vector<std::int32_t> piece;  // of every element: the number of its rigid piece; -1: elastic
  std::vector<std::int32_t> quiet;  // of every element: steps in a row with a strain rate below the threshold
  std::vector<double> rate;  // of every element: its strain rate in the last step [1/s]; empty: not needed
  std::vector<double> piece_state;  // kPieceNumbers for each piece
  std::vector<std::uint8_t> hold;   // of every node: how the script held it (HoldKind)
  VecX force;                       // the script's forces in the last step, 3n [N]
  std::vector<double> activation;   // in the last step
  VecX load;  // forces of script and contact at the last quick solve, turned with the piece [N]
  std::vector<std::uint8_t>
      asleep;  // of every object: `load` is that of a quick solve that found nothing to free
  std::vector<std::uint8_t> alone;    // of every object: it is rigid as a whole and touches itself nowhere
  std::vector<double> credit;         // of every object: steps that pieces may still cost it (rigidify.cpp)
  std::vector<std::uint8_t> waiting;  // of every object: it has to earn what growing costs
  // Contact between bodies. Of every object: it is rigid, and stays where its pairs were looked for (`seen`,
  // 3n [m]); and the pairs of two such objects, three numbers each: site, piece and face of BodySurfaces.
  std::vector<std::uint8_t> still;
  VecX seen;
  std::vector<std::int32_t> still_pairs;
  std::vector<std::int64_t> contact_ids;  // contacts of the last step, ascending
  std::vector<double>
      contact_memory;  // of each: three numbers (stretch of its tangential spring, or its impulse)

  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("piece", m.piece);
    visitor("quiet", m.quiet);
    visitor("rate", m.rate);
    visitor("piece_state", m.piece_state);
    visitor("hold", m.hold);
    visitor("force", m.force);
    visitor("activation", m.activation);
    visitor("load", m.load);
    visitor("asleep", m.asleep);
    visitor("alone", m.alone);
    visitor("credit", m.credit);
    visitor("waiting", m.waiting);
    visitor("still", m.still);
    visitor("seen", m.seen);
    visitor("still_pairs", m.still_pairs);
    visitor("contact_ids", m.contact_ids);
    visitor("contact_memory", m.contact_memory);
  }
};

}  // namespace limber::rigidify
