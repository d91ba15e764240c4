// Triangles and hinges: derivatives of energies, and numbers worked out by hand.
#include "strips.hpp"

#include <limber/linalg/dense.hpp>

namespace limber::cloth {
namespace {

using test::fabric;

struct Moving {
  Corners3 x{Vec3(0.1, 0.05, -0.02), Vec3(1.2, 0.1, 0.3), Vec3(0.2, 0.9, 0.5)};
  Corners2 X{Vec2(0, 0), Vec2(1, 0.1), Vec2(0.1, 0.9)};
  Corners3 v{Vec3(0.3, -1, 0.4), Vec3(-0.7, 0.2, 0.9), Vec3(0.5, 0.6, -0.8)};
  Corners2 V{Vec2(0.7, -0.4), Vec2(0.3, 0.8), Vec2(-0.6, 0.5)};

  RestTriangle rest() const { return rest_triangle(X[0], X[1], X[2]); }
  double kinetic(double density) const {
    const RestTriangle r = rest();
    const Corners3 w = corner_velocities(gradient_of(r, x), v, V);
    return kinetic_energy(w, corner_momenta(density * r.area, w));
  }
  // dT/dqdot: rows of x, then of X.
  VecX momentum(double density) const {
    const RestTriangle r = rest();
    const Mat32 F = gradient_of(r, x);
    const Corners3 p = corner_momenta(density * r.area, corner_velocities(F, v, V));
    VecX out(15);
    for (int i = 0; i < 3; ++i) {
      out.segment<3>(3 * i) = p[static_cast<std::size_t>(i)];
      out.segment<2>(9 + 2 * i) = -F.transpose() * p[static_cast<std::size_t>(i)];
    }
    return out;
  }
  double& coordinate(int d) {
    return d < 9 ? x[static_cast<std::size_t>(d / 3)][d % 3]
                 : X[static_cast<std::size_t>((d - 9) / 2)][(d - 9) % 2];
  }
  double rate(int d) const {
    return d < 9 ? v[static_cast<std::size_t>(d / 3)][d % 3]
                 : V[static_cast<std::size_t>((d - 9) / 2)][(d - 9) % 2];
  }
};

// Facts worked out by hand: X a right triangle, x stretched to twice its height, rho 12.
TEST(ClothElement, InertiaOfAStretchedTriangle) {
  const RestTriangle rest = rest_triangle(Vec2(0, 0), Vec2(1, 0), Vec2(0, 1));
  const Mat32 F = gradient_of(rest, {Vec3(0, 0, 0), Vec3(1, 0, 0), Vec3(0, 0, 2)});
  const Mat3 C = 12 * rest.area * mass_share(0, 0) * Mat3::Identity();
  const Mat3 EE = with_X_both(C, F), EL = with_X_left(C, F);
  EXPECT_NEAR(EE(0, 0), 1, 1e-15);
  EXPECT_NEAR(EE(1, 1), 4, 1e-15);
  EXPECT_NEAR(EE(0, 1), 0, 1e-15);
  Mat3 expected = Mat3::Zero();
  expected(0, 0) = -1;
  expected(1, 2) = -2;
  EXPECT_LT((EL - expected).norm(), 1e-15);
}

// M qddot = f + g: g = dT/dq - d/dt(dT/dqdot) at constant rates.
TEST(ClothElement, InertiaForcesAreThoseOfTheKineticEnergy) {
  const double density = 0.7, step = 1e-5;
  Moving m;
  VecX expected(15);
  for (int d = 0; d < 15; ++d) {
    Moving plus = m, minus = m;
    plus.coordinate(d) += step;
    minus.coordinate(d) -= step;
    expected[d] = (plus.kinetic(density) - minus.kinetic(density)) / (2 * step);
  }
  Moving later = m, before = m;
  for (int d = 0; d < 15; ++d) {
    later.coordinate(d) += step * m.rate(d);
    before.coordinate(d) -= step * m.rate(d);
  }
  expected -= (later.momentum(density) - before.momentum(density)) / (2 * step);
  const RestTriangle rest = m.rest();
  const InertiaForces g = inertia_forces(density, rest, gradient_of(rest, m.x), m.v, m.V);
  for (int d = 0; d < 15; ++d) {
    const double found = d < 9 ? g.x[static_cast<std::size_t>(d / 3)][d % 3]
                               : g.X[static_cast<std::size_t>((d - 9) / 2)][(d - 9) % 2];
    EXPECT_NEAR(found, expected[d], 1e-8) << d;
  }
}

// (f, -F^T f - A psi grad N) is minus the gradient of the energy in positions and material coordinates.
TEST(ClothElement, ForcesAreThoseOfTheEnergyInBothCoordinates) {
  for (const MaterialModel model : {MaterialModel::kCorotational, MaterialModel::kStVenantKirchhoff,
                                    MaterialModel::kStableNeoHookean, MaterialModel::kFixedCorotated}) {
    Fabric f = fabric(50, 0.05, 0, 0.3);
    f.model = model;
    Moving m;
    const double step = 1e-6;
    MembraneResponse r;
    membrane(f, m.rest(), m.x, true, r);
    const Mat32 F = gradient_of(m.rest(), m.x);
    for (int d = 0; d < 15; ++d) {
      Moving plus = m, minus = m;
      plus.coordinate(d) += step;
      minus.coordinate(d) -= step;
      const double expected =
          -(membrane_energy(f, plus.rest(), plus.x) - membrane_energy(f, minus.rest(), minus.x)) / (2 * step);
      const auto i = static_cast<std::size_t>(d < 9 ? d / 3 : (d - 9) / 2);
      double found = r.force[i][d % 3];
      if (d >= 9) {
        const Vec2 f_X = -F.transpose() * r.force[i] - r.energy * m.rest().gradient[i];
        found = f_X[(d - 9) % 2];
      }
      EXPECT_NEAR(found, expected, 1e-7) << d << " of model " << static_cast<int>(model);
    }
  }
}

TEST(ClothElement, HingeForceIsThatOfItsEnergy) {
  const std::array<Vec3, 4> x{Vec3(0, 0, 0), Vec3(1.1, 0.1, 0), Vec3(0.4, 0.9, 0.3), Vec3(0.6, -0.8, 0.4)};
  for (const double rest : {0.0, 0.4, -1.0}) {
    const HingeResponse r = hinge(2.0, rest, x);
    for (std::size_t i = 0; i < 4; ++i)
      for (int a = 0; a < 3; ++a) {
        std::array<Vec3, 4> plus = x, minus = x;
        plus[i][a] += 1e-6;
        minus[i][a] -= 1e-6;
        const double slope = (hinge_energy(2, rest, plus) - hinge_energy(2, rest, minus)) / 2e-6;
        EXPECT_NEAR(r.moment * r.gradient[i][a], slope, 1e-8);
      }
  }
}

// Flat cloth: the stiffness is the second derivative of the energy.
TEST(ClothElement, HingeStiffnessIsExactWhereTheClothIsFlat) {
  const std::array<Vec3, 4> x{Vec3(0, 0, 0), Vec3(1.1, 0.1, 0), Vec3(0.4, 0.9, 0), Vec3(0.6, -0.8, 0)};
  const HingeResponse r = hinge(2.0, 0, x);
  for (int d = 0; d < 12; ++d)
    for (int e = 0; e < 12; ++e) {
      const auto energy = [&](double a, double b) {
        std::array<Vec3, 4> y = x;
        y[static_cast<std::size_t>(d / 3)][d % 3] += a;
        y[static_cast<std::size_t>(e / 3)][e % 3] += b;
        return hinge_energy(2, 0, y);
      };
      const double s = 1e-4;
      const double second = (energy(s, s) - energy(s, -s) - energy(-s, s) + energy(-s, -s)) / (4 * s * s);
      EXPECT_NEAR(r.stiffness * r.gradient[static_cast<std::size_t>(d / 3)][d % 3] *
                      r.gradient[static_cast<std::size_t>(e / 3)][e % 3],
                  second, 1e-5);
    }
}

// A grid with edges along the axis of a cylinder has 3/4 beta/R^2 per area: 3/2 of a plate whose stiffness is
// beta.
TEST(ClothElement, BendingOnACylinder) {
  const double R = 0.5, beta = 1e-3, pi = 3.14159265358979;
  double before = 1;
  for (const int n : {20, 40}) {
    std::vector<double> u;
    for (int k = 0; k <= n; ++k) u.push_back(pi / 2 * R * k / n);
    Sheet s = test::strip(
        u, 0.3, 2, [&](double a, double b) { return Vec3(R * std::sin(a / R), b, R * std::cos(a / R)); });
    // One diagonal in all cells: those of an aligned grid.
    s.triangles.clear();
    for (Index k = 0; k < n; ++k)
      for (Index r = 0; r < 2; ++r) {
        const Index a = 3 * k + r, b = a + 3;
        s.triangles.push_back({a, b, b + 1});
        s.triangles.push_back({a, b + 1, a + 1});
      }
    const ClothBody body = test::body_of(s, fabric(50, 0.05, beta));
    const double area = pi / 2 * R * 0.3, found = measure(s, body, Vec3::Zero()).bending / area;
    const double error = std::abs(found / (0.75 * beta / (R * R)) - 1);
    EXPECT_LT(error, n == 20 ? 0.06 : 0.03);
    EXPECT_LT(error, before);
    before = error;
  }
}

// Cloth runs over a right angle with 1 m/s: the edge must turn its momentum, 0.05 N per metre along both
// sides; nothing else needs a force.
TEST(ClothElement, InertiaForcesAtACrease) {
  Sheet s = test::strip({-0.4, -0.2, 0, 0.2, 0.4}, 1, 2,
                        [](double a, double b) { return a < 0 ? Vec3(a, b, 0) : Vec3(0, b, -a); });
  test::set_feature(s, 2, 2);
  for (Index i = 0; i < s.vertices(); ++i) {
    const double a = s.X[at(i)][0];
    if (a < 0) s.v[at(i)] = Vec3(1, 0, 0);
    if (a > 0) s.v[at(i)] = Vec3(0, 0, -1);
    if (a == 0) s.V[at(i)] = Vec2(-1, 0);
  }
  const ClothBody body = test::body_of(s, fabric());
  VecX sum = VecX::Zero(3 * s.vertices());
  for (std::size_t t = 0; t < s.triangles.size(); ++t) {
    const Tri& tri = s.triangles[t];
    Corners3 x, v;
    Corners2 V;
    for (std::size_t k = 0; k < 3; ++k)
      x[k] = s.x[at(tri[k])], v[k] = s.v[at(tri[k])], V[k] = s.V[at(tri[k])];
    const InertiaForces g = inertia_forces(0.05, body.rest[t], gradient_of(body.rest[t], x), v, V);
    for (std::size_t k = 0; k < 3; ++k) node(sum, tri[k]) += g.x[k];
  }
  Vec3 edge = Vec3::Zero();
  for (Index i = 0; i < s.vertices(); ++i)
    if (s.eol(i))
      edge += node(sum, i);
    else
      EXPECT_LT(node(sum, i).norm(), 1e-15);
  EXPECT_LT((edge - Vec3(0.05, 0, 0.05)).norm(), 1e-15);
}

}  // namespace
}  // namespace limber::cloth
