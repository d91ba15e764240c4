// Mass, centre and inertia of solids, in their own frame. SI units.
#pragma once

#include <limber/mesh/mesh.hpp>
#include <limber/rigid/spatial.hpp>

#include <string>

namespace limber::rigid {

struct Inertia {
  double mass = 0;          // [kg]
  Vec3 com = Vec3::Zero();  // centre of mass [m]
  Mat3 I = Mat3::Zero();    // about the centre of mass, in the axes of the frame [kg m^2]
};

// Solids of uniform density [kg/m^3], centred at the origin. The axis of round solids is z; a capsule of
// length l is a cylinder of that length with a half ball on either end.
Inertia box_inertia(const Vec3& size, double density);
Inertia sphere_inertia(double radius, double density);
Inertia cylinder_inertia(double radius, double length, double density);
Inertia capsule_inertia(double radius, double length, double density);
// The inside of a closed surface. Throws Error(kInput) when the surface is open or inside out.
Inertia mesh_inertia(const TriMesh& surface, double density);

// The same solid seen from the outer frame of `pose`.
Inertia moved(const Inertia& inertia, const Pose& pose);
// Both solids together.
Inertia combined(const Inertia& a, const Inertia& b);

// Empty when a link may have this inertia (finite, positive definite); otherwise what is wrong with it.
std::string inertia_fault(const Inertia& inertia);

}  // namespace limber::rigid
