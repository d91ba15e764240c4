// The poses that a subspace is trained with, and their static solutions.
#pragma once

#include <limber/methods/condense/options.hpp>
#include <limber/methods/condense/skeleton.hpp>
#include <limber/sim/method.hpp>

#include <span>
#include <vector>

namespace limber {
class InputHash;
}

namespace limber::condense {

// A pose to train with: bones, and the time whose forces the script lets act.
struct TrainingPose {
  std::vector<BonePose> bones;
  double t = 0;         // [s]
  bool restart = true;  // solved from the skinned shape; false: from the pose before it
};
std::vector<TrainingPose> training_poses(const Model& model, const Skeleton& skeleton,
                                         const CondenseOptions& options);

// A body that is fixed along one line can turn about it. Conjugate directions do not see that, so it is
// looked for: throws Error(kInput).
void check_held(const Model& model, const Skeleton& skeleton);

// All that a static solution depends on but the pose.
InputHash body_hash(const Model& model, const Skeleton& skeleton, const CondenseOptions& options);
void add_poses(InputHash& hash, const std::vector<BonePose>& bones);

// Static solutions of the whole body without contact, in the skinned frame: one column for each pose that has
// one, whose numbers are added to `solved`. Several at once; each is kept in preparation.cache as soon as it
// is there. The same bits for any number of threads. Throws Error(kInput) when fewer than half are found.
MatX solve_poses(const Model& model, const Skeleton& skeleton, const BoneSkinning& skinning,
                 std::span<const TrainingPose> poses, const CondenseOptions& options,
                 const Preparation& preparation, std::vector<std::size_t>& solved);

}  // namespace limber::condense
