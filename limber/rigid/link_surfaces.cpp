#include <limber/rigid/link_surfaces.hpp>

#include <limber/core/rotation.hpp>

#include <numbers>

namespace limber::rigid {
namespace {

constexpr int kAround = 20;  // corners of round shapes
constexpr double kPi = std::numbers::pi;

class Builder {
 public:
  LinkSurfaces out;

  void begin(const std::string& name, Index link, Index joint) {
    out.parts.push_back(
        {name, link, joint, static_cast<Index>(out.x.size()), static_cast<Index>(out.triangles.size()), 0});
  }
  void end() { out.parts.back().triangles_end = static_cast<Index>(out.triangles.size()); }

  void add(const Shape& s) {
    pose_ = s.pose;
    switch (s.kind) {
      case ShapeKind::kBox:
        box(s.size);
        break;
      case ShapeKind::kSphere:
        ball(s.radius, 0);
        break;
      case ShapeKind::kCapsule:
        ball(s.radius, s.length);
        break;
      case ShapeKind::kCylinder:
        cylinder(s.radius, s.length);
        break;
      case ShapeKind::kMesh: {
        const Index first = static_cast<Index>(out.x.size());
        for (const Vec3& x : s.mesh->nodes) node(x);
        for (const Tri& t : s.mesh->triangles) triangle(first + t[0], first + t[1], first + t[2]);
        break;
      }
    }
  }

 private:
  Index node(const Vec3& x) {
    out.x.push_back(pose_ * x);
    out.part_of_node.push_back(static_cast<Index>(out.parts.size()) - 1);
    return static_cast<Index>(out.x.size()) - 1;
  }
  void triangle(Index a, Index b, Index c) { out.triangles.push_back({a, b, c}); }

  void box(const Vec3& size) {
    const Index first = static_cast<Index>(out.x.size());
    for (int k = 0; k < 8; ++k)
      node(0.5 * size.cwiseProduct(Vec3((k & 1) ? 1 : -1, (k & 2) ? 1 : -1, (k & 4) ? 1 : -1)));
    static constexpr int kFaces[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4},
                                         {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
    for (const auto& f : kFaces) {
      triangle(first + f[0], first + f[1], first + f[2]);
      triangle(first + f[0], first + f[2], first + f[3]);
    }
  }

  // A ball whose halves are `length` apart: a capsule, unless that is 0.
  void ball(double radius, double length) {
    const int half = kAround / 4;  // rings of each half with its equator
    const int rings = length > 0 ? 2 * half : 2 * half - 1;
    const Index bottom = node(Vec3(0, 0, -0.5 * length - radius));
    const Index first = bottom + 1;
    for (int r = 0; r < rings; ++r) {
      const bool upper = r >= half;
      const double a = 0.5 * kPi * (upper && length > 0 ? r - half : r + 1 - half) / half;
      for (int k = 0; k < kAround; ++k) {
        const double b = 2 * kPi * k / kAround;
        node(Vec3(radius * std::cos(a) * std::cos(b), radius * std::cos(a) * std::sin(b),
                  radius * std::sin(a) + (upper ? 0.5 : -0.5) * length));
      }
    }
    const Index top = node(Vec3(0, 0, 0.5 * length + radius));
    rings_between(first, rings, bottom, top);
  }

  void cylinder(double radius, double length) {
    const Index bottom = node(Vec3(0, 0, -0.5 * length));
    const Index first = bottom + 1;
    for (const double end : {-0.5, 0.5})
      for (int k = 0; k < kAround; ++k) {
        const double b = 2 * kPi * k / kAround;
        node(Vec3(radius * std::cos(b), radius * std::sin(b), end * length));
      }
    const Index top = node(Vec3(0, 0, 0.5 * length));
    rings_between(first, 2, bottom, top);
  }

  void rings_between(Index first, int rings, Index bottom, Index top) {
    const auto ring = [&](int r, int k) { return first + r * kAround + k % kAround; };
    for (int k = 0; k < kAround; ++k) {
      triangle(bottom, ring(0, k + 1), ring(0, k));
      triangle(top, ring(rings - 1, k), ring(rings - 1, k + 1));
      for (int r = 0; r + 1 < rings; ++r) {
        triangle(ring(r, k), ring(r, k + 1), ring(r + 1, k));
        triangle(ring(r, k + 1), ring(r + 1, k + 1), ring(r + 1, k));
      }
    }
  }

  Pose pose_;
};

// A pin along `axis`, a little longer than its bearing so that it can be seen.
Shape pin(const Vec3& centre, const Vec3& axis, const JointFriction& friction, double usual) {
  Shape s;
  s.kind = ShapeKind::kCylinder;
  s.radius = friction.radius > 0 ? friction.radius : usual;
  s.length = 1.25 * (friction.height > 0 ? friction.height : 4 * usual);
  s.pose.p = centre;
  s.pose.R = turn_between<double>(Vec3::UnitZ(), axis).toRotationMatrix();
  return s;
}

}  // namespace

TriMesh shape_surface(const Shape& shape) {
  Builder b;
  b.begin({}, 0, 0);
  b.add(shape);
  TriMesh out;
  out.nodes = std::move(b.out.x);
  out.triangles = std::move(b.out.triangles);
  return out;
}

LinkSurfaces link_surfaces(const Articulation& a) {
  const Mechanism& m = a.mechanism;
  Builder b;
  for (Index i = 0; i < m.size(); ++i) {
    if (m.links[at(i)].shapes.empty()) continue;
    b.begin(m.links[at(i)].name, i, i);
    for (const Shape& s : m.links[at(i)].shapes) b.add(s);
    b.end();
  }
  Motion motion;
  update_motion(m, a.q, VecX::Zero(m.velocities), motion);
  Vec3 low = Vec3::Constant(INFINITY), high = -low;
  for (const LinkMotion& l : motion.links) {
    low = low.cwiseMin(l.com);
    high = high.cwiseMax(l.com);
  }
  // A hundredth of the mechanism where a joint does not say how thick it is.
  const double usual = std::max(1e-3, 0.01 * (m.size() > 1 ? (high - low).maxCoeff() : 1.0));
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    if (j.type != JointType::kRevolute && j.type != JointType::kSpherical && j.type != JointType::kUniversal)
      continue;
    b.begin(j.name, i, i);
    if (j.type == JointType::kRevolute) {
      b.add(pin(Vec3::Zero(), j.axis, j.friction, usual));
    } else {
      Shape ball;
      ball.kind = ShapeKind::kSphere;
      ball.radius = j.friction.radius > 0 ? j.friction.radius : 1.5 * usual;
      b.add(ball);
    }
    b.end();
  }
  for (const Loop& l : m.loops) {
    b.begin(l.name, l.a, -1);
    b.add(pin(l.point_a, l.axis_a, l.friction, usual));
    b.end();
  }
  return std::move(b.out);
}

void place_surfaces(const LinkSurfaces& s, const Motion& motion, VecX& x, VecX& v) {
  x.resize(3 * static_cast<Eigen::Index>(s.x.size()));
  v.resize(x.size());
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    const LinkMotion& l = motion.links[at(s.parts[at(s.part_of_node[i])].link)];
    const Vec3 y = l.pose * s.x[i];
    const auto n = static_cast<Index>(i);
    node(x, n) = y;
    node(v, n) = point_velocity(l.phi, y - l.com);
  }
}

}  // namespace limber::rigid
