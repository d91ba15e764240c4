// The linearly implicit step of cloth as a linear system (Eqs. 2.11, 2.12): A qdot = b with
//   A = (1 + h a) M + (h^2 + h b) K,   b = M qdot_k + h (f + g),
// M, K, f in positions and, at EOL vertices, in material coordinates; g are the inertia forces. A vertex is a
// block of three; an EOL vertex has a second block (X, Y, 1).
#pragma once

#include <limber/cloth/hinge.hpp>
#include <limber/cloth/inertia.hpp>
#include <limber/linalg/block_matrix.hpp>

#include <memory>
#include <vector>

namespace limber::cloth {

// What a sheet is made of, triangle by triangle, and what follows from its triangles.
struct ClothBody {
  std::vector<Fabric> fabric;      // of each triangle
  std::vector<RestTriangle> rest;  // of each triangle
  std::vector<Hinge> hinges;
  std::vector<double> rest_angle;   // of each hinge
  std::vector<double> coefficient;  // of each hinge, 3 beta |e|^2/(A0 + A1); 0 at creases [N m]
};
// `rest` from the sheet's material coordinates, and all that follows from it; fabric and hinges are there.
// Hinges whose edge lies on a feature are creases, which cost nothing: the material runs through them.
void update_rest(const Sheet& sheet, ClothBody& body);
// The same from a rest shape in space, curved or not.
void update_rest(const std::vector<Vec3>& rest, const std::vector<Tri>& triangles, ClothBody& body);

// Blocks of the unknowns, and where each triangle and hinge finds its own.
struct ClothPattern {
  Index vertices = 0;
  std::vector<Index> extra;      // second block of an EOL vertex, or -1
  std::vector<Index> vertex_of;  // of the blocks behind `vertices`
  std::shared_ptr<const BlockPattern> blocks;

  Index size() const { return blocks->n; }
};
ClothPattern make_pattern(const Sheet& sheet, const std::vector<Hinge>& hinges);
// Whether it is still that of the sheet, whose triangles are the same.
bool fits(const ClothPattern& pattern, const Sheet& sheet);

struct Wind {
  Vec3 velocity = Vec3::Zero();  // of the air [m/s]
  double density = 0;            // of the air [kg/m^3]; 0: no air
};

struct ClothTerms {
  double h = 0, damping_mass = 0, damping_stiffness = 0;
  Vec3 gravity = Vec3::Zero();
  Wind wind;
  const VecX* force = nullptr;  // on the vertices, 3n [N]; may be null
  bool inertia_forces = true;   // g; false: as printed
};

struct ClothSystem {
  BlockMatrix A;
  VecX b;
  VecX q;  // the velocities at the start, block by block
};
void assemble(const Sheet& sheet, const ClothBody& body, const ClothPattern& pattern, const ClothTerms& terms,
              ClothSystem& out);

// Energies and momenta of the moving material.
struct ClothMotion {
  double kinetic = 0, membrane = 0, bending = 0, gravity = 0;  // [J]
  Vec3 momentum = Vec3::Zero(), angular_momentum = Vec3::Zero(), first_moment = Vec3::Zero();
  double mass = 0, max_speed = 0;
};
ClothMotion measure(const Sheet& sheet, const ClothBody& body, const Vec3& gravity);

// F at a vertex: the mean over its triangles, by area.
Mat32 mean_gradient(const Sheet& sheet, const ClothBody& body, const std::vector<std::vector<Index>>& around,
                    Index vertex);
// The triangles around each vertex, ascending.
std::vector<std::vector<Index>> triangles_around(const Sheet& sheet);

}  // namespace limber::cloth
