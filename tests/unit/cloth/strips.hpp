// Strips of cloth over an edge, on meshes that fit the edge, and their steps without any remeshing.
#pragma once

#include <limber/cloth/eol.hpp>

#include <gtest/gtest.h>
#include <functional>

#include <cmath>
#include <vector>

namespace limber::cloth::test {

inline Fabric fabric(double young = 50, double density = 0.05, double bending = 0, double poisson = 0) {
  ElementMaterial m;
  m.model = MaterialModel::kStVenantKirchhoff;
  m.thickness = 1e-3;
  m.young = young / m.thickness;
  m.poisson = poisson;
  m.density = density / m.thickness;
  return fabric_of(m, bending);
}

// Columns of vertices at the material coordinates `u`, `rows` + 1 of them in each; column k is vertices
// k (rows + 1) to k (rows + 1) + rows. `place` is where a material point is in space.
inline Sheet strip(const std::vector<double>& u, double width, int rows,
                   const std::function<Vec3(double, double)>& place) {
  std::vector<Vec3> x;
  std::vector<Vec2> X;
  std::vector<Tri> triangles;
  for (const double a : u)
    for (int r = 0; r <= rows; ++r) {
      X.emplace_back(a, width * r / rows);
      x.push_back(place(a, width * r / rows));
    }
  for (Index k = 0; k + 1 < static_cast<Index>(u.size()); ++k)
    for (Index r = 0; r < rows; ++r) {
      const Index a = k * (rows + 1) + r, b = a + rows + 1;
      if ((k + r) % 2 == 0) {
        triangles.push_back({a, b, b + 1});
        triangles.push_back({a, b + 1, a + 1});
      } else {
        triangles.push_back({a, b, a + 1});
        triangles.push_back({b, b + 1, a + 1});
      }
    }
  return make_sheet(x, X, triangles);
}

inline void set_feature(Sheet& s, int column, int rows) {
  for (Index r = 0; r <= rows; ++r) {
    const Index i = column * (rows + 1) + r;
    s.feature[at(i)] = 0;
    if (r > 0) s.preserved.push_back({i - 1, i});
  }
}

inline ClothBody body_of(const Sheet& s, const Fabric& fabric) {
  ClothBody out;
  out.fabric.assign(s.triangles.size(), fabric);
  out.hinges = find_hinges(s.triangles);
  update_rest(s, out);
  return out;
}

struct Stepping {
  Sheet sheet;
  ClothBody body;
  std::vector<EolVertex> eol;  // its members are those of every step
  ClothTerms terms;
  EolOptions options;
  VecX force;                                // on vertices
  std::vector<std::pair<Index, Vec3>> held;  // vertex, velocity
  std::vector<std::int8_t> active;
  BoundSolver solver{CholeskyOptions{}};
  ClothPattern pattern;
  BoundSolution solution;
  BoundProblem problem;
  std::vector<EolGeometry> geometry;

  void step() {
    update_rest(sheet, body);
    if (!pattern.blocks || !fits(pattern, sheet)) pattern = make_pattern(sheet, body.hinges);
    if (force.size() == 0) force.setZero(3 * sheet.vertices());
    terms.force = &force;
    ClothSystem system;
    assemble(sheet, body, pattern, terms, system);
    problem.A = system.A;
    problem.b = system.b;
    problem.resize(pattern.size());
    const auto around = triangles_around(sheet);
    const SheetBorder border = sheet_border(sheet);
    geometry.clear();
    for (const EolVertex& e : eol)
      geometry.push_back(eol_geometry(sheet, body, around[at(e.vertex)], border, e));
    add_eol_bounds(pattern, eol, geometry, terms.h, options, problem);
    for (const auto& [vertex, velocity] : held)
      for (Index a = 0; a < 3; ++a) {
        problem.bound[at(3 * vertex + a)] = Bound::kHeld;
        problem.value[3 * vertex + a] = velocity[a];
      }
    turn_to_basis(problem);
    solution = solver.solve(problem, active);
    ASSERT_TRUE(solution.ok) << solution.why;
    active = solution.active;
    const VecX q = from_basis(problem, solution.y);
    for (Index i = 0; i < sheet.vertices(); ++i) {
      sheet.v[at(i)] = node(q, i);
      sheet.x[at(i)] += terms.h * sheet.v[at(i)];
      if (const Index e = pattern.extra[at(i)]; e >= 0) {
        sheet.V[at(i)] = node(q, e).head<2>();
        sheet.X[at(i)] += terms.h * sheet.V[at(i)];
      }
    }
  }

  // Reaction of the feature on a vertex in space [N].
  Vec3 reaction(Index vertex) const {
    // y = B^-1 xdot, so that forces are B^-T r.
    const Mat3& B = problem.basis[at(vertex)];
    const Vec3 r = node(solution.reaction, vertex);
    // Solve B^T f = r by Cramer's rule.
    const Vec3 a = B.col(0), b = B.col(1), c = B.col(2);
    const double det = a.dot(cross(b, c));
    return (r[0] * cross(b, c) + r[1] * cross(c, a) + r[2] * cross(a, b)) / det / terms.h;
  }
};

}  // namespace limber::cloth::test
