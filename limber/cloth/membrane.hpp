// A triangle of cloth as a membrane: its energy, forces and stiffness in space, from the gradients of its
// shape functions in the material. The material's 3x3 form is that of cloth triangles everywhere
// (material/membrane.hpp); here the rest shape may change from step to step.
#pragma once

#include <limber/material/material.hpp>
#include <limber/mesh/sheet.hpp>

#include <array>

namespace limber::cloth {

// What a triangle is at rest: gradients of its shape functions [1/m] and its area [m^2].
struct RestTriangle {
  std::array<Vec2, 3> gradient;
  double area = 0;
};
RestTriangle rest_triangle(const Vec2& a, const Vec2& b, const Vec2& c);
// In a frame of its own, where there are no material coordinates.
RestTriangle rest_triangle(const Vec3& a, const Vec3& b, const Vec3& c);

// A material per area: the thickness is multiplied in.
struct Fabric {
  MaterialModel model = MaterialModel::kCorotational;
  double mu = 0, lambda = 0;  // of the membrane in plane stress [N/m]
  double density = 0;         // [kg/m^2]
  double bending = 0;         // beta [N m]
};
Fabric fabric_of(const ElementMaterial& material, double bending);

struct MembraneResponse {
  double energy = 0;                             // [J]
  std::array<Vec3, 3> force;                     // on the corners, -dE/dx [N]
  std::array<std::array<Mat3, 3>, 3> stiffness;  // d2E/dx2, positive semi-definite [N/m]
};
// Stiffness only where asked for.
void membrane(const Fabric& fabric, const RestTriangle& rest, const std::array<Vec3, 3>& x,
              bool with_stiffness, MembraneResponse& out);
double membrane_energy(const Fabric& fabric, const RestTriangle& rest, const std::array<Vec3, 3>& x);

// dx/dX
inline Mat32 gradient_of(const RestTriangle& rest, const std::array<Vec3, 3>& x) {
  Mat32 F = Mat32::Zero();
  for (std::size_t k = 0; k < 3; ++k) F += x[k] * rest.gradient[k].transpose();
  return F;
}

}  // namespace limber::cloth
