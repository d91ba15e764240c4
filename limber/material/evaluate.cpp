#include <limber/core/error.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/material/fibre.hpp>
#include <limber/material/lame.hpp>
#include <limber/material/models.hpp>

#include <fmt/core.h>

#include <cstring>

namespace limber::material {
namespace {

Svd<double> decompose(const Mat3& F) { return svd(from_eigen(F)); }

// The fibre's direction divided by its rest stretch.
V3<double> scaled_direction(const ElementMaterial& m, double activation) {
  const Vec3 d = m.fibre_direction / (1 - activation);
  return {{d[0], d[1], d[2]}};
}

constexpr MaterialModel kModels[] = {MaterialModel::kStableNeoHookean,
                                     MaterialModel::kStableNeoHookeanLog,
                                     MaterialModel::kCorotational,
                                     MaterialModel::kFixedCorotated,
                                     MaterialModel::kArap,
                                     MaterialModel::kStVenantKirchhoff};
constexpr FibreModel kFibres[] = {FibreModel::kNone, FibreModel::kStVenantKirchhoff, FibreModel::kFung};

template <class Enum, std::size_t n>
Enum parse(const char* text, const Enum (&known)[n], const char* what) {
  std::string names;
  for (Enum e : known) {
    if (std::strcmp(name(e), text) == 0) return e;
    names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", name(e));
  }
  throw Error(ErrorKind::kInput, fmt::format("{}: found \"{}\", expected one of {}", what, text, names));
}

}  // namespace

double psi(const ElementMaterial& m, const Mat3& F, double activation) {
  const Lame l = lame(m.young, m.poisson);
  double e = with_model(m.model, m.energy.get(), l.mu, l.lambda,
                        [&](const auto& model) { return model_psi(model, from_eigen(F), decompose(F)); });
  if (m.fibre != FibreModel::kNone)
    e += fibre_terms(m.fibre, m.fibre_stiffness, from_eigen(F) * scaled_direction(m, activation)).psi;
  return e;
}

Mat3 pk1(const ElementMaterial& m, const Mat3& F, double activation) {
  const Lame l = lame(m.young, m.poisson);
  Mat3 P = to_eigen(with_model(m.model, m.energy.get(), l.mu, l.lambda, [&](const auto& model) {
    return model_pk1(model, from_eigen(F), decompose(F));
  }));
  if (m.fibre != FibreModel::kNone) {
    const V3<double> d = scaled_direction(m, activation);
    const V3<double> p = fibre_terms(m.fibre, m.fibre_stiffness, from_eigen(F) * d).pk1d;
    P += Vec3(p.a) * Vec3(d.a).transpose();
  }
  return P;
}

Mat9 dpk1(const ElementMaterial& m, const Mat3& F, double activation, bool projected) {
  const Lame l = lame(m.young, m.poisson);
  const Svd<double> d = decompose(F);
  const Principal<double> H = with_model(m.model, m.energy.get(), l.mu, l.lambda, [&](const auto& model) {
    Principal<double> h = model.principal(d.s);
    if (projected) project(h, model.kScalingIsPsd);
    return h;
  });
  // In the frame of the singular values, then turned: vec(U X V^T) = (V (x) U) vec(X).
  Mat9 local = Mat9::Zero();
  const double scaling[3][3] = {{H.scaling.xx, H.scaling.xy, H.scaling.xz},
                                {H.scaling.xy, H.scaling.yy, H.scaling.yz},
                                {H.scaling.xz, H.scaling.yz, H.scaling.zz}};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      local(4 * i, 4 * j) = scaling[i][j];
      if (i == j) continue;
      const int k = 3 - i - j;
      local(i + 3 * j, i + 3 * j) = 0.5 * (H.flip[k] + H.twist[k]);
      local(i + 3 * j, j + 3 * i) = 0.5 * (H.flip[k] - H.twist[k]);
    }
  Mat9 turn;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) turn.block<3, 3>(3 * i, 3 * j) = d.V(i, j) * to_eigen(d.U);
  Mat9 out = turn * local * turn.transpose();
  if (m.fibre != FibreModel::kNone) {
    const V3<double> a = scaled_direction(m, activation);
    const V3<double> w = from_eigen(F) * a;
    const Sym3<double> b = fibre_hessian(fibre_terms(m.fibre, m.fibre_stiffness, w), w, projected);
    Mat3 B;
    B << b.xx, b.xy, b.xz, b.xy, b.yy, b.yz, b.xz, b.yz, b.zz;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) out.block<3, 3>(3 * i, 3 * j) += a[i] * a[j] * B;
  }
  return out;
}

const char* name(MaterialModel model) {
  switch (model) {
    case MaterialModel::kStableNeoHookean:
      return "stable-neo-hookean";
    case MaterialModel::kStableNeoHookeanLog:
      return "stable-neo-hookean-log";
    case MaterialModel::kCorotational:
      return "corotational";
    case MaterialModel::kFixedCorotated:
      return "fixed-corotated";
    case MaterialModel::kArap:
      return "arap";
    case MaterialModel::kStVenantKirchhoff:
      return "st-venant-kirchhoff";
    case MaterialModel::kInvariants:
      return "energy";
  }
  return "";
}

const char* name(FibreModel model) {
  switch (model) {
    case FibreModel::kNone:
      return "none";
    case FibreModel::kStVenantKirchhoff:
      return "st-venant-kirchhoff";
    case FibreModel::kFung:
      return "fung";
  }
  return "";
}

MaterialModel parse_material_model(const char* text) { return parse(text, kModels, "material model"); }
FibreModel parse_fibre_model(const char* text) { return parse(text, kFibres, "fibre model"); }

}  // namespace limber::material
