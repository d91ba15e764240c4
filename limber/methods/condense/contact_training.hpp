// Self-collision cubature (the paper's section 5, after Teng, Otaduy and Kim 2014): contacts that training
// poses have, the crook of an elbow say, get trained points and need no full space.
//
// A contact's energy is a sum over surface nodes that are inside a face of the body. In the subspace some of
// these nodes, with weights, stand for all of them: chosen as cubature points are, by greedy non-negative
// least squares on the reduced contact forces of samples around the poses. Which face a node meets is found
// in every step as for all contacts, so that what slides does so.
#pragma once

#include <limber/methods/condense/subspace.hpp>

namespace limber::condense {

// Fills touched and contact_weights. What nodes touch is kept by the bone of the other flesh, and for their
// neighbours as well.
void train_contacts(const Model& model, const BoneSkinning& skinning, std::span<const TrainingPose> poses,
                    const CondenseOptions& options, Subspace& out);

}  // namespace limber::condense
