// Reduced forces of single elements in poses away from equilibrium: what cubature is trained with. In
// equilibrium the sum over all elements vanishes, and any weights would do.
#pragma once

#include <limber/methods/condense/subspace.hpp>

namespace limber::condense {

class ForceSamples {
 public:
  // Of these elements, with their sum as total. Around each pose (columns of q): `count` samples whose
  // coordinates differ from the pose's by `noise` spreads, at least by `least` of the greatest spread,
  // normally distributed. Without noise: by nothing.
  ForceSamples(const Model& model, const BoneSkinning& skinning, std::span<const TrainingPose> poses,
               const Subspace& subspace, const MatX& q, std::vector<Index> elements, double least,
               double noise, Index count, std::uint64_t seed);

  std::span<const Index> elements() const { return elements_; }
  Eigen::Index rows() const { return total_.size(); }
  // Of all elements, each sample scaled to length one. Columns that move none of them are left out.
  const VecX& total() const { return total_; }
  // Of one element, with the same scales; of every `stride`-th sample only.
  void element(Index e, Eigen::Ref<VecX> out, std::size_t stride = 1) const;
  double volume(Index e) const { return fem::rest_volume(*model_.elements)[at(e)]; }  // [m^3]
  // Of each element: the size of its force against the total, the greatest over one sample of each pose.
  // Some poses have a few elements with much of the force (those of the giant's bent arm).
  std::vector<double> strengths() const;
  // Throws Error(kInput) when the samples are in equilibrium.
  void check() const;
  // Mean over the samples of what the points give beside the total, relative to it.
  double error(const Cubature& cubature) const;

 private:
  const Model& model_;
  const Basis& basis_;
  std::vector<Index> elements_;
  std::vector<Index> place_;                     // of all nodes: among those of the elements, or -1
  std::vector<Index> column_;                    // of all columns: among those that move the elements, or -1
  Eigen::Index columns_ = 0;                     // that move them
  std::vector<std::vector<Eigen::Matrix3f>> R_;  // of each pose
  std::vector<VecX> x_;                          // of each sample
  std::vector<std::size_t> pose_;                // of each sample
  VecX scale_, total_;
  double balance_ = 0;  // greatest |sum of forces| / sum of |forces| of a sample
};

}  // namespace limber::condense
