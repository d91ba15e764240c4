#include <limber/cloth/contacts.hpp>
#include <limber/cloth/eol.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace limber::cloth {
namespace {

constexpr double kAlongFeature = 0.7;  // cosine: edges that turn away further do not follow it

Corners3 corners_at(const std::vector<Vec3>& values, const Tri& t) {
  return {values[at(t[0])], values[at(t[1])], values[at(t[2])]};
}

Vec2 turned_left(const Vec2& a) { return {-a[1], a[0]}; }

// A direction in the material as it looks in space, without what it has along the feature, unit.
Vec3 seen(const Mat32& F, const Vec2& direction, const Vec3& tangent) {
  Vec3 u = F * direction;
  u -= tangent.dot(u) * tangent;
  const double length = u.norm();
  return length > 0 ? Vec3(u / length) : Vec3(Vec3::Zero());
}

}  // namespace

EolGeometry eol_geometry(const Sheet& sheet, const ClothBody& body, const std::vector<Index>& around,
                         const SheetBorder& border, const EolVertex& eol) {
  EolGeometry g;
  const Index i = eol.vertex;
  const Vec2 X = sheet.X[at(i)];
  double area = 0;
  Vec3 normal = Vec3::Zero();
  for (const Index t : around) {
    const Tri& tri = sheet.triangles[at(t)];
    const RestTriangle& rest = body.rest[at(t)];
    const Corners3 x = corners_at(sheet.x, tri);
    g.F += rest.area * gradient_of(rest, x);
    normal += rest.area * cross(x[1] - x[0], x[2] - x[0]).stableNormalized();
    area += rest.area;
  }
  g.F /= area;
  const double normal_length = normal.norm();
  if (normal_length > 0) normal /= normal_length;

  const bool on_line = eol.kind == EolKind::kEdge || eol.kind == EolKind::kWire;
  Vec2 crease = Vec2::Zero();
  if (on_line) {
    // The mean of the edges that lie on the feature, each pointing where the feature does.
    for (const auto& edge : sheet.preserved) {
      if (edge[0] != i && edge[1] != i) continue;
      const Index other = edge[0] == i ? edge[1] : edge[0];
      const Vec2 d = (sheet.X[at(other)] - X).normalized();
      crease += (sheet.x[at(other)] - sheet.x[at(i)]).dot(eol.tangent) < 0 ? Vec2(-d) : d;
    }
    // No edge of it yet, or short ones that turn away from the feature (three vertices of it in one
    // triangle): as the material looks along the feature there.
    const Vec3 seen_crease = g.F * crease;
    if (crease.norm() < 1e-6 || std::abs(eol.tangent.dot(seen_crease)) < kAlongFeature * seen_crease.norm()) {
      const Vec2 pulled_back = g.F.transpose() * eol.tangent;
      if (pulled_back.norm() > 1e-6) crease = pulled_back;
    }
    crease.normalize();
  }
  if (border.on(i)) {
    // Normal to the border, so that the material stays inside it.
    const Vec2 run = (sheet.X[at(border.after[at(i)])] - sheet.X[at(border.before[at(i)])]).normalized();
    g.along = turned_left(run);
    g.across = run;
  } else if (on_line) {
    g.along = crease;
    g.across = turned_left(crease);
  }

  // The area of a triangle changes by the factor 1 + s sum grad N . across over its EOL corners.
  g.room[0] = g.room[1] = std::numeric_limits<double>::infinity();
  for (const Index t : around) {
    const Tri& tri = sheet.triangles[at(t)];
    double rate = 0, steepest = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      if (!sheet.eol(tri[k])) continue;
      rate += body.rest[at(t)].gradient[k].dot(g.across);
      steepest = std::max(steepest, body.rest[at(t)].gradient[k].norm());
    }
    if (g.along.isZero(0)) {  // anywhere
      for (double& room : g.room) room = std::min(room, 1 / steepest);
    } else if (rate != 0) {
      double& room = g.room[rate < 0 ? 1 : 0];
      room = std::min(room, 1 / std::abs(rate));
    }
  }

  // Both sides of the vertex as the material runs across: of the feature's line, or where it runs now.
  Vec2 across = turned_left(crease);
  if (!on_line)
    across = sheet.V[at(i)].norm() > 1e-9 ? Vec2(sheet.V[at(i)].normalized()) : Vec2(Vec2::UnitX());
  const Vec3 axis = on_line ? eol.tangent : Vec3(Vec3::Zero());
  Mat32 front = Mat32::Zero(), back = Mat32::Zero();
  double front_area = 0, back_area = 0;
  for (const Index t : around) {
    const Tri& tri = sheet.triangles[at(t)];
    const RestTriangle& rest = body.rest[at(t)];
    const Vec2 middle = (sheet.X[at(tri[0])] + sheet.X[at(tri[1])] + sheet.X[at(tri[2])]) / 3 - X;
    const Mat32 F = gradient_of(rest, corners_at(sheet.x, tri));
    if (across.dot(middle) > 0)
      front += rest.area * F, front_area += rest.area;
    else
      back += rest.area * F, back_area += rest.area;
  }
  g.out = normal;
  if (front_area > 0 && back_area > 0) {
    const Vec3 ahead = seen(front, across, axis), behind = seen(back, -across, axis);
    g.turn = std::numbers::pi - std::atan2(cross(ahead, behind).norm(), ahead.dot(behind));
    const Vec3 inwards = ahead + behind;
    if (inwards.norm() > 1e-3) g.out = -inwards.normalized();
  }
  // The outer side is where the feature points to; cloth that bends the other way does not lie on it.
  Vec3 side = eol.normal[0];
  if (eol.kind == EolKind::kEdge) side += eol.normal[1];
  if (eol.kind == EolKind::kCorner) side += eol.normal[1] + eol.normal[2];
  if (side.dot(g.out) < 0) g.out = g.turn < 1e-2 ? Vec3(-g.out) : Vec3(side.normalized());
  return g;
}

double capstan_factor(double mu, double turn) {
  if (turn < 1e-6) return mu;  // the limit of a small angle
  return std::tanh(0.5 * mu * turn) / std::sin(0.5 * turn);
}

void add_eol_bounds(const ClothPattern& pattern, std::span<const EolVertex> eol,
                    std::span<const EolGeometry> geometry, double h, const EolOptions& options,
                    BoundProblem& problem) {
  for (std::size_t k = 0; k < eol.size(); ++k) {
    const EolVertex& vertex = eol[k];
    const EolGeometry& g = geometry[k];
    const Index i = vertex.vertex, e = pattern.extra[at(i)];
    // Where the cloth is flat, motion in space and in the material are one and the same: hold it in space.
    auto D = problem.A.block(problem.A.pattern->col_begin[at(i)]);
    for (int a = 0; a < 3; ++a) {
      const double share = options.flat * D(a, a);
      D(a, a) += share;
      problem.b[3 * i + a] += share * vertex.velocity[a];
    }
    Vec3 rows[3];
    Bound kind[3] = {Bound::kFree, Bound::kFree, Bound::kFree};
    FrictionDisc disc;
    // Where the cloth touches it, it stays: what would move it sideways moves the material instead. It may
    // leave along the bisector, where nothing pulls it back.
    kind[0] = Bound::kLower;
    kind[1] = Bound::kHeld;
    rows[0] = g.out;
    if (vertex.kind == EolKind::kEdge || vertex.kind == EolKind::kWire) {
      rows[0] -= vertex.tangent.dot(rows[0]) * vertex.tangent;
      if (rows[0].norm() < 1e-6) tangents_of(vertex.tangent, rows[0], rows[1]);
      rows[0].normalize();
      rows[1] = cross(vertex.tangent, rows[0]);
      rows[2] = vertex.tangent;
    } else {
      tangents_of(rows[0], rows[1], rows[2]);
      kind[2] = Bound::kHeld;
    }
    const double factor = options.capstan ? capstan_factor(vertex.friction, g.turn) : 0;
    for (int a = 0; a < 3; ++a) {
      const Index d = 3 * i + a;
      if (problem.bound[at(d)] == Bound::kHeld && !problem.turned[at(i)]) continue;
      problem.bound[at(d)] = kind[a];
      problem.value[d] = rows[a].dot(vertex.velocity);
      if (kind[a] == Bound::kLower) {
        disc.push[static_cast<std::size_t>(a)] = d;
        disc.weight[static_cast<std::size_t>(a)] = factor;
      }
    }
    problem.basis[at(i)] = basis_of(rows[0], rows[1], rows[2]);
    problem.turned[at(i)] = 1;

    // In the material.
    const bool line = !g.along.isZero(0);
    Mat3 B = Mat3::Identity();
    if (line) {
      B.topLeftCorner<2, 2>().col(0) = g.along;
      B.topLeftCorner<2, 2>().col(1) = g.across;
      problem.bound[at(3 * e)] = Bound::kHeld;
    }
    problem.basis[at(e)] = B;
    problem.turned[at(e)] = 1;
    problem.bound[at(3 * e + 2)] = Bound::kHeld;
    for (int a = line ? 1 : 0; a < 2 && options.limit > 0; ++a) {
      const double back = std::min(g.room[0], options.most), ahead = std::min(g.room[1], options.most);
      problem.bound[at(3 * e + a)] = Bound::kRange;
      problem.value[3 * e + a] = 0.5 * options.limit * (ahead - back) / h;
      problem.range[3 * e + a] = 0.5 * options.limit * (ahead + back) / h;
    }
    if (factor > 0) {
      if (line) {
        disc.slide[0] = 3 * e + 1;
        const bool along = vertex.kind == EolKind::kEdge || vertex.kind == EolKind::kWire;
        if (along) disc.slide[1] = 3 * i + 2, disc.at[1] = rows[2].dot(vertex.velocity);
      } else {
        disc.slide = {3 * e, 3 * e + 1};
      }
      problem.friction.push_back(disc);
    }
  }
}

void split_velocity(const EolGeometry& g, const Vec3& w, Vec3& v, Vec2& V) {
  if (!g.along.isZero(0)) {
    const Vec3 run = g.F * g.across;
    const double length2 = run.squaredNorm();
    V = length2 > 0 ? Vec2(-run.dot(w) / length2 * g.across) : Vec2(Vec2::Zero());
  } else {
    const Mat2 C = g.F.transpose() * g.F;
    const Vec2 r = -g.F.transpose() * w;
    const double det = C(0, 0) * C(1, 1) - C(0, 1) * C(1, 0);
    V = det > 1e-12 * C.squaredNorm()
            ? Vec2((C(1, 1) * r[0] - C(0, 1) * r[1]) / det, (C(0, 0) * r[1] - C(1, 0) * r[0]) / det)
            : Vec2(Vec2::Zero());
  }
  v = w + g.F * V;
}

Vec3 joined_velocity(const Sheet& sheet, const ClothBody& body, const std::vector<Index>& around,
                     Index vertex) {
  Vec3 sum = Vec3::Zero();
  double mass = 0;
  for (const Index t : around) {
    const RestTriangle& rest = body.rest[at(t)];
    const double m = body.fabric[at(t)].density * rest.area;
    sum += m * (sheet.v[at(vertex)] -
                gradient_of(rest, corners_at(sheet.x, sheet.triangles[at(t)])) * sheet.V[at(vertex)]);
    mass += m;
  }
  return sum / mass;
}

void filter_friction(const ClothPattern& pattern, std::span<const EolVertex> eol,
                     std::span<const EolGeometry> geometry, const VecX& lumped_mass, const VecX& reaction,
                     VecX& q) {
  for (std::size_t k = 0; k < eol.size(); ++k) {
    const EolVertex& vertex = eol[k];
    const EolGeometry& g = geometry[k];
    if (vertex.friction == 0) continue;
    const Index i = vertex.vertex, e = pattern.extra[at(i)];
    const Vec3 v = node(q, i);
    const Vec2 V = node(q, e).head<2>();
    const Vec3 w = v - g.F * V - vertex.velocity;
    const double push = std::max(0.0, reaction[3 * i]);
    const double slip = (w - g.out.dot(w) * g.out).norm();
    if (slip == 0 || push == 0) continue;
    const double keep = std::max(0.0, 1 - vertex.friction * push / (lumped_mass[i] * slip));
    node(q, e).head<2>() = keep * V;
    if (vertex.kind == EolKind::kEdge || vertex.kind == EolKind::kWire) {
      const double along = vertex.tangent.dot(v - vertex.velocity);
      node(q, i) += (keep - 1) * along * vertex.tangent;
    }
  }
}

}  // namespace limber::cloth
