// The arithmetic of one linear element, for one element (T = double) or one per lane (T = Pack).
//
// A tetrahedron with the nodes 0..3 has F = Ds B, Ds = (x1 - x0 | x2 - x0 | x3 - x0), B = Dm^-1; row a of B
// is the gradient of the shape function of node a + 1. A plane-strain triangle is the same with a last row of
// zeros and F33 = 1. Node 0 gets minus the sum of the others in force and stiffness.
#pragma once

#include <limber/material/fibre.hpp>
#include <limber/material/models.hpp>

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

template <class T>
material::M3<T> deformation_gradient(const material::M3<T>& Ds, const material::M3<T>& B, bool plane) {
  material::M3<T> F = Ds * B;
  if (plane) {
    F(2, 0) = F(2, 1) = F(0, 2) = F(1, 2) = T(0);
    F(2, 2) = T(1);
  }
  return F;
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
T element_force(const Model& model, FibreModel fibre, bool plane, const ElementData<T>& e,
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
    f[a] = P * V3<T>{{e.B(a, 0), e.B(a, 1), e.B(a, 2)}};
    if (plane) f[a][2] = T(0);
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

// K = d2E/dx2 [N/m].
template <class Model, class T>
void element_stiffness(const Model& model, FibreModel fibre, bool plane, bool projected,
                       const ElementData<T>& e, const material::M3<T>& F, const material::Svd<T>& svd,
                       material::M3<T> K[kElementBlocks]) {
  using namespace material;
  Principal<T> H = model.principal(svd.s);
  if (projected) project(H, Model::kScalingIsPsd);
  const T v = e.volume;
  const T A00 = v * H.scaling.xx, A11 = v * H.scaling.yy, A22 = v * H.scaling.zz;
  const T A01 = v * H.scaling.xy, A02 = v * H.scaling.xz, A12 = v * H.scaling.yz;
  T same[3], swapped[3];  // entry (ij, ij) and entry (ij, ji) of the Hessian in the plane that k is normal to
  for (int k = 0; k < 3; ++k) {
    same[k] = T(0.5) * v * (H.flip[k] + H.twist[k]);
    swapped[k] = T(0.5) * v * (H.flip[k] - H.twist[k]);
  }
  V3<T> b[3];  // shape gradients in the frame of V
  for (int a = 0; a < 3; ++a) b[a] = transposed_times(svd.V, V3<T>{{e.B(a, 0), e.B(a, 1), e.B(a, 2)}});
  // Row, column and place of the blocks between the nodes 1..3.
  constexpr int kPair[6][3] = {{0, 0, 1}, {1, 1, 2}, {2, 2, 3}, {1, 0, 7}, {2, 0, 8}, {2, 1, 9}};
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
  if (plane)
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
void add_strain_force(const ElementData<T>& e, bool plane, const material::M3<T>& F, T s,
                      const material::Sym3<T>& S, T& psi, material::V3<T> f[3]) {
  using namespace material;
  psi += s * (S.xx * S.xx + S.yy * S.yy + S.zz * S.zz + T(2) * (S.xy * S.xy + S.xz * S.xz + S.yz * S.yz));
  for (int a = 0; a < 3; ++a) {
    const V3<T> b{{e.B(a, 0), e.B(a, 1), e.B(a, 2)}};
    const V3<T> Sb{{S.xx * b[0] + S.xy * b[1] + S.xz * b[2], S.xy * b[0] + S.yy * b[1] + S.yz * b[2],
                    S.xz * b[0] + S.yz * b[1] + S.zz * b[2]}};
    const V3<T> FSb = F * Sb;
    for (int i = 0; i < (plane ? 2 : 3); ++i) f[a][i] -= T(2) * s * e.volume * FSb[i];
  }
}

// Its second derivative. The part that is positive semi-definite by itself is
// volume s ((l . r) F F^T + (F r)(F l)^T) for the shape gradients l and r; the rest, 2 volume s (l . (E - H)
// r) I, vanishes with E - H and is left out of the projected matrix.
template <class T>
void add_strain_stiffness(const ElementData<T>& e, bool plane, bool projected, const material::M3<T>& F, T s,
                          const material::Sym3<T>& S, material::M3<T> K[kElementBlocks]) {
  using namespace material;
  V3<T> b[3], Fb[3];
  for (int a = 0; a < 3; ++a) {
    b[a] = {{e.B(a, 0), e.B(a, 1), e.B(a, 2)}};
    Fb[a] = F * b[a];
  }
  M3<T> FFt;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) FFt(i, j) = F(i, 0) * F(j, 0) + F(i, 1) * F(j, 1) + F(i, 2) * F(j, 2);
  const T v = s * e.volume;
  constexpr int kPair[6][3] = {{0, 0, 1}, {1, 1, 2}, {2, 2, 3}, {1, 0, 7}, {2, 0, 8}, {2, 1, 9}};
  for (int p = 0; p < 6; ++p) {
    const int l = kPair[p][0], r = kPair[p][1];
    const T lr = dot(b[l], b[r]);
    T rest(0);
    if (!projected)
      rest = T(2) * (b[l][0] * (S.xx * b[r][0] + S.xy * b[r][1] + S.xz * b[r][2]) +
                     b[l][1] * (S.xy * b[r][0] + S.yy * b[r][1] + S.yz * b[r][2]) +
                     b[l][2] * (S.xz * b[r][0] + S.yz * b[r][1] + S.zz * b[r][2]));
    const int n = plane ? 2 : 3;
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
