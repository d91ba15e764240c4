#include <limber/cloth/membrane.hpp>

#include <limber/fem/element_kernel.hpp>
#include <limber/material/lame.hpp>

#include <cmath>

namespace limber::cloth {

RestTriangle rest_triangle(const Vec2& a, const Vec2& b, const Vec2& c) {
  RestTriangle out;
  const double det = cross2(b - a, c - a);
  const std::array<Vec2, 3> opposite{c - b, a - c, b - a};
  for (std::size_t k = 0; k < 3; ++k) out.gradient[k] = Vec2(-opposite[k][1], opposite[k][0]) / det;
  out.area = det / 2;
  return out;
}

RestTriangle rest_triangle(const Vec3& a, const Vec3& b, const Vec3& c) {
  const Vec3 e = b - a, d = c - a;
  const double length = e.norm();
  const double along = e.dot(d) / length;
  return rest_triangle(Vec2(0, 0), Vec2(length, 0), Vec2(along, cross(e, d).norm() / length));
}

Fabric fabric_of(const ElementMaterial& m, double bending) {
  const material::Lame lame = material::lame(m.young, m.poisson);
  return {m.model, lame.mu * m.thickness, material::membrane_lambda(lame.mu, lame.lambda) * m.thickness,
          m.density * m.thickness, bending};
}

namespace {

material::V3<double> small(const Vec3& v) { return {{v[0], v[1], v[2]}}; }

struct Kernel {
  material::M3<double> B, F;
  fem::ElementData<double> data;
  material::Svd<double> svd;

  Kernel(const Fabric& fabric, const RestTriangle& rest, const std::array<Vec3, 3>& x)
      : data{B, rest.area, fabric.mu, fabric.lambda, 0.0, {{0.0, 0.0, 0.0}}} {
    for (double& b : B.a) b = 0;
    for (int a = 0; a < 2; ++a)
      for (int k = 0; k < 2; ++k) B(a, k) = rest.gradient[static_cast<std::size_t>(a) + 1][k];
    material::M3<double> Ds;
    material::set_column(Ds, 0, small(x[1] - x[0]));
    material::set_column(Ds, 1, small(x[2] - x[0]));
    material::set_column(Ds, 2, {{0.0, 0.0, 0.0}});
    F = fem::deformation_gradient(Ds, B, ElementKind::kClothTriangle);
    svd = fem::element_svd(F, B, ElementKind::kClothTriangle);
  }
};

}  // namespace

void membrane(const Fabric& fabric, const RestTriangle& rest, const std::array<Vec3, 3>& x,
              bool with_stiffness, MembraneResponse& out) {
  const Kernel k(fabric, rest, x);
  material::with_model(fabric.model, fabric.mu, fabric.lambda, [&](const auto& model) {
    material::V3<double> f[3];
    out.energy = rest.area * fem::element_force(model, FibreModel::kNone, ElementKind::kClothTriangle, k.data,
                                                k.F, k.svd, f);
    out.force[0].setZero();
    for (std::size_t a = 0; a < 2; ++a) {
      out.force[a + 1] = Vec3(f[a][0], f[a][1], f[a][2]);
      out.force[0] -= out.force[a + 1];
    }
    if (!with_stiffness) return;
    material::M3<double> K[fem::kElementBlocks];
    fem::element_stiffness(model, FibreModel::kNone, ElementKind::kClothTriangle, true, k.data, k.F, k.svd,
                           K);
    const auto block = [&](int b) { return Eigen::Map<const Mat3>(K[b].a); };
    for (std::size_t i = 0; i < 3; ++i) out.stiffness[i][i] = block(static_cast<int>(i));
    out.stiffness[1][0] = block(4);
    out.stiffness[2][0] = block(5);
    out.stiffness[2][1] = block(7);
    out.stiffness[0][1] = out.stiffness[1][0].transpose();
    out.stiffness[0][2] = out.stiffness[2][0].transpose();
    out.stiffness[1][2] = out.stiffness[2][1].transpose();
  });
}

double membrane_energy(const Fabric& fabric, const RestTriangle& rest, const std::array<Vec3, 3>& x) {
  const Kernel k(fabric, rest, x);
  return rest.area * material::with_model(fabric.model, fabric.mu, fabric.lambda, [&](const auto& model) {
           return material::model_psi(model, k.F, k.svd);
         });
}

}  // namespace limber::cloth
