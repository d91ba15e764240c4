// A material of your own, as a C++ function of the invariants: docs/materials/your-own.md walks through one.
//
//   struct MooneyRivlin {
//     static constexpr const char* kName = "mooney-rivlin";
//     static constexpr const char* kSummary = "0.8 mu/2 (I1 - 3) + 0.2 mu/2 (I2 - 3) + ...";
//     template <class T>
//     static T psi(const T& I1, const T& I2, const T& J, double mu, double lambda) { ... }
//   };
//   register_material<MooneyRivlin>();
//
// Derivatives are taken automatically. Scenes then know the name: {"material": {"model": "mooney-rivlin"}}.
#pragma once

#include <limber/material/dual.hpp>
#include <limber/material/invariant_energy.hpp>

#include <string>
#include <vector>

namespace limber {
namespace material {

// What there is beside the built-in models, in the order of registration.
struct OwnEnergy {
  std::string name, summary;
  const InvariantEnergy* energy;
};
const std::vector<OwnEnergy>& own_energies();
const OwnEnergy* find_own_energy(const std::string& name);  // null: none
// Throws Error(kUsage) when the name is taken, the body at rest is not at rest, or small strain is not
// stable.
void add_own_energy(OwnEnergy energy);

// At mu = lambda = 1 Pa and the given constants, what the energy is at rest.
struct RestState {
  double psi = 0, stress = 0;  // [Pa]
  double mu = 0, lambda = 0;   // of small strain [Pa]
};
RestState rest_state(const InvariantEnergy& energy, double mu, double lambda);
// What is wrong with it at rest, empty: nothing.
std::string rest_misfit(const RestState& rest);

template <class Energy>
void own_terms(const InvariantEnergy&, const double I[3], const double lame[2], EnergyTerms& out) {
  const Dual psi = Energy::template psi<Dual>(Dual::variable(I[0], 0), Dual::variable(I[1], 1),
                                              Dual::variable(I[2], 2), lame[0], lame[1]);
  out.psi = psi.v;
  for (int i = 0; i < 3; ++i) out.d[i] = psi.g[i];
  for (int k = 0; k < 6; ++k) out.dd[k] = psi.h[k];
}

}  // namespace material

// Call it before scenes are loaded, and not while another thread uses the table.
template <class Energy>
void register_material() {
  static material::InvariantEnergy energy{&material::own_terms<Energy>, true};
  energy.zero_at_rest = material::rest_state(energy, 1e5, 1e5).psi == 0;
  material::add_own_energy({Energy::kName, Energy::kSummary, &energy});
}

}  // namespace limber
