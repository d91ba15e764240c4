// A body in a subspace, prepared for steps that never touch its mesh: basis and points.
#pragma once

#include <limber/linalg/deformation_map.hpp>
#include <limber/methods/mixed/options.hpp>
#include <limber/methods/mixed/points.hpp>
#include <limber/reduction/cubature.hpp>
#include <limber/reduction/skinning.hpp>

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace limber::mixed {

struct ReducedBody {
  std::uint64_t hash = 0;  // of mesh, materials, pins and options: what basis and points belong to
  bool from_cache = false;
  VecX rest;  // positions of all nodes, 3n [m]
  VecX mass;  // per node [kg]
  SkinningWeights weights;
  ScalarBasis basis;  // Phi; B = Phi (x) I3 is mass-orthonormal
  // Of linear modes, which have one unknown each: Phi are the three components of every mode, and u =
  // wide(q).
  bool linear = false;
  Cubature cubature;
  std::vector<Point> points;
  std::unique_ptr<DeformationMap> map;

  Index functions() const { return basis.functions(); }
  Index unknowns() const { return linear ? functions() / 3 : 3 * functions(); }

  // Coordinates u of Phi, three for each function, from the unknowns; and back, for gradients and matrices.
  VecX wide(const VecX& unknowns) const;
  VecX narrow(const VecX& gradient) const;
  void add_narrow(const BlockMatrix& H, BlockMatrix& out) const;

  // Coordinates of the displacements (or velocities) of all nodes that are nearest by mass.
  VecX reduced(const VecX& x) const;
  // Positions and velocities of all nodes, in parallel: x = X + B u, v = B du/dt.
  void expand(const VecX& u, const VecX& du, VecX& x, VecX& v) const;
  // Phi of some nodes, one row each.
  MatX rows(std::span<const Index> nodes) const;
};

// What a body is reduced from.
struct ReductionInput {
  const fem::ElementInput& mesh;
  std::shared_ptr<const BlockPattern> pattern;
  VecX mass;                          // per node [kg]
  const std::vector<double>& volume;  // per element [m^3]
  std::vector<std::uint8_t> pinned;   // per node: all weights are zero there; empty: none
  std::string training = {};          // file with poses to train points on; empty: they are clustered
};

// Reads from the cache what it can (`cache` empty: there is none).
std::unique_ptr<ReducedBody> reduce_body(const ReductionInput& input, const MixedOptions& options,
                                         const std::filesystem::path& cache,
                                         const PrepareProgress& progress = {});

}  // namespace limber::mixed
