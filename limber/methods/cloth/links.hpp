// Links of a mechanism that cloth lies on, or hangs on. Their shapes are obstacles that move. A step of both
// is staggered: the links are stepped as if there were no cloth; the cloth is stepped on shapes that move so;
// and the links are stepped again, from the start, with what the cloth pressed and pulled. What one side
// gains the other loses, so that momentum is kept to rounding. Cloth should be lighter than the links that it
// moves: the error of a step goes with the ratio of the masses, and grows from step to step where that is
// above one.
#pragma once

#include <limber/methods/cloth/step_bounds.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/rigid/bisp.hpp>
#include <limber/sim/model.hpp>

namespace limber::cloth {

class ClothLinks {
 public:
  // `friction`: mu of cloth on links.
  ClothLinks(const Model& model, double friction);

  // The scene's obstacles, then the shapes of the links.
  std::span<const Obstacle> obstacles() const { return obstacles_; }

  // Moves the shapes from where the links of `state` are to where they would go in h without cloth.
  void predict(const State& state, double h);
  // Holds the attached nodes, which are at x, to their links as predicted. Those that the script holds are
  // its own.
  void hold_attached(const std::vector<Vec3>& x, StepInput& in);
  // Steps the links. `impulse`: on each vertex, of all that touches or holds it [N s]; x: where these are.
  void step(const VecX& impulse, const std::vector<Touch>& touches, const std::vector<Vec3>& x, State& state);

  const rigid::StepOutcome& outcome() const { return outcome_; }

 private:
  rigid::StepOutcome advance(const VecX& force, rigid::JointState& joints) const;

  const Model& model_;
  rigid::StepSettings settings_;
  std::vector<Obstacle> obstacles_;
  std::vector<Index> link_of_;      // of each obstacle: its link, or -1
  std::vector<rigid::Pose> shape_;  // of each obstacle that is a link's: in the frame of the link
  std::vector<Index> attached_;     // of the model's attachments: those that hold their nodes in this step
  double t_ = 0;                    // [s]
  rigid::JointState start_;
  rigid::Motion now_, then_;  // of the links: at the start of the step, and as predicted at its end
  rigid::StepOutcome outcome_;
};

}  // namespace limber::cloth
