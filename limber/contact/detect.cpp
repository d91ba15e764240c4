#include <limber/contact/detect.hpp>
#include <limber/mesh/box_tree.hpp>

#include <limber/core/parallel.hpp>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

constexpr std::ptrdiff_t kBoxNodes = 128;  // nodes that share a box

// An obstacle during the step.
struct Mover {
  Placement from, to;
  Box box;  // of all that it sweeps
};

Mover mover(const Obstacle& o, double t, double h) {
  Mover m;
  m.from = placement_at(o, t);
  m.box = bounds(o, m.from);
  m.to = m.from;
  if (o.motion.empty() || h == 0) return m;
  m.to = placement_at(o, t + h);
  const Box end = bounds(o, m.to);
  m.box.lo = m.box.lo.cwiseMin(end.lo);
  m.box.hi = m.box.hi.cwiseMax(end.hi);
  if (o.shape == ObstacleShape::kPlane) return m;
  // A turning corner bulges out between its two places by less than it travels.
  const double reach = 0.5 * m.box.size().norm();
  const double travel = (m.to.scale * m.to.R - m.from.scale * m.from.R).norm() * reach;
  m.box.lo.array() -= travel;
  m.box.hi.array() += travel;
  return m;
}

// Whether all of the box is farther from a plane that stands still than nodes go in the step: none touches it
// then.
bool out_of_reach(const Obstacle& o, const Mover& m, const Box& box, double travel) {
  if (o.shape != ObstacleShape::kPlane || !o.motion.empty()) return false;
  const Vec3 n = m.from.R.col(2);
  const Vec3 half = 0.5 * box.size();
  const double rounding = 1e-9 * (half.norm() + travel);
  return n.dot(box.lo + half - m.from.origin) - n.cwiseAbs().dot(half) > travel + rounding;
}

// Where the path from y0 to y1 first meets the surface, walking by the distance that is surely free. False:
// it does not. `at` is the surface point nearest to y0 on entry.
bool first_hit(const Obstacle& o, const Vec3& y0, const Vec3& y1, SurfacePoint& at) {
  const double length = (y1 - y0).norm();
  // A node that comes nearer than this to the surface is taken to touch: grazing paths converge slowly.
  const double tolerance = 1e-4 * length;
  double s = 0;
  for (int k = 0; k < 64; ++k) {
    s += at.distance;
    if (s > length) return false;
    at = closest_local(o, y0 + s / length * (y1 - y0));
    if (at.distance <= tolerance) return true;
  }
  return true;
}

bool touch(const Obstacle& o, const Mover& m, const Vec3& x, const Vec3& step, double h, Contact& c) {
  const Vec3 y0 = m.from.to_local(x);
  SurfacePoint p = closest_local(o, y0);
  if (p.distance > 0) {
    const Vec3 y1 = m.to.to_local(x + step);
    if ((y1 - y0).squaredNorm() <= p.distance * p.distance) return false;
    if (!first_hit(o, y0, y1, p)) return false;
  }
  c.local = p.x;
  c.x_s = m.to.to_world(p.x);
  c.n = m.to.R * p.n;
  c.depth = c.n.dot(c.x_s - x);
  if (!o.motion.empty() && h > 0) c.velocity = (c.x_s - m.from.to_world(p.x)) / h;
  c.friction = o.friction;
  return true;
}

// `v` may be null: then nothing moves.
std::vector<Contact> find(const ContactModel& model, const VecX& x, const VecX* v, double h, double t) {
  if (model.empty()) return {};
  std::vector<Mover> movers;
  for (const Obstacle& o : model.obstacles) movers.push_back(mover(o, t, h));

  const auto n = static_cast<std::ptrdiff_t>(model.nodes.size());
  std::vector<std::vector<Contact>> found(static_cast<std::size_t>((n + kBoxNodes - 1) / kBoxNodes));
  parallel_ranges(n, kBoxNodes, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    auto step = [&](Index i) { return v ? Vec3(h * node(*v, i)) : Vec3(Vec3::Zero()); };
    Box stretch;
    double travel = 0;  // squared
    for (std::ptrdiff_t k = begin; k < end; ++k) {
      const Index i = model.nodes[k];
      const Vec3 xi = node(x, i), dx = step(i);
      stretch.add(xi);
      stretch.add(xi + dx);
      travel = std::max(travel, dx.squaredNorm());
    }
    travel = std::sqrt(travel);
    std::vector<std::size_t> near;
    for (std::size_t o = 0; o < movers.size(); ++o)
      if (overlap(stretch, movers[o].box) && !out_of_reach(model.obstacles[o], movers[o], stretch, travel))
        near.push_back(o);
    if (near.empty()) return;
    auto& out = found[static_cast<std::size_t>(begin / kBoxNodes)];
    for (std::ptrdiff_t k = begin; k < end; ++k) {
      const Index i = model.nodes[k];
      const Vec3 xi = node(x, i), dx = step(i);
      Box path;
      path.add(xi);
      path.add(xi + dx);
      for (const std::size_t o : near) {
        if (!overlap(path, movers[o].box)) continue;
        Contact c;
        if (!touch(model.obstacles[o], movers[o], xi, dx, h, c)) continue;
        c.node = i;
        c.obstacle = static_cast<Index>(o);
        c.stiffness = model.stiffness[k];
        c.elastic = model.elastic[k];
        out.push_back(c);
      }
    }
  });
  std::vector<Contact> all;
  for (const auto& part : found) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

std::vector<Contact> detect(const ContactModel& model, const VecX& x, const VecX& v, double h, double t) {
  return find(model, x, &v, h, t);
}

std::vector<Contact> touching(const ContactModel& model, const VecX& x, double t) {
  return find(model, x, nullptr, 0, t);
}

}  // namespace limber
