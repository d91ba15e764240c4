// Soft bodies that hang on links, in mixed unknowns (common/link_coupling.hpp). Attached nodes move with
// their links, so that no rigid piece may hold them: elements that touch one stay elastic.
#pragma once

#include <limber/methods/common/link_coupling.hpp>
#include <limber/methods/rigidify/mixed_system.hpp>

namespace limber::rigidify {

class MixedLinks {
 public:
  explicit MixedLinks(const Model& model) : model_(model), coupling_(model) {}

  // The script with the attached nodes held as well: so bodies are solved for links at rest.
  const StepInput& begin(const State& state, const StepInput& script);
  void mark(std::vector<std::uint8_t>& hold) const;  // attached nodes (HoldKind)
  // Bodies and links as one system: steps the joints of `state`, and returns the unknowns. `rest`: those for
  // links at rest; `rhs`: right-hand side of the step, with attached nodes. After system.factor() with the
  // whole matrix kept.
  VecX solve(const MixedSystem& system, const VecX& rhs, const VecX& rest, State& state);
  void place(State& state) const { coupling_.place(state); }
  const rigid::StepOutcome& outcome() const { return coupling_.outcome(); }

 private:
  const Model& model_;
  LinkCoupling coupling_;
  StepInput held_;
};

}  // namespace limber::rigidify
