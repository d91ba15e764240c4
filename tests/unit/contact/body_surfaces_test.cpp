// Searches for contact against all nodes, tetrahedra and faces looked at one by one.
#include <limber/contact/body_surfaces.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/surface_tree.hpp>

#include <Eigen/LU>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

namespace limber {
namespace {

using Found = std::set<std::pair<Index, Index>>;

// A bar, and a second one beside it.
fem::ElementInput two_bars() {
  fem::ElementInput mesh;
  for (const Vec3& corner : {Vec3(0, 0, 0), Vec3(0.1, 0.05, 0.11)}) {
    const TetMesh bar = make_box({1.2, 0.1, 0.1}, {37, 4, 4});
    const auto first = static_cast<Index>(mesh.rest.size());
    for (const Vec3& p : bar.nodes) mesh.rest.push_back(p + corner);
    for (Tet t : bar.tets) {
      for (Index& i : t) i += first;
      mesh.elements.push_back(t);
      mesh.material.emplace_back();
    }
  }
  return mesh;
}

// Bent to more than a whole turn, so that ends go into each other, and crumpled.
VecX bent(const fem::ElementInput& mesh, double turns, double crumple) {
  VecX x(3 * static_cast<Eigen::Index>(mesh.rest.size()));
  for (std::size_t i = 0; i < mesh.rest.size(); ++i) {
    const Vec3& X = mesh.rest[i];
    const double radius = 1.2 / (2 * 3.14159 * turns), angle = X.x() / radius;
    const Vec3 wrinkles(std::sin(91 * X.y() + 3), std::sin(87 * X.z() + 1), std::sin(83 * X.x()));
    node(x, static_cast<Index>(i)) =
        Vec3((radius + X.y()) * std::sin(angle), (radius + X.y()) * std::cos(angle), X.z() + 0.01 * angle) +
        crumple * wrinkles;
  }
  return x;
}

bool inside_tet(const fem::ElementInput& mesh, const Tet& t, const VecX& x, const Vec3& p, Vec3& rest) {
  Mat3 D, R;
  for (int k = 0; k < 3; ++k) {
    D.col(k) = node(x, t[static_cast<std::size_t>(k + 1)]) - node(x, t[0]);
    R.col(k) = mesh.rest[at(t[static_cast<std::size_t>(k + 1)])] - mesh.rest[at(t[0])];
  }
  if (!(D.determinant() > 0)) return false;
  const Vec3 b = D.inverse() * (p - node(x, t[0]));
  rest = mesh.rest[at(t[0])] + R * b;
  return std::min({b[0], b[1], b[2], 1 - b.sum()}) > 1e-9;
}

TEST(BodySurfaces, InsideIsWhatAllTetrahedraSay) {
  const fem::ElementInput mesh = two_bars();
  BodySurfaces surfaces(mesh);
  for (const auto& [turns, crumple] : {std::pair(0.9, 0.0), {1.1, 0.0}, {1.1, 0.004}}) {
    const VecX x = bent(mesh, turns, crumple);
    Found found, expected;
    for (const BodySurfaces::Inside& i : surfaces.inside(x)) found.insert({i.site, i.piece});
    for (Index k = 0; k < static_cast<Index>(surfaces.sites().size()); ++k) {
      const Index v = surfaces.sites()[at(k)];
      for (const Tet& t : mesh.elements) {
        Vec3 rest;
        if (std::find(t.begin(), t.end(), v) != t.end() || !inside_tet(mesh, t, x, node(x, v), rest))
          continue;
        // The face that is nearest at rest; own ones that are near are none.
        const Index piece = t[0] < static_cast<Index>(mesh.rest.size()) / 2 ? 0 : 1;
        double least = 1;
        const Tri* nearest = nullptr;
        for (const Tri& f : surfaces.faces()) {
          if ((f[0] < static_cast<Index>(mesh.rest.size()) / 2 ? 0 : 1) != piece) continue;
          const double d = (rest - nearest_on_triangle(rest, mesh.rest[at(f[0])], mesh.rest[at(f[1])],
                                                       mesh.rest[at(f[2])]))
                               .norm();
          if (d < least) {
            least = d;
            nearest = &f;
          }
        }
        if (surfaces.piece_of_site(k) == piece &&
            std::any_of(nearest->begin(), nearest->end(), [&](Index i) { return surfaces.joined(i, v, 2); }))
          continue;
        expected.insert({k, piece});
      }
    }
    EXPECT_EQ(found, expected) << turns << " " << crumple;
    EXPECT_EQ(found.size() > 20, turns > 1) << found.size();
  }
}

TEST(BodySurfaces, NearestIsWhatAllFacesSay) {
  const fem::ElementInput mesh = two_bars();
  BodySurfaces surfaces(mesh);
  const VecX x0 = bent(mesh, 0.97, 0.002), x1 = bent(mesh, 1.0, 0.004);
  const double margin = 0.4 * surfaces.edge();
  const auto corners = [&](const Tri& f) {
    return std::array<Vec3, 3>{node(x1, f[0]), node(x1, f[1]), node(x1, f[2])};
  };
  std::vector<Vec3> normal(mesh.rest.size(), Vec3::Zero());
  for (const Tri& f : surfaces.faces())
    for (const Index i : f)
      normal[at(i)] += cross(corners(f)[1] - corners(f)[0], corners(f)[2] - corners(f)[0]);
  // With nobody known to be inside, own faces count that are far at rest and look the other way.
  Found found, expected;
  for (const BodySurfaces::Near& n : surfaces.sweep(x0, x1, margin, {}))
    if (n.nearest >= 0) found.insert({n.site, n.piece});
  for (Index k = 0; k < static_cast<Index>(surfaces.sites().size()); ++k) {
    const Index v = surfaces.sites()[at(k)];
    for (const Tri& f : surfaces.faces()) {
      const Index piece = f[0] < static_cast<Index>(mesh.rest.size()) / 2 ? 0 : 1;
      const auto [a, b, c] = corners(f);
      const Vec3 n = cross(b - a, c - a);
      if (surfaces.piece_of_site(k) == piece &&
          (!surfaces.far_at_rest(v, f) || n.dot(normal[at(v)]) > -0.3 * n.norm() * normal[at(v)].norm()))
        continue;
      if ((nearest_on_triangle(node(x1, v), a, b, c) - node(x1, v)).norm() < margin)
        expected.insert({k, piece});
    }
  }
  EXPECT_EQ(found, expected);
  Index own = 0;
  for (const auto& [site, piece] : found) own += surfaces.piece_of_site(site) == piece;
  EXPECT_GT(own, 20);
}

}  // namespace
}  // namespace limber
