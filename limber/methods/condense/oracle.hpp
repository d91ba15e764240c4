// Which nodes are in full space (paper, section 4.2).
#pragma once

#include <limber/methods/condense/memory.hpp>
#include <limber/methods/condense/options.hpp>
#include <limber/methods/condense/skeleton.hpp>

namespace limber::condense {

class Oracle {
 public:
  Oracle(const Model& model, const Skeleton& skeleton, const CondenseOptions& options);

  // Marks what can be reached from the nodes `hits` over edges of the mesh without leaving the balls of
  // this radius (relative, as rho) around them, in the rest shape.
  void reach(const std::vector<Index>& hits, double radius, std::vector<std::uint8_t>& found) const;

  // The region of a step that ends at time t, when these nodes are found to touch something: theirs, the one
  // that the memory keeps, and those that the user gives. A region costs an order of elimination and a
  // factor, so that the one of the last step stays as long as it holds all these nodes and not many more, and
  // a new one is taken a little wider.
  std::vector<std::uint8_t> region(const std::vector<Index>& hits, double t, bool moving,
                                   CondenseMemory& memory) const;
  // The same, grown by nodes that were found to touch after the solve. False: nothing is new.
  bool grow(const std::vector<Index>& hits, CondenseMemory& memory, std::vector<std::uint8_t>& region,
            double radii = 1) const;

  double size() const { return size_; }  // the longest side of the bodies' box at rest [m]

 private:
  void widen(const std::vector<Index>& hits, std::vector<std::uint8_t>& region) const;

  const Model& model_;
  const Skeleton& skeleton_;
  const CondenseOptions& options_;
  double size_ = 1;
  std::vector<std::vector<Index>> given_;  // nodes of each given region
};

}  // namespace limber::condense
