// What `cloth` remembers from step to step.
#pragma once

#include <limber/sim/state.hpp>

#include <cstdint>
#include <vector>

namespace limber::cloth {

struct ClothMemory {
  // Of every vertex; empty: as the rest shape says, and nothing slides.
  std::vector<double> X, V;             // material coordinates and their rates, two numbers each [m, m/s]
  std::vector<std::int64_t> feature;    // what an EOL vertex lies on, or -1
  std::vector<double> parameter;        // where on it, 0 to 1
  std::vector<std::int64_t> age;        // steps since it became EOL
  std::vector<std::int32_t> preserved;  // edges that remeshing keeps, two vertices each
  std::vector<std::uint8_t>
      side;  // of EOL vertices: 1 what they lie on is behind the cloth's normal, 2 before it; or 0
  std::vector<std::uint8_t> active;  // six numbers each: which bounds the last step ended with
  std::vector<double> friction;      // two numbers each: impulses of friction in its own coordinates [N s]
  std::int64_t parts = 1;            // of the present step
  double prepared = -1;              // the time for which the mesh has been made [s]
  // For the report alone, no part of the state:
  double detect_seconds = 0, remesh_seconds = 0;
  std::int64_t unclean = 0;

  template <class M, class Visitor>
  static void visit(M& m, Visitor&& visitor) {
    visitor("X", m.X);
    visitor("V", m.V);
    visitor("feature", m.feature);
    visitor("parameter", m.parameter);
    visitor("age", m.age);
    visitor("preserved", m.preserved);
    visitor("side", m.side);
    visitor("active", m.active);
    visitor("friction", m.friction);
    visitor("parts", m.parts);
    visitor("prepared", m.prepared);
  }
};

}  // namespace limber::cloth
