// Bending of cloth: hinges between two triangles, W = 3/4 beta |e|^2/(A0 + A1) |n0 - n1|^2 with the length of
// the edge and the areas in the material (discrete Willmore energy). Written with the angle theta between the
// normals, |n0 - n1| = 2 sin(theta/2), so that cloth may be curved at rest:
//   W = 3 beta |e|^2/(A0 + A1) sin^2((theta - theta_rest)/2).
#pragma once

#include <limber/core/types.hpp>

#include <array>
#include <vector>

#include <limber/mesh/mesh.hpp>

namespace limber::cloth {

// Vertices: the ends of the edge, then the opposite ones of the two triangles. The first triangle runs
// through the edge from 0 to 1, the second one back.
struct Hinge {
  std::array<Index, 4> vertex{};
  std::array<Index, 2> triangle{};
};
// All inner edges, ascending by their ends.
std::vector<Hinge> find_hinges(const std::vector<Tri>& triangles);

// The angle from the normal of the first triangle to that of the second, about the edge from vertex 1 to
// vertex 0;
// and its gradient d theta/dx.
double hinge_angle(const std::array<Vec3, 4>& x);
double hinge_angle(const std::array<Vec3, 4>& x, std::array<Vec3, 4>& gradient);

struct HingeResponse {
  double energy = 0;
  double moment = 0;             // dW/dtheta [N m]
  double stiffness = 0;          // of the rank-one, positive semi-definite Hessian: stiffness * g g^T [N m]
  std::array<Vec3, 4> gradient;  // g = d theta/dx [1/m]; the forces are -moment * g
};
// `coefficient` = 3 beta |e|^2/(A0 + A1) [N m].
HingeResponse hinge(double coefficient, double rest_angle, const std::array<Vec3, 4>& x);
double hinge_energy(double coefficient, double rest_angle, const std::array<Vec3, 4>& x);

}  // namespace limber::cloth
