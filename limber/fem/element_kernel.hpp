// The arithmetic of one linear element, for one element (T = double) or one per lane (T = Pack).
//
// A tetrahedron with the nodes 0..3 has F = Ds B, Ds = (x1 - x0 | x2 - x0 | x3 - x0), B = Dm^-1; row a of B
// is the gradient of the shape function of node a + 1. A triangle is the same with a last row of zeros: of a
// plane-strain triangle F33 = 1, and a cloth triangle has n N^T added to F (material/membrane.hpp). Node 0
// gets minus the sum of the others in force and stiffness.
#pragma once

#include <limber/material/fibre.hpp>
#include <limber/material/membrane.hpp>
#include <limber/material/models.hpp>
#include <limber/material/polar.hpp>
#include <limber/mesh/element_kind.hpp>

namespace limber::fem {

template <class T>
struct ElementData {
  const material::M3<T>& B;  // [1/m]
  T volume;                  // rest volume [m^3]
  T mu, lambda;              // Lame's constants [Pa]
  T k;                       // fibre stiffness [Pa]
  material::V3<T> d;         // fibre direction / rest stretch
};

// The 3x3 blocks of an element's stiffness, in this order: (0,0) (1,1) (2,2) (3,3) (1,0) (2,0) (3,0) (2,1)
// (3,1) (3,2); the blocks above the diagonal are their transposes.
inline constexpr int kElementBlocks = 10;
// Of those between the nodes 1..3: row and column, counted from node 1, and place. (Not inline: kernels share
// no symbols, tests/build/kernel_symbols.sh.)
constexpr int kPair[6][3] = {{0, 0, 1}, {1, 1, 2}, {2, 2, 3}, {1, 0, 7}, {2, 0, 8}, {2, 1, 9}};

// Gradient of the shape function of node a + 1.
template <class T>
material::V3<T> shape_gradient(const material::M3<T>& B, int a) {
  return {{B(a, 0), B(a, 1), B(a, 2)}};
}

// Normal of a rest triangle.
template <class T>
material::V3<T> rest_normal(const material::M3<T>& B) {
  return material::triangle_normal(shape_gradient(B, 0), shape_gradient(B, 1));
}

template <class T>
material::M3<T> deformation_gradient(const material::M3<T>& Ds, const material::M3<T>& B, ElementKind kind) {
  using namespace material;
  M3<T> F = Ds * B;
  if (kind == ElementKind::kPlaneTriangle) {
    F(2, 0) = F(2, 1) = F(0, 2) = F(1, 2) = T(0);
    F(2, 2) = T(1);
  }
  if (kind == ElementKind::kClothTriangle) {
    const V3<T> n = triangle_normal(column(Ds, 0), column(Ds, 1)), N = rest_normal(B);
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) F(i, j) += n[i] * N[j];
  }
  return F;
}

// dF/dt for the velocities with the edges Dv; of cloth without what turns its normal.
template <class T>
material::M3<T> gradient_change(const material::M3<T>& Dv, const material::M3<T>& B, ElementKind kind) {
  material::M3<T> dF = Dv * B;
  if (kind == ElementKind::kPlaneTriangle) dF(2, 0) = dF(2, 1) = dF(0, 2) = dF(1, 2) = dF(2, 2) = T(0);
  return dF;
}

// The whole of it: the normal turns as the plane does.
template <class T>
material::M3<T> gradient_rate(const material::M3<T>& F, const material::M3<T>& Dv, const material::M3<T>& B,
                              ElementKind kind) {
  using namespace material;
  M3<T> dF = gradient_change(Dv, B, kind);
  if (kind != ElementKind::kClothTriangle) return dF;
  // n . F2 = 0 stays so: dn = -F2^-T dF2^T n, in the frame where F2 is diagonal.
  const V3<T> N = rest_normal(B), n = F * N;
  const Svd<T> d = membrane_svd(F, shape_gradient(B, 0), N);
  V3<T> dn{{T(0), T(0), T(0)}};
  for (int k = 0; k < 2; ++k) {
    const T rate = dot(n, dF * column(d.V, k)) / vmax(d.s[k], T(1e-8));
    for (int i = 0; i < 3; ++i) dn[i] -= rate * d.U(i, k);
  }
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) dF(i, j) += dn[i] * N[j];
  return dF;
}

// Singular values; of cloth with the normal last.
template <class T>
material::Svd<T> element_svd(const material::M3<T>& F, const material::M3<T>& B, ElementKind kind) {
  if (kind == ElementKind::kClothTriangle)
    return material::membrane_svd(F, shape_gradient(B, 0), rest_normal(B));
  return material::svd(F);
}

// Energy density at F, fibres included.
template <class Model, class T>
T element_psi(const Model& model, FibreModel fibre, const ElementData<T>& e, const material::M3<T>& F) {
  T psi;
  if constexpr (Model::kForceNeedsSvd)
    psi = model.psi(material::svd(F).s);
  else
    psi = model.psi(F);
  if (fibre != FibreModel::kNone) psi += material::fibre_terms(fibre, e.k, F * e.d).psi;
  return psi;
}

// psi, and f[a] = -volume * pk1 * (gradient of node a + 1): the forces on the nodes 1..3 [N].
template <class Model, class Decomposition, class T>
T element_force(const Model& model, FibreModel fibre, ElementKind kind, const ElementData<T>& e,
                const material::M3<T>& F, const Decomposition& decomposition, material::V3<T> f[3]) {
  using namespace material;
  T psi = model_psi(model, F, decomposition);
  M3<T> P = model_pk1(model, F, decomposition);
  if (fibre != FibreModel::kNone) {
    const FibreTerms<T> terms = fibre_terms(fibre, e.k, F * e.d);
    psi += terms.psi;
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) P(i, j) += terms.pk1d[i] * e.d[j];
  }
  for (T& p : P.a) p = -e.volume * p;
  for (int a = 0; a < 3; ++a) {
    f[a] = P * shape_gradient(e.B, a);
    if (kind == ElementKind::kPlaneTriangle) f[a][2] = T(0);
  }
  return psi;
}

// The blocks of node 0 from those of the others: rows add up to zero.
template <class T>
void add_node_zero(material::M3<T> K[kElementBlocks]) {
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) {
      K[4](i, j) = -(K[1](i, j) + K[7](j, i) + K[8](j, i));
      K[5](i, j) = -(K[2](i, j) + K[7](i, j) + K[9](j, i));
      K[6](i, j) = -(K[3](i, j) + K[8](i, j) + K[9](i, j));
      K[0](i, j) = -(K[4](i, j) + K[5](i, j) + K[6](i, j));
    }
}

// The Hessian of an element's energy without fibres, in the frame of the singular values, times the volume.
template <class T>
struct ElementHessian {
  T A00, A11, A22, A01, A02, A12;
  T same[3], swapped[3];  // entry (ij, ij) and entry (ij, ji) in the plane that k is normal to
};

template <class Model, class T>
ElementHessian<T> element_hessian(const Model& model, ElementKind kind, bool projected, T v,
                                  const material::M3<T>& F, const material::Svd<T>& svd) {
  using namespace material;
  Principal<T> H = model.principal(svd.s);
  if (kind == ElementKind::kClothTriangle) {
    const M3<T> P = model_pk1(model, F, svd);
    make_membrane(svd.s, dot(column(svd.U, 0), P * column(svd.V, 0)),
                  dot(column(svd.U, 1), P * column(svd.V, 1)), H);
  }
  if (projected) project(H, Model::kScalingIsPsd);
  ElementHessian<T> out{v * H.scaling.xx,
                        v * H.scaling.yy,
                        v * H.scaling.zz,
                        v * H.scaling.xy,
                        v * H.scaling.xz,
                        v * H.scaling.yz,
                        {},
                        {}};
  for (int k = 0; k < 3; ++k) {
    out.same[k] = T(0.5) * v * (H.flip[k] + H.twist[k]);
    out.swapped[k] = T(0.5) * v * (H.flip[k] - H.twist[k]);
  }
  return out;
}

// volume * d2psi/dF2 : dF, fibres included: the change of volume * pk1 while F changes by dF.
template <class Model, class T>
material::M3<T> element_stress_change(const Model& model, FibreModel fibre, ElementKind kind, bool projected,
                                      const ElementData<T>& e, const material::M3<T>& F,
                                      const material::Svd<T>& svd, const material::M3<T>& dF) {
  using namespace material;
  const ElementHessian<T> H = element_hessian(model, kind, projected, e.volume, F, svd);
  const M3<T> X = in_singular_frame(svd, dF);
  M3<T> Y;
  Y(0, 0) = H.A00 * X(0, 0) + H.A01 * X(1, 1) + H.A02 * X(2, 2);
  Y(1, 1) = H.A01 * X(0, 0) + H.A11 * X(1, 1) + H.A12 * X(2, 2);
  Y(2, 2) = H.A02 * X(0, 0) + H.A12 * X(1, 1) + H.A22 * X(2, 2);
  for (int k = 0; k < 3; ++k) {
    const int i = (k + 1) % 3, j = (k + 2) % 3;
    Y(i, j) = H.same[k] * X(i, j) + H.swapped[k] * X(j, i);
    Y(j, i) = H.same[k] * X(j, i) + H.swapped[k] * X(i, j);
  }
  M3<T> dP = between(svd.U, Y, svd.V);
  if (fibre != FibreModel::kNone) {
    const V3<T> w = F * e.d, dw = dF * e.d;
    const Sym3<T> h = fibre_hessian(fibre_terms(fibre, e.k, w), w, projected);
    const V3<T> change{{e.volume * (h.xx * dw[0] + h.xy * dw[1] + h.xz * dw[2]),
                        e.volume * (h.xy * dw[0] + h.yy * dw[1] + h.yz * dw[2]),
                        e.volume * (h.xz * dw[0] + h.yz * dw[1] + h.zz * dw[2])}};
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) dP(i, j) += change[i] * e.d[j];
  }
  return dP;
}

// y[a] = (K v) of the nodes 1..3 [N] for velocities with the edges Dv, without K.
template <class Model, class T>
void element_stiffness_product(const Model& model, FibreModel fibre, ElementKind kind, bool projected,
                               const ElementData<T>& e, const material::M3<T>& F, const material::Svd<T>& svd,
                               const material::M3<T>& Dv, material::V3<T> y[3]) {
  using namespace material;
  const M3<T> dP =
      element_stress_change(model, fibre, kind, projected, e, F, svd, gradient_change(Dv, e.B, kind));
  for (int a = 0; a < 3; ++a) {
    y[a] = dP * shape_gradient(e.B, a);
    if (kind == ElementKind::kPlaneTriangle) y[a][2] = T(0);
  }
}

// K = d2E/dx2 [N/m].
template <class Model, class T>
void element_stiffness(const Model& model, FibreModel fibre, ElementKind kind, bool projected,
                       const ElementData<T>& e, const material::M3<T>& F, const material::Svd<T>& svd,
                       material::M3<T> K[kElementBlocks]) {
  using namespace material;
  const T v = e.volume;
  const ElementHessian<T> H = element_hessian(model, kind, projected, v, F, svd);
  const T A00 = H.A00, A11 = H.A11, A22 = H.A22, A01 = H.A01, A02 = H.A02, A12 = H.A12;
  const T(&same)[3] = H.same;
  const T(&swapped)[3] = H.swapped;
  V3<T> b[3];  // shape gradients in the frame of V
  for (int a = 0; a < 3; ++a) b[a] = transposed_times(svd.V, shape_gradient(e.B, a));
  for (int p = 0; p < 6; ++p) {
    const V3<T>&l = b[kPair[p][0]], &r = b[kPair[p][1]];
    M3<T>& k = K[kPair[p][2]];
    const T l0r0 = l[0] * r[0], l1r1 = l[1] * r[1], l2r2 = l[2] * r[2];
    const T l0r1 = l[0] * r[1], l1r0 = l[1] * r[0], l0r2 = l[0] * r[2];
    const T l2r0 = l[2] * r[0], l1r2 = l[1] * r[2], l2r1 = l[2] * r[1];
    M3<T> m;
    m(0, 0) = vfma(same[1], l2r2, vfma(same[2], l1r1, A00 * l0r0));
    m(1, 1) = vfma(same[0], l2r2, vfma(same[2], l0r0, A11 * l1r1));
    m(2, 2) = vfma(same[0], l1r1, vfma(same[1], l0r0, A22 * l2r2));
    m(0, 1) = vfma(swapped[2], l1r0, A01 * l0r1);
    m(1, 0) = vfma(swapped[2], l0r1, A01 * l1r0);
    m(0, 2) = vfma(swapped[1], l2r0, A02 * l0r2);
    m(2, 0) = vfma(swapped[1], l0r2, A02 * l2r0);
    m(1, 2) = vfma(swapped[0], l2r1, A12 * l1r2);
    m(2, 1) = vfma(swapped[0], l1r2, A12 * l2r1);
    const M3<T> Um = svd.U * m;
    for (int j = 0; j < 3; ++j)
      for (int i = (p < 3 ? j : 0); i < 3; ++i)
        k(i, j) = vfma(Um(i, 2), svd.U(j, 2), vfma(Um(i, 1), svd.U(j, 1), Um(i, 0) * svd.U(j, 0)));
    if (p < 3) {
      k(0, 1) = k(1, 0);
      k(0, 2) = k(2, 0);
      k(1, 2) = k(2, 1);
    }
  }
  if (fibre != FibreModel::kNone) {
    const V3<T> w = F * e.d;
    const Sym3<T> h = fibre_hessian(fibre_terms(fibre, e.k, w), w, projected);
    const T block[9] = {h.xx, h.xy, h.xz, h.xy, h.yy, h.yz, h.xz, h.yz, h.zz};
    const V3<T> c = e.B * e.d;  // gradient . d, per node
    for (const auto& pair : kPair) {
      const T weight = v * c[pair[0]] * c[pair[1]];
      for (int i = 0; i < 9; ++i) K[pair[2]].a[i] = vfma(weight, block[i], K[pair[2]].a[i]);
    }
  }
  if (kind == ElementKind::kPlaneTriangle)
    for (const auto& pair : kPair)
      for (int i = 0; i < 3; ++i) K[pair[2]](i, 2) = K[pair[2]](2, i) = T(0);
  add_node_zero(K);
}

// E = (F^T F - I) / 2
template <class T>
material::Sym3<T> green_strain(const material::M3<T>& F) {
  using namespace material;
  const V3<T> a = column(F, 0), b = column(F, 1), c = column(F, 2);
  const T h(0.5);
  return {h * dot(a, a) - h, h * dot(b, b) - h, h * dot(c, c) - h,
          h * dot(a, b),     h * dot(a, c),     h * dot(b, c)};
}

// Adds the energy density s |E - H|^2 to psi and its force, -volume * 2 s F (E - H) * gradient, to f.
template <class T>
void add_strain_force(const ElementData<T>& e, ElementKind kind, const material::M3<T>& F, T s,
                      const material::Sym3<T>& S, T& psi, material::V3<T> f[3]) {
  using namespace material;
  psi += s * (S.xx * S.xx + S.yy * S.yy + S.zz * S.zz + T(2) * (S.xy * S.xy + S.xz * S.xz + S.yz * S.yz));
  for (int a = 0; a < 3; ++a) {
    const V3<T> b = shape_gradient(e.B, a);
    const V3<T> Sb{{S.xx * b[0] + S.xy * b[1] + S.xz * b[2], S.xy * b[0] + S.yy * b[1] + S.yz * b[2],
                    S.xz * b[0] + S.yz * b[1] + S.zz * b[2]}};
    const V3<T> FSb = F * Sb;
    for (int i = 0; i < (kind == ElementKind::kPlaneTriangle ? 2 : 3); ++i)
      f[a][i] -= T(2) * s * e.volume * FSb[i];
  }
}

// Its second derivative. The part that is positive semi-definite by itself is
// volume s ((l . r) F F^T + (F r)(F l)^T) for the shape gradients l and r; the rest, 2 volume s (l . (E - H)
// r) I, vanishes with E - H and is left out of the projected matrix.
template <class T>
void add_strain_stiffness(const ElementData<T>& e, ElementKind kind, bool projected, const material::M3<T>& F,
                          T s, const material::Sym3<T>& S, material::M3<T> K[kElementBlocks]) {
  using namespace material;
  V3<T> b[3], Fb[3];
  for (int a = 0; a < 3; ++a) {
    b[a] = shape_gradient(e.B, a);
    Fb[a] = F * b[a];
  }
  M3<T> FFt;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) FFt(i, j) = F(i, 0) * F(j, 0) + F(i, 1) * F(j, 1) + F(i, 2) * F(j, 2);
  if (kind == ElementKind::kClothTriangle) {  // its normal has no strain
    const V3<T> n = F * rest_normal(e.B);
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) FFt(i, j) -= n[i] * n[j];
  }
  const T v = s * e.volume;
  for (int p = 0; p < 6; ++p) {
    const int l = kPair[p][0], r = kPair[p][1];
    const T lr = dot(b[l], b[r]);
    T rest(0);
    if (!projected)
      rest = T(2) * (b[l][0] * (S.xx * b[r][0] + S.xy * b[r][1] + S.xz * b[r][2]) +
                     b[l][1] * (S.xy * b[r][0] + S.yy * b[r][1] + S.yz * b[r][2]) +
                     b[l][2] * (S.xz * b[r][0] + S.yz * b[r][1] + S.zz * b[r][2]));
    const int n = kind == ElementKind::kPlaneTriangle ? 2 : 3;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i) {
        T value = lr * FFt(i, j) + Fb[r][i] * Fb[l][j];
        if (i == j) value += rest;
        K[kPair[p][2]](i, j) += v * value;
      }
  }
  add_node_zero(K);
}

}  // namespace limber::fem
