#include <limber/methods/condense/domains.hpp>

#include <limber/core/error.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/linalg/tall.hpp>
#include <limber/reduction/linear_modes.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace limber::condense {
namespace {

constexpr double kNewMode = 1e-3;  // of a vibration mode's length that must be new
constexpr double kOverlap = 0.2;   // of a node's greatest weight: bones below have no share in it

// A node's share in a domain.
struct Share {
  Index node;
  double phi;
};

// By bones; nodes ascend. One list of all nodes when domains are not asked for.
std::vector<std::vector<Share>> domain_shares(const Skeleton& skeleton, const BoneSkinning& skinning,
                                              bool bones) {
  std::vector<std::vector<Share>> out(bones ? at(skinning.bones()) : 1);
  for (Index i = 0; i < skinning.nodes(); ++i) {
    if (!bones) {
      out[0].push_back({i, 1});
      continue;
    }
    if (skeleton.bone_of_node[at(i)] >= 0) continue;
    const std::span<const double> weights = skinning.weights_of(i);
    double sum = 0;
    for (const double w : weights) sum += std::max(0.0, w - kOverlap * weights[0]);
    for (std::size_t k = 0; k < weights.size(); ++k)
      if (const double w = weights[k] - kOverlap * weights[0]; w > 0)
        out[at(skinning.bones_of(i)[k])].push_back({i, w / sum});
  }
  std::erase_if(out, [](const std::vector<Share>& list) { return list.empty(); });
  return out;
}

// Singular vectors of one domain, by masses times shares.
struct DomainVectors {
  MatX weighted;
  DenseEigen svd;
  VecX root;  // of mass times share, relative to the mean mass
};

DomainVectors domain_vectors(const Model& model, const std::vector<Share>& shares, double mean_mass,
                             const MatX& displacements) {
  DomainVectors out;
  const auto n = static_cast<Eigen::Index>(shares.size());
  out.root.resize(3 * n);
  out.weighted.resize(3 * n, displacements.cols());
  for (Eigen::Index k = 0; k < n; ++k) {
    const Share& s = shares[static_cast<std::size_t>(k)];
    out.root.segment<3>(3 * k) = (s.phi * node(model.mass, s.node) / mean_mass).cwiseSqrt();
    out.weighted.middleRows<3>(3 * k) = displacements.middleRows<3>(3 * static_cast<Eigen::Index>(s.node));
  }
  out.weighted.array().colwise() *= out.root.array();
  out.svd = symmetric_eigen(tall_product(out.weighted, out.weighted));
  return out;
}

MatX pinned_modes(const Model& model, const Skeleton& skeleton, Index count) {
  VecX mass(model.nodes());
  std::vector<std::uint8_t> pinned(at(model.nodes()));
  for (Index i = 0; i < model.nodes(); ++i) {
    mass[i] = model.mass[3 * i];
    pinned[at(i)] = skeleton.bone_of_node[at(i)] >= 0;
  }
  return vibration_modes(model.mesh, mass, pinned, count);
}

// What the vibration modes have that the domains have not: columns of the whole body.
Domain new_modes(const Model& model, const MatX& modes, const Basis& basis, const MatX& mass,
                 double mean_mass) {
  MatX kept(modes.rows(), 0);
  for (Eigen::Index k = 0; k < modes.cols(); ++k) {
    VecX u = std::sqrt(mean_mass) * modes.col(k);
    for (int twice = 0; twice < 2; ++twice) {
      u -= basis.times(solve_semidefinite(mass, basis.transposed(model.mass.cwiseProduct(u))));
      if (kept.cols() > 0) u -= kept * (kept.transpose() * model.mass.cwiseProduct(u)) / mean_mass;
    }
    const double length = std::sqrt(u.dot(model.mass.cwiseProduct(u)) / mean_mass);
    if (length < kNewMode) continue;
    kept.conservativeResize(Eigen::NoChange, kept.cols() + 1);
    kept.col(kept.cols() - 1) = u / length;
  }
  Domain out;
  out.nodes.resize(at(model.nodes()));
  std::iota(out.nodes.begin(), out.nodes.end(), 0);
  out.U = std::move(kept);
  return out;
}

MatX mass_matrix(const Model& model, const Basis& basis) {
  std::vector<Index> all(at(model.nodes()));
  std::iota(all.begin(), all.end(), 0);
  VecX mass(model.nodes());
  for (Index i = 0; i < model.nodes(); ++i) mass[i] = model.mass[3 * i];
  return BasisRows(basis, {}, all).gram(mass);
}

// Eq. 20, with displacements u_d = U_d / phi_d.
MatX spring_matrix(const Model& model, const Basis& basis, const std::vector<std::vector<Share>>& shares,
                   double kappa) {
  const auto count = static_cast<Index>(shares.size());
  VecX volume = VecX::Zero(model.nodes()), stiffness = VecX::Zero(model.nodes());  // V [m^3], E V [N m]
  const std::vector<double>& rest = fem::rest_volume(*model.elements);
  for (std::size_t e = 0; e < rest.size(); ++e)
    for (const Index i : model.mesh.elements[e]) {
      volume[i] += rest[e] / 4;
      stiffness[i] += rest[e] / 4 * model.mesh.material[e].young;
    }
  // Shares by nodes: the domains' numbers are those of the basis.
  const auto shared = [&](auto&& visit) {
    for (Index i = 0; i < model.nodes(); ++i) {
      const auto places = basis.places(i);
      for (std::size_t a = 0; a < places.size(); ++a)
        for (std::size_t b = a + 1; b < places.size(); ++b)
          if (places[a].domain < count && places[b].domain < count) visit(i, places[a], places[b]);
    }
  };
  const auto phi = [&](const Basis::Place& p) { return shares[at(p.domain)][at(p.row)].phi; };
  MatX overlap = MatX::Zero(count, count);  // [m^3]
  shared([&](Index i, const Basis::Place& a, const Basis::Place& b) {
    overlap(a.domain, b.domain) += 4 * phi(a) * phi(b) * volume[i];
  });
  MatX S = MatX::Zero(basis.columns(), basis.columns());
  shared([&](Index i, const Basis::Place& a, const Basis::Place& b) {
    const double size = std::cbrt(overlap(a.domain, b.domain));
    const double k = kappa * stiffness[i] / (size * size) * phi(a) * phi(b);
    const Domain &da = basis.domains()[at(a.domain)], &db = basis.domains()[at(b.domain)];
    const MatX ua = da.U.middleRows<3>(3 * static_cast<Eigen::Index>(a.row)) / phi(a),
               ub = db.U.middleRows<3>(3 * static_cast<Eigen::Index>(b.row)) / phi(b);
    S.block(da.first, da.first, da.columns(), da.columns()) += k * ua.transpose() * ua;
    S.block(db.first, db.first, db.columns(), db.columns()) += k * ub.transpose() * ub;
    const MatX across = k * ua.transpose() * ub;
    S.block(da.first, db.first, da.columns(), db.columns()) -= across;
    S.block(db.first, da.first, db.columns(), da.columns()) -= across.transpose();
  });
  return S;
}

// The domain that has the greatest share in an element's nodes.
std::vector<Index> element_domains(const Model& model, const Basis& basis,
                                   const std::vector<std::vector<Share>>& shares) {
  std::vector<Index> out(model.mesh.elements.size(), 0);
  const auto count = static_cast<Index>(shares.size());
  if (count <= 1) return out;
  std::vector<double> sum(at(count));
  for (std::size_t e = 0; e < out.size(); ++e) {
    std::fill(sum.begin(), sum.end(), 0.0);
    for (const Index i : model.mesh.elements[e])
      for (const Basis::Place& p : basis.places(i))
        if (p.domain < count) sum[at(p.domain)] += shares[at(p.domain)][at(p.row)].phi;
    out[e] = static_cast<Index>(std::max_element(sum.begin(), sum.end()) - sum.begin());
  }
  return out;
}

}  // namespace

void make_basis(const Model& model, const Skeleton& skeleton, const BoneSkinning& skinning,
                const MatX& displacements, const CondenseOptions& o, Subspace& out) {
  const Eigen::Index poses = displacements.cols();
  out.mean_mass = model.mass.sum() / static_cast<double>(displacements.rows());
  std::vector<std::vector<Share>> shares = domain_shares(skeleton, skinning, o.bone_domains);
  std::vector<DomainVectors> vectors;
  for (const auto& list : shares)
    vectors.push_back(domain_vectors(model, list, out.mean_mass, displacements));
  // The greatest singular values of all domains: what they leave out is, by masses, the least.
  std::vector<std::tuple<double, std::size_t, Eigen::Index>> ranked;
  double first = 0;
  for (std::size_t d = 0; d < vectors.size(); ++d)
    for (Eigen::Index k = poses - 1; k >= 0; --k)
      if (vectors[d].svd.values[k] > 0) {
        ranked.emplace_back(-std::sqrt(vectors[d].svd.values[k]), d, -k);
        first = std::max(first, std::sqrt(vectors[d].svd.values[k]));
      }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::vector<Eigen::Index>> kept(vectors.size());
  for (std::size_t k = 0; k < ranked.size() && static_cast<Index>(k) < o.modes; ++k)
    if (-std::get<0>(ranked[k]) > o.least_spread * first)
      kept[std::get<1>(ranked[k])].push_back(-std::get<2>(ranked[k]));
  MatX modes;
  if (o.linear_modes > 0) modes = pinned_modes(model, skeleton, o.linear_modes);
  std::vector<Domain> domains;
  std::vector<std::vector<Share>> used;
  std::vector<MatX> coordinates;
  for (std::size_t d = 0; d < vectors.size(); ++d) {
    const DomainVectors& v = vectors[d];
    MatX B(v.weighted.rows(), static_cast<Eigen::Index>(kept[d].size()));
    for (std::size_t k = 0; k < kept[d].size(); ++k)
      B.col(static_cast<Eigen::Index>(k)) =
          v.weighted * v.svd.vectors.col(kept[d][k]) / std::sqrt(v.svd.values[kept[d][k]]);
    if (!o.bone_domains && modes.cols() > 0) {
      B.conservativeResize(Eigen::NoChange, B.cols() + modes.cols());
      B.rightCols(modes.cols()) = std::sqrt(out.mean_mass) * (v.root.asDiagonal() * modes);
    }
    std::vector<Index> columns;
    orthonormalize(B, kNewMode, columns);  // singular vectors of small values are not quite orthogonal
    if (B.cols() == 0) continue;
    Domain domain;
    domain.U = v.root.cwiseInverse().asDiagonal() * B;
    for (std::size_t k = 0; k < shares[d].size(); ++k) {
      domain.nodes.push_back(shares[d][k].node);
      auto rows = domain.U.middleRows<3>(3 * static_cast<Eigen::Index>(k));
      rows *= skeleton.bone_of_node[at(shares[d][k].node)] >= 0 ? 0.0 : shares[d][k].phi;
    }
    domains.push_back(std::move(domain));
    coordinates.push_back(tall_product(B, v.weighted));
    used.push_back(std::move(shares[d]));
  }
  if (domains.empty() && modes.cols() == 0)
    throw Error(ErrorKind::kInput,
                "the training poses need no correction of the skinned shape, so that there is no subspace: "
                "expected a skeleton that moves or forces on the body (or method/linear_modes)");
  out.basis = Basis(model.nodes(), domains);
  if (o.bone_domains) {
    out.mass = mass_matrix(model, out.basis);
    if (modes.cols() > 0) {
      Domain whole = new_modes(model, modes, out.basis, out.mass, out.mean_mass);
      coordinates.push_back(MatX::Zero(whole.U.cols(), poses));
      domains.push_back(std::move(whole));
      out.basis = Basis(model.nodes(), domains);
      out.mass = mass_matrix(model, out.basis);
    }
    out.coupling = o.coupling > 0 ? spring_matrix(model, out.basis, used, o.coupling)
                                  : MatX(MatX::Zero(out.columns(), out.columns()));
  } else {
    out.mass = out.mean_mass * MatX::Identity(out.columns(), out.columns());
    out.coupling = MatX::Zero(out.columns(), out.columns());
  }
  out.domain_of_element = element_domains(model, out.basis, used);
  out.q.resize(out.columns(), poses);
  for (std::size_t d = 0; d < coordinates.size(); ++d)
    out.q.middleRows(out.basis.domains()[d].first, coordinates[d].rows()) = coordinates[d];
  out.spread.resize(out.q.rows());
  for (Eigen::Index k = 0; k < out.q.rows(); ++k)
    out.spread[k] = out.q.row(k).norm() / std::sqrt(static_cast<double>(poses));
  // Vibration modes alone, of a body that no pose moves: a hundredth of its size, root mean square.
  if (const double rms = 0.01 * model.size * std::sqrt(static_cast<double>(model.nodes()));
      out.spread.maxCoeff() < 1e-9 * rms)
    out.spread.setConstant(rms);
}

}  // namespace limber::condense
