// Eulerian-on-Lagrangian vertices: what holds them in space and in the material (Alg. 2.2), friction where
// the material runs over an edge, and the change between the two kinds of vertices (Section 2.6.2).
#pragma once

#include <limber/cloth/bounds.hpp>
#include <limber/cloth/system.hpp>

#include <span>
#include <vector>

namespace limber::cloth {

enum class EolKind : std::uint8_t {
  kEdge,    // on a sharp edge between two faces
  kCorner,  // at a corner of three faces or more
  kWire,    // on a wire: it has no faces, and holds the cloth while that presses on it
  kNail,    // on the tip of a nail
};

// An EOL vertex and what it lies on, in the world at the end of the step.
struct EolVertex {
  Index vertex = -1;
  EolKind kind = EolKind::kEdge;
  std::array<Vec3, 3> normal{Vec3::Zero(), Vec3::Zero(), Vec3::Zero()};  // of the faces (edge: 2, corner: 3);
                                                                         // nail: [0] is where it points
  Vec3 tangent = Vec3::Zero();                                           // of an edge or wire, unit
  Vec3 velocity =
      Vec3::Zero();     // of the feature's point over the step, and what brings the vertex back onto it [m/s]
  double friction = 0;  // mu
};

// What the material looks like around an EOL vertex.
struct EolGeometry {
  Vec2 along = Vec2::Zero();  // unit: in it the material must not run (t-bar, or b-bar on the border); zero:
                              // it may run anywhere
  Vec2 across = Vec2::UnitX();  // unit, normal to `along`: where it runs
  Mat32 F = Mat32::Zero();      // mean over the triangles
  Vec3 out = Vec3::UnitZ();     // unit: along the bisector, from the feature to the cloth's outer side
  double turn = 0;              // theta: the angle by which the material turns on its way across [rad]
  double room[2] = {0, 0};      // how far it can move along -across and +across, together with the other EOL
                                // corners of its triangles, until one of these has no area left [m]
};
EolGeometry eol_geometry(const Sheet& sheet, const ClothBody& body, const std::vector<Index>& around,
                         const SheetBorder& border, const EolVertex& eol);

// N_b tanh(mu theta/2)/sin(theta/2) is how far the tensions of both sides may differ before the material
// slips (the capstan's T2/T1 = exp(mu theta)); this is the factor of N_b.
double capstan_factor(double mu, double turn);

struct EolOptions {
  double flat = 1e-4;   // share of the diagonal that holds EOL vertices where the cloth is flat
  bool capstan = true;  // friction by the capstan limit; false: none here (filtered afterwards)
  double limit = 0.6;   // share of that room which sliding may take in a step
  double most = 1e3;    // no more room than this, even where no triangle would be lost [m]
};
// Bounds, bases and friction of the EOL vertices; `A` and `b` of the problem get what the flat case needs.
// Before turn_to_basis.
void add_eol_bounds(const ClothPattern& pattern, std::span<const EolVertex> eol,
                    std::span<const EolGeometry> geometry, double h, const EolOptions& options,
                    BoundProblem& problem);

// A vertex that has become EOL: as much of its velocity as may be goes into the material (2.13).
void split_velocity(const EolGeometry& geometry, const Vec3& w, Vec3& v, Vec2& V);
// A vertex that is EOL no longer: the mean of the velocities that the material has there, by mass, which
// keeps the momentum.
Vec3 joined_velocity(const Sheet& sheet, const ClothBody& body, const std::vector<Index>& around,
                     Index vertex);

// The paper's friction, after the solve: velocities relative to the feature are scaled by
// max(0, 1 - mu dv_n/|v_t|) with the velocity of the material. For comparison.
void filter_friction(const ClothPattern& pattern, std::span<const EolVertex> eol,
                     std::span<const EolGeometry> geometry, const VecX& lumped_mass, const VecX& reaction,
                     VecX& q);

}  // namespace limber::cloth
