#include <limber/methods/common/link_report.hpp>

#include <limber/scene/scene.hpp>

#include <algorithm>

namespace limber {
namespace {

constexpr std::size_t kMostColumns = 64;  // of friction; a long chain does not get a column per pin

}  // namespace

rigid::StepSettings link_settings(const Scene& scene) {
  rigid::StepSettings settings;
  settings.gravity = scene.gravity;
  const std::vector<std::string>& fields = scene.output.fields;
  settings.reactions = std::find(fields.begin(), fields.end(), "reaction") != fields.end();
  return settings;
}

void report_links(const rigid::Articulation& a, const rigid::StepOutcome& out, double h, StepReport& report) {
  const rigid::Mechanism& m = a.mechanism;
  bool motors = false;
  for (const rigid::Joint& j : m.joints)
    if (j.motor.kind != rigid::MotorKind::kNone) {
      report.extra["torque/" + j.name] = out.motor[j.v_begin];
      motors = true;
    }
  if (motors) report.extra["power/motors"] = out.motor_work / h;
  bool dry = false;
  for (const rigid::Joint& j : m.joints) dry |= j.dry_friction > 0;
  if (dry || !a.surfaces.empty()) report.extra["power/friction"] = out.friction_work / h;
  if (a.surfaces.size() <= kMostColumns)
    for (std::size_t i = 0; i < a.surfaces.size(); ++i)
      report.extra["friction/" + a.surfaces[i].name] = out.friction_torque[static_cast<Eigen::Index>(i)];
  if (dry && a.surfaces.size() + m.joints.size() <= kMostColumns)
    for (const rigid::Joint& j : m.joints)
      if (j.dry_friction > 0) report.extra["friction/" + j.name] += out.dry_friction[j.v_begin];
  if (m.joints.size() <= kMostColumns)
    for (std::size_t i = 0; i < m.joints.size() && out.joint_force.size() > 0; ++i)
      for (int axis = 0; axis < 3; ++axis)
        report.extra["joint_force/" + m.joints[i].name + "/" + "xyz"[axis]] =
            out.joint_force[3 * static_cast<Eigen::Index>(i) + axis];
  if (!m.loops.empty()) report.extra["loop_error"] = out.loop_error;
  report.iterations = out.iterations;
  report.contacts += static_cast<Index>((out.contact_normal.array() > 0).count());
  if (!out.converged) report.fallbacks["friction_not_converged"] = 1;
  if (!out.inertia_settled) report.fallbacks["inertia_not_converged"] = 1;
}

MethodFields link_fields(const rigid::Articulation& a, const rigid::StepOutcome& out) {
  const rigid::Mechanism& m = a.mechanism;
  MethodFields fields;
  fields.units = {{"motor_torque", "N m"}, {"friction_torque", "N m"}, {"joint_load", "N"}};
  const auto empty = std::vector<double>(m.links.size(), 0.0);
  const bool motors = std::any_of(m.joints.begin(), m.joints.end(), [](const rigid::Joint& j) {
    return j.motor.kind != rigid::MotorKind::kNone;
  });
  if (motors) {
    std::vector<double>& torque = fields.link["motor_torque"] = empty;
    for (std::size_t i = 0; i < m.joints.size() && out.motor.size() > 0; ++i)
      if (rigid::velocity_numbers(m.joints[i].type) == 1) torque[i] = out.motor[m.joints[i].v_begin];
  }
  if (!a.surfaces.empty()) {
    std::vector<double>& torque = fields.link["friction_torque"] = empty;
    std::vector<double>& load = fields.link["joint_load"] = empty;
    for (std::size_t i = 0; i < a.surfaces.size() && out.friction_torque.size() > 0; ++i) {
      if (a.surfaces[i].loop) continue;
      const auto link = static_cast<std::size_t>(a.surfaces[i].owner);
      torque[link] = std::abs(out.friction_torque[static_cast<Eigen::Index>(i)]);
      load[link] = out.load[i];
    }
  }
  if (out.joint_force.size() > 0) {
    fields.units["joint_force"] = "N";
    std::vector<double>& force = fields.link["joint_force"] = empty;
    for (std::size_t i = 0; i < m.joints.size(); ++i)
      force[i] = out.joint_force.segment<3>(3 * static_cast<Eigen::Index>(i)).norm();
  }
  return fields;
}

}  // namespace limber
