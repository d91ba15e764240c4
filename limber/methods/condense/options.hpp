// The options of `condense`, as a scene gives them.
#pragma once

#include <limber/scene/scene.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace limber::condense {

// Nodes that are in full space for a time, whatever the oracles say.
struct GivenRegion {
  std::string body;
  Selection nodes;
  double from = 0;              // [s]
  std::optional<double> until;  // [s]
};

// How a step's equations are solved: by a factor in every Newton iteration; by conjugate gradients with a
// factor that is kept; by L-BFGS on a factor that is kept; by conjugate gradients with the blocks of the
// diagonal; or the cheaper of the first and the third.
enum class RegionSolver { kAuto, kDirect, kPcg, kLbfgs, kJacobi };

struct CondenseOptions {
  bool dynamics = false;         // inertia instead of equilibrium at every step
  bool bdf2 = false;             // and by the second-order formula instead of implicit Euler
  bool linear_skinning = false;  // instead of dual quaternions

  // Training.
  bool each_bone = false;      // poses from each bone by itself instead of the animation
  Index poses = 12;            // of the animation, or of each bone
  bool bone_domains = false;   // columns of their own around each bone
  double coupling = 0;         // of domains: kappa of domains.hpp
  Index modes = 40;            // most columns from poses
  double least_spread = 1e-5;  // of a mode, relative to the first: what is below is left out
  Index linear_modes = 0;      // vibration modes beside them
  Index points = 0;            // cubature points; 0: ten for each column
  Index samples = 4;           // of the forces, for each pose
  double noise = 0.3;          // of the samples, in spreads of each coordinate
  std::uint64_t seed = 1;

  // The energy.
  bool exact = false;       // all elements of the subspace region instead of cubature
  bool anchor = true;       // see hybrid_system.hpp
  double full_share = 0.7;  // of nodes in full space, above which all are

  // Oracles.
  double radius = 0.1;                          // rho, relative to the longest side of the bodies' box
  double slack = 0.1;                           // of rho, by which a new region is wider
  int memory = 2;                               // steps that nodes stay in full space
  double quiet_speed = 0.05, quiet_change = 1;  // body sizes per s, per s^2
  std::vector<GivenRegion> given;

  // Newton's method and contact.
  RegionSolver solver = RegionSolver::kAuto;
  double relative = 1e-6, absolute = 1e-6;  // of the residual; [N]
  int max_iterations = 100;
  double contact_damping = 0;    // [s]
  double slip_speed = 5e-3;      // [m/s]
  bool body_contact = false;     // bodies touch each other and themselves
  bool trained_contact = false;  // training poses do so too, and have points for it
  bool frictionless = false;     // contacts of bodies, as in training poses

  // Reads what the scene's reader has checked and defaulted.
  static CondenseOptions read(const nlohmann::json& options);
};

}  // namespace limber::condense
