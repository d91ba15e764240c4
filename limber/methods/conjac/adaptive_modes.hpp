// Modes that fall asleep: a mode whose energy stays small is quasistatic until something excites it.
//
// The lowest modes up to the last lively one are dynamic. A mode that is not is a number: how it would swing
// about its equilibrium if it were,
//   d'' + (a + b lambda) d' + lambda d = -q'',   q = phiᵀ f / lambda: where its equilibrium is,
// advanced exactly from step to step. Its energy (d'^2 + lambda d^2)/2 is what a dynamic one would have,
// whether a load comes at once, grows slowly, or pushes again and again in time with the mode. What is small
// is measured by the most energy that the modes of the piece have had together: there is nothing to choose.
#pragma once

#include <limber/methods/conjac/condensation.hpp>
#include <limber/methods/conjac/linearisation.hpp>
#include <limber/methods/conjac/memory.hpp>
#include <limber/methods/conjac/options.hpp>

#include <string>
#include <vector>

namespace limber {

// The dynamic modes of a piece after a step: their speeds, and the forces that pull them to the equilibrium
// of the moment. Their energy is (speed^2 + force^2 / lambda)/2.
struct ModeState {
  VecX speed, force;
};
ModeState mode_state(const Condensation& condensation, std::size_t piece, const Linearisation& at,
                     const ReducedMotion& motion);

class ModeAdaptivity {
 public:
  ModeAdaptivity(const ConJacOptions& options, Condensation& condensation);

  // At the start of a step: modes that have been calm for a window become quasistatic, the highest first.
  // True: some did.
  bool calm(std::int64_t step, ConJacMemory& memory);
  // After condense(), with the force that it was given to go to the equilibrium of: modes that would swing
  // become dynamic. True: some did, and it should be done again.
  bool rouse(const Model& model, const VecX& force);
  // At the end of a step.
  void record(const Model& model, double h, const Linearisation& at, const ReducedMotion& motion,
              ConJacMemory& memory) const;
  // The same where the body is in balance, all modes asleep, and nothing was computed.
  void rest(const Model& model, double h, ConJacMemory& memory) const;

  // How many modes are dynamic, and how many became so or ceased to be.
  Index dynamic() const;
  int switches(const ConJacMemory& memory) const;
  static bool asleep(const ConJacMemory& memory);  // all of them
  std::string misfit(const ConJacMemory& memory) const;

 private:
  struct Swing {
    double place = 0, speed = 0;  // d [m sqrt(kg)], d'
    double energy(double value) const { return 0.5 * (speed * speed + value * place * place); }
  };
  Swing excited(std::size_t piece, Index mode) const;
  static Swing swung(const Scene& scene, double value, double h, const Swing& start);
  double reference(std::size_t piece) const;
  double rounding(const Model& model, std::size_t piece, Index mode) const;

  std::size_t slot(std::size_t piece, std::int64_t mode) const {
    return piece * most_ + static_cast<std::size_t>(mode);
  }

  Condensation& condensation_;
  std::size_t most_;                 // modes of a piece
  Index window_;                     // [steps]
  double left_;                      // share of a force that is left after a step of stabilisation
  std::vector<std::int64_t> count_;  // dynamic modes of each piece before the step
  ModeSleepMemory before_;           // the step
  std::vector<VecX> force_;          // on the modes of each piece, of the last rouse()
};

}  // namespace limber
