#include <limber/rigid/articulation.hpp>

namespace limber::rigid {
namespace {

// Corners, rims and vertices: enough points that no part of the shape sinks far into a plane between them.
void add_contact_points(Index link, const Shape& s, std::vector<ContactPoint>& points) {
  const auto push = [&](const Vec3& x, double radius) { points.push_back({link, s.pose * x, radius}); };
  switch (s.kind) {
    case ShapeKind::kBox:
      for (int k = 0; k < 8; ++k)
        push(0.5 * s.size.cwiseProduct(Vec3((k & 1) ? 1 : -1, (k & 2) ? 1 : -1, (k & 4) ? 1 : -1)), 0);
      break;
    case ShapeKind::kSphere:
      push(Vec3::Zero(), s.radius);
      break;
    case ShapeKind::kCapsule:
      for (const double end : {-0.5, 0.5}) push(Vec3(0, 0, end * s.length), s.radius);
      break;
    case ShapeKind::kCylinder:
      for (int k = 0; k < 8; ++k) {
        const double a = k * M_PI / 4;
        for (const double end : {-0.5, 0.5})
          push(Vec3(s.radius * std::cos(a), s.radius * std::sin(a), end * s.length), 0);
      }
      break;
    case ShapeKind::kMesh:
      for (const Vec3& x : s.mesh->nodes) push(x, 0);
      break;
  }
}

}  // namespace

Articulation make_articulation(Drawing d) {
  Articulation a;
  a.notices = std::move(d.notices);
  follow_gears(d.gears, d.joints);
  a.mechanism = make_mechanism(std::move(d.links), std::move(d.joints), std::move(d.loops),
                               std::move(d.springs), std::move(d.gears));
  a.q = initial_positions(a.mechanism);
  a.v = initial_velocities(a.mechanism);
  close_loops(a.mechanism, a.q);
  Motion motion;
  update_motion(a.mechanism, a.q, a.v, motion);
  set_rest_lengths(a.mechanism, motion);
  a.surfaces = inner_surfaces(a.mechanism);
  for (Index i = 0; i < a.mechanism.size(); ++i)
    for (const Shape& s : a.mechanism.links[at(i)].shapes)
      if (s.contact) add_contact_points(i, s, a.points);
  return a;
}

std::vector<Contact> find_contacts(const Articulation& a, const std::vector<Obstacle>& obstacles,
                                   const Motion& motion, double t, double h) {
  std::vector<Contact> contacts;
  for (const Obstacle& o : obstacles) {
    const Placement before = placement_at(o, t), after = placement_at(o, t + h);
    const Box box = bounds(o, after);
    for (const ContactPoint& p : a.points) {
      const LinkMotion& l = motion.links[at(p.link)];
      const Vec3 x = l.pose * p.x;
      const Vec3 v = point_velocity(l.phi, x - l.com);
      // What the point can travel in this step, with room for acceleration.
      const double reach = 2 * h * v.norm() + 1e-3 + p.radius;
      if (((x - box.hi).array() > reach).any() || ((box.lo - x).array() > reach).any()) continue;
      const SurfacePoint s = closest_point(o, after, x);
      if (s.distance - p.radius > reach - p.radius) continue;
      Contact c;
      c.link = p.link;
      c.n = s.n;
      c.x = x - p.radius * s.n;
      c.mu = o.friction;
      c.obstacle_velocity = (s.x - before.to_world(after.to_local(s.x))) / h;
      // The gap is that at the start of the step; the obstacle's own motion is in its velocity.
      c.gap = s.distance - p.radius + h * c.n.dot(c.obstacle_velocity);
      contacts.push_back(c);
    }
  }
  return contacts;
}

}  // namespace limber::rigid
