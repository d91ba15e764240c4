// Evaluates selections of nodes or elements on points.
#pragma once

#include <limber/mesh/mesh.hpp>
#include <limber/scene/scene.hpp>

#include <span>
#include <vector>

namespace limber {

// The selected indices, ascending. `points`: rest positions of the nodes, or centroids of the elements [m];
// `sets`: the named sets of the same things. Throws Error(kInput) when a set or index does not exist, a
// formula has no value somewhere, or nothing is selected; the message begins with the selection's `where`.
std::vector<Index> select(const Selection& selection, std::span<const Vec3> points, const IndexSets& sets);

// The same, but nothing selected is a result like any other.
std::vector<Index> select_or_none(const Selection& selection, std::span<const Vec3> points,
                                  const IndexSets& sets);

// The selection in words, for messages and listings: `box (0, 0, 0) to (1, 1, 1)`.
std::string describe(const Selection& selection);

}  // namespace limber
