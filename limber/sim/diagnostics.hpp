// Energies and momenta of a state, measured the same way for every method.
#pragma once

#include <limber/core/types.hpp>

namespace limber {

struct Diagnostics {
  // [J]; links and their springs included; gravity is potential energy, zero at the origin
  double kinetic = 0, elastic = 0, gravity = 0;
  double contact = 0;  // of the penalty springs [J]
  double total() const { return kinetic + elastic + gravity + contact; }
  Vec3 momentum = Vec3::Zero();          // [kg m/s]
  Vec3 angular_momentum = Vec3::Zero();  // about the origin [kg m^2/s]
  Vec3 center_of_mass = Vec3::Zero();    // [m]
  double max_displacement = 0;           // from the rest shape [m]
  double max_speed = 0;                  // [m/s]
};

}  // namespace limber
