#include <limber/methods/mixed/points.hpp>

#include <limber/core/parallel.hpp>
#include <limber/material/lame.hpp>

#include <Eigen/LU>
#include <utility>

namespace limber::mixed {
namespace {

constexpr std::size_t kPiecePoints = 32;  // a multiple of all numbers of lanes

double sum_of(const std::vector<double>& terms) {
  double sum = 0;
  for (const double t : terms) sum += t;
  return sum;
}

const double* pointer_to(const std::vector<double>& v) { return v.empty() ? nullptr : v.data(); }

}  // namespace

Points::Points(std::vector<Point> points) : points_(std::move(points)), terms_(points_.size()) {
  const auto kind = [](const Point& p) { return std::pair(p.material.model, p.material.fibre); };
  for (std::size_t begin = 0; begin < points_.size();) {
    pieces_.push_back(static_cast<Index>(begin));
    std::size_t end = begin + 1;
    while (end < points_.size() && end < begin + kPiecePoints && kind(points_[end]) == kind(points_[begin]))
      ++end;
    begin = end;
  }
  pieces_.push_back(static_cast<Index>(points_.size()));
  for (const Point& p : points_) {
    const material::Lame l = material::lame(p.material.young, p.material.poisson);
    weight_.push_back(p.weight);
    mu_.push_back(l.mu);
    lambda_.push_back(l.lambda);
    k_.push_back(p.material.fibre_stiffness);
    volume_ += p.weight;
    elastic_scale_ += p.weight * p.material.young;
  }
  d_.resize(3 * points_.size());
  set_activation({});
  kept_.resize(kKeptNumbers * points_.size());
}

template <class Body>
void Points::for_ranges(double scale, Body&& body) const {
  parallel_for(static_cast<std::ptrdiff_t>(pieces_.size()) - 1, 1, [&](std::ptrdiff_t i) {
    const auto piece = static_cast<std::size_t>(i);
    const ElementMaterial& m = points_[at(pieces_[piece])].material;
    body(PointRange{pieces_[piece], pieces_[piece + 1], m.model, m.fibre, weight_.data(), mu_.data(),
                    lambda_.data(), k_.data(), d_.data(), scale});
  });
}

void Points::set_activation(std::span<const double> activation) {
  for (std::size_t c = 0; c < points_.size(); ++c) {
    const ElementMaterial& m = points_[c].material;
    const bool driven = m.activation_channel >= 0 && at(m.activation_channel) < activation.size();
    const double stretch = driven ? 1 - activation[at(m.activation_channel)] : 1;
    for (int i = 0; i < 3; ++i) d_[3 * c + static_cast<std::size_t>(i)] = m.fibre_direction[i] / stretch;
  }
}

void Points::start(const std::vector<double>& F, std::vector<double>& Z, std::vector<double>& Lambda) const {
  Z.resize(6 * points_.size());
  Lambda.resize(6 * points_.size());
  for_ranges(1, [&](const PointRange& r) { point_kernels().start(r, F.data(), Z.data(), Lambda.data()); });
}

void Points::linearize(const std::vector<double>& F, const std::vector<double>& Z,
                       const std::vector<double>& Lambda, bool geometric, double scale,
                       std::vector<double>& P, std::vector<double>& H) {
  P.resize(9 * points_.size());
  H.resize(54 * points_.size());
  for_ranges(scale, [&](const PointRange& r) {
    point_kernels().linearize(r, F.data(), Z.data(), Lambda.data(), geometric, kept_.data(), P.data(),
                              H.data());
  });
}

double Points::update(const std::vector<double>& dF, double scale, std::vector<double>& dZ,
                      std::vector<double>& Lambda, double& strain) const {
  dZ.resize(6 * points_.size());
  Lambda.resize(6 * points_.size());
  std::vector<double> squares(points_.size());
  for_ranges(scale, [&](const PointRange& r) {
    point_kernels().update(r, dF.data(), kept_.data(), dZ.data(), Lambda.data(), terms_.data(),
                           squares.data());
  });
  strain = sum_of(squares);
  return sum_of(terms_);
}

double Points::lagrangian(const std::vector<double>& F, const std::vector<double>& dF,
                          const std::vector<double>& Z, const std::vector<double>& dZ,
                          const std::vector<double>& Lambda, double alpha, double scale) const {
  for_ranges(scale, [&](const PointRange& r) {
    point_kernels().lagrangian(r, F.data(), alpha == 0 ? nullptr : pointer_to(dF), Z.data(),
                               alpha == 0 ? nullptr : pointer_to(dZ), pointer_to(Lambda), alpha,
                               terms_.data());
  });
  return sum_of(terms_);
}

double Points::energy(const std::vector<double>& F, const std::vector<double>& dF, double alpha,
                      double scale) const {
  for_ranges(scale, [&](const PointRange& r) {
    point_kernels().energy(r, F.data(), alpha == 0 ? nullptr : pointer_to(dF), alpha, terms_.data());
  });
  return sum_of(terms_);
}

double Points::stress(const std::vector<double>& F, double scale, std::vector<double>& P) const {
  P.resize(9 * points_.size());
  for_ranges(scale,
             [&](const PointRange& r) { point_kernels().stress(r, F.data(), P.data(), terms_.data()); });
  return sum_of(terms_);
}

void Points::stiffness(const std::vector<double>& F, bool projected, double scale,
                       std::vector<double>& H) const {
  H.resize(54 * points_.size());
  for_ranges(scale,
             [&](const PointRange& r) { point_kernels().stiffness(r, F.data(), projected, H.data()); });
}

Index Points::inverted(const std::vector<double>& F) const {
  Index count = 0;
  for (std::size_t c = 0; c < points_.size(); ++c)
    count += Eigen::Map<const Mat3>(F.data() + 9 * c).determinant() <= 0;
  return count;
}

}  // namespace limber::mixed
