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
};

struct Comparison {
  std::vector<Distance> distance;  // one per run; empty for the reference (run 0)
  std::vector<Cost> costs;         // one per run
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
