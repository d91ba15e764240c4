#include <limber/cloth/contacts.hpp>

#include <limber/core/parallel.hpp>

#include <algorithm>
#include <cmath>

namespace limber::cloth {

Mat3 basis_of(const Vec3& n0, const Vec3& n1, const Vec3& n2) {
  const Vec3 c0 = cross(n1, n2), c1 = cross(n2, n0), c2 = cross(n0, n1);
  const double det = n0.dot(c0);
  Mat3 B;
  B.col(0) = c0 / det;
  B.col(1) = c1 / det;
  B.col(2) = c2 / det;
  return B;
}

void tangents_of(const Vec3& n, Vec3& t1, Vec3& t2) {
  int axis = 0;
  n.cwiseAbs().minCoeff(&axis);
  t1 = cross(n, Vec3::Unit(axis)).normalized();
  t2 = cross(n, t1);
}

std::vector<FaceContact> face_contacts(std::span<const Obstacle> obstacles, const std::vector<Vec3>& x,
                                       const std::vector<Vec3>& v, const std::vector<std::uint8_t>& skip,
                                       double h, double t, const ContactOptions& options) {
  std::vector<FaceContact> out;
  double fastest = 0;
  Box box;
  for (std::size_t i = 0; i < x.size(); ++i) {
    fastest = std::max(fastest, v[i].norm());
    box.add(x[i]);
  }
  for (std::size_t o = 0; o < obstacles.size(); ++o) {
    const Obstacle& obstacle = obstacles[o];
    if (obstacle.shape == ObstacleShape::kWire || obstacle.shape == ObstacleShape::kPoints) continue;
    const Placement now = placement_at(obstacle, t), then = placement_at(obstacle, t + h);
    const Box around = bounds(obstacle, then);
    const double reach = h * fastest + options.reach + options.offset;
    if (((box.lo.array() - reach) > around.hi.array()).any() ||
        ((box.hi.array() + reach) < around.lo.array()).any())
      continue;
    std::vector<FaceContact> found(x.size());
    parallel_for(static_cast<std::ptrdiff_t>(x.size()), 128, [&](std::ptrdiff_t k) {
      const auto i = static_cast<std::size_t>(k);
      if (skip[i]) return;
      const double near = h * v[i].norm() + options.reach + options.offset;
      if (((x[i].array() - near) > around.hi.array()).any() ||
          ((x[i].array() + near) < around.lo.array()).any())
        return;
      SurfacePoint p = closest_point(obstacle, then, x[i]);
      p.distance -= options.offset;
      const Vec3 velocity = (p.x - now.to_world(then.to_local(p.x))) / h;
      // Where it is now and where it would go, seen from the obstacle: near at either end of the step.
      if (p.distance > h * v[i].norm() + options.reach + h * velocity.norm()) return;
      FaceContact& c = found[i];
      c.vertex = static_cast<Index>(i);
      c.obstacle = static_cast<Index>(o);
      c.n = p.n;
      c.gap = p.distance;
      c.bound = std::min(-p.distance / h, std::max(0.0, p.n.dot(velocity)) + options.recovery);
      c.friction = obstacle.friction;
      c.velocity = velocity;
    });
    for (const FaceContact& c : found)
      if (c.vertex >= 0) out.push_back(c);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const FaceContact& a, const FaceContact& b) { return a.vertex < b.vertex; });
  return out;
}

void add_face_bounds(std::span<const FaceContact> all, BoundProblem& problem) {
  // At most three normals that are different enough; of two alike the one that is nearer.
  std::vector<const FaceContact*> kept;
  std::vector<const FaceContact*> order;
  for (const FaceContact& c : all) order.push_back(&c);
  std::stable_sort(order.begin(), order.end(),
                   [](const FaceContact* a, const FaceContact* b) { return a->gap < b->gap; });
  for (const FaceContact* c : order) {
    if (kept.size() == 1 && cross(kept[0]->n, c->n).norm() < 0.05) continue;
    if (kept.size() == 2 && std::abs(cross(kept[0]->n, kept[1]->n).normalized().dot(c->n)) < 0.05) continue;
    if (kept.size() < 3) kept.push_back(c);
  }
  const Index i = kept.front()->vertex;
  Vec3 rows[3];
  FrictionDisc disc;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    rows[k] = kept[k]->n;
    problem.bound[at(3 * i) + k] = Bound::kLower;
    problem.value[3 * i + static_cast<Index>(k)] = kept[k]->bound;
    disc.push[k] = 3 * i + static_cast<Index>(k);
    disc.weight[k] = kept[k]->friction;
  }
  if (kept.size() == 1) {
    tangents_of(rows[0], rows[1], rows[2]);
    disc.slide = {3 * i + 1, 3 * i + 2};
    disc.at = {rows[1].dot(kept[0]->velocity), rows[2].dot(kept[0]->velocity)};
  } else if (kept.size() == 2) {
    rows[2] = cross(rows[0], rows[1]).normalized();
    disc.slide[0] = 3 * i + 2;
    disc.at[0] = rows[2].dot(kept[0]->velocity);
  }
  problem.basis[at(i)] = basis_of(rows[0], rows[1], rows[2]);
  problem.turned[at(i)] = 1;
  const bool rough = disc.weight[0] > 0 || disc.weight[1] > 0;
  if (rough && disc.slide[0] >= 0) problem.friction.push_back(disc);
}

void add_all_face_bounds(const std::vector<FaceContact>& contacts, BoundProblem& problem) {
  for (std::size_t a = 0; a < contacts.size();) {
    std::size_t b = a;
    while (b < contacts.size() && contacts[b].vertex == contacts[a].vertex) ++b;
    add_face_bounds(std::span(contacts).subspan(a, b - a), problem);
    a = b;
  }
}

}  // namespace limber::cloth
