// The loops over points, for the instruction set that the including file is compiled for: kLanes points at a
// time, one per lane. Everything is in an anonymous namespace or a template over Pack: see
// fem/kernels_simd.hpp.
#pragma once

#include <limber/methods/mixed/kernels.hpp>
#include <limber/methods/mixed/stretch.hpp>

namespace limber::mixed {
namespace {

// Up to kLanes points; unused lanes repeat the last one.
struct Lanes {
  Index begin;
  int count;

  Index point(int lane) const { return begin + (lane < count ? lane : count - 1); }
  // Entry c of arrays with `stride` numbers a point.
  Pack read(const double* a, int stride, int c) const {
    Pack out;
    for (int lane = 0; lane < kLanes; ++lane)
      out.set(lane, a[static_cast<std::ptrdiff_t>(stride) * point(lane) + c]);
    return out;
  }
  void write(const Pack& value, double* a, int stride, int c) const {
    for (int lane = 0; lane < count; ++lane)
      a[static_cast<std::ptrdiff_t>(stride) * (begin + lane) + c] = value[lane];
  }

  M3<Pack> matrix(const double* a) const {
    M3<Pack> out;
    for (int c = 0; c < 9; ++c) out.a[c] = read(a, 9, c);
    return out;
  }
  Sym3<Pack> symmetric_matrix(const double* a, int stride = 6, int first = 0) const {
    return {read(a, stride, first),     read(a, stride, first + 1), read(a, stride, first + 2),
            read(a, stride, first + 3), read(a, stride, first + 4), read(a, stride, first + 5)};
  }
  void write(const Sym3<Pack>& v, double* a, int stride = 6, int first = 0) const {
    const Pack list[6] = {v.xx, v.yy, v.zz, v.xy, v.xz, v.yz};
    for (int c = 0; c < 6; ++c) write(list[c], a, stride, first + c);
  }
  void write(const M3<Pack>& v, double* a, int stride = 9, int first = 0) const {
    for (int c = 0; c < 9; ++c) write(v.a[c], a, stride, first + c);
  }
  void write(const RowTensor<Pack>& H, const Pack& weight, double* a) const {
    for (int t = 0; t < kTensorBlocks; ++t)
      for (int c = 0; c < 9; ++c) write(weight * H.block[t].a[c], a, 54, 9 * t + c);
  }

  // Z + alpha dZ, F + alpha dF
  Sym3<Pack> moved_symmetric(const double* Z, const double* dZ, double alpha) const {
    const Sym3<Pack> z = symmetric_matrix(Z);
    if (!dZ) return z;
    const Sym3<Pack> d = symmetric_matrix(dZ);
    const Pack a(alpha);
    return {z.xx + a * d.xx, z.yy + a * d.yy, z.zz + a * d.zz,
            z.xy + a * d.xy, z.xz + a * d.xz, z.yz + a * d.yz};
  }
  M3<Pack> moved_matrix(const double* F, const double* dF, double alpha) const {
    M3<Pack> f = matrix(F);
    if (!dF) return f;
    const M3<Pack> d = matrix(dF);
    for (int c = 0; c < 9; ++c) f.a[c] += Pack(alpha) * d.a[c];
    return f;
  }
};

// Calls body(lanes, model object, material, w).
template <class Body>
void for_points(const PointRange& r, Body&& body) {
  for (Index begin = r.begin; begin < r.end; begin += kLanes) {
    const Lanes at{begin, r.end - begin < kLanes ? r.end - begin : kLanes};
    PointMaterial<Pack> p{
        at.read(r.mu, 1, 0), at.read(r.lambda, 1, 0), Pack(0), {{Pack(0), Pack(0), Pack(0)}}};
    if (r.fibre != FibreModel::kNone) {
      p.k = at.read(r.k, 1, 0);
      p.d = {{at.read(r.d, 3, 0), at.read(r.d, 3, 1), at.read(r.d, 3, 2)}};
    }
    const Pack w = Pack(r.scale) * at.read(r.weight, 1, 0);
    material::with_model(r.model, p.mu, p.lambda, [&](const auto& model) { body(at, model, p, w); });
  }
}

// What update() needs, point by point: U, V, a, gap, stress, Q, scaling, flip, B of fibres.
void keep(const Lanes& at, const Stretch<Pack>& s, const Strain<Pack>& e, const Sym3<Pack>& gap,
          double* kept) {
  at.write(s.svd.U, kept, kKeptNumbers, 0);
  at.write(s.svd.V, kept, kKeptNumbers, 9);
  at.write(s.a, kept, kKeptNumbers, 18);
  at.write(gap, kept, kKeptNumbers, 27);
  at.write(e.stress, kept, kKeptNumbers, 33);
  at.write(e.Q, kept, kKeptNumbers, 39);
  at.write(e.scaling, kept, kKeptNumbers, 48);
  for (int k = 0; k < 3; ++k) at.write(e.flip[k], kept, kKeptNumbers, 54 + k);
  at.write(e.fibre_B, kept, kKeptNumbers, 57);
}

M3<Pack> kept_matrix(const Lanes& at, const double* kept, int first) {
  M3<Pack> out;
  for (int c = 0; c < 9; ++c) out.a[c] = at.read(kept, kKeptNumbers, first + c);
  return out;
}

void start(const PointRange& r, const double* F, double* Z, double* Lambda) {
  for_points(r, [&](const Lanes& at, const auto& model, const PointMaterial<Pack>& p, const Pack&) {
    const Sym3<Pack> S = stretch_matrix(material::svd(at.matrix(F)));
    at.write(S, Z);
    at.write(strain_of(model, r.fibre, p, S).stress, Lambda);
  });
}

void linearize(const PointRange& r, const double* F, const double* Z, const double* Lambda, bool geometric,
               double* kept, double* P, double* H) {
  const bool fibres = r.fibre != FibreModel::kNone;
  for_points(r, [&](const Lanes& at, const auto& model, const PointMaterial<Pack>& p, const Pack& w) {
    const Sym3<Pack> z = at.symmetric_matrix(Z);
    const Stretch<Pack> stretch = stretch_of(at.matrix(F));
    const Sym3<Pack> gap = stretch_matrix(stretch.svd) - z;
    const Strain<Pack> strain = strain_of(model, r.fibre, p, z);
    M3<Pack> g = stretch_adjoint(stretch, strain.stress + apply_hessian(strain, fibres, gap));
    for (Pack& e : g.a) e *= w;
    at.write(g, P);
    RowTensor<Pack> h;
    for (auto& block : h.block)
      for (Pack& e : block.a) e = Pack(0);
    add_condensed_hessian(stretch, strain, fibres, h);
    if (geometric) add_geometric_hessian(stretch, at.symmetric_matrix(Lambda), h);
    at.write(h, w, H);
    keep(at, stretch, strain, gap, kept);
  });
}

void update(const PointRange& r, const double* dF, const double* kept, double* dZ, double* Lambda,
            double* slope, double* square) {
  const bool fibres = r.fibre != FibreModel::kNone;
  for (Index begin = r.begin; begin < r.end; begin += kLanes) {
    const Lanes at{begin, r.end - begin < kLanes ? r.end - begin : kLanes};
    Stretch<Pack> s;
    s.svd.U = kept_matrix(at, kept, 0);
    s.svd.V = kept_matrix(at, kept, 9);
    s.a = kept_matrix(at, kept, 18);
    const Sym3<Pack> gap = at.symmetric_matrix(kept, kKeptNumbers, 27);
    Strain<Pack> e;
    e.stress = at.symmetric_matrix(kept, kKeptNumbers, 33);
    e.Q = kept_matrix(at, kept, 39);
    e.scaling = at.symmetric_matrix(kept, kKeptNumbers, 48);
    for (int k = 0; k < 3; ++k) e.flip[k] = at.read(kept, kKeptNumbers, 54 + k);
    const Sym3<Pack> dS = stretch_rate(s, at.matrix(dF));
    const Sym3<Pack> d = gap + dS;
    if (fibres) {
      e.fibre = {{at.read(r.d, 3, 0), at.read(r.d, 3, 1), at.read(r.d, 3, 2)}};
      e.fibre_B = at.symmetric_matrix(kept, kKeptNumbers, 57);
    }
    const Sym3<Pack> multiplier = e.stress + apply_hessian(e, fibres, d);
    at.write(d, dZ);
    at.write(multiplier, Lambda);
    const Pack w = Pack(r.scale) * at.read(r.weight, 1, 0);
    at.write(w * (contract(e.stress, d) + contract(multiplier, dS - d)), slope, 1, 0);
    at.write(at.read(r.weight, 1, 0) * contract(d, d), square, 1, 0);
  }
}

void lagrangian(const PointRange& r, const double* F, const double* dF, const double* Z, const double* dZ,
                const double* Lambda, double alpha, double* out) {
  for_points(r, [&](const Lanes& at, const auto& model, const PointMaterial<Pack>& p, const Pack& w) {
    const Sym3<Pack> z = at.moved_symmetric(Z, dZ, alpha);
    Pack e = strain_psi(model, r.fibre, p, z);
    if (Lambda)
      e += contract(at.symmetric_matrix(Lambda),
                    stretch_matrix(material::svd(at.moved_matrix(F, dF, alpha))) - z);
    at.write(w * e, out, 1, 0);
  });
}

void energy(const PointRange& r, const double* F, const double* dF, double alpha, double* out) {
  for_points(r, [&](const Lanes& at, const auto& model, const PointMaterial<Pack>& p, const Pack& w) {
    const M3<Pack> f = at.moved_matrix(F, dF, alpha);
    Pack e = material::model_psi(model, f, material::svd(f));
    if (r.fibre != FibreModel::kNone) e += material::fibre_terms(r.fibre, p.k, f * p.d).psi;
    at.write(w * e, out, 1, 0);
  });
}

void stress(const PointRange& r, const double* F, double* P, double* energies) {
  for_points(r, [&](const Lanes& at, const auto& model, const PointMaterial<Pack>& p, const Pack& w) {
    const M3<Pack> f = at.matrix(F);
    const material::Svd<Pack> svd = material::svd(f);
    Pack psi = material::model_psi(model, f, svd);
    M3<Pack> g = material::model_pk1(model, f, svd);
    if (r.fibre != FibreModel::kNone) {
      const auto terms = material::fibre_terms(r.fibre, p.k, f * p.d);
      psi += terms.psi;
      for (int j = 0; j < 3; ++j)
        for (int i = 0; i < 3; ++i) g(i, j) += terms.pk1d[i] * p.d[j];
    }
    for (Pack& e : g.a) e *= w;
    at.write(g, P);
    at.write(w * psi, energies, 1, 0);
  });
}

// The whole Hessian of psi, from its form in the frame of the singular values.
RowTensor<Pack> plain_hessian(const material::Svd<Pack>& svd, const material::Principal<Pack>& H) {
  RowTensor<Pack> out;
  for (auto& block : out.block)
    for (Pack& v : block.a) v = Pack(0);
  const V3<Pack> u[3] = {column(svd.U, 0), column(svd.U, 1), column(svd.U, 2)};
  const V3<Pack> v[3] = {column(svd.V, 0), column(svd.V, 1), column(svd.V, 2)};
  const auto outer = [&](int i, int j) {
    M3<Pack> P;
    for (int c = 0; c < 3; ++c)
      for (int r = 0; r < 3; ++r) P(r, c) = u[i][r] * v[j][c];
    return P;
  };
  const Sym3<Pack>& A = H.scaling;
  const M3<Pack> P[3] = {outer(0, 0), outer(1, 1), outer(2, 2)};
  const Pack c[3][3] = {{A.xx, A.xy, A.xz}, {A.xy, A.yy, A.yz}, {A.xz, A.yz, A.zz}};
  add_outer(P, c, out);
  for (int k = 0; k < 3; ++k) {
    const int i = k == 0 ? 1 : 0, j = k == 2 ? 1 : 2;
    const M3<Pack> pair[2] = {outer(i, j), outer(j, i)};
    const Pack same = Pack(0.5) * (H.flip[k] + H.twist[k]), swapped = Pack(0.5) * (H.flip[k] - H.twist[k]);
    const Pack w[2][2] = {{same, swapped}, {swapped, same}};
    add_outer(pair, w, out);
  }
  return out;
}

void stiffness(const PointRange& r, const double* F, bool projected, double* H) {
  for_points(r, [&](const Lanes& at, const auto& model, const PointMaterial<Pack>& p, const Pack& w) {
    const M3<Pack> f = at.matrix(F);
    const material::Svd<Pack> svd = material::svd(f);
    material::Principal<Pack> principal = model.principal(svd.s);
    if (projected) material::project(principal, model.kScalingIsPsd);
    RowTensor<Pack> h = plain_hessian(svd, principal);
    if (r.fibre != FibreModel::kNone) {
      const V3<Pack> y = f * p.d;
      const M3<Pack> B = full(material::fibre_hessian(material::fibre_terms(r.fibre, p.k, y), y, projected));
      for (int t = 0; t < kTensorBlocks; ++t)
        for (int l = 0; l < 3; ++l)
          for (int j = 0; j < 3; ++j) h.block[t](j, l) += B(kTensorRow[t], kTensorCol[t]) * p.d[j] * p.d[l];
    }
    at.write(h, w, H);
  });
}

constexpr PointKernels point_kernel_table(const char* name) {
  return {name, start, linearize, update, lagrangian, energy, stress, stiffness};
}

}  // namespace
}  // namespace limber::mixed
