// Rigid motions of a connected piece: does a set of degrees of freedom hold it, and how would it accelerate
// as a rigid body?
#pragma once

#include <limber/sim/model.hpp>

#include <Eigen/Core>
#include <cstdint>
#include <span>

namespace limber {

using Mat6 = Eigen::Matrix<double, 6, 6>;
using Vec6 = Eigen::Matrix<double, 6, 1>;

// The mean of a vector of nodes (3n) over the mass of a piece: its centre, its velocity.
Vec3 mass_mean(const Model& model, const Piece& piece, const VecX& a);

// Velocities of a point at `r` from the centre under unit translations and unit rotations (scaled by
// 1/length, so that all six columns have the same unit).
Eigen::Matrix<double, 3, 6> rigid_modes(const Vec3& r, double length);

// The rigid motions of `piece` that leave every degree of freedom of `held` (3n flags) at rest, as columns in
// the basis of rigid_modes about `center`. Six columns: the piece is free; none: it is held.
Eigen::Matrix<double, 6, Eigen::Dynamic> free_rigid_motions(const Model& model, const Piece& piece,
                                                            const VecX& x, std::span<const std::uint8_t> held,
                                                            Vec3& center);

// Inertia relief: subtracts from the force `f` (3n) of every piece that is not held the force M a that its
// rigid-body acceleration takes, so that what is left deforms the piece and does not move it. Without this
// the quasistatic nodes of a falling body would sag as if hung from its dynamic nodes. Includes the
// centripetal acceleration when the piece is entirely free. `moving`: the forces whose sum accelerates the
// pieces, where that is not f.
void relieve_inertia(const Model& model, const VecX& x, const VecX& v, std::span<const std::uint8_t> held,
                     const VecX& moving, VecX& f);
inline void relieve_inertia(const Model& model, const VecX& x, const VecX& v,
                            std::span<const std::uint8_t> held, VecX& f) {
  relieve_inertia(model, x, v, held, f, f);
}

// The rigid part of the velocities `v` (3n) of every piece that is not held: the motion with the same
// momentum and spin.
VecX rigid_velocity(const Model& model, const VecX& x, const VecX& v, std::span<const std::uint8_t> held);

}  // namespace limber
