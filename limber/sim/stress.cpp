#include <limber/sim/stress.hpp>

#include <limber/core/parallel.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/material/lame.hpp>
#include <limber/material/membrane.hpp>

#include <Eigen/Geometry>
#include <Eigen/LU>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

// The 3D material that has a membrane's constants: the same mu, and lambda' in place of lambda.
ElementMaterial membrane_material(ElementMaterial m) {
  const material::Lame l = material::lame(m.young, m.poisson);
  const double lambda = material::membrane_lambda(l.mu, l.lambda);
  m.young = l.mu * (3 * lambda + 2 * l.mu) / (lambda + l.mu);
  m.poisson = lambda / (2 * (lambda + l.mu));
  return m;
}

SymmetricTensor symmetric_part(const Mat3& a) {
  return {a(0, 0),
          a(1, 1),
          a(2, 2),
          0.5 * (a(0, 1) + a(1, 0)),
          0.5 * (a(1, 2) + a(2, 1)),
          0.5 * (a(0, 2) + a(2, 0))};
}

}  // namespace

std::vector<SymmetricTensor> cauchy_stresses(const Model& model, const std::vector<Mat3>& F, const VecX& x,
                                             const std::vector<double>& activation) {
  std::vector<SymmetricTensor> out(F.size(), SymmetricTensor{});
  parallel_for(static_cast<std::ptrdiff_t>(F.size()), 256, [&](std::ptrdiff_t k) {
    const auto e = static_cast<std::size_t>(k);
    const double J = F[e].determinant();
    if (!(J > 0)) return;
    const ElementMaterial& m = model.mesh.material[e];
    const double active =
        m.activation_channel >= 0 ? activation[static_cast<std::size_t>(m.activation_channel)] : 0.0;
    const bool sheet = is_sheet(model.mesh.kind(e));
    Mat3 stress = material::pk1(sheet ? membrane_material(m) : m, F[e], active) * F[e].transpose() / J;
    if (sheet) {
      const Tet& n = model.mesh.elements[e];
      const Vec3 a = node(x, n[0]), b = node(x, n[1]), c = node(x, n[2]);
      const Vec3 normal = (b - a).cross(c - a).normalized();
      const Mat3 P = Mat3::Identity() - normal * normal.transpose();
      stress = P * stress * P;
    }
    out[e] = symmetric_part(stress);
  });
  return out;
}

SymmetricTensor green_strain(const Mat3& F) {
  return symmetric_part(0.5 * (F.transpose() * F - Mat3::Identity()));
}

// Jacobi's rotations: three sweeps and the off-diagonal is gone to rounding; a few more cost nothing.
Vec3 principal_values(const SymmetricTensor& s) {
  Mat3 a;
  a << s[0], s[3], s[5], s[3], s[1], s[4], s[5], s[4], s[2];
  for (int sweep = 0; sweep < 6; ++sweep)
    for (int p = 0; p < 2; ++p)
      for (int q = p + 1; q < 3; ++q) {
        if (a(p, q) == 0) continue;
        const double theta = 0.5 * (a(q, q) - a(p, p)) / a(p, q);
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), sine = t * c;
        Mat3 R = Mat3::Identity();
        R(p, p) = R(q, q) = c;
        R(p, q) = sine;
        R(q, p) = -sine;
        a = (R.transpose() * a * R).eval();
      }
  std::array<double, 3> d{a(0, 0), a(1, 1), a(2, 2)};
  std::sort(d.begin(), d.end());
  return {d[2], d[1], d[0]};
}

double von_mises(const SymmetricTensor& s) {
  const double xy = s[0] - s[1], yz = s[1] - s[2], zx = s[2] - s[0];
  return std::sqrt(0.5 * (xy * xy + yz * yz + zx * zx) + 3 * (s[3] * s[3] + s[4] * s[4] + s[5] * s[5]));
}

}  // namespace limber
