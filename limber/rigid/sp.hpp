// Staggered Projections (Algorithm 3.1) in maximal coordinates: the baseline that BISP is compared with.
// Every link has its own six velocities; what holds a joint together are the contacts at its inner points, as
// unilateral rows (Eq. 3.1), with Baumgarte stabilisation because nothing else keeps the links in place.
// Joints without friction are held by bilateral rows.
#pragma once

#include <limber/rigid/bisp.hpp>

namespace limber::rigid {

// Link poses and velocities, free of the joints.
struct MaximalState {
  VecX x;         // 7 per link: origin of the link's frame [m], quaternion (w x y z)
  VecX phi;       // 6 per link: (omega; v of the centre of mass)
  VecX friction;  // warm start: friction impulses per tangent
};

MaximalState to_maximal(const Mechanism& mechanism, const JointState& state);
// The joint positions and velocities nearest to the links': exact where the joints hold.
void to_reduced(const Mechanism& mechanism, const MaximalState& state, JointState& reduced);
// The largest distance of a joint's two halves [m].
double joint_gap(const Mechanism& mechanism, const MaximalState& state);

struct SpSettings {
  double h = 5e-3;
  Vec3 gravity = Vec3(0, -9.81, 0);
  qp::StaggeredOptions staggered;
  double stabilisation = 0.2;  // share of a gap that one step closes
};

// Surfaces as for step_bisp. Advances the state from t to t + h.
StepOutcome step_sp(const Mechanism& mechanism, const std::vector<InnerSurface>& surfaces,
                    const std::vector<Contact>& contacts, double t, const SpSettings& settings,
                    MaximalState& state);

}  // namespace limber::rigid
