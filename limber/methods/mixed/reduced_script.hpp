// Loads and holds of the script in reduced terms: sums over their nodes are made once, so that steps do not
// see the nodes again.
#pragma once

#include <limber/methods/mixed/memory.hpp>
#include <limber/methods/mixed/reduced_body.hpp>
#include <limber/methods/mixed/sqp.hpp>
#include <limber/sim/model.hpp>

namespace limber::mixed {

// Nodes where the weights are to vanish, 1 or 0 each: those that are pinned for ever, where `pins` does not
// ask for springs. Empty: none.
std::vector<std::uint8_t> pinned_by_weights(const Model& model, const std::string& pins);

class ReducedScript {
 public:
  // `pinned`: of pinned_by_weights. `stiffness`: of a hold in all [N/m].
  ReducedScript(const Model& model, const ReducedBody& body, const std::vector<std::uint8_t>& pinned,
                const std::string& pins, double stiffness);

  // Minus the forces of gravity and loads, as a 3 x p matrix, added to `gradient` [N]. Springs pull as they
  // do at the start of the step, where the coordinates are u and change at du.
  void add_loads(const Model& model, const StepInput& in, const VecX& u, const VecX& du,
                 VecX& gradient) const;

  // Springs of the holds that are active: adds their second derivative to H and their gradient at `anchor` to
  // `gradient`. A hold that begins with this step remembers the coordinates u0. `end`: when the stage ends
  // [s].
  void add_holds(const Model& model, const StepInput& in, double end, const VecX& u0, const VecX& anchor,
                 MixedMemory& memory, BlockMatrix& H, VecX& gradient) const;

  // sum of m phi, over all nodes.
  const VecX& mass_moment() const { return mass_moment_; }
  std::size_t holds() const { return holds_.size(); }

 private:
  // The springs k_i between a hold's nodes and their targets add up to these moments.
  struct ReducedHold {
    std::size_t hold = 0;  // of Model::holds
    MatX gram;             // sum of k phi phi^T
    MatX moment;           // sum of k phi (X, 1)^T
    Mat3 axes = Mat3::Zero();
  };

  Vec3 pull(const Model& model, const StepInput& in, std::size_t load, const VecX& moment, const VecX& u,
            const VecX& du) const;
  VecX moment_of(const Load& load) const;

  const ReducedBody& body_;
  VecX mass_moment_;
  std::vector<VecX> load_moments_;  // the same over the nodes of each load
  std::vector<MatX> load_forces_;   // 3 x p, of accelerations per node of each load; empty: it has none [N]
  std::vector<ReducedHold> holds_;
};

}  // namespace limber::mixed
