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
                           std::span<const TrainingPose> poses, const Subspace& subspace, double least,
                           double noise, Index count, std::uint64_t seed)
    : model_(model), subspace_(subspace) {
  SeededNumbers numbers(seed);
  const Eigen::Index r = subspace.columns();
  const double floor = least * subspace.spread.maxCoeff();
  SkinnedBody skin;
  for (std::size_t p = 0; p < poses.size(); ++p) {
    skinning.pose(poses[p].bones, skin);
    auto& R = R_.emplace_back(skin.R.size());
    for (std::size_t i = 0; i < R.size(); ++i) R[i] = skin.R[i].cast<float>();
    for (Index j = 0; j < count; ++j) {
      VecX q = subspace.q.col(static_cast<Eigen::Index>(p));
      for (Eigen::Index k = 0; k < r; ++k)
        q[k] += (noise > 0 ? std::max(noise * subspace.spread[k], floor) : 0.0) * numbers.normal();
      subspace_positions(subspace, skin, q, x_.emplace_back());
      pose_.push_back(p);
    }
  }
  const auto samples = static_cast<Eigen::Index>(x_.size());
  scale_ = VecX::Ones(samples);
  // Sums of pieces, in a fixed order.
  const auto elements = static_cast<Index>(model.mesh.elements.size());
  constexpr std::ptrdiff_t kPiece = 512;
  const std::ptrdiff_t pieces = (elements + kPiece - 1) / kPiece;
  std::vector<VecX> part(static_cast<std::size_t>(pieces)), sizes(part);
  parallel_for(pieces, 1, [&](std::ptrdiff_t piece) {
    VecX one(r * samples), &sum = part[static_cast<std::size_t>(piece)],
                           &size = sizes[static_cast<std::size_t>(piece)];
    sum.setZero(r * samples);
    size.setZero(samples);
    for (Index e = static_cast<Index>(piece * kPiece);
         e < std::min<Index>(elements, static_cast<Index>((piece + 1) * kPiece)); ++e) {
      element(e, one);
      sum += one;
      for (Eigen::Index k = 0; k < samples; ++k) size[k] += one.segment(k * r, r).norm();
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

void ForceSamples::element(Index e, Eigen::Ref<VecX> out) const {
  const Tet& t = model_.mesh.elements[at(e)];
  const Eigen::Matrix<double, 3, 4> g = fem::shape_gradients(model_.mesh.rest, t);
  const double volume = fem::rest_volume(*model_.elements)[at(e)];
  const ElementMaterial& material = model_.mesh.material[at(e)];
  const Eigen::Index r = subspace_.columns();
  Eigen::Matrix<double, 12, Eigen::Dynamic> U(12, r);
  for (int a = 0; a < 4; ++a)
    U.middleRows<3>(3 * a) = subspace_.U.middleRows<3>(3 * static_cast<Eigen::Index>(t[a]));
  for (std::size_t k = 0; k < x_.size(); ++k) {
    Mat3 F = Mat3::Zero();
    for (int a = 0; a < 4; ++a) F += Vec3(node(x_[k], t[a])) * g.col(a).transpose();
    const Mat3 P = volume * scale_[static_cast<Eigen::Index>(k)] * material::pk1(material, F);
    Eigen::Matrix<double, 12, 1> f;
    for (int a = 0; a < 4; ++a)
      f.segment<3>(3 * a) = R_[pose_[k]][at(t[a])].cast<double>().transpose() * (P * g.col(a));
    out.segment(static_cast<Eigen::Index>(k) * r, r).noalias() = U.transpose() * f;
  }
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
  const Eigen::Index r = subspace_.columns(), samples = scale_.size();
  double mean = 0;
  for (Eigen::Index k = 0; k < samples; ++k)
    mean += (sum - total_).segment(k * r, r).norm() / static_cast<double>(samples);
  return mean;
}

}  // namespace limber::condense
