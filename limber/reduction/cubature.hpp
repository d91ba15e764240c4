// Which elements stand for all, and how much volume each of them stands for.
#pragma once

#include <limber/core/types.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace limber {

struct Cubature {
  std::vector<Index> elements;  // ascending, no element twice
  std::vector<double> weights;  // [m^3]
};

struct KMeansOptions {
  Index points = 320;
  std::uint64_t seed = 1;
  int rounds = 25;    // of Lloyd's iteration, on a sample
  Index sample = 64;  // elements of the sample per point
};

// Clusters the elements in the space of their features (one row each; Eq. 11), by k-means on a sample,
// started by k-means++; then every element joins its nearest centroid. A cluster is represented by its member
// nearest to the centroid and weighs its volume. The same result for any number of threads.
Cubature kmeans_cubature(
    const Eigen::Ref<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>& features,
    std::span<const double> volume, const KMeansOptions& options);

// The features of Eq. 11: weights averaged over an element's nodes, times gamma^-exponent; the constant
// weight (the zero mode, whose gamma^-2 would be infinite) tells elements nothing and is left out. Without
// eigenvalues the exponent is 0.
Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> weight_features(
    const MatX& W, const VecX& gamma, std::span<const std::array<Index, 4>> elements, double exponent);

// The same with three more columns: the element's place times the length of the weights' gradients there.
// What a body does at a point is F = sum of A_k (X, 1) grad W_k + W_k A_k: weights alone do not tell the
// upper from the lower side of a bent joint, and on a coarse mesh many elements have the same ones. Where
// weights are constant, in stiff parts, places make little difference, as they should.
Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> strain_features(
    const MatX& W, const VecX& gamma, std::span<const Vec3> rest,
    std::span<const std::array<Index, 4>> elements, double exponent);

// Points by training (An, Kim, James 2008): greedily the elements whose forces explain the training forces
// best, with weights >= 0 by least squares. `force(e, out)` writes the reduced force of element e with weight
// 1 in all poses, one below the other; `target` is the sum over all elements with their volumes. Poses are
// best scaled so that their forces have one length. Each round looks at `candidates` elements.
struct TrainingOptions {
  Index points = 200;
  Index candidates = 1000;
  double tolerance = 1e-3;  // relative error of the forces at which to stop
  bool replace = false;     // others take the place of points whose weight has become zero
  // Of every element: the greatest weight that it may have; empty: any. Elements that hardly move have hardly
  // a force, and least squares alone give them weights that make their energies all rounding error. One that
  // comes above it is left out for good, and the others are fitted again.
  std::vector<double> greatest = {};
  std::uint64_t seed = 1;
};
struct TrainedCubature {
  Cubature cubature;
  double error = 0;  // relative, on the training poses
};
TrainedCubature train_cubature(Index elements, const std::function<void(Index, Eigen::Ref<VecX>)>& force,
                               const VecX& target, const TrainingOptions& options);

}  // namespace limber
