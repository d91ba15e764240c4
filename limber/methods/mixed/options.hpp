// The options of `mixed`, as a scene gives them.
#pragma once

#include <limber/core/types.hpp>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace limber::mixed {

struct MixedOptions {
  bool full_space = false;         // every node an unknown, every element a point
  bool fem = false;                // plain Newton on positions with the same points
  bool bdf2 = false;               // instead of implicit Euler
  bool extrapolate = true;         // begin iterations at u + h v instead of u
  std::string basis = "skinning";  // "skinning", "homogeneous", "handles", "linear"
  Index modes = 16, points = 320;  // m and C
  bool weights_only = false;       // features of elements as the paper has them
  double exponent = 0;             // of the eigenvalues in the features of Eq. 11
  std::uint64_t seed = 1;          // of k-means and of training
  std::string training;            // file with poses; empty: k-means
  int iterations = 2;
  double tolerance = 0;  // relative to the body's size; 0: all iterations
  int twist_from = 2;
  std::string pins = "auto";  // "auto", "weights", "penalty"
  double hold_stiffness = 0;  // of a hold in all [N/m]; 0: kHoldShare times mass over squared time step
  Index contact_samples = 300;
  double contact_damping = 0;  // [s]
  double slip_speed = 0.005;   // [m/s]

  // Reads what the scene's reader has checked and defaulted.
  static MixedOptions read(const nlohmann::json& options);
};

// Default stiffness of a hold, times mass / h^2.
inline constexpr double kHoldShare = 1e3;

}  // namespace limber::mixed
