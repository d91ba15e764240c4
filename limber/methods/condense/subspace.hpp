// The subspace of a body on a skeleton, and its training (paper, section 4.1).
//
// A node is at x_i = s_i(p) + R_i(p) U_i q: where skinning puts it in the pose p of the skeleton, corrected
// by a displacement in the frame that skinning turns with it (Eq. 13). U comes from static solutions of the
// whole body in some poses, pulled back by the skinning, and their singular vectors.
#pragma once

#include <limber/methods/condense/basis.hpp>
#include <limber/methods/condense/training_poses.hpp>
#include <limber/reduction/cubature.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace limber::condense {

struct Subspace {
  Basis basis;                           // U; nodes that are fixed to bones have no rows, or zeros
  double mean_mass = 1;                  // of a node [kg]
  MatX mass;                             // U^T M U; of one domain mean_mass I [kg]
  MatX coupling;                         // of springs between domains [N/m]; see domains.hpp
  MatX q;                                // r x poses: the training poses [m]
  VecX spread;                           // of each coordinate over the poses [m]
  Cubature cubature;                     // weights multiply the energies of the elements
  std::vector<Index> domain_of_element;  // whose points stand for it
  // Contacts that training has seen (contact_training.hpp).
  std::vector<std::pair<Index, Index>> touched;  // nodes and the bones whose flesh they touched, ascending
  std::vector<Index> heaviest;                   // of every node: the bone with the greatest weight
  std::vector<double> contact_weights;           // of every node: times the energy of its contacts
  double error = 0;     // of the forces of cubature, relative: of the samples it was trained with
  double held_out = 0;  // and of others
  std::uint64_t hash = 0;
  bool from_cache = false;

  Index columns() const { return basis.columns(); }
  // Whether a node and a face (its corners behind it) are flesh that has touched in training.
  bool knows(const std::array<Index, 4>& pair) const;
  double contact_weight(Index node) const {
    return contact_weights.empty() ? 0.0 : contact_weights[at(node)];
  }
};

// U^T R^T f over the nodes where `skip` is 0 (empty: all); R of the skinned body. The same bits for any
// number of threads.
VecX reduced_force(const Subspace& subspace, const SkinnedBody& skin, const VecX& f,
                   std::span<const std::uint8_t> skip = {});
// s + R U q of all nodes.
void subspace_positions(const Subspace& subspace, const SkinnedBody& skin, const VecX& q, VecX& x);
// R^T (x - s).
VecX local_displacement(const SkinnedBody& skin, const VecX& x);
// R_i U_i of some nodes.
BasisRows turned_rows(const Subspace& subspace, const SkinnedBody& skin, std::span<const Index> nodes);

// Solves the poses, makes basis and cubature, and keeps all of it in preparation.cache: a training that was
// broken off goes on where it was. Throws Error(kInput) for samples in equilibrium, which cannot train
// cubature, and when fewer than half of the poses have a static solution that is found.
Subspace train_subspace(const Model& model, const Skeleton& skeleton, const BoneSkinning& skinning,
                        std::span<const TrainingPose> poses, const CondenseOptions& options,
                        const Preparation& preparation);

// Elements that cubature points are chosen from where there is room for the forces of so many: the strongest
// quarter, without which no weights can give the total, and others by chance. Ascending.
std::vector<Index> cubature_candidates(const std::vector<double>& strength, Index room, std::uint64_t seed);

// What cubature points make of the forces of samples around the poses, relative to the sum over all elements:
// the mean over the samples.
double cubature_error(const Model& model, const BoneSkinning& skinning, std::span<const TrainingPose> poses,
                      const Subspace& subspace, const CondenseOptions& options, std::uint64_t seed);

}  // namespace limber::condense
