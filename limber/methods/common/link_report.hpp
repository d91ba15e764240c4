// What a step tells about its links: torques, loads, work.
#pragma once

#include <limber/rigid/articulation.hpp>
#include <limber/rigid/bisp.hpp>
#include <limber/sim/stepper.hpp>

namespace limber {

struct Scene;

// Gravity, and whether somebody wants to know the forces in the joints.
rigid::StepSettings link_settings(const Scene& scene);

// Columns of steps.csv: torque/JOINT of every motor, friction/JOINT of every joint or loop that rubs, power
// of motors and friction, the largest gap of a loop, joint_force/JOINT where reactions are asked for.
// `iterations` counts contact solves.
void report_links(const rigid::Articulation& articulation, const rigid::StepOutcome& outcome, double h,
                  StepReport& report);

// Per link, of its own joint: motor_torque, friction_torque, joint_load, joint_force.
MethodFields link_fields(const rigid::Articulation& articulation, const rigid::StepOutcome& outcome);

}  // namespace limber
