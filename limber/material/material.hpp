// What an element is made of: plain parameters. The arithmetic is in one header per model.
#pragma once

#include <limber/core/types.hpp>

#include <memory>

namespace limber {

namespace material {
struct InvariantEnergy;
}

enum class MaterialModel {
  kStableNeoHookean,  // "stable-neo-hookean": mu/2 (Ic - 3) + L/2 (J - a)^2, L = lambda + mu, a = 1 + mu/L;
                      // the default
  kStableNeoHookeanLog,  // "stable-neo-hookean-log": the 2018 form with -mu/2 log(Ic + 1)
  kCorotational,         // "corotational": mu |S - I|^2 + lambda/2 tr(S - I)^2
  kFixedCorotated,       // "fixed-corotated": mu |S - I|^2 + lambda/2 (J - 1)^2
  kArap,                 // "arap": mu |F - R|^2 (no resistance to volume change beyond it)
  kStVenantKirchhoff,    // "st-venant-kirchhoff": mu |E|^2 + lambda/2 tr(E)^2, E Green strain
  kInvariants,           // ElementMaterial::energy: a formula of the scene, or a program's own
};

enum class FibreModel {
  kNone,
  kStVenantKirchhoff,  // "st-venant-kirchhoff": k/2 (I5 - 1)^2
  kFung,               // "fung": k (exp(I5 - 1) - I5)
};

// One element's material. Fibres add to the base model; I5 = |F a|^2 / l^2 with a the unit fibre direction in
// the rest shape and l = 1 - activation the fibre's own rest stretch, so that activation 0.2 makes fibres
// want to be a fifth shorter.
struct ElementMaterial {
  MaterialModel model = MaterialModel::kStableNeoHookean;
  double young = 1e5;     // Young's modulus [Pa]
  double poisson = 0.4;   // Poisson's ratio
  double density = 1000;  // [kg/m^3]
  double thickness = 0;   // plane-strain triangles only [m]
  FibreModel fibre = FibreModel::kNone;
  double fibre_stiffness = 0;            // k [Pa]
  Vec3 fibre_direction = Vec3::UnitX();  // unit vector in the rest shape
  Index activation_channel = -1;         // which entry of StepInput::activation drives it; -1: none
  std::shared_ptr<const material::InvariantEnergy> energy = {};  // of kInvariants
};

}  // namespace limber
