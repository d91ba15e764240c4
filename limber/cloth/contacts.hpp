// Contact of cloth with obstacles as bounds on the velocities of the step (Alg. 2.2 and the constraints of
// Lagrangian vertices).
#pragma once

#include <limber/cloth/bounds.hpp>
#include <limber/contact/obstacle.hpp>
#include <limber/mesh/sheet.hpp>

#include <span>
#include <vector>

namespace limber::cloth {

// A vertex at a face of an obstacle: n . xdot >= bound keeps it outside at the end of the step.
struct FaceContact {
  Index vertex = -1, obstacle = -1;
  Vec3 n = Vec3::UnitZ();
  double bound = 0;  // [m/s]
  double gap = 0;    // now, to where the obstacle will be [m]
  double friction = 0;
  Vec3 velocity = Vec3::Zero();  // of the obstacle's point over the step [m/s]
};

struct ContactOptions {
  double recovery = 1;  // fastest that a vertex is pushed out of an obstacle [m/s]
  double offset = 0;    // vertices stay this far from faces [m]
  double reach = 1e-3;  // vertices that come this near within the step are looked at [m]
};

// Of all vertices that can reach an obstacle within the step, with the velocity `v` that they would have.
// Ordered by vertex, then obstacle. Vertices with skip[i] != 0 are left out.
std::vector<FaceContact> face_contacts(std::span<const Obstacle> obstacles, const std::vector<Vec3>& x,
                                       const std::vector<Vec3>& v, const std::vector<std::uint8_t>& skip,
                                       double h, double t, const ContactOptions& options);

// The basis whose coordinates are the components along these rows: B = N^-1.
Mat3 basis_of(const Vec3& n0, const Vec3& n1, const Vec3& n2);
// Two unit vectors that complete n to an orthonormal frame.
void tangents_of(const Vec3& n, Vec3& t1, Vec3& t2);

// Puts the bounds of vertex `contact.vertex` (all contacts of one vertex, together) into the problem.
void add_face_bounds(std::span<const FaceContact> contacts_of_vertex, BoundProblem& problem);
void add_all_face_bounds(const std::vector<FaceContact>& contacts, BoundProblem& problem);

}  // namespace limber::cloth
