// Adaptivity of ConJac (section 3): representative nodes are dynamic only while the region around them is
// lively. N. J. Weidner, T. Kim, S. Sueda, "Condensation Jacobian with Adaptivity".
#pragma once

#include <limber/methods/conjac/dynamic_nodes.hpp>
#include <limber/methods/conjac/memory.hpp>
#include <limber/sim/model.hpp>

#include <string>
#include <vector>

namespace limber {

// The elements that each representative node owns. Cuts do not change them: copies of a node share its
// region.
struct LivelyRegions {
  std::vector<std::string> names;
  std::vector<Index> of_element;  // -1: none
  std::vector<double> volume;     // [m^3]
};

// From /method/adaptive/regions: selections of elements, and where there is none all elements that are nearer
// to the node than to any other representative node, along the edges of the uncut body.
LivelyRegions make_regions(const Model& model, const DynamicNodes& nodes,
                           const std::vector<RegionChoice>& regions);

// Eq. 20 with volumes as weights: the mean of |dS/dt| over each region while the body moves from x0 to x1 in
// the time h [1/s]. Both F and dF/dt are those of the middle of the step, (x0 + x1)/2 and (x1 - x0)/h: a
// rotation by R then has dF/dt = W F with W skew (Cayley), so that rigid motions of any size give zero up to
// rounding, deformed or not. The difference of positions and not J v_d, because quasistatic nodes move by
// stabilisation, too. `scratch` is kept between calls.
std::vector<double> liveliness(const Model& model, const LivelyRegions& regions, const VecX& x0,
                               const VecX& x1, double h, std::vector<Mat3>& scratch);

// Which regions are dynamic. All that is carried from step to step is in the ConJacMemory: the age of every
// region (steps that it has been dynamic, negative: quasistatic) and a window of past metrics.
class Adaptivity {
 public:
  Adaptivity(const Model& model, const DynamicNodes& nodes, const AdaptiveOptions& options);

  const LivelyRegions& regions() const { return regions_; }

  // At the start of a step: regions that have been calm for a window become quasistatic.
  void calm(ConJacMemory& memory);
  // Quasistatic regions whose metric in this step, from x0 to x1, is above the threshold become dynamic;
  // the metric of the step itself, because what a node misses cannot be made up for. True: some did, and the
  // step should be taken again from x0, so that a sudden release moves a dynamic node and not one that the
  // stabilisation drags.
  bool rouse(const Model& model, const VecX& x0, double h, const VecX& x1, ConJacMemory& memory);
  // How many regions switched in this step.
  int switches(const ConJacMemory& memory) const;
  // At the end of a step: the metrics of the step, from x0 to x1, enter the window.
  void record(const Model& model, const VecX& x0, double h, const VecX& x1, ConJacMemory& memory);

  bool dynamic(const ConJacMemory& memory, Index region) const;
  // A region that became quasistatic is still on its way to its equilibrium, and loses energy for good.
  bool relaxing(const ConJacMemory& memory) const;
  // Mean of each region's metric over the window: what is compared with the threshold [1/s].
  std::vector<double> means(const ConJacMemory& memory) const;
  // What in a memory from a file does not fit the regions; empty: all fits.
  std::string misfit(const ConJacMemory& memory) const;

 private:
  double mean(const ConJacMemory& memory, Index region) const;
  // liveliness() of this step; the elements are not asked twice about the same motion.
  const std::vector<double>& measure(const Model& model, const VecX& x0, double h, const VecX& x1);

  LivelyRegions regions_;
  double wake_, sleep_;  // [1/s]
  Index window_;         // [steps]
  bool start_dynamic_;
  std::vector<std::int64_t> before_;  // ages before the step
  std::vector<double> metric_;
  VecX x0_, x1_;  // what metric_ was measured for
  std::vector<Mat3> Sdot_;
};

}  // namespace limber
