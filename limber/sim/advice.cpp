#include <limber/rigid/articulation.hpp>
#include <limber/scene/hold_motion.hpp>
#include <limber/sim/advice.hpp>
#include <limber/sim/method.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace limber {

constexpr std::size_t kListed = 4;  // free pieces: more are counted only

namespace {

// Of constraints whose keys are away from rest in their first step; empty: of none. Bones may begin in the
// middle of a motion: their keys are against the bone that carries them.
std::string motions_that_would_jump(const Scene& scene) {
  std::string first;
  std::size_t others = 0;
  double from = 0;
  bool moves = false;
  for (std::size_t c = 0; c < scene.constraints.size(); ++c) {
    const ConstraintSpec& spec = scene.constraints[c];
    if (spec.motion.empty() || spec.tail) continue;
    const KeyPose pose = first_pose(scene, c);
    if (pose.translation.isZero(0) && pose.scale == 1 && pose.R.isIdentity(1e-12)) continue;
    if (!first.empty()) {
      ++others;
      continue;
    }
    first = spec.name.empty() ? fmt::format("constraint {}", c) : fmt::format("constraint \"{}\"", spec.name);
    from = spec.from;
    const MotionKey& rest = spec.motion.front();
    moves = std::any_of(spec.motion.begin(), spec.motion.end(), [&](const MotionKey& key) {
      return key.translation != rest.translation || key.rotation != rest.rotation || key.scale != rest.scale;
    });
  }
  if (first.empty()) return {};
  return fmt::format(
      "the motion of {}{} is away from rest when it begins (t = {:.6g} s), and nodes do not jump there: {}; "
      "a first key at rest ({{\"t\": {:.6g}}}) would move them there by the next one",
      first, others == 0 ? "" : fmt::format(" (and of {} more)", others), from,
      moves ? "they are moved by what changes from there on" : "it moves nothing", from);
}

}  // namespace

std::vector<std::string> advice(const Model& model) {
  std::vector<std::string> out;
  const Scene& scene = *model.scene;
  const Capabilities& can = method_named(scene.method).spec.can;
  if (!scene.obstacles.empty() && !can.obstacles)
    out.push_back(
        fmt::format("method \"{}\" does not look at obstacles: bodies pass through them", scene.method));
  if (can.bodies && can.links && !can.link_contact && model.articulation && !model.bodies.empty())
    for (const rigid::Link& link : model.articulation->mechanism.links)
      if (std::any_of(link.shapes.begin(), link.shapes.end(),
                      [](const rigid::Shape& s) { return s.contact; }))
        out.push_back(fmt::format(
            "method \"{}\" lets bodies hang on links but not touch them: they pass through the link \"{}\", "
            "whose shape is there for contact; \"conjac\" and \"vanilla\" stop them there",
            scene.method, link.name));
  if (!scene.obstacles.empty() && scene.contact.rule == "filter" && scene.contact.alpha > 0) {
    // The closest point goes along with a node, so alpha adds no force, only stiffness: m v1 = m v0 - h^2
    // alpha K v1.
    double ratio = 0;
    for (std::size_t k = 0; k < model.contact.nodes.size(); ++k)
      ratio = std::max(ratio, scene.h * scene.h * scene.contact.alpha * model.contact.stiffness[k] /
                                  model.mass[3 * model.contact.nodes[k]]);
    out.push_back(fmt::format(
        "contact/alpha is a drag under the rule \"filter\", besides friction: a node that slides loses "
        "up to {:.3g} % of its speed in a step by it; leave alpha out, or set it to 0",
        100 * ratio / (1 + ratio)));
  }
  for (const Body& body : model.bodies) {
    Vec3 low = Vec3::Constant(INFINITY), high = -low;
    for (Index e = body.elements.begin; e < body.elements.end; ++e)
      for (const Index i : model.mesh.elements[static_cast<std::size_t>(e)])
        if (i >= 0) {
          low = low.cwiseMin(model.mesh.rest[static_cast<std::size_t>(i)]);
          high = high.cwiseMax(model.mesh.rest[static_cast<std::size_t>(i)]);
        }
    const double size = (high - low).maxCoeff();
    if (size > 100 || size < 1e-4)
      out.push_back(
          fmt::format("body \"{}\" is {:.3g} m long; if the mesh is not in metres, give \"fit\" or \"scale\"",
                      body.name, size));
  }
  if (std::string line = motions_that_would_jump(scene); !line.empty()) out.push_back(std::move(line));
  std::vector<std::uint8_t> held(static_cast<std::size_t>(model.nodes()), 0);
  for (const Hold& hold : model.holds)
    for (const Index i : hold.nodes) held[static_cast<std::size_t>(i)] = 1;
  if (model.articulation)
    for (const rigid::Attachment& a : model.articulation->attachments)
      held[static_cast<std::size_t>(a.node)] = 1;
  if (scene.gravity.norm() > 0) {
    std::vector<const Piece*> free;
    for (const Piece& piece : model.pieces)
      if (std::none_of(piece.nodes.begin(), piece.nodes.end(),
                       [&](Index i) { return held[static_cast<std::size_t>(i)]; }))
        free.push_back(&piece);
    const auto name = [&](const Piece* piece) {
      const Index body = model.body_of_node[static_cast<std::size_t>(piece->nodes.front())];
      return model.bodies[static_cast<std::size_t>(body)].name;
    };
    const char* fate = can.free_bodies ? "will fall" : "will stay where it is";
    if (free.size() > kListed)
      out.push_back(fmt::format("nothing holds {} pieces, of body \"{}\" to body \"{}\": {}{}", free.size(),
                                name(free.front()), name(free.back()), can.free_bodies ? "they " : "each ",
                                fate));
    else
      for (const Piece* piece : free)
        out.push_back(fmt::format("nothing holds a piece of body \"{}\" ({} nodes): it {}", name(piece),
                                  piece->nodes.size(), fate));
  }
  return out;
}

}  // namespace limber
