#include <limber/methods/mixed/points.hpp>

#include <limber/core/parallel.hpp>
#include <limber/material/lame.hpp>

#include <Eigen/LU>

#include <algorithm>
#include <tuple>
#include <type_traits>

namespace limber::mixed {
namespace {

constexpr std::ptrdiff_t kBatchGrain = 8;

Index lane_point(const PointBatch& b, int lane) { return b.begin + std::min(lane, b.count - 1); }

// Component c of an array with `stride` numbers a point.
Pack lanes_of(const PointBatch& b, const std::vector<double>& a, int stride, int c) {
  Pack out;
  for (int lane = 0; lane < kLanes; ++lane)
    out.set(lane, a[static_cast<std::size_t>(stride) * at(lane_point(b, lane)) + static_cast<std::size_t>(c)]);
  return out;
}

void store_lanes(const PointBatch& b, const Pack& value, std::vector<double>& a, int stride, int c) {
  for (int lane = 0; lane < b.count; ++lane)
    a[static_cast<std::size_t>(stride) * at(b.begin + lane) + static_cast<std::size_t>(c)] = value[lane];
}

M3<Pack> load_matrix(const PointBatch& b, const std::vector<double>& a) {
  M3<Pack> out;
  for (int c = 0; c < 9; ++c) out.a[c] = lanes_of(b, a, 9, c);
  return out;
}

Sym3<Pack> load_symmetric(const PointBatch& b, const std::vector<double>& a) {
  return {lanes_of(b, a, 6, 0), lanes_of(b, a, 6, 1), lanes_of(b, a, 6, 2),
          lanes_of(b, a, 6, 3), lanes_of(b, a, 6, 4), lanes_of(b, a, 6, 5)};
}

void store_symmetric(const PointBatch& b, const Sym3<Pack>& v, std::vector<double>& a) {
  const Pack list[6] = {v.xx, v.yy, v.zz, v.xy, v.xz, v.yz};
  for (int c = 0; c < 6; ++c) store_lanes(b, list[c], a, 6, c);
}

void store_matrix(const PointBatch& b, const M3<Pack>& v, std::vector<double>& a) {
  for (int c = 0; c < 9; ++c) store_lanes(b, v.a[c], a, 9, c);
}

void store_tensor(const PointBatch& b, const RowTensor<Pack>& H, const Pack& weight, std::vector<double>& a) {
  for (int t = 0; t < kTensorBlocks; ++t)
    for (int c = 0; c < 9; ++c) store_lanes(b, weight * H.block[t].a[c], a, 54, 9 * t + c);
}

PointMaterial<Pack> material_of(const PointBatch& b, const std::vector<double>& activation) {
  PointMaterial<Pack> p{b.mu, b.lambda, b.k, b.direction};
  if (b.fibre != FibreModel::kNone) {
    Pack stretch = 1;
    for (int lane = 0; lane < kLanes; ++lane)
      if (b.channel[lane] >= 0) stretch.set(lane, 1 - activation[at(b.channel[lane])]);
    p.d = material::scaled(b.direction, Pack(1) / stretch);
  }
  return p;
}

// dZ-like arrays may be empty: zero.
Sym3<Pack> moved(const PointBatch& b, const std::vector<double>& Z, const std::vector<double>& dZ,
                 double alpha) {
  Sym3<Pack> z = load_symmetric(b, Z);
  if (dZ.empty() || alpha == 0) return z;
  const Sym3<Pack> d = load_symmetric(b, dZ);
  const Pack a(alpha);
  return {z.xx + a * d.xx, z.yy + a * d.yy, z.zz + a * d.zz, z.xy + a * d.xy, z.xz + a * d.xz, z.yz + a * d.yz};
}

M3<Pack> moved_gradient(const PointBatch& b, const std::vector<double>& F, const std::vector<double>& dF,
                        double alpha) {
  M3<Pack> f = load_matrix(b, F);
  if (dF.empty() || alpha == 0) return f;
  const M3<Pack> d = load_matrix(b, dF);
  for (int c = 0; c < 9; ++c) f.a[c] += Pack(alpha) * d.a[c];
  return f;
}

double lane_sum(const Pack& v) {
  double sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += v[lane];
  return sum;
}

// Runs body(batch, number of the batch) -> Pack in parallel and returns the sum over all lanes.
template <class Body>
double sum_batches(const std::vector<PointBatch>& batches, Body&& body) {
  std::vector<double> part(batches.size());
  parallel_for(static_cast<std::ptrdiff_t>(batches.size()), kBatchGrain, [&](std::ptrdiff_t i) {
    const auto k = static_cast<std::size_t>(i);
    part[k] = lane_sum(body(batches[k], k));
  });
  double sum = 0;
  for (const double p : part) sum += p;
  return sum;
}

// The whole 9x9 Hessian of psi in the frame of the singular values, as a RowTensor.
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

}  // namespace

Points::Points(std::vector<Point> points) : points_(std::move(points)) {
  const auto kind = [](const Point& p) { return std::pair(p.material.model, p.material.fibre); };
  for (std::size_t begin = 0; begin < points_.size();) {
    std::size_t end = begin + 1;
    while (end < points_.size() && end < begin + kLanes && kind(points_[end]) == kind(points_[begin])) ++end;
    PointBatch b{};
    b.begin = static_cast<Index>(begin);
    b.count = static_cast<int>(end - begin);
    std::tie(b.model, b.fibre) = kind(points_[begin]);
    for (int lane = 0; lane < kLanes; ++lane) {
      const Point& p = points_[at(lane_point(b, lane))];
      const material::Lame l = material::lame(p.material.young, p.material.poisson);
      b.weight.set(lane, lane < b.count ? p.weight : 0.0);
      b.mu.set(lane, l.mu);
      b.lambda.set(lane, l.lambda);
      b.k.set(lane, p.material.fibre_stiffness);
      for (int i = 0; i < 3; ++i) b.direction[i].set(lane, p.material.fibre_direction[i]);
      b.channel[static_cast<std::size_t>(lane)] = p.material.activation_channel;
    }
    batches_.push_back(b);
    begin = end;
  }
  for (const Point& p : points_) {
    volume_ += p.weight;
    elastic_scale_ += p.weight * p.material.young;
  }
  kept_.resize(batches_.size());
}

void Points::set_activation(std::span<const double> activation) {
  activation_.assign(activation.begin(), activation.end());
}

void Points::start(const std::vector<double>& F, std::vector<double>& Z, std::vector<double>& Lambda) const {
  Z.resize(6 * points_.size());
  Lambda.resize(6 * points_.size());
  sum_batches(batches_, [&](const PointBatch& b, std::size_t) {
    const Sym3<Pack> S = stretch_matrix(material::svd(load_matrix(b, F)));
    store_symmetric(b, S, Z);
    const PointMaterial<Pack> p = material_of(b, activation_);
    store_symmetric(b, material::with_model(b.model, p.mu, p.lambda, [&](const auto& model) {
                      return strain_of(model, b.fibre, p, S).stress;
                    }),
                    Lambda);
    return Pack(0);
  });
}

void Points::linearize(const std::vector<double>& F, const std::vector<double>& Z,
                       const std::vector<double>& Lambda, bool geometric, double scale, std::vector<double>& P,
                       std::vector<double>& H) {
  P.resize(9 * points_.size());
  H.resize(54 * points_.size());
  sum_batches(batches_, [&](const PointBatch& b, std::size_t i) {
    KeptPoint& kept = kept_[i];
    const bool fibres = b.fibre != FibreModel::kNone;
    const Sym3<Pack> z = load_symmetric(b, Z);
    kept.stretch = stretch_of(load_matrix(b, F));
    kept.gap = stretch_matrix(kept.stretch.svd) - z;
    const PointMaterial<Pack> p = material_of(b, activation_);
    material::with_model(b.model, p.mu, p.lambda,
                         [&](const auto& model) { kept.strain = strain_of(model, b.fibre, p, z); });
    const Pack w = Pack(scale) * b.weight;
    M3<Pack> g = stretch_adjoint(kept.stretch, kept.strain.stress + apply_hessian(kept.strain, fibres, kept.gap));
    for (Pack& e : g.a) e *= w;
    store_matrix(b, g, P);
    RowTensor<Pack> h{};
    add_condensed_hessian(kept.stretch, kept.strain, fibres, h);
    if (geometric) add_geometric_hessian(kept.stretch, load_symmetric(b, Lambda), h);
    store_tensor(b, h, w, H);
    return Pack(0);
  });
}

double Points::update(const std::vector<double>& dF, double scale, std::vector<double>& dZ,
                      std::vector<double>& Lambda, double& strain) const {
  dZ.resize(6 * points_.size());
  Lambda.resize(6 * points_.size());
  std::vector<double> squares(batches_.size());
  const double slope = sum_batches(batches_, [&](const PointBatch& b, std::size_t i) {
    const KeptPoint& kept = kept_[i];
    const Sym3<Pack> dS = stretch_rate(kept.stretch, load_matrix(b, dF));
    const Sym3<Pack> d = kept.gap + dS;
    const Sym3<Pack> multiplier = kept.strain.stress + apply_hessian(kept.strain, b.fibre != FibreModel::kNone, d);
    store_symmetric(b, d, dZ);
    store_symmetric(b, multiplier, Lambda);
    const Pack w = Pack(scale) * b.weight;
    squares[i] = lane_sum(b.weight * contract(d, d));
    return w * (contract(kept.strain.stress, d) + contract(multiplier, dS - d));
  });
  strain = 0;
  for (const double s : squares) strain += s;
  return slope;
}

double Points::lagrangian(const std::vector<double>& F, const std::vector<double>& dF,
                          const std::vector<double>& Z, const std::vector<double>& dZ,
                          const std::vector<double>& Lambda, double alpha, double scale) const {
  return sum_batches(batches_, [&](const PointBatch& b, std::size_t) {
    const Sym3<Pack> z = moved(b, Z, dZ, alpha);
    const PointMaterial<Pack> p = material_of(b, activation_);
    Pack e = material::with_model(b.model, p.mu, p.lambda,
                                  [&](const auto& model) { return strain_psi(model, b.fibre, p, z); });
    if (!Lambda.empty())
      e += contract(load_symmetric(b, Lambda),
                    stretch_matrix(material::svd(moved_gradient(b, F, dF, alpha))) - z);
    return Pack(scale) * b.weight * e;
  });
}

double Points::energy(const std::vector<double>& F, const std::vector<double>& dF, double alpha,
                      double scale) const {
  return sum_batches(batches_, [&](const PointBatch& b, std::size_t) {
    const M3<Pack> f = moved_gradient(b, F, dF, alpha);
    const PointMaterial<Pack> p = material_of(b, activation_);
    Pack e = material::with_model(b.model, p.mu, p.lambda, [&](const auto& model) {
      if constexpr (std::decay_t<decltype(model)>::kForceNeedsSvd)
        return model.psi(material::svd(f).s);
      else
        return model.psi(f);
    });
    if (b.fibre != FibreModel::kNone) e += material::fibre_terms(b.fibre, p.k, f * p.d).psi;
    return Pack(scale) * b.weight * e;
  });
}

double Points::stress(const std::vector<double>& F, double scale, std::vector<double>& P) const {
  P.resize(9 * points_.size());
  return sum_batches(batches_, [&](const PointBatch& b, std::size_t) {
    const M3<Pack> f = load_matrix(b, F);
    const material::Svd<Pack> svd = material::svd(f);
    const PointMaterial<Pack> p = material_of(b, activation_);
    Pack psi;
    M3<Pack> g = material::with_model(b.model, p.mu, p.lambda, [&](const auto& model) {
      psi = material::model_psi(model, f, svd);
      return material::model_pk1(model, f, svd);
    });
    if (b.fibre != FibreModel::kNone) {
      const auto terms = material::fibre_terms(b.fibre, p.k, f * p.d);
      psi += terms.psi;
      for (int j = 0; j < 3; ++j)
        for (int i = 0; i < 3; ++i) g(i, j) += terms.pk1d[i] * p.d[j];
    }
    const Pack w = Pack(scale) * b.weight;
    for (Pack& e : g.a) e *= w;
    store_matrix(b, g, P);
    return w * psi;
  });
}

void Points::stiffness(const std::vector<double>& F, bool projected, double scale,
                       std::vector<double>& H) const {
  H.resize(54 * points_.size());
  sum_batches(batches_, [&](const PointBatch& b, std::size_t) {
    const M3<Pack> f = load_matrix(b, F);
    const material::Svd<Pack> svd = material::svd(f);
    const PointMaterial<Pack> p = material_of(b, activation_);
    const material::Principal<Pack> principal =
        material::with_model(b.model, p.mu, p.lambda, [&](const auto& model) {
          material::Principal<Pack> h = model.principal(svd.s);
          if (projected) material::project(h, std::decay_t<decltype(model)>::kScalingIsPsd);
          return h;
        });
    RowTensor<Pack> h = plain_hessian(svd, principal);
    if (b.fibre != FibreModel::kNone) {
      const V3<Pack> w = f * p.d;
      const M3<Pack> B = full(material::fibre_hessian(material::fibre_terms(b.fibre, p.k, w), w, projected));
      for (int t = 0; t < kTensorBlocks; ++t)
        for (int l = 0; l < 3; ++l)
          for (int j = 0; j < 3; ++j)
            h.block[t](j, l) += B(kTensorRow[t], kTensorCol[t]) * p.d[j] * p.d[l];
    }
    store_tensor(b, h, Pack(scale) * b.weight, H);
    return Pack(0);
  });
}

Index Points::inverted(const std::vector<double>& F) const {
  Index count = 0;
  for (std::size_t c = 0; c < points_.size(); ++c)
    count += Eigen::Map<const Mat3>(F.data() + 9 * c).determinant() <= 0;
  return count;
}

}  // namespace limber::mixed
