// Inertia of cloth whose vertices move in the material as well (Eulerian-on-Lagrangian, EOL): kinetic energy
// T = 1/2 qdot^T M(q) qdot of a triangle with qdot = (xdot, Xdot), Eqs. 2.2 and 2.8, and the forces that
// follow from M depending on q, which the step (2.11) leaves out.
//   F = sum x_i grad N_i^T,  w_i = xdot_i - F Xdot_i,  m_ij = (1 + delta_ij)/12,  p_i = rho A sum_j m_ij w_j.
#pragma once

#include <limber/cloth/membrane.hpp>

namespace limber::cloth {

using Corners3 = std::array<Vec3, 3>;
using Corners2 = std::array<Vec2, 3>;

inline double mass_share(std::size_t i, std::size_t j) { return i == j ? 1.0 / 6 : 1.0 / 12; }

// w_i: velocity of the material at the corners (Eq. 2.2).
inline Corners3 corner_velocities(const Mat32& F, const Corners3& v, const Corners2& V) {
  Corners3 w;
  for (std::size_t i = 0; i < 3; ++i) w[i] = v[i] - F * V[i];
  return w;
}

// p_i: the rows of M qdot for x; those for X are -F^T p_i.
inline Corners3 corner_momenta(double mass, const Corners3& w) {
  Corners3 p;
  for (std::size_t i = 0; i < 3; ++i) {
    p[i].setZero();
    for (std::size_t j = 0; j < 3; ++j) p[i] += mass * mass_share(i, j) * w[j];
  }
  return p;
}

inline double kinetic_energy(const Corners3& w, const Corners3& p) {
  return 0.5 * (w[0].dot(p[0]) + w[1].dot(p[1]) + w[2].dot(p[2]));
}

// What is left of d/dt dT/dqdot - dT/dq besides M qddot, with the sign of a force: M qddot = f + g.
struct InertiaForces {
  Corners3 x;
  Corners2 X;
};
inline InertiaForces inertia_forces(double density, const RestTriangle& rest, const Mat32& F,
                                    const Corners3& v, const Corners2& V) {
  const double mass = density * rest.area;
  const Corners3 w = corner_velocities(F, v, V), p = corner_momenta(mass, w);
  const double T = kinetic_energy(w, p);
  double D = 0;                // rate of the material area, relative
  Mat32 Fdot = Mat32::Zero();  // at a material point
  for (std::size_t k = 0; k < 3; ++k) {
    D += rest.gradient[k].dot(V[k]);
    Fdot += w[k] * rest.gradient[k].transpose();
  }
  InertiaForces g;
  for (std::size_t i = 0; i < 3; ++i) {
    g.x[i] = -D * p[i];
    for (std::size_t k = 0; k < 3; ++k)
      g.x[i] += mass * mass_share(i, k) * (Fdot * V[k]) - rest.gradient[i].dot(V[k]) * p[k];
    g.X[i] = T * rest.gradient[i] + Fdot.transpose() * p[i] - F.transpose() * g.x[i];
  }
  return g;
}

// A block C between two corners for x makes those between X and x and between X and X (Eqs. 2.8 and 2.10).
// The two material coordinates are the first two entries of a block of three.
inline Mat3 with_X_left(const Mat3& C, const Mat32& F) {
  Mat3 out = Mat3::Zero();
  out.topRows<2>() = -F.transpose() * C;
  return out;
}
inline Mat3 with_X_both(const Mat3& C, const Mat32& F) {
  Mat3 out = Mat3::Zero();
  out.topLeftCorner<2, 2>() = F.transpose() * C * F;
  return out;
}

}  // namespace limber::cloth
