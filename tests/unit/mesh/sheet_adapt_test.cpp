#include <limber/core/error.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/sheet_adapt.hpp>
#include <limber/mesh/sheet_surface.hpp>
#include <limber/mesh/surface.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace limber {
namespace {

Sheet cloth_square(Index n, double size = 1) {
  return sheet_from_mesh(make_rectangle({size, size}, {n, n}), "square");
}

AdaptOptions even_size(double size) {
  AdaptOptions o;
  o.size_min = o.size_max = size;
  return o;
}

double preserved_length(const Sheet& s) {
  double sum = 0;
  for (const auto& [a, b] : s.preserved) sum += (s.X[a] - s.X[b]).norm();
  return sum;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

std::pair<double, double> edge_range(const Sheet& s) {
  double least = 1e300, most = 0;
  for (const Tri& t : s.triangles)
    for (int k = 0; k < 3; ++k) {
      const double l = (s.X[t[k]] - s.X[t[(k + 1) % 3]]).norm();
      least = std::min(least, l);
      most = std::max(most, l);
    }
  return {least, most};
}

// Material momentum and twice the kinetic energy for unit density (consistent mass, Eq. 2.5).
std::pair<Vec3, double> momentum(const Sheet& s) {
  Vec3 p = Vec3::Zero();
  double T = 0;
  for (const Tri& t : s.triangles) {
    const Mat32 F = deformation_gradient(s, t);
    const double A = 0.5 * material_det(s, t);
    Vec3 sum = Vec3::Zero();
    for (int k = 0; k < 3; ++k) {
      const Vec3 w = material_velocity(s, t, F, k);
      sum += w;
      T += A / 12 * w.squaredNorm();
    }
    p += A / 3 * sum;
    T += A / 12 * sum.squaredNorm();
  }
  return {p, T};
}

// Hundreds of random operations: whatever the order, the sheet stays one.
TEST(SheetEdit, RandomOperationsKeepTheSheet) {
  Sheet s = cloth_square(9);
  s.tag[40] = 7;
  for (Index i = 18; i < 26; ++i) s.preserved.push_back({i, i + 1});  // a row of edges, border to border
  ASSERT_TRUE(sheet_defects(s).empty());
  std::mt19937 random(5);
  SheetEditor e(s);
  int done[4] = {0, 0, 0, 0};
  for (int k = 0; k < 8000; ++k) {
    const auto t = static_cast<Index>(random() % static_cast<unsigned>(e.faces()));
    if (!e.alive_face(t)) continue;
    const Tri tri = e.sheet().triangles[t];
    const auto c = random() % 3;
    const Index a = tri[c], b = tri[(c + 1) % 3];
    const auto what = random() % 10;
    if (what == 0 && e.can_split(a, b)) {
      e.split_edge(a, b, 0.2 + 0.06 * (random() % 10));
      ++done[0];
    } else if (what == 1 && random() % 4 == 0) {
      e.split_face(t, {0.3, 0.25, 0.45});
      ++done[1];
    } else if (what < 5 && e.can_flip(a, b)) {
      e.flip(a, b);
      ++done[2];
    } else if (what >= 5 && e.can_collapse(a, b, random() % 2 == 0)) {
      e.collapse(a, b);
      ++done[3];
    }
  }
  for (const int n : done) EXPECT_GT(n, 20);
  const SheetChange change = std::move(e).finish();
  const Sheet& r = change.sheet;
  EXPECT_EQ(sheet_defects(r), std::vector<std::string>{});
  EXPECT_NEAR(material_area(r), 1, 1e-12);
  EXPECT_EQ(euler_characteristic(r), 1);
  EXPECT_NEAR(preserved_length(r), 1, 1e-12);  // the line is whole and still straight
  ASSERT_EQ(change.origin.size(), r.x.size());
  int tagged = 0;
  for (Index i = 0; i < r.vertices(); ++i) {
    if (change.origin[i] >= 0) {
      EXPECT_EQ(r.X[i], s.X[change.origin[i]]);
      EXPECT_EQ(r.tag[i], s.tag[change.origin[i]]);
    }
    tagged += r.tag[i] == 7;
  }
  EXPECT_EQ(tagged, 1);
}

TEST(SheetEdit, SplitsKeepMomentumAndEnergy) {
  Sheet s = cloth_square(5);
  std::mt19937 random(3);
  const auto number = [&] { return (random() % 2001) / 1000.0 - 1; };
  for (Index i = 0; i < s.vertices(); ++i) {
    s.x[i][2] = 0.1 * number();
    s.v[i] = {number(), number(), number()};
  }
  // Two EOL vertices beside each other on one feature, and moving in the material.
  s.feature[11] = s.feature[12] = 4;
  s.parameter[11] = 0.25;
  s.parameter[12] = 0.5;
  s.V[11] = {0.3, -0.2};
  s.V[12] = {0.1, 0.4};
  s.preserved = {{11, 12}};
  const auto [p, T] = momentum(s);
  SheetEditor faces(s);
  for (Index t = 0; t < s.faces(); ++t) faces.split_face(t, {0.2, 0.5, 0.3});
  const auto [p1, T1] = momentum(std::move(faces).finish().sheet);
  EXPECT_LT((p1 - p).norm(), 1e-14);
  EXPECT_NEAR(T1, T, 1e-14);
  SheetEditor edge(s);
  const Index m = edge.split_edge(11, 12, 0.5);
  const Sheet r = std::move(edge).finish().sheet;
  EXPECT_EQ(r.feature[m], 4);
  EXPECT_EQ(r.parameter[m], 0.375);
  EXPECT_LT((r.V[m] - Vec2(0.2, 0.1)).norm(), 1e-15);
  EXPECT_EQ(r.preserved, (std::vector<std::array<Index, 2>>{{11, m}, {12, m}}));
  const auto [p2, T2] = momentum(r);
  EXPECT_LT((p2 - p).norm(), 1e-14);
  EXPECT_NEAR(T2, T, 1e-14);
}

TEST(SheetEdit, RefusesWhatWouldChangeTheSheet) {
  Sheet s = cloth_square(4);  // 16 vertices, inner ones 5, 6, 9, 10
  s.tag[5] = 1;
  s.preserved = {{9, 10}};
  SheetEditor e(s);
  EXPECT_FALSE(e.can_collapse(0, 1));                     // a corner of the cloth
  EXPECT_FALSE(e.can_collapse(1, 6) && e.is_edge(1, 6));  // from the border inwards
  EXPECT_TRUE(e.can_collapse(1, 2));                      // along the border
  EXPECT_FALSE(e.can_collapse(5, 6));                     // tagged
  EXPECT_FALSE(e.can_collapse(9, 10));                    // the end of a preserved line
  EXPECT_TRUE(e.can_collapse(9, 10, true));
  EXPECT_FALSE(e.can_flip(9, 10));
  EXPECT_FALSE(e.can_flip(0, 1));  // on the border
  EXPECT_TRUE(e.border_corner(0));
  EXPECT_FALSE(e.border_corner(1));
  EXPECT_FALSE(e.border_corner(5));
}

// A flat sheet at rest: all edges about as long as wanted, and a second time changes next to nothing.
TEST(SheetAdapt, FlatSheetHasEvenEdges) {
  const Sheet s = cloth_square(3);
  const AdaptOptions o = even_size(0.06);
  const SheetChange first = adapted(s, o);
  const Sheet& r = first.sheet;
  EXPECT_EQ(sheet_defects(r), std::vector<std::string>{});
  EXPECT_NEAR(material_area(r), 1, 1e-12);
  const auto [least, most] = edge_range(r);
  EXPECT_LE(most, 0.06 * (1 + 1e-12));
  EXPECT_GE(least, 0.06 / 4);
  EXPECT_GT(r.faces(), 500);  // 0.06 everywhere would be 640 equilateral triangles
  EXPECT_LT(r.faces(), 2200);
  const SheetChange again = adapted(r, o);
  EXPECT_EQ(again.splits, 0);
  EXPECT_EQ(again.collapses, 0);
  // And back to a few large ones.
  const SheetChange coarse = adapted(r, even_size(0.7));
  EXPECT_EQ(sheet_defects(coarse.sheet), std::vector<std::string>{});
  EXPECT_LT(coarse.sheet.faces(), 40);
  EXPECT_NEAR(material_area(coarse.sheet), 1, 1e-12);
}

// Rolled around a cylinder: short around it, long along it, as far as aspect_min lets it.
TEST(SheetAdapt, CurvatureGivesTheMetricOfTheCylinder) {
  const double R = 0.2;
  Sheet s = cloth_square(41);
  for (Index i = 0; i < s.vertices(); ++i)
    s.x[i] = {R * std::sin(s.X[i][0] / R), s.X[i][1], R * std::cos(s.X[i][0] / R)};
  AdaptOptions o;
  o.size_min = 0.01;
  o.size_max = 0.5;
  o.refine_compression = 10;  // the chords of a cylinder are shorter than its arcs
  const auto M = vertex_metric(s, o);
  const Index middle = 20 * 41 + 20;
  const double around = 1 / std::sqrt(M[middle](0, 0)), along = 1 / std::sqrt(M[middle](1, 1));
  EXPECT_NEAR(around, 0.3 * R, 0.03 * R);          // refine_angle times the radius
  EXPECT_NEAR(along, around / 0.2, 0.05 * along);  // aspect_min
  const SheetChange change = adapted(s, o);
  EXPECT_EQ(sheet_defects(change.sheet), std::vector<std::string>{});
  EXPECT_LT(change.sheet.faces(), s.faces() / 2);
}

TEST(SheetAdapt, VelocityAndCompressionRefine) {
  const Sheet flat = cloth_square(11);
  AdaptOptions o;
  o.size_min = 0.001;
  o.size_max = 0.5;
  Sheet s = flat;
  for (Index i = 0; i < s.vertices(); ++i) s.v[i] = {0, 0, 20 * s.X[i][0]};  // 20/s
  auto M = vertex_metric(s, o);
  EXPECT_NEAR(M[60](0, 0), std::pow(20 / 0.5, 2), 1e-6);
  EXPECT_NEAR(M[60](1, 1), std::pow(20 / 0.5 * 0.2, 2), 1e-6);
  EXPECT_NEAR(M[60](0, 1), 0, 1e-9);
  // The same material velocity carried by X alone: an EOL vertex moves, the cloth does not.
  s = flat;
  s.V[60] = {3, 0};
  s.v[60] = {3, 0, 0};
  s.feature[60] = 0;
  M = vertex_metric(s, o);
  EXPECT_NEAR(M[60](0, 0), 1 / 0.25, 1e-9);
  // Squeezed by 2 %: e = F^T F - 1 = -0.0396.
  s = flat;
  for (Vec3& x : s.x) x[1] *= 0.98;
  M = vertex_metric(s, o);
  EXPECT_NEAR(M[60](1, 1), 0.0396 / (0.005 * 0.005), 1e-6);
  // Drawn by 2 %: nothing buckles.
  s = flat;
  for (Vec3& x : s.x) x[1] *= 1.02;
  M = vertex_metric(s, o);
  EXPECT_NEAR(M[60](1, 1), 1 / 0.25, 1e-9);
}

// Something that moves, bends and slides, remeshed again and again: it stays a sheet, and gives the same bits
// twice.
TEST(SheetAdapt, ManyRoundsKeepAreaAndPreservedEdges) {
  const auto play = [] {
    Sheet s = cloth_square(9);
    for (Index i = 36; i < 45; ++i) {  // the row y = 0.5 lies on a feature
      s.feature[i] = 2;
      s.parameter[i] = s.X[i][0];
      if (i > 36) s.preserved.push_back({i - 1, i});
    }
    s.tag[0] = 0;
    AdaptOptions o;
    o.size_min = 0.03;
    o.size_max = 0.15;
    std::vector<Index> faces;
    for (int round = 0; round < 30; ++round) {
      for (Index i = 0; i < s.vertices(); ++i)
        s.x[i] = {s.X[i][0], s.X[i][1],
                  0.05 * std::sin(12 * s.X[i][1] + 0.4 * round) * std::cos(7 * s.X[i][0])};
      SheetChange c = adapted(s, o);
      s = std::move(c.sheet);
      EXPECT_EQ(sheet_defects(s), std::vector<std::string>{}) << round;
      EXPECT_NEAR(material_area(s), 1, 1e-12);
      EXPECT_NEAR(preserved_length(s), 1, 1e-12);
      for (const auto& [a, b] : s.preserved)
        for (const Index i : {a, b}) {
          EXPECT_EQ(s.feature[i], 2);
          EXPECT_NEAR(s.parameter[i], s.X[i][0], 1e-13);
        }
      faces.push_back(s.faces());
    }
    EXPECT_GT(*std::max_element(faces.begin(), faces.end()), 300);
    return s;
  };
  const Sheet a = play(), b = play();
  EXPECT_TRUE(same_bits(a.x, b.x) && same_bits(a.X, b.X) && same_bits(a.v, b.v));
  EXPECT_EQ(a.triangles, b.triangles);
  EXPECT_EQ(a.preserved, b.preserved);
}

TEST(SheetAdapt, OptionsAreChecked) {
  const auto message = [](AdaptOptions o) -> std::string {
    try {
      check_options(o, "/method/remesh");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  AdaptOptions o = even_size(0.1);
  EXPECT_EQ(message(o), "");
  o.size_max = 0.05;
  EXPECT_EQ(message(o), "/method/remesh/size_max: 0.05, expected at least size_min");
  o = even_size(-1);
  EXPECT_EQ(message(o), "/method/remesh/size_min: -1, expected a positive number");
  o = even_size(0.1);
  o.aspect_min = 1.5;
  EXPECT_EQ(message(o), "/method/remesh/aspect_min: 1.5, expected between 0 and 1");
}

// Half a cylinder without material coordinates: short edges around it, long ones along it, all vertices on
// its chords.
TEST(SheetSurface, HalfACylinder) {
  const double R = 0.2;
  TriMesh mesh = make_rectangle({M_PI * R, 1}, {33, 51});
  for (Vec3& p : mesh.nodes) p = {-R * std::cos(p[0] / R), p[1], R * std::sin(p[0] / R)};
  mesh.node_sets["some"] = {100, 700};
  const std::vector<Vec3> kept{mesh.nodes[100], mesh.nodes[700]};
  SurfaceAdaptOptions o;
  o.adapt.size_min = 0.01;
  o.adapt.size_max = 0.3;
  SurfaceAdaptReport report;
  const TriMesh out = adapted_surface(mesh, o, "half.obj", &report);
  EXPECT_LT(out.triangles.size(), mesh.triangles.size() / 3);
  EXPECT_GT(report.collapses, 100);
  double chord = 0, along = 0;
  for (const Vec3& p : out.nodes) {
    const double r = std::hypot(p[0], p[2]);
    EXPECT_LT(r, R * (1 + 1e-9));
    EXPECT_GT(r, R * std::cos(M_PI / 64) * 0.999);  // on an edge or triangle of the old surface
  }
  for (const auto& e : surface_edges(out.triangles).edges) {
    const Vec3 d = out.nodes[e.nodes[1]] - out.nodes[e.nodes[0]];
    chord = std::max(chord, std::hypot(d[0], d[2]));
    along = std::max(along, std::abs(d[1]));
  }
  EXPECT_LT(chord, 1.25 * 0.3 * R);  // refine_angle
  EXPECT_GT(along, 2 * chord);
  ASSERT_EQ(out.node_sets.at("some").size(), 2u);
  for (const Index i : out.node_sets.at("some"))
    EXPECT_TRUE(out.nodes[i] == kept[0] || out.nodes[i] == kept[1]);
  double area = 0;
  for (const Tri& t : out.triangles) area += 0.5 * triangle_normal(out.nodes, t).norm();
  EXPECT_NEAR(area, M_PI * R, 0.02 * M_PI * R);
}

// A hemisphere is made finer; what is no disk is refused with a reason.
TEST(SheetSurface, HemisphereAndRefusals) {
  TriMesh ball = surface_mesh(make_sphere(0.5, 0.1)), cap;
  cap.nodes = ball.nodes;
  for (const Tri& t : ball.triangles)
    if ((ball.nodes[t[0]] + ball.nodes[t[1]] + ball.nodes[t[2]])[2] > 0) cap.triangles.push_back(t);
  fix_mesh(cap, TriRole::kSurface);
  SurfaceAdaptOptions o;
  o.adapt.size_min = o.adapt.size_max = 0.05;
  const TriMesh out = adapted_surface(cap, o, "cap");
  EXPECT_GT(out.triangles.size(), 1.5 * cap.triangles.size());
  const SurfaceEdges edges = surface_edges(out.triangles);
  for (const auto& e : edges.edges)
    EXPECT_LE((out.nodes[e.nodes[0]] - out.nodes[e.nodes[1]]).norm(), 1.3 * 0.05);
  EXPECT_TRUE(check_mesh(out, TriRole::kSurface).find(MeshProblemKind::kNonManifoldSurface) == nullptr);
  const auto message = [&](const TriMesh& mesh) -> std::string {
    try {
      adapted_surface(mesh, o, "file");
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(message(ball).find("file: the surface is closed"), std::string::npos) << message(ball);
  TriMesh ring = cap;
  std::erase_if(ring.triangles, [&](const Tri& t) { return (cap.nodes[t[0]])[2] > 0.4; });
  fix_mesh(ring, TriRole::kSurface);
  EXPECT_NE(message(ring).find("expected one part with one border"), std::string::npos) << message(ring);
}

}  // namespace
}  // namespace limber
