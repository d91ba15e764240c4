#include <limber/cloth/system.hpp>

#include <limber/core/parallel.hpp>

#include <algorithm>
#include <cmath>

namespace limber::cloth {
namespace {

Corners3 corners_of(const std::vector<Vec3>& values, const Tri& t) {
  return {values[at(t[0])], values[at(t[1])], values[at(t[2])]};
}
Corners2 corners_of(const std::vector<Vec2>& values, const Tri& t) {
  return {values[at(t[0])], values[at(t[1])], values[at(t[2])]};
}
std::array<Vec3, 4> corners_of(const std::vector<Vec3>& values, const Hinge& k) {
  return {values[at(k.vertex[0])], values[at(k.vertex[1])], values[at(k.vertex[2])], values[at(k.vertex[3])]};
}

bool crease(const Sheet& sheet, const Hinge& k) {
  const std::int64_t feature = sheet.feature[at(k.vertex[0])];
  if (feature < 0 || sheet.feature[at(k.vertex[1])] < 0) return false;
  const std::array<Index, 2> edge{std::min(k.vertex[0], k.vertex[1]), std::max(k.vertex[0], k.vertex[1])};
  return feature == sheet.feature[at(k.vertex[1])] ||
         std::binary_search(sheet.preserved.begin(), sheet.preserved.end(), edge);
}

// Coefficients of the hinges, with lengths between `points`; those with `skip` cost nothing. Flat at rest.
template <class Points, class Skip>
void update_hinges(const Points& points, ClothBody& body, const Skip& skip) {
  body.coefficient.assign(body.hinges.size(), 0.0);
  body.rest_angle.assign(body.hinges.size(), 0.0);
  for (std::size_t k = 0; k < body.hinges.size(); ++k) {
    const Hinge& hinge = body.hinges[k];
    const double beta =
        0.5 * (body.fabric[at(hinge.triangle[0])].bending + body.fabric[at(hinge.triangle[1])].bending);
    if (beta == 0 || skip(hinge)) continue;
    const double area = body.rest[at(hinge.triangle[0])].area + body.rest[at(hinge.triangle[1])].area;
    body.coefficient[k] =
        3 * beta * (points[at(hinge.vertex[1])] - points[at(hinge.vertex[0])]).squaredNorm() / area;
  }
}

}  // namespace

void update_rest(const Sheet& sheet, ClothBody& body) {
  body.rest.resize(sheet.triangles.size());
  for (std::size_t t = 0; t < sheet.triangles.size(); ++t) {
    const Corners2 X = corners_of(sheet.X, sheet.triangles[t]);
    body.rest[t] = rest_triangle(X[0], X[1], X[2]);
  }
  update_hinges(sheet.X, body, [&](const Hinge& hinge) { return crease(sheet, hinge); });
}

void update_rest(const std::vector<Vec3>& rest, const std::vector<Tri>& triangles, ClothBody& body) {
  body.rest.resize(triangles.size());
  for (std::size_t t = 0; t < triangles.size(); ++t) {
    const Corners3 x = corners_of(rest, triangles[t]);
    body.rest[t] = rest_triangle(x[0], x[1], x[2]);
  }
  update_hinges(rest, body, [](const Hinge&) { return false; });
  for (std::size_t k = 0; k < body.hinges.size(); ++k)
    if (body.coefficient[k] > 0) body.rest_angle[k] = hinge_angle(corners_of(rest, body.hinges[k]));
}

ClothPattern make_pattern(const Sheet& sheet, const std::vector<Hinge>& hinges) {
  ClothPattern out;
  out.vertices = sheet.vertices();
  out.extra.assign(sheet.x.size(), -1);
  Index n = out.vertices;
  for (Index i = 0; i < out.vertices; ++i)
    if (sheet.eol(i)) {
      out.extra[at(i)] = n++;
      out.vertex_of.push_back(i);
    }
  // Neighbours of every vertex by edges and hinges, then the same for their second blocks.
  std::vector<std::vector<Index>> columns(at(n));
  const auto add = [&](Index i, Index j) { columns[at(std::min(i, j))].push_back(std::max(i, j)); };
  const auto add_pair = [&](Index i, Index j) {
    const Index ei = out.extra[at(i)], ej = out.extra[at(j)];
    add(i, j);
    if (ei >= 0) add(ei, j);
    if (ej >= 0) add(i, ej);
    if (ei >= 0 && ej >= 0) add(ei, ej);
  };
  for (Index i = 0; i < out.vertices; ++i) add_pair(i, i);
  for (const Tri& t : sheet.triangles)
    for (std::size_t k = 0; k < 3; ++k) add_pair(t[k], t[(k + 1) % 3]);
  for (const Hinge& k : hinges) add_pair(k.vertex[2], k.vertex[3]);
  std::vector<Index> begin{0}, rows;
  for (std::vector<Index>& column : columns) {
    std::sort(column.begin(), column.end());
    column.erase(std::unique(column.begin(), column.end()), column.end());
    rows.insert(rows.end(), column.begin(), column.end());
    begin.push_back(static_cast<Index>(rows.size()));
  }
  out.blocks = std::make_shared<const BlockPattern>(make_block_pattern(std::move(begin), std::move(rows)));
  return out;
}

bool fits(const ClothPattern& pattern, const Sheet& sheet) {
  if (pattern.vertices != sheet.vertices()) return false;
  for (Index i = 0; i < pattern.vertices; ++i)
    if (sheet.eol(i) != (pattern.extra[at(i)] >= 0)) return false;
  return true;
}

namespace {

// The contributions of one triangle.
struct TriangleTerms {
  Mat32 F;
  std::array<std::array<Mat3, 3>, 3> C;  // of A, for x
  Corners3 b;                            // for x
  Corners2 b_X;                          // for X, where a corner is EOL
};

TriangleTerms triangle_terms(const Sheet& sheet, const ClothBody& body, std::size_t t,
                             const ClothTerms& terms) {
  const Tri& tri = sheet.triangles[t];
  const Fabric& fabric = body.fabric[t];
  const RestTriangle& rest = body.rest[t];
  const Corners3 x = corners_of(sheet.x, tri), v = corners_of(sheet.v, tri);
  const Corners2 V = corners_of(sheet.V, tri);
  const double h = terms.h, stiffness = h * h + h * terms.damping_stiffness;
  TriangleTerms out;
  out.F = gradient_of(rest, x);
  MembraneResponse elastic;
  membrane(fabric, rest, x, true, elastic);
  const double mass = fabric.density * rest.area;
  const Corners3 w = corner_velocities(out.F, v, V), p = corner_momenta(mass, w);
  // Force and momentum in space, in which X takes part through -F^T; then what X feels by itself.
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      out.C[i][j] = stiffness * elastic.stiffness[i][j];
      out.C[i][j].diagonal().array() += (1 + h * terms.damping_mass) * mass * mass_share(i, j);
    }
    out.b[i] = p[i] + h * (elastic.force[i] + mass / 3 * terms.gravity);
  }
  if (terms.wind.density > 0) {
    // Drag of a plate, 1/2 rho a |u_n| u_n along the normal, linearised about the velocity of now.
    const Vec3 normal2 = cross(x[1] - x[0], x[2] - x[0]);
    const double area2 = normal2.norm();
    if (area2 > 0) {
      const Vec3 n = normal2 / area2, mean = (w[0] + w[1] + w[2]) / 3;
      const double u = (terms.wind.velocity - mean).dot(n), c = 0.5 * terms.wind.density * 0.5 * area2;
      const double slope = 2 * c * std::abs(u);
      const Vec3 force = (c * std::abs(u) * u + slope * mean.dot(n)) * n / 3;
      for (std::size_t i = 0; i < 3; ++i) {
        out.b[i] += h * force;
        for (std::size_t j = 0; j < 3; ++j) out.C[i][j] += h * slope / 9 * n * n.transpose();
      }
    }
  }
  const bool eol = sheet.eol(tri[0]) || sheet.eol(tri[1]) || sheet.eol(tri[2]);
  for (std::size_t i = 0; i < 3; ++i) {
    out.b_X[i] = -out.F.transpose() * out.b[i];
    if (eol) out.b_X[i] -= h * elastic.energy * rest.gradient[i];  // -A psi grad N_i
  }
  if (eol && terms.inertia_forces) {
    const InertiaForces g = inertia_forces(fabric.density, rest, out.F, v, V);
    for (std::size_t i = 0; i < 3; ++i) {
      out.b[i] += h * g.x[i];
      out.b_X[i] += h * g.X[i];
    }
  }
  return out;
}

// Adds C to block (i, j) of the matrix, of which only the lower triangle is stored.
void add_block(BlockMatrix& A, Index i, Index j, const Mat3& C) {
  if (i >= j) A.block(A.pattern->find(i, j)) += C;
}

}  // namespace

void assemble(const Sheet& sheet, const ClothBody& body, const ClothPattern& pattern, const ClothTerms& terms,
              ClothSystem& out) {
  if (out.A.pattern != pattern.blocks)
    out.A = BlockMatrix(pattern.blocks);
  else
    std::fill(out.A.values.begin(), out.A.values.end(), 0.0);
  out.b.setZero(3 * pattern.size());
  out.q.setZero(3 * pattern.size());
  for (Index i = 0; i < pattern.vertices; ++i) {
    node(out.q, i) = sheet.v[at(i)];
    if (terms.force) node(out.b, i) = terms.h * node(*terms.force, i);
    if (const Index e = pattern.extra[at(i)]; e >= 0) {
      node(out.q, e).head<2>() = sheet.V[at(i)];
      out.A.block(out.A.pattern->find(e, e))(2, 2) = 1;
    }
  }
  std::vector<TriangleTerms> parts(sheet.triangles.size());
  parallel_for(static_cast<std::ptrdiff_t>(parts.size()), 64, [&](std::ptrdiff_t t) {
    parts[static_cast<std::size_t>(t)] = triangle_terms(sheet, body, static_cast<std::size_t>(t), terms);
  });
  for (std::size_t t = 0; t < parts.size(); ++t) {
    const TriangleTerms& part = parts[t];
    const Tri& tri = sheet.triangles[t];
    for (std::size_t i = 0; i < 3; ++i) {
      const Index bi = tri[i], ei = pattern.extra[at(bi)];
      node(out.b, bi) += part.b[i];
      if (ei >= 0) node(out.b, ei).head<2>() += part.b_X[i];
      for (std::size_t j = 0; j < 3; ++j) {
        const Index bj = tri[j], ej = pattern.extra[at(bj)];
        const Mat3& C = part.C[i][j];
        add_block(out.A, bi, bj, C);
        if (ei >= 0) add_block(out.A, ei, bj, with_X_left(C, part.F));
        if (ei >= 0 && ej >= 0) add_block(out.A, ei, ej, with_X_both(C, part.F));
      }
    }
  }
  const double stiffness = terms.h * terms.h + terms.h * terms.damping_stiffness;
  for (std::size_t k = 0; k < body.hinges.size(); ++k) {
    if (body.coefficient[k] == 0) continue;
    const Hinge& h = body.hinges[k];
    const HingeResponse r = hinge(body.coefficient[k], body.rest_angle[k], corners_of(sheet.x, h));
    const Mat32 F = 0.5 * (parts[at(h.triangle[0])].F + parts[at(h.triangle[1])].F);
    // d theta/dq, block by block.
    std::array<Index, 8> block{};
    std::array<Vec3, 8> g;
    std::size_t count = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      block[count] = h.vertex[i];
      g[count++] = r.gradient[i];
      if (const Index e = pattern.extra[at(h.vertex[i])]; e >= 0) {
        block[count] = e;
        g[count].setZero();
        g[count++].head<2>() = -F.transpose() * r.gradient[i];
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      node(out.b, block[i]) -= terms.h * r.moment * g[i];
      for (std::size_t j = 0; j < count; ++j)
        add_block(out.A, block[i], block[j], stiffness * r.stiffness * g[i] * g[j].transpose());
    }
  }
}

ClothMotion measure(const Sheet& sheet, const ClothBody& body, const Vec3& gravity) {
  ClothMotion out;
  for (std::size_t t = 0; t < sheet.triangles.size(); ++t) {
    const Tri& tri = sheet.triangles[t];
    const Corners3 x = corners_of(sheet.x, tri);
    const RestTriangle& rest = body.rest[t];
    const Mat32 F = gradient_of(rest, x);
    const double mass = body.fabric[t].density * rest.area;
    const Corners3 w = corner_velocities(F, corners_of(sheet.v, tri), corners_of(sheet.V, tri)),
                   p = corner_momenta(mass, w);
    out.kinetic += kinetic_energy(w, p);
    out.membrane += membrane_energy(body.fabric[t], rest, x);
    out.gravity -= mass * gravity.dot((x[0] + x[1] + x[2]) / 3);
    out.mass += mass;
    for (std::size_t i = 0; i < 3; ++i) {
      out.momentum += p[i];
      out.angular_momentum += cross(x[i], p[i]);
      out.first_moment += mass / 3 * x[i];
      out.max_speed = std::max(out.max_speed, w[i].norm());
    }
  }
  for (std::size_t k = 0; k < body.hinges.size(); ++k)
    if (body.coefficient[k] > 0)
      out.bending +=
          hinge_energy(body.coefficient[k], body.rest_angle[k], corners_of(sheet.x, body.hinges[k]));
  return out;
}

std::vector<std::vector<Index>> triangles_around(const Sheet& sheet) {
  std::vector<std::vector<Index>> out(sheet.x.size());
  for (std::size_t t = 0; t < sheet.triangles.size(); ++t)
    for (const Index i : sheet.triangles[t]) out[at(i)].push_back(static_cast<Index>(t));
  return out;
}

Mat32 mean_gradient(const Sheet& sheet, const ClothBody& body, const std::vector<std::vector<Index>>& around,
                    Index vertex) {
  Mat32 sum = Mat32::Zero();
  double area = 0;
  for (const Index t : around[at(vertex)]) {
    const RestTriangle& rest = body.rest[at(t)];
    sum += rest.area * gradient_of(rest, corners_of(sheet.x, sheet.triangles[at(t)]));
    area += rest.area;
  }
  return sum / area;
}

}  // namespace limber::cloth
