// Contacts as rows on velocities, for solvers that take impulses instead of penalty forces: quadratic
// programs and Gauss-Seidel (qp/friction_pgs.hpp). Both detectors give them: detect() for obstacles,
// BodyContact for bodies.
//
// The velocity of a node relative to what it touches is v_i - sum of w_k v_k (a face) or v_i - v_o (an
// obstacle); its parts along n, t1, t2 are the three rows of the contact. An impulse p on the node is -w_k p
// on the corners of the face: impulses add up to zero and, because the weights are the barycentric
// coordinates of the node's projection, have no moment.
#pragma once

#include <limber/contact/detect.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace limber {

struct ContactRow {
  Index node = -1;
  std::array<Index, 3> face{-1, -1, -1};  // corners of the face; -1: an obstacle
  std::array<double, 3> weight{};         // of the corners, sum to one
  Vec3 n = Vec3::UnitZ();                 // unit normal, away from what the node touches
  Vec3 t1 = Vec3::UnitX(), t2 = Vec3::UnitY();
  double gap = 0;                // at the start of the step [m], negative inside
  double friction = 0;           // Coulomb's mu
  Vec3 velocity = Vec3::Zero();  // of the obstacle's point [m/s]
  std::uint64_t id = 0;          // who touches whom: the same from step to step, different for all others
};

// Ids hold the node's number and the obstacle's or piece's number whole, and which of the two it is.
std::uint64_t obstacle_contact_id(Index node, Index obstacle);
std::uint64_t body_contact_id(Index node, Index piece);

// Completes a row: t1 and t2 from n. They depend on n alone.
void set_tangents(ContactRow& row);

// The rows of detected contacts; h is the step that they were detected for.
std::vector<ContactRow> contact_rows(std::span<const Contact> contacts, double h);

// Relative velocities J v - v_o (n, t1, t2 of each contact) of nodes that move at v [m/s].
VecX relative_velocity(std::span<const ContactRow> rows, const VecX& v);
// f += Jᵀ p for impulses p (n, t1, t2 of each contact) [N s].
void add_impulses(std::span<const ContactRow> rows, const VecX& p, VecX& f);

// The mobility W = J A^-1 Jᵀ [1/kg] of the contacts in a system whose solve is given: B <- A^-1 B, columns
// are impulses on all nodes, and become velocities. A reduced system solves as G (GᵀAG)^-1 Gᵀ.
MatX contact_mobility(std::span<const ContactRow> rows, Index nodes,
                      const std::function<void(Eigen::Ref<MatX>)>& solve);

// What is kept of a contact for the start of the next step: its impulse as a vector, which outlives a change
// of the tangents.
struct ContactImpulse {
  std::uint64_t id = 0;
  Vec3 impulse = Vec3::Zero();  // on the node [N s]
};
// Sorted by id, which the second function expects.
std::vector<ContactImpulse> keep_impulses(std::span<const ContactRow> rows, const VecX& p);
// Impulses of the rows to start from; zero for new contacts.
VecX warm_start(std::span<const ContactRow> rows, std::span<const ContactImpulse> kept);

}  // namespace limber
