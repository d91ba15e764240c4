#include <limber/sim/nodal_forces.hpp>

#include <limber/fem/assemble.hpp>
#include <limber/rigid/articulation.hpp>
#include <limber/scene/hold_motion.hpp>
#include <limber/sim/contact_state.hpp>

#include <Eigen/Geometry>

#include <fmt/format.h>

#include <set>

namespace limber {
namespace {

// Springs and anchors at the end of the step (contact/penalty.hpp).
std::vector<ContactForce> spring_forces(const Model& model, const State& state) {
  std::vector<ContactForce> out;
  if (model.contact.empty()) return out;
  const std::vector<Anchor> anchors = anchors_of(state);
  for (const Contact& c : touching(model.contact, state.x, state.t)) {
    ContactForce f{c.node, c.obstacle, c.stiffness * c.depth * c.n};
    if (const Anchor* a = find_anchor(anchors, c.node, c.obstacle)) {
      const Obstacle& o = model.contact.obstacles[static_cast<std::size_t>(c.obstacle)];
      const Vec3 d = Vec3(node(state.x, c.node)) - placement_at(o, state.t).to_world(a->point);
      f.force -= model.contact.alpha * c.stiffness * (d - c.n.dot(d) * c.n);
    }
    out.push_back(f);
  }
  return out;
}

// Of each degree of freedom the hold that has it, or -1: later ones win.
std::vector<Index> hold_of(const Model& model, const StepInput& in) {
  std::vector<Index> out(static_cast<std::size_t>(3 * model.nodes()), -1);
  for (std::size_t k = 0; k < model.holds.size(); ++k) {
    if (k >= in.holding.size() || !in.holding[k]) continue;
    const std::string& axes = model.scene->constraints[model.holds[k].constraint].axes;
    for (const Index i : model.holds[k].nodes)
      for (std::size_t axis = 0; axis < 3; ++axis)
        if (axes.find("xyz"[axis]) != std::string::npos)
          out[3 * static_cast<std::size_t>(i) + axis] = static_cast<Index>(k);
  }
  return out;
}

// "NAME", "constraint-2" for one without a name; a name that comes again gets its number too.
std::vector<std::string> hold_names(const Model& model) {
  std::vector<std::string> out;
  std::set<std::string> taken;
  for (const Hold& hold : model.holds) {
    std::string name = model.scene->constraints[hold.constraint].name;
    if (name.empty()) name = fmt::format("constraint-{}", hold.constraint);
    if (!taken.insert(name).second) name = fmt::format("{}-{}", name, hold.constraint);
    taken.insert(name);
    out.push_back(std::move(name));
  }
  return out;
}

bool hangs(const Model& model, std::size_t link) {
  const auto& all = model.articulation->attachments;
  return std::any_of(all.begin(), all.end(),
                     [&](const rigid::Attachment& a) { return static_cast<std::size_t>(a.link) == link; });
}

void add_columns(const std::string& name, std::vector<std::string>& out) {
  for (const char axis : {'x', 'y', 'z'}) out.push_back(fmt::format("{}/{}", name, axis));
}

void add_values(const Vec3& v, std::vector<double>& out) { out.insert(out.end(), v.data(), v.data() + 3); }

}  // namespace

NodalForces nodal_forces(const Model& model, const State& state, const VecX& before, const StepInput& in,
                         const StepForces& known) {
  const Scene& scene = *model.scene;
  NodalForces out;
  out.contact.setZero(3 * model.nodes());
  out.obstacles.assign(model.contact.obstacles.size(), Vec3::Zero());
  for (const ContactForce& c : known.contact_known ? known.contact : spring_forces(model, state)) {
    node(out.contact, c.node) += c.force;
    if (c.obstacle >= 0) out.obstacles[static_cast<std::size_t>(c.obstacle)] += c.force;
  }

  fem::Assembled part;
  fem::assemble_force(*model.elements, state.x, in.activation, part);
  VecX rest = -part.f - in.force - out.contact;
  for (Index i = 0; i < model.nodes(); ++i) node(rest, i) -= model.mass[3 * i] * in.gravity;
  if (known.inertia) {
    if (before.size() == state.v.size() && in.h > 0) rest += model.mass.cwiseProduct(state.v - before) / in.h;
    rest += scene.damping_mass * model.mass.cwiseProduct(state.v);
    if (scene.damping_stiffness > 0) {
      fem::multiply_stiffness(*model.elements, state.x, in.activation, state.v, part, fem::Projection::kNone);
      rest += scene.damping_stiffness * part.f;
    }
  }

  out.reaction.setZero(3 * model.nodes());
  out.holds.assign(model.holds.size(), {});
  std::vector<Vec3> center(model.holds.size());
  for (std::size_t k = 0; k < model.holds.size(); ++k) {
    const std::size_t c = model.holds[k].constraint;
    const KeyPose from = first_pose(scene, c), to = hold_pose(scene, c, state.t);
    const Mat3 turn = (to.scale / from.scale) * to.R * from.R.transpose();
    center[k] = scene.constraints[c].center + (to.translation - turn * from.translation);
  }
  const std::vector<Index> owner = hold_of(model, in);
  std::vector<Index> link_of(static_cast<std::size_t>(model.nodes()), -1);
  if (model.articulation) {
    out.links.assign(model.articulation->mechanism.links.size(), Vec3::Zero());
    for (const rigid::Attachment& a : model.articulation->attachments)
      link_of[static_cast<std::size_t>(a.node)] = a.link;
  }
  for (Index i = 0; i < model.nodes(); ++i) {
    const Index link = link_of[static_cast<std::size_t>(i)];
    for (int axis = 0; axis < 3; ++axis) {
      const auto d = 3 * static_cast<std::size_t>(i) + static_cast<std::size_t>(axis);
      Vec3 force = Vec3::Zero();
      force[axis] = rest[static_cast<Eigen::Index>(d)];
      if (!in.fixed[d] && link < 0) {
        out.unbalanced += force;
        continue;
      }
      out.reaction[static_cast<Eigen::Index>(d)] = force[axis];
      if (in.fixed[d] && owner[d] >= 0) {
        NodalForces::Sum& sum = out.holds[static_cast<std::size_t>(owner[d])];
        sum.force += force;
        sum.moment += (Vec3(node(state.x, i)) - center[static_cast<std::size_t>(owner[d])]).cross(force);
      } else if (link >= 0) {
        out.links[static_cast<std::size_t>(link)] += force;
      }
    }
  }
  return out;
}

std::vector<std::string> reaction_columns(const Model& model) {
  std::vector<std::string> out;
  const std::vector<std::string> names = hold_names(model);
  for (const std::string& name : names) add_columns("reaction/" + name, out);
  if (model.articulation)
    for (std::size_t i = 0; i < model.articulation->mechanism.links.size(); ++i)
      if (hangs(model, i)) add_columns("reaction/" + model.articulation->mechanism.links[i].name, out);
  for (const std::string& name : names) add_columns("moment/" + name, out);
  out.push_back("unbalanced");
  return out;
}

std::vector<double> reaction_values(const Model& model, const NodalForces& forces) {
  std::vector<double> out;
  for (const NodalForces::Sum& sum : forces.holds) add_values(sum.force, out);
  for (std::size_t i = 0; i < forces.links.size(); ++i)
    if (hangs(model, i)) add_values(forces.links[i], out);
  for (const NodalForces::Sum& sum : forces.holds) add_values(sum.moment, out);
  out.push_back(forces.unbalanced.norm());
  return out;
}

std::vector<std::string> contact_columns(const Model& model) {
  std::vector<std::string> out;
  for (const Obstacle& o : model.contact.obstacles) add_columns("contact_force/" + o.name, out);
  return out;
}

std::vector<double> contact_values(const NodalForces& forces) {
  std::vector<double> out;
  for (const Vec3& f : forces.obstacles) add_values(f, out);
  return out;
}

}  // namespace limber
