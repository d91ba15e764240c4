// Free bodies that spin. J is a matrix: what it moves goes straight on, and a body that turns by an angle a
// step grows by its square, with velocities that still point where its middle was heading. So a piece that
// nothing holds and nothing touches takes its step in a frame that turns with it, and is turned back at the
// end.
//
// With c the centre of mass, r = x - c, V its velocity, L = sum m r x (v - V) = I omega the spin, and
// u = v - V - omega x r what the piece does beyond that:
//   there            x = c + s h V + R(s h omega)(r + s h u),  v = V + R(s h omega)(v - V)   (s: the fraction
//   of
//                    the step before f, K and J)
//   force in frame   f - m omega x (omega x r + u): a velocity that turns with the frame takes a force of its
//   own back             J y = Y + theta x r + rest; x1 = c + Y + R(theta - s h omega)(R(s h omega) r0 +
//   rest) spin             L1 = L0 + h (torque of the loads) - a I theta, exactly (a: damping by mass)
#pragma once

#include <limber/methods/conjac/linearisation.hpp>
#include <limber/sim/model.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace limber {

// The spin of every piece of which `held` holds nothing and that is not near a contact (`touching`, a flag
// each), at the start of a step.
std::vector<FreeSpin> free_spins(const Model& model, const StepStart& start,
                                 std::span<const std::uint8_t> held, std::span<const std::uint8_t> touching);

// Carries the positions x and velocities v of the start of the step to where it is linearised.
void turn_to(const Model& model, double fraction, double h, const StepStart& start,
             std::vector<FreeSpin>& spins, VecX& x, VecX& v);

// Adds the force of the turning frame at the velocities v.
void add_frame_force(const Model& model, std::span<const FreeSpin> spins, const VecX& v, VecX& f);

// Takes the motion of these pieces as rigid bodies out of small displacements d of nodes at x.
void leave_out_rigid(const Model& model, std::span<const FreeSpin> spins, const VecX& x, VecX& d);

// What a step knows at its end.
struct SpinStep {
  const Model& model;
  const StepStart& start;
  const VecX& at;     // where the step was linearised
  const VecX& loads;  // [N]
  double h;
};
// x1 and v1 at the end of the step. `moved` is J y, `d` what is added to it; `v` comes in as J v_d.
std::vector<Turn> turn_back(const SpinStep& step, std::span<const FreeSpin> spins, const VecX& moved,
                            const VecX& d, VecX& x, VecX& v);

// Changes velocities by a rotation, so that the spin is that of the end of the step at x too.
void keep_spin(const Model& model, std::span<const FreeSpin> spins, std::span<const Turn> turns,
               const VecX& x, VecX& v);

// Turns columns of 3n numbers along with their pieces.
void turn_shapes(const Model& model, std::span<const FreeSpin> spins, std::span<const Turn> turns,
                 VecX& shapes);

}  // namespace limber
