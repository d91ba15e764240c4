// Runs of the same mesh against each other: how far apart they are over time, and what they cost.
#pragma once

#include <limber/view/page.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace limber::view {

struct Distance {
  std::vector<double> t;         // [s]
  std::vector<double> max, rms;  // over the nodes [m]
  std::vector<Index> node;       // where the largest is
};

struct Cost {
  std::string label, method;
  Index nodes = 0;
  std::int64_t steps = 0;
  double dofs = 0;         // unknowns of a step, mean
  double ms_per_step = 0;  // mean of the phases' sum; NaN when the recording has no times
  double ms_p95 = 0;
  double h = 0;             // time step [s]
  double s_per_second = 0;  // seconds that a simulated second takes; NaN without times
  // Change of the total energy from the first to the last row, of the largest kinetic energy: 0 where a free
  // swing keeps all, -1 where it is gone. NaN when the recording has no energies.
  double energy_change = 0;
  // How far the node that swings most in the reference swings in the second half of the run: half the
  // diagonal of the box that it stays in [m].
  double amplitude = 0;
};

struct Comparison {
  std::vector<Distance> distance;  // one per run; empty for the reference (run 0)
  std::vector<Cost> costs;         // one per run
  Index swinging = -1;             // the node whose amplitudes are compared
  double size = 0;                 // of the mesh at rest, its diagonal [m]
};

// Runs [1..] are compared with run 0 at their own frames, run 0 interpolated between its frames where the
// times differ. Throws Error(kInput) when the meshes differ.
Comparison compare_runs(const std::vector<const ReplayReader*>& runs, const std::vector<std::string>& labels);

// The distance of every node of `frame` to the run at the same time; empty when it has nothing to compare
// with (outside its time, or another topology).
std::vector<float> distance_to(const ReplayReader& reference, const ReplayFrame& frame);

PageReport write_compare_page(const std::vector<const ReplayReader*>& runs,
                              const std::vector<std::string>& labels, const Comparison& comparison,
                              const std::filesystem::path& html, const PageOptions& options = {});

}  // namespace limber::view
