// Cloth on an edge, step by step on meshes that fit it.
#include "strips.hpp"

namespace limber::cloth {
namespace {

using test::fabric;
using test::Stepping;
using test::strip;

constexpr double kPi = 3.14159265358979;

// An edge along y at the origin; the cloth comes along the face with the normal z and turns down by `turn`.
EolVertex on_edge(Index vertex, double turn, double friction = 0) {
  EolVertex e;
  e.vertex = vertex;
  e.kind = EolKind::kEdge;
  e.normal[0] = Vec3::UnitZ();
  e.normal[1] = Vec3(std::sin(turn), 0, std::cos(turn));
  e.tangent = Vec3::UnitY();
  e.friction = friction;
  return e;
}

Vec3 bent(double a, double b, double turn) {
  return a < 0 ? Vec3(a, b, 0) : Vec3(a * std::cos(turn), b, -a * std::sin(turn));
}

// Flat cloth runs over an edge at 1 m/s: nothing happens to it, although its vertices on the edge stay.
TEST(ClothEol, FlatClothRunsOverAnEdgeAsIfThereWereNone) {
  Stepping s;
  const int rows = 2;
  s.sheet = strip({-0.6, -0.4, -0.2, 0, 0.2, 0.4, 0.6}, 0.4, rows,
                  [](double a, double b) { return Vec3(a, b, 0); });
  test::set_feature(s.sheet, 3, rows);
  for (Index i = 0; i < s.sheet.vertices(); ++i) {
    s.sheet.v[at(i)] = Vec3::UnitX();
    if (s.sheet.eol(i)) {
      s.sheet.v[at(i)].setZero();
      s.sheet.V[at(i)] = Vec2(-1, 0);
      s.eol.push_back(on_edge(i, kPi / 2));
    }
  }
  s.body = test::body_of(s.sheet, fabric());
  s.terms.h = 1e-3;
  const double momentum = measure(s.sheet, s.body, Vec3::Zero()).momentum[0];
  for (int k = 0; k < 60; ++k) s.step();
  for (Index i = 0; i < s.sheet.vertices(); ++i) {
    const Vec3 expected(s.sheet.X[at(i)][0] + 0.06, s.sheet.X[at(i)][1], 0);
    EXPECT_LT((s.sheet.x[at(i)] - expected).norm(), 1e-10);
  }
  update_rest(s.sheet, s.body);
  EXPECT_NEAR(measure(s.sheet, s.body, Vec3::Zero()).momentum[0], momentum, 1e-12);
}

// A strip that runs over a right angle: the edge pushes with 2 (T - rho u^2) sin 45 deg.
TEST(ClothEol, InertiaLowersTheReaction) {
  for (const double u : {1.0, 3.0}) {
    double reaction[2];
    for (const bool inertia : {false, true}) {
      Stepping s;
      const int rows = 2;
      s.sheet =
          strip({-0.6, -0.3, 0, 0.3, 0.6}, 1, rows, [](double a, double b) { return bent(a, b, kPi / 2); });
      test::set_feature(s.sheet, 2, rows);
      for (Index i = 0; i < s.sheet.vertices(); ++i) {
        const double a = s.sheet.X[at(i)][0];
        s.sheet.v[at(i)] = a < 0 ? Vec3(u, 0, 0) : Vec3(0, 0, -u);
        if (!s.sheet.eol(i)) continue;
        s.sheet.v[at(i)].setZero();
        s.sheet.V[at(i)] = Vec2(-u, 0);
        s.eol.push_back(on_edge(i, kPi / 2));
      }
      s.body = test::body_of(s.sheet, fabric(1000));
      s.terms.h = 1e-5;
      for (Vec3& x : s.sheet.x) x *= 1.001;  // a tension of 1 N
      s.terms.inertia_forces = inertia;
      s.step();
      Vec3 sum = Vec3::Zero();
      for (const EolVertex& e : s.eol) sum += s.reaction(e.vertex);
      reaction[inertia] = (sum[0] + sum[2]) / std::sqrt(2.0);
    }
    EXPECT_NEAR(reaction[0] - reaction[1], 2 * 0.05 * u * u * std::sqrt(0.5),
                0.02 * 2 * 0.05 * u * u * std::sqrt(0.5))
        << u;
  }
}

// Pulled with T1 at one end and more and more at the other: it slips at exp(mu theta) T1.
double tension_ratio_at_slip(double turn, int columns) {
  Stepping s;
  const int rows = 2;
  const double width = 0.1, mu = 0.3, T1 = 0.2;
  std::vector<double> u;
  for (int k = -columns; k <= columns; ++k) u.push_back(0.3 * k / columns);
  s.sheet = strip(u, width, rows, [&](double a, double b) { return bent(a, b, turn); });
  test::set_feature(s.sheet, columns, rows);
  for (Index i = 0; i < s.sheet.vertices(); ++i)
    if (s.sheet.eol(i)) s.eol.push_back(on_edge(i, turn, mu));
  s.body = test::body_of(s.sheet, fabric(1000));
  s.terms.h = 0.02;
  s.terms.damping_mass = 50;
  s.force.setZero(3 * s.sheet.vertices());
  const Vec3 behind(-1, 0, 0), ahead(std::cos(turn), 0, -std::sin(turn));
  for (int k = 0; k < 2000; ++k) {
    const double T2 = k < 100 ? T1 : T1 * (1 + 1e-3 * (k - 100));
    for (Index r = 0; r <= rows; ++r) {
      const double share = r == 0 || r == rows ? 0.25 : 0.5;
      node(s.force, r) = share * T1 * behind;
      node(s.force, 2 * columns * (rows + 1) + r) = share * T2 * ahead;
    }
    s.step();
    if (k < 100) continue;
    double fastest = 0;
    for (const EolVertex& e : s.eol) fastest = std::max(fastest, std::abs(s.sheet.V[at(e.vertex)][0]));
    if (fastest > 1e-6) return T2 / T1;
  }
  return 0;
}
TEST(ClothEol, SlipsAtTheCapstanRatio) {
  for (const int columns : {3, 6})
    for (const double degrees : {60.0, 90.0, 150.0}) {
      const double turn = degrees * kPi / 180, expected = std::exp(0.3 * turn);
      EXPECT_NEAR(tension_ratio_at_slip(turn, columns), expected, 0.01 * expected)
          << degrees << " " << columns;
    }
}

// What slides: (m1 e + m2) a = T2 - e T1, e = exp(mu theta), both sides straight, without gravity.
TEST(ClothEol, SlidesAsTheCapstanLawSays) {
  Stepping s;
  const int rows = 2, columns = 3;
  const double width = 0.1, mu = 0.3, T1 = 0.02, T2 = 0.06, turn = kPi / 2, e = std::exp(mu * turn);
  std::vector<double> u;
  for (int k = -columns; k <= columns; ++k) u.push_back(0.3 * k / columns);
  s.sheet = strip(u, width, rows, [&](double a, double b) { return bent(a, b, turn); });
  test::set_feature(s.sheet, columns, rows);
  for (Index i = 0; i < s.sheet.vertices(); ++i)
    if (s.sheet.eol(i)) s.eol.push_back(on_edge(i, turn, mu));
  s.body = test::body_of(s.sheet, fabric(2000));
  s.terms.h = 1e-3;
  s.terms.damping_stiffness = 1e-3;
  s.force.setZero(3 * s.sheet.vertices());
  for (Index r = 0; r <= rows; ++r) {
    const double share = r == 0 || r == rows ? 0.25 : 0.5;
    node(s.force, r) = Vec3(-share * T1, 0, 0);
    node(s.force, 2 * columns * (rows + 1) + r) = Vec3(0, 0, -share * T2);
  }
  double slid = 0;
  const int steps = 40;
  for (int k = 0; k < steps; ++k) {
    s.step();
    slid = -s.sheet.V[at(s.eol[1].vertex)][0];
  }
  const double mass = 0.05 * width * 0.3;  // of each side, at the start
  EXPECT_NEAR(slid, (T2 - e * T1) / (mass * (1 + e)) * steps * 1e-3, 0.04 * slid);
}

// A nail under a tent of 0.4 m, 40 mm high, is dragged by 35 mm: the cloth lets it go.
TEST(ClothEol, ANailDragsNearlyNothing) {
  Stepping s;
  std::vector<double> u{-0.2, -0.1, 0, 0.1, 0.2};
  s.sheet = strip(u, 0.4, 4, [](double a, double b) { return Vec3(a, b - 0.2, 0); });
  const Index nail = 12;
  s.sheet.feature[at(nail)] = 0;
  EolVertex e;
  e.vertex = nail;
  e.kind = EolKind::kNail;
  e.normal[0] = Vec3::UnitZ();
  s.eol.push_back(e);
  for (Index i = 0; i < s.sheet.vertices(); ++i)
    if (s.sheet.x[at(i)].head<2>().cwiseAbs().maxCoeff() > 0.19) s.held.emplace_back(i, Vec3::Zero());
  s.body = test::body_of(s.sheet, fabric());
  s.terms.h = 0.01;
  s.terms.damping_mass = 20;
  for (int k = 0; k < 100; ++k) {  // up
    s.eol[0].velocity = Vec3(0, 0, k < 40 ? 0.1 : 0);
    s.step();
  }
  EXPECT_NEAR(s.sheet.x[at(nail)][2], 0.04, 1e-12);
  for (int k = 0; k < 300; ++k) {  // aside
    s.eol[0].velocity = Vec3(k < 175 ? 0.02 : 0, 0, 0);
    s.step();
  }
  EXPECT_NEAR(s.sheet.x[at(nail)][0], 0.035, 1e-9);
  const Vec3 force = s.reaction(nail);
  EXPECT_GT(force[2], 0.1);                 // it carries the tent
  EXPECT_LT(force.head<2>().norm(), 0.01);  // and nothing more
  EXPECT_NEAR(s.sheet.X[at(nail)][0], 0.035, 5e-3);
}

}  // namespace
}  // namespace limber::cloth
