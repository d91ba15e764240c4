// Recordings without a simulator: a bar of tetrahedra that bends by a known formula.
#pragma once

#include <limber/io/replay.hpp>

#include <filesystem>
#include <string>

namespace limber::test {

struct BarOptions {
  std::array<Index, 3> cells{12, 3, 3};
  Index frames = 20;
  double amplitude = 0.4;  // of the bending angle [rad]
  bool cut = false;        // half-way through the nodes of the middle section are doubled and the halves part
  bool obstacle = true;    // a floor and a ball that moves
  bool finished = true;
  double noise = 0;  // random displacement per node and frame [m]
  Index functions =
      0;  // > 0: moved by this many functions (products of cosines) instead, as by a reduced method
  bool positions = false;  // and recorded by positions all the same
  double interval = 0.02;  // between frames [s]
};

// Rest topology of the bar: length 1 m along x, 0.25 m square.
ReplayTopology bar_topology(const BarOptions& options, bool cut);
// Positions at time t [s].
std::vector<float> bar_positions(const ReplayTopology& topology, const BarOptions& options, double t,
                                 bool cut);
// Functions and coordinates of the reduced bar.
std::vector<float> bar_basis(const ReplayTopology& topology, Index functions);
std::vector<float> bar_coordinates(const BarOptions& options, double t);
// Writes the whole recording.
void write_bar(const std::filesystem::path& path, const BarOptions& options);

// A fresh folder below the build folder, named after the test.
std::filesystem::path scratch(const std::string& name);

}  // namespace limber::test
