// The arithmetic of one cubature point of mixed FEM, for one point (T = double) or one per lane (T = Pack).
//
// F = U diag(s) V^T = R S with the stretch S(F) = V diag(s) V^T. In the frame of U and V, with A = U^T dF V,
//   dS_ij = (s_i A_ij + s_j A_ji) / (s_i + s_j)
//   d2S_ij = 2 (A^T A - dS dS)_ij / (s_i + s_j)
// both from differentiating S S = F^T F. The strain energy is a function of a symmetric matrix Z of its own
// (the paper's z), tied to S(F) by the multiplier Lambda (its mu): the paper's diag(1,1,1,2,2,2) is the
// contraction of symmetric matrices, mu^T D (s - z) = Lambda : (S - Z).
#pragma once

#include <limber/material/fibre.hpp>
#include <limber/material/models.hpp>

namespace limber::mixed {

using material::M3;
using material::Sym3;
using material::V3;

template <class T>
Sym3<T> operator+(const Sym3<T>& a, const Sym3<T>& b) {
  return {a.xx + b.xx, a.yy + b.yy, a.zz + b.zz, a.xy + b.xy, a.xz + b.xz, a.yz + b.yz};
}

template <class T>
Sym3<T> operator-(const Sym3<T>& a, const Sym3<T>& b) {
  return {a.xx - b.xx, a.yy - b.yy, a.zz - b.zz, a.xy - b.xy, a.xz - b.xz, a.yz - b.yz};
}

// A : B
template <class T>
T contract(const Sym3<T>& a, const Sym3<T>& b) {
  return a.xx * b.xx + a.yy * b.yy + a.zz * b.zz + T(2) * (a.xy * b.xy + a.xz * b.xz + a.yz * b.yz);
}

template <class T>
M3<T> full(const Sym3<T>& a) {
  return {{a.xx, a.xy, a.xz, a.xy, a.yy, a.yz, a.xz, a.yz, a.zz}};
}

// The symmetric part of A.
template <class T>
Sym3<T> symmetric(const M3<T>& A) {
  const T h(0.5);
  return {
      A(0, 0), A(1, 1), A(2, 2), h * (A(0, 1) + A(1, 0)), h * (A(0, 2) + A(2, 0)), h * (A(1, 2) + A(2, 1))};
}

template <class T>
M3<T> transposed(const M3<T>& A) {
  return {{A.a[0], A.a[3], A.a[6], A.a[1], A.a[4], A.a[7], A.a[2], A.a[5], A.a[8]}};
}

// Q^T N Q, and Q N Q^T.
template <class T>
Sym3<T> into_frame(const M3<T>& Q, const Sym3<T>& N) {
  return symmetric(transposed(Q) * (full(N) * Q));
}
template <class T>
Sym3<T> out_of_frame(const M3<T>& Q, const Sym3<T>& N) {
  return symmetric(Q * (full(N) * transposed(Q)));
}

// Z = Q diag(q) Q^T, Q a rotation; in no particular order.
template <class T>
struct SymmetricEigen {
  M3<T> Q;
  V3<T> q;
};

template <class T>
SymmetricEigen<T> symmetric_eigen(const Sym3<T>& Z) {
  T lambda;
  V3<T> v, a, b;
  material::isolated_eigenpair(Z, lambda, v);
  material::complete_frame(v, a, b);
  const M3<T> Zf = full(Z);
  const V3<T> Za = Zf * a, Zb = Zf * b, Zv = Zf * v;
  // One Jacobi rotation of the plane of a and b.
  const T half = T(0.5) * (dot(a, Za) - dot(b, Zb)), off = dot(a, Zb),
          mean = T(0.5) * (dot(a, Za) + dot(b, Zb));
  const auto [c, s, r] = material::jacobi_rotation<T>(half, off);
  SymmetricEigen<T> out;
  for (int i = 0; i < 3; ++i) {
    out.Q(i, 0) = c * a[i] + s * b[i];
    out.Q(i, 1) = c * b[i] - s * a[i];
    out.Q(i, 2) = v[i];
  }
  out.q = {{mean + r, mean - r, dot(v, Zv)}};
  return out;
}

// S(F) and its derivative.
template <class T>
struct Stretch {
  material::Svd<T> svd;
  M3<T> a;  // 2 s_i / (s_i + s_j): weights of A_ij in dS
};

// Where an inverted element has s_i + s_j = 0 its rotation is not unique and S has a kink; the sum as a
// divisor is kept away from it. That changes directions there, never the energy.
inline constexpr double kLeastPairSum = 1e-3;

template <class T>
T stretch_pair_sum(const T& si, const T& sj) {
  return vmax(si + sj, T(kLeastPairSum));
}

template <class T>
Stretch<T> stretch_of(const M3<T>& F) {
  Stretch<T> out;
  out.svd = material::svd(F);
  const V3<T>& s = out.svd.s;
  for (int i = 0; i < 3; ++i) {
    out.a(i, i) = T(1);
    for (int j = 0; j < i; ++j) {
      const T inverse = T(1) / stretch_pair_sum(s[i], s[j]);
      out.a(i, j) = T(2) * s[i] * inverse;
      out.a(j, i) = T(2) * s[j] * inverse;
    }
  }
  return out;
}

template <class T>
Sym3<T> stretch_matrix(const material::Svd<T>& svd) {
  return symmetric(material::times_diagonal_transposed(svd.V, svd.s, svd.V));
}

// dS for a change dF of F.
template <class T>
Sym3<T> stretch_rate(const Stretch<T>& at, const M3<T>& dF) {
  const M3<T> A = transposed(at.svd.U) * (dF * at.svd.V);
  M3<T> weighted;
  for (int i = 0; i < 9; ++i) weighted.a[i] = at.a.a[i] * A.a[i];
  return out_of_frame(at.svd.V, symmetric(weighted));
}

// The adjoint: P with P : dF = N : dS for every dF.
template <class T>
M3<T> stretch_adjoint(const Stretch<T>& at, const Sym3<T>& N) {
  M3<T> P = full(into_frame(at.svd.V, N));
  for (int i = 0; i < 9; ++i) P.a[i] *= at.a.a[i];
  return at.svd.U * (P * transposed(at.svd.V));
}

// The strain energy of a stretch Z and its derivatives.
template <class T>
struct Strain {
  T psi;            // [J/m^3]
  Sym3<T> stress;   // dpsi/dZ [Pa]
  M3<T> Q;          // H_z = d2psi/dZ2, made positive semi-definite, is in the frame of Q the 3x3 matrix
  Sym3<T> scaling;  // `scaling` on the diagonal entries
  T flip[3];        // and flip[k] on the entry of the other two
  V3<T> fibre;      // fibre direction / rest stretch; it adds (dZ d)^T B (dZ d)
  Sym3<T> fibre_B;
};

// What a model needs of a point.
template <class T>
struct PointMaterial {
  T mu, lambda;  // Lame's constants [Pa]
  T k;           // fibre stiffness [Pa]
  V3<T> d;       // fibre direction / rest stretch
};

// Eigenvalues of H_z are kept above this share of the shear modulus.
inline constexpr double kStretchFloor = 1e-6;

template <class Model, class T>
T principal_psi(const Model& model, const V3<T>& q) {
  if constexpr (Model::kForceNeedsSvd)
    return model.psi(q);
  else
    return model.psi(M3<T>{{q[0], T(0), T(0), T(0), q[1], T(0), T(0), T(0), q[2]}});
}

template <class Model, class T>
V3<T> principal_stress(const Model& model, const V3<T>& q) {
  if constexpr (Model::kForceNeedsSvd) {
    return model.stress(q);
  } else {
    const M3<T> P = model.pk1(M3<T>{{q[0], T(0), T(0), T(0), q[1], T(0), T(0), T(0), q[2]}});
    return {{P(0, 0), P(1, 1), P(2, 2)}};
  }
}

template <class Model, class T>
T strain_psi(const Model& model, FibreModel fibre, const PointMaterial<T>& p, const Sym3<T>& Z) {
  T psi;
  if constexpr (Model::kForceNeedsSvd)
    psi = model.psi(symmetric_eigen(Z).q);
  else
    psi = model.psi(full(Z));
  if (fibre != FibreModel::kNone) psi += material::fibre_terms(fibre, p.k, full(Z) * p.d).psi;
  return psi;
}

template <class Model, class T>
Strain<T> strain_of(const Model& model, FibreModel fibre, const PointMaterial<T>& p, const Sym3<T>& Z) {
  Strain<T> out;
  out.fibre = {{T(0), T(0), T(0)}};
  out.fibre_B = {T(0), T(0), T(0), T(0), T(0), T(0)};
  const SymmetricEigen<T> e = symmetric_eigen(Z);
  out.psi = principal_psi(model, e.q);
  const V3<T> g = principal_stress(model, e.q);
  out.stress = symmetric(material::times_diagonal_transposed(e.Q, g, e.Q));
  out.Q = e.Q;
  material::Principal<T> H = model.principal(e.q);
  const T floor = T(kStretchFloor) * p.mu;
  for (int k = 0; k < 3; ++k) out.flip[k] = vmax(H.flip[k], floor);
  out.scaling = Model::kScalingIsPsd ? H.scaling : material::project_psd(H.scaling);
  out.scaling.xx += floor;
  out.scaling.yy += floor;
  out.scaling.zz += floor;
  if (fibre != FibreModel::kNone) {
    const V3<T> w = full(Z) * p.d;
    const auto terms = material::fibre_terms(fibre, p.k, w);
    out.psi += terms.psi;
    M3<T> P;
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) P(i, j) = terms.pk1d[i] * p.d[j];
    out.stress = out.stress + symmetric(P);
    out.fibre = p.d;
    out.fibre_B = material::fibre_hessian(terms, w, true);
  }
  return out;
}

// H_z : X
template <class T>
Sym3<T> apply_hessian(const Strain<T>& strain, bool fibres, const Sym3<T>& X) {
  const Sym3<T> x = into_frame(strain.Q, X);
  const Sym3<T>& A = strain.scaling;
  const Sym3<T> y{A.xx * x.xx + A.xy * x.yy + A.xz * x.zz,
                  A.xy * x.xx + A.yy * x.yy + A.yz * x.zz,
                  A.xz * x.xx + A.yz * x.yy + A.zz * x.zz,
                  strain.flip[2] * x.xy,
                  strain.flip[1] * x.xz,
                  strain.flip[0] * x.yz};
  Sym3<T> out = out_of_frame(strain.Q, y);
  if (fibres) {
    const V3<T> Bw = full(strain.fibre_B) * (full(X) * strain.fibre);
    M3<T> P;
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) P(i, j) = Bw[i] * strain.fibre[j];
    out = out + symmetric(P);
  }
  return out;
}

// A symmetric 9x9 matrix on F as the six 3x3 blocks (xx, yy, zz, xy, xz, yz) between rows of F: entry (j, l)
// of the block (i, k) belongs to F_ij and F_kl. Column-major.
inline constexpr int kTensorBlocks = 6;
constexpr int kTensorRow[6] = {0, 1, 2, 0, 0, 1}, kTensorCol[6] = {0, 1, 2, 1, 2, 2};

template <class T>
struct RowTensor {
  M3<T> block[kTensorBlocks];
};

// H += sum of c_ab P_a P_b^T over a, b < n, with c symmetric.
template <class T, int n>
void add_outer(const M3<T> (&P)[n], const T (&c)[n][n], RowTensor<T>& H) {
  for (int a = 0; a < n; ++a) {
    M3<T> R;  // sum over b of c_ab P_b
    for (int e = 0; e < 9; ++e) {
      T sum = c[a][0] * P[0].a[e];
      for (int b = 1; b < n; ++b) sum += c[a][b] * P[b].a[e];
      R.a[e] = sum;
    }
    for (int t = 0; t < kTensorBlocks; ++t)
      for (int l = 0; l < 3; ++l)
        for (int j = 0; j < 3; ++j) H.block[t](j, l) += P[a](kTensorRow[t], j) * R(kTensorCol[t], l);
  }
}

// dS^T H_z dS: the condensed stiffness of a point, the 9x9 kernel of the paper's K (Eq. 6).
template <class T>
void add_condensed_hessian(const Stretch<T>& at, const Strain<T>& strain, bool fibres, RowTensor<T>& H) {
  const auto adjoint_of = [&](const V3<T>& p, const V3<T>& q) {  // of sym(p q^T)
    M3<T> N;
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) N(i, j) = p[i] * q[j];
    return stretch_adjoint(at, symmetric(N));
  };
  const V3<T> q[3] = {column(strain.Q, 0), column(strain.Q, 1), column(strain.Q, 2)};
  const M3<T> P[3] = {adjoint_of(q[0], q[0]), adjoint_of(q[1], q[1]), adjoint_of(q[2], q[2])};
  const Sym3<T>& A = strain.scaling;
  const T c[3][3] = {{A.xx, A.xy, A.xz}, {A.xy, A.yy, A.yz}, {A.xz, A.yz, A.zz}};
  add_outer(P, c, H);
  // The unit matrices (q_i q_j^T + q_j q_i^T) / sqrt(2): sqrt(2) sym(q_i q_j^T).
  const M3<T> N[3] = {adjoint_of(q[1], q[2]), adjoint_of(q[0], q[2]), adjoint_of(q[0], q[1])};
  for (int k = 0; k < 3; ++k) {
    const M3<T> one[1] = {N[k]};
    const T weight[1][1] = {{T(2) * strain.flip[k]}};
    add_outer(one, weight, H);
  }
  if (!fibres) return;
  const M3<T> D[3] = {adjoint_of(V3<T>{{T(1), T(0), T(0)}}, strain.fibre),
                      adjoint_of(V3<T>{{T(0), T(1), T(0)}}, strain.fibre),
                      adjoint_of(V3<T>{{T(0), T(0), T(1)}}, strain.fibre)};
  const Sym3<T>& B = strain.fibre_B;
  const T b[3][3] = {{B.xx, B.xy, B.xz}, {B.xy, B.yy, B.yz}, {B.xz, B.yz, B.zz}};
  add_outer(D, b, H);
}

// Lambda : d2S/dF2, the term that the paper's Eq. 5 leaves out. Signed. Exact where no pair sum is clamped.
template <class T>
void add_geometric_hessian(const Stretch<T>& at, const Sym3<T>& Lambda, RowTensor<T>& H) {
  const M3<T> t = full(into_frame(at.svd.V, Lambda));
  const V3<T>& s = at.svd.s;
  // In the frame: h[(i,j),(k,l)], index i + 3 j of A_ij.
  T h[9][9];
  for (auto& row : h)
    for (T& value : row) value = T(0);
  for (int i = 0; i < 3; ++i)
    for (int k = 0; k < 3; ++k) {
      if (k == i) continue;
      // t_ii (A_ki^2 - dS_ki^2) / s_i, with s_i cancelled.
      const T inverse = T(1) / stretch_pair_sum(s[i], s[k]);
      const T c = t(i, i) * inverse * inverse;
      const int u = k + 3 * i, v = i + 3 * k;
      h[u][u] += c * (s[i] + T(2) * s[k]);
      h[u][v] -= c * s[k];
      h[v][u] -= c * s[k];
      h[v][v] -= c * s[i];
      // 2 t_ik (A^T A - dS dS)_ik / (s_i + s_k)
      const T n = T(2) * t(i, k) * inverse;
      for (int j = 0; j < 3; ++j) {
        h[j + 3 * i][j + 3 * k] += n;
        // dS_ji = (a_ji A_ji + a_ij A_ij) / 2
        const int left[2] = {j + 3 * i, i + 3 * j}, right[2] = {j + 3 * k, k + 3 * j};
        const T l[2] = {at.a(j, i), at.a(i, j)}, r[2] = {at.a(j, k), at.a(k, j)};
        for (int p = 0; p < 2; ++p)
          for (int q = 0; q < 2; ++q) h[left[p]][right[q]] -= T(0.25) * n * l[p] * r[q];
      }
    }
  // Out of the frame: dF = U A V^T.
  const auto turn = [&](const T* in, T* out) {  // a 9-vector
    M3<T> A;
    for (int e = 0; e < 9; ++e) A.a[e] = in[e];
    const M3<T> B = at.svd.U * (A * transposed(at.svd.V));
    for (int e = 0; e < 9; ++e) out[e] = B.a[e];
  };
  T g[9][9];
  for (int r = 0; r < 9; ++r) turn(h[r], g[r]);
  for (int c = 0; c < 9; ++c) {
    T in[9], out[9];
    for (int r = 0; r < 9; ++r) in[r] = g[r][c];
    turn(in, out);
    for (int r = 0; r < 9; ++r) g[r][c] = out[r];
  }
  for (int b = 0; b < kTensorBlocks; ++b)
    for (int l = 0; l < 3; ++l)
      for (int j = 0; j < 3; ++j) H.block[b](j, l) += g[kTensorRow[b] + 3 * j][kTensorCol[b] + 3 * l];
}

}  // namespace limber::mixed
