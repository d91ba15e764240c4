#include <limber/methods/condense/force_samples.hpp>

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/laplacian.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/reduction/seeded_numbers.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace limber::condense {
namespace {

constexpr double kLeastBalance = 1e-3;  // of the forces of single elements, that must be left of their sum

}  // namespace

ForceSamples::ForceSamples(const Model& model, const BoneSkinning& skinning,
                           std::span<const TrainingPose> poses, const Subspace& subspace,
                           const MatX& at_poses, std::vector<Index> elements, double least, double noise,
                           Index count, std::uint64_t seed)
    : model_(model), basis_(subspace.basis), elements_(std::move(elements)) {
  // Nodes and columns that the elements have to do with.
  place_.assign(at(model.nodes()), -1);
  column_.assign(at(basis_.columns()), -1);
  for (const Index e : elements_)
    for (const Index i : model.mesh.elements[at(e)]) place_[at(i)] = 0;
  std::vector<Index> nodes;
  for (Index i = 0; i < model.nodes(); ++i) {
    if (place_[at(i)] < 0) continue;
    place_[at(i)] = static_cast<Index>(nodes.size());
    nodes.push_back(i);
    for (const Basis::Place& p : basis_.places(i)) {
      const Domain& d = basis_.domains()[at(p.domain)];
      for (Index k = 0; k < d.columns(); ++k) column_[at(d.first + k)] = 0;
    }
  }
  for (Index& c : column_)
    if (c >= 0) c = static_cast<Index>(columns_++);

  SeededNumbers numbers(seed);
  const double floor = least * subspace.spread.maxCoeff();
  SkinnedBody skin;
  for (std::size_t p = 0; p < poses.size(); ++p) {
    skinning.pose(poses[p].bones, skin);
    auto& R = R_.emplace_back(nodes.size());
    for (std::size_t k = 0; k < nodes.size(); ++k) R[k] = skin.R[at(nodes[k])].cast<float>();
    const BasisRows W = turned_rows(subspace, skin, nodes);
    for (Index j = 0; j < count; ++j) {
      VecX q = at_poses.col(static_cast<Eigen::Index>(p));
      for (Eigen::Index k = 0; k < q.size(); ++k)
        q[k] += (noise > 0 ? std::max(noise * subspace.spread[k], floor) : 0.0) * numbers.normal();
      VecX& x = x_.emplace_back(W.times(q));
      for (std::size_t k = 0; k < nodes.size(); ++k) node(x, static_cast<Index>(k)) += node(skin.x, nodes[k]);
      pose_.push_back(p);
    }
  }
  const auto samples = static_cast<Eigen::Index>(x_.size());
  const Eigen::Index r = columns_;
  scale_ = VecX::Ones(samples);
  // Sums of pieces, in a fixed order.
  const auto all = static_cast<std::ptrdiff_t>(elements_.size());
  constexpr std::ptrdiff_t kPiece = 512;
  const std::ptrdiff_t pieces = (all + kPiece - 1) / kPiece;
  std::vector<VecX> part(static_cast<std::size_t>(pieces)), sizes(part);
  parallel_for(pieces, 1, [&](std::ptrdiff_t piece) {
    VecX one(r * samples), &sum = part[static_cast<std::size_t>(piece)],
                           &size = sizes[static_cast<std::size_t>(piece)];
    sum.setZero(r * samples);
    size.setZero(samples);
    for (std::ptrdiff_t k = piece * kPiece; k < std::min(all, (piece + 1) * kPiece); ++k) {
      element(elements_[static_cast<std::size_t>(k)], one);
      sum += one;
      for (Eigen::Index s = 0; s < samples; ++s) size[s] += one.segment(s * r, r).norm();
    }
  });
  total_.setZero(r * samples);
  VecX size = VecX::Zero(samples);
  for (std::size_t p = 0; p < part.size(); ++p) {
    total_ += part[p];
    size += sizes[p];
  }
  for (Eigen::Index k = 0; k < samples; ++k) {
    const double length = total_.segment(k * r, r).norm();
    if (!(length > 0)) continue;
    scale_[k] = 1 / length;
    total_.segment(k * r, r) /= length;
    balance_ = std::max(balance_, length / size[k]);
  }
}

void ForceSamples::element(Index e, Eigen::Ref<VecX> out, std::size_t stride) const {
  const Tet& t = model_.mesh.elements[at(e)];
  const Eigen::Matrix<double, 3, 4> g = fem::shape_gradients(model_.mesh.rest, t);
  const double volume = fem::rest_volume(*model_.elements)[at(e)];
  const ElementMaterial& material = model_.mesh.material[at(e)];
  // The rows of its nodes side by side: U itself is far apart in memory.
  struct Rows {
    int corner;
    Index from, column, columns;
  };
  std::vector<Rows> rows;
  Index width = 0;
  for (int a = 0; a < 4; ++a)
    for (const Basis::Place& p : basis_.places(t[a])) {
      const Domain& d = basis_.domains()[at(p.domain)];
      rows.push_back({a, width, column_[at(d.first)], d.columns()});
      width += d.columns();
    }
  Eigen::Matrix<double, 3, Eigen::Dynamic> U(3, width);
  width = 0;
  for (int a = 0; a < 4; ++a)
    for (const Basis::Place& p : basis_.places(t[a])) {
      const Domain& d = basis_.domains()[at(p.domain)];
      U.middleCols(width, d.columns()) = d.U.middleRows<3>(3 * static_cast<Eigen::Index>(p.row));
      width += d.columns();
    }
  out.setZero();
  for (std::size_t k = 0; k < x_.size(); k += stride) {
    Mat3 F = Mat3::Zero();
    for (int a = 0; a < 4; ++a) F += Vec3(node(x_[k], place_[at(t[a])])) * g.col(a).transpose();
    const Mat3 P = volume * scale_[static_cast<Eigen::Index>(k)] * material::pk1(material, F);
    Eigen::Matrix<double, 12, 1> f;
    for (int a = 0; a < 4; ++a)
      f.segment<3>(3 * a) = R_[pose_[k]][at(place_[at(t[a])])].cast<double>().transpose() * (P * g.col(a));
    auto own = out.segment(static_cast<Eigen::Index>(k) * columns_, columns_);
    for (const Rows& r : rows)
      own.segment(r.column, r.columns).noalias() +=
          U.middleCols(r.from, r.columns).transpose() * f.segment<3>(3 * r.corner);
  }
}

std::vector<double> ForceSamples::strengths() const {
  std::vector<double> out(elements_.size(), 0.0);
  const std::size_t stride = x_.size() / R_.size();
  parallel_for(static_cast<std::ptrdiff_t>(out.size()), 64, [&](std::ptrdiff_t e) {
    VecX one(rows());
    element(elements_[static_cast<std::size_t>(e)], one, stride);
    double& strength = out[static_cast<std::size_t>(e)];
    for (std::size_t k = 0; k < x_.size(); k += stride)
      strength = std::max(strength, one.segment(static_cast<Eigen::Index>(k) * columns_, columns_).norm());
  });
  return out;
}

void ForceSamples::check() const {
  if (balance_ >= kLeastBalance) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("/method/noise: the samples that cubature is trained with are in equilibrium (their "
                  "reduced forces are {:.1g} of those of single elements), so that any weights would fit; "
                  "expected noise, 0.3 say",
                  balance_));
}

double ForceSamples::error(const Cubature& cubature) const {
  VecX sum = VecX::Zero(rows()), one(rows());
  for (std::size_t c = 0; c < cubature.elements.size(); ++c) {
    element(cubature.elements[c], one);
    sum += cubature.weights[c] * one;
  }
  const Eigen::Index r = columns_, samples = scale_.size();
  double mean = 0;
  for (Eigen::Index k = 0; k < samples; ++k)
    mean += (sum - total_).segment(k * r, r).norm() / static_cast<double>(samples);
  return mean;
}

}  // namespace limber::condense
