#include <limber/view/shapes.hpp>

#include <limber/core/rotation.hpp>

#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <unordered_map>

namespace limber::view {
namespace {

const float kCreaseCosine = std::cos(48 * std::numbers::pi_v<float> / 180);

Vec3f point(const std::vector<float>& x, Index i) {
  return Eigen::Map<const Vec3f>(&x[3 * static_cast<std::size_t>(i)]);
}

// A patch given by a function of two parameters, with normals from its neighbours in the grid.
void add_grid(Triangles& out, int nu, int nv, const std::function<Vec3f(double, double)>& position,
              const std::function<Vec3f(double, double)>& normal, std::uint8_t paint) {
  for (int i = 0; i < nu; ++i)
    for (int j = 0; j < nv; ++j) {
      std::array<Vec3f, 4> p, n;
      for (int k = 0; k < 4; ++k) {
        const double u = double(i + (k == 1 || k == 2)) / nu, v = double(j + (k >= 2)) / nv;
        p[static_cast<std::size_t>(k)] = position(u, v);
        n[static_cast<std::size_t>(k)] = normal(u, v);
      }
      out.add({p[0], p[1], p[2]}, {n[0], n[1], n[2]}, {0, 0, 0}, paint);
      out.add({p[0], p[2], p[3]}, {n[0], n[2], n[3]}, {0, 0, 0}, paint);
    }
}

}  // namespace

SmoothGroups smooth_groups(const std::vector<float>& rest, const std::vector<Tri>& triangles) {
  std::vector<Index> parent(3 * triangles.size());
  std::iota(parent.begin(), parent.end(), 0);
  auto find = [&](Index i) {
    while (parent[static_cast<std::size_t>(i)] != i)
      i = parent[static_cast<std::size_t>(i)] =
          parent[static_cast<std::size_t>(parent[static_cast<std::size_t>(i)])];
    return i;
  };
  std::vector<Vec3f> normal;
  std::unordered_map<std::uint64_t, Index> edges;  // directed edge -> corner at its start
  auto key = [](Index a, Index b) {
    return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b);
  };
  for (std::size_t t = 0; t < triangles.size(); ++t) {
    const Tri& n = triangles[t];
    const Vec3f a = point(rest, n[0]);
    normal.push_back((point(rest, n[1]) - a).cross(point(rest, n[2]) - a).normalized());
    for (std::size_t c = 0; c < 3; ++c) edges[key(n[c], n[(c + 1) % 3])] = static_cast<Index>(3 * t + c);
  }
  for (std::size_t t = 0; t < triangles.size(); ++t)
    for (std::size_t c = 0; c < 3; ++c) {
      const Tri& n = triangles[t];
      const auto other =
          edges.find(key(n[(c + 1) % 3], n[c]));  // starts at the next corner, ends at this one
      if (other == edges.end()) continue;
      const Index o = other->second, u = o / 3;
      if (normal[t].dot(normal[static_cast<std::size_t>(u)]) < kCreaseCosine) continue;
      parent[static_cast<std::size_t>(find(static_cast<Index>(3 * t + (c + 1) % 3)))] = find(o);
      parent[static_cast<std::size_t>(find(static_cast<Index>(3 * t + c)))] = find(3 * u + (o % 3 + 1) % 3);
    }
  SmoothGroups out;
  std::unordered_map<Index, Index> number;
  for (Index c = 0; c < static_cast<Index>(parent.size()); ++c)
    out.of_corner.push_back(number.try_emplace(find(c), static_cast<Index>(number.size())).first->second);
  out.count = static_cast<Index>(number.size());
  return out;
}

std::vector<Vec3f> group_normals(const SmoothGroups& groups, const std::vector<Tri>& triangles,
                                 const std::vector<Vec3f>& x) {
  std::vector<Vec3f> out(static_cast<std::size_t>(groups.count), Vec3f::Zero());
  for (std::size_t t = 0; t < triangles.size(); ++t) {
    const Vec3f a = x[static_cast<std::size_t>(triangles[t][0])];
    const Vec3f area = (x[static_cast<std::size_t>(triangles[t][1])] - a)
                           .cross(x[static_cast<std::size_t>(triangles[t][2])] - a);
    for (std::size_t c = 0; c < 3; ++c) out[static_cast<std::size_t>(groups.of_corner[3 * t + c])] += area;
  }
  for (Vec3f& n : out)
    if (n.squaredNorm() > 0) n.normalize();
  return out;
}

void add_clipped(Triangles& out, const std::array<Vec3f, 3>& p, const std::array<Vec3f, 3>& n,
                 const std::array<float, 3>& v, std::uint8_t paint, const CutPlane* cut) {
  if (!cut) {
    out.add(p, n, v, paint);
    return;
  }
  std::array<float, 3> side;
  for (std::size_t c = 0; c < 3; ++c) side[c] = cut->side(p[c]);
  struct Corner {
    Vec3f p, n;
    float v;
  };
  std::vector<Corner> kept;
  for (std::size_t c = 0; c < 3; ++c) {
    const std::size_t d = (c + 1) % 3;
    if (side[c] <= 0) kept.push_back({p[c], n[c], v[c]});
    if ((side[c] <= 0) != (side[d] <= 0)) {
      const float s = side[c] / (side[c] - side[d]);
      kept.push_back({p[c] + s * (p[d] - p[c]), n[c] + s * (n[d] - n[c]), v[c] + s * (v[d] - v[c])});
    }
  }
  for (std::size_t c = 2; c < kept.size(); ++c) {
    // The diagonal of a quadrilateral is not an edge of the mesh.
    std::uint8_t hidden = 0;
    if (kept.size() == 4) hidden = c == 2 ? 2 : 4;
    out.add({kept[0].p, kept[c - 1].p, kept[c].p}, {kept[0].n, kept[c - 1].n, kept[c].n},
            {kept[0].v, kept[c - 1].v, kept[c].v}, paint, hidden);
  }
}

void add_cap(Triangles& out, const std::vector<Tet>& elements, const std::vector<Vec3f>& x,
             const std::function<float(std::size_t, Index)>& value, std::uint8_t paint, const CutPlane& cut) {
  std::vector<float> side(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) side[i] = cut.side(x[i]);
  const std::array<Vec3f, 3> normal{cut.normal, cut.normal, cut.normal};
  for (std::size_t e = 0; e < elements.size(); ++e) {
    std::vector<Index> in, beyond;
    for (Index i : elements[e])
      if (i >= 0) (side[static_cast<std::size_t>(i)] <= 0 ? in : beyond).push_back(i);
    if (in.empty() || beyond.empty() || in.size() + beyond.size() < 4) continue;
    std::array<Vec3f, 4> p;
    std::array<float, 4> v{};
    std::size_t count = 0;
    auto emit = [&](Index a, Index b) {
      const float sa = side[static_cast<std::size_t>(a)], sb = side[static_cast<std::size_t>(b)],
                  s = sa / (sa - sb);
      p[count] = x[static_cast<std::size_t>(a)] +
                 s * (x[static_cast<std::size_t>(b)] - x[static_cast<std::size_t>(a)]);
      v[count++] = value(e, a) + s * (value(e, b) - value(e, a));
    };
    if (in.size() == 2) {
      emit(in[0], beyond[0]);
      emit(in[0], beyond[1]);
      emit(in[1], beyond[1]);
      emit(in[1], beyond[0]);
      out.add({p[0], p[1], p[2]}, normal, {v[0], v[1], v[2]}, paint, 2);
      out.add({p[0], p[2], p[3]}, normal, {v[0], v[2], v[3]}, paint, 4);
    } else {
      const Index one = in.size() == 1 ? in[0] : beyond[0];
      for (Index i : in.size() == 1 ? beyond : in) emit(one, i);
      out.add({p[0], p[1], p[2]}, normal, {v[0], v[1], v[2]}, paint);
    }
  }
}

void add_sphere(Triangles& out, const Vec3f& center, float radius, int detail, std::uint8_t paint) {
  auto normal = [](double u, double v) {
    const double a = 2 * std::numbers::pi * u, b = std::numbers::pi * v;
    return Vec3f(static_cast<float>(std::sin(b) * std::cos(a)), static_cast<float>(std::cos(b)),
                 static_cast<float>(std::sin(b) * std::sin(a)));
  };
  add_grid(
      out, 2 * detail, detail, [&](double u, double v) { return Vec3f(center + radius * normal(u, v)); },
      normal, paint);
}

void add_octahedron(Triangles& out, const Vec3f& center, float radius, std::uint8_t paint) {
  for (int k = 0; k < 8; ++k) {
    const Vec3f a(k & 1 ? 1 : -1, 0, 0), b(0, k & 2 ? 1 : -1, 0), c(0, 0, k & 4 ? 1 : -1);
    const Vec3f n = (a + b + c).normalized();
    out.add({center + radius * a, center + radius * b, center + radius * c}, {n, n, n}, {0, 0, 0}, paint);
  }
}

void add_stick(Triangles& out, const Vec3f& a, const Vec3f& b, float radius, std::uint8_t paint) {
  const Vec3f axis = b - a;
  if (!(axis.norm() > 0)) return;
  const Vec3f u = axis.unitOrthogonal(), v = axis.normalized().cross(u);
  constexpr int kSides = 3;
  std::array<Vec3f, kSides> n;
  for (int k = 0; k < kSides; ++k) {
    const float angle = 2 * std::numbers::pi_v<float> * static_cast<float>(k) / kSides;
    n[static_cast<std::size_t>(k)] = std::cos(angle) * u + std::sin(angle) * v;
  }
  for (std::size_t k = 0; k < kSides; ++k) {
    const Vec3f &p = n[k], &q = n[(k + 1) % kSides];
    out.add({a + radius * p, b + radius * p, b + radius * q}, {p, p, q}, {0, 0, 0}, paint);
    out.add({a + radius * p, b + radius * q, a + radius * q}, {p, q, q}, {0, 0, 0}, paint);
  }
}

Vec3f posed_direction(const ReplayPose& pose, const Vec3f& d) {
  const Eigen::Quaternionf q(pose.rotation[3], pose.rotation[0], pose.rotation[1], pose.rotation[2]);
  return q.normalized() * d;
}

Vec3f posed(const ReplayPose& pose, const Vec3f& p) {
  return pose.scale * posed_direction(pose, p) + Eigen::Map<const Vec3f>(pose.translation.data());
}

void add_obstacle(Triangles& out, const ReplayObstacle& o, const ReplayPose& pose,
                  const std::function<Vec3f(const Vec3f&)>& to_stage, std::uint8_t paint) {
  Triangles local;
  const Vec3f at = o.point.cast<float>();
  const float r = static_cast<float>(o.radius);
  if (o.shape == "sphere") {
    add_sphere(local, at, r, 32, 0);
  } else if (o.shape == "box") {
    for (int axis = 0; axis < 3; ++axis)
      for (float sign : {-1.0f, 1.0f}) {
        const int u = (axis + 1) % 3, v = (axis + 2) % 3;
        Vec3f n = Vec3f::Zero();
        n[axis] = sign;
        auto corner = [&](double a, double b) {
          Vec3f p;
          p[axis] = sign;
          p[u] = static_cast<float>(2 * a - 1);
          p[v] = static_cast<float>(2 * b - 1);
          return Vec3f(at + 0.5f * p.cwiseProduct(o.size.cast<float>()));
        };
        add_grid(
            local, 1, 1, corner, [&](double, double) { return n; }, 0);
      }
  } else if (o.shape == "capsule") {
    const Vec3f axis = o.end.cast<float>() - at;
    const Eigen::Quaternionf turn =
        turn_between<float>(Vec3f::UnitY(), axis.norm() > 0 ? axis : Vec3f::UnitY());
    auto normal = [&](double u, double v) {
      const double a = 2 * std::numbers::pi * u, b = std::numbers::pi * v;
      return Vec3f(turn * Vec3f(static_cast<float>(std::sin(b) * std::cos(a)),
                                static_cast<float>(-std::cos(b)),
                                static_cast<float>(std::sin(b) * std::sin(a))));
    };
    // The lower half of a ball belongs to one end, the upper half to the other; the middle strip is the side.
    add_grid(
        local, 48, 33,
        [&](double u, double v) { return Vec3f((v < 0.5 ? at : Vec3f(at + axis)) + r * normal(u, v)); },
        normal, 0);
  } else if (o.shape == "mesh") {
    std::vector<float> rest;
    std::vector<Vec3f> x;
    for (const Vec3& p : o.nodes) {
      x.push_back(p.cast<float>());
      rest.insert(rest.end(), x.back().data(), x.back().data() + 3);
    }
    const SmoothGroups groups = smooth_groups(rest, o.triangles);
    const std::vector<Vec3f> normal = group_normals(groups, o.triangles, x);
    for (std::size_t t = 0; t < o.triangles.size(); ++t) {
      std::array<Vec3f, 3> p, n;
      for (std::size_t c = 0; c < 3; ++c) {
        p[c] = x[static_cast<std::size_t>(o.triangles[t][c])];
        n[c] = normal[static_cast<std::size_t>(groups.of_corner[3 * t + c])];
      }
      local.add(p, n, {0, 0, 0}, 0);
    }
  }
  const Vec3f zero = to_stage(Vec3f::Zero());
  for (std::size_t t = 0; t < local.size(); ++t) {
    std::array<Vec3f, 3> p, n;
    for (std::size_t c = 0; c < 3; ++c) {
      p[c] = to_stage(posed(pose, local.position[3 * t + c]));
      n[c] = (to_stage(posed_direction(pose, local.normal[3 * t + c])) - zero).normalized();
    }
    out.add(p, n, {0, 0, 0}, paint);
  }
}

}  // namespace limber::view
