#include <limber/view/page_skin.hpp>

#include <limber/core/parallel.hpp>
#include <limber/view/codec.hpp>

#include <algorithm>
#include <cmath>

namespace limber::view {
namespace {

constexpr double kShareOfQuantum = 0.25;  // of the rounding of positions, for all functions together

float largest_value(const ReplayTopology& t, std::size_t function) {
  float most = 0;
  for (std::size_t i = function; i < t.basis.size(); i += static_cast<std::size_t>(t.functions))
    most = std::max(most, std::abs(t.basis[i]));
  return most;
}

}  // namespace

PageSkin::PageSkin(const ReplayTopology& t, std::span<const Index> nodes, std::size_t surface,
                   std::span<const Index> parent, std::span<const float> reach, double quantum)
    : rest_(surface, 3),
      basis_(surface, t.functions),
      steps_(static_cast<std::size_t>(t.functions)),
      error_(steps_.size()),
      words_(nodes.size() * steps_.size()) {
  const std::size_t p = steps_.size(), n = nodes.size();
  for (std::size_t i = 0; i < surface; ++i) {
    const auto node = static_cast<std::size_t>(nodes[i]), row = i;
    for (std::size_t d = 0; d < 3; ++d)
      rest_(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(d)) = t.rest[3 * node + d];
    for (std::size_t j = 0; j < p; ++j)
      basis_(static_cast<Eigen::Index>(row), static_cast<Eigen::Index>(j)) = t.basis[p * node + j];
  }
  parallel_for(static_cast<std::ptrdiff_t>(p), 1, [&](std::ptrdiff_t k) {
    const auto j = static_cast<std::size_t>(k);
    // Roundings of different functions are independent: their sum grows with the root of their number.
    const double finest = std::ldexp(double(largest_value(t, j)), -29);
    const double step =
        reach[j] > 0
            ? std::max(finest, kShareOfQuantum * quantum / (std::sqrt(static_cast<double>(p)) * reach[j]))
            : 0;
    steps_[j] = static_cast<float>(step);
    std::vector<std::int32_t> q(n);
    float worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const float value = t.basis[p * static_cast<std::size_t>(nodes[i]) + j];
      q[i] = steps_[j] > 0 ? static_cast<std::int32_t>(std::lround(double(value) / steps_[j])) : 0;
      worst = std::max(worst, std::abs(value - steps_[j] * static_cast<float>(q[i])));
    }
    error_[j] = worst;
    for (std::size_t i = 0; i < n; ++i) {
      const Index from = parent[i];
      const std::uint32_t before =
          from < 0 ? 0u : static_cast<std::uint32_t>(q[static_cast<std::size_t>(from)]);
      words_[n * j + i] = zigzag(static_cast<std::uint32_t>(q[i]) - before);
    }
  });
}

double PageSkin::error(std::span<const float> u) const {
  double sum[3] = {0, 0, 0};
  for (std::size_t i = 0; i < u.size(); ++i) sum[i % 3] += double(error_[i / 3]) * std::abs(u[i]);
  return std::max({sum[0], sum[1], sum[2]});
}

void PageSkin::grow(std::span<const float> u, Vec3& low, Vec3& high) const {
  if (rest_.rows() == 0) return;
  const Eigen::Map<const Rows> U(u.data(), basis_.cols(), 3);
  const Rows x = rest_ + basis_ * U;
  low = low.cwiseMin(x.colwise().minCoeff().transpose().cast<double>());
  high = high.cwiseMax(x.colwise().maxCoeff().transpose().cast<double>());
}

std::vector<float> coordinate_reach(const ReplayReader& reader, Index topology, const ReplayTopology& t,
                                    double extent) {
  std::vector<float> reach(static_cast<std::size_t>(t.functions), 0.0f);
  for (Index f = 0; f < reader.frame_count(); ++f) {
    if (reader.frame_topology(f) != topology) continue;
    const ReplayFrame frame = reader.frame(f, false);
    for (std::size_t i = 0; i < frame.coordinates.size(); ++i)
      if (std::isfinite(frame.coordinates[i]))
        reach[i / 3] = std::max(reach[i / 3], std::abs(frame.coordinates[i]));
  }
  if (!reader.finished())
    for (std::size_t j = 0; j < reach.size(); ++j)
      if (const float most = largest_value(t, j); most > 0)
        reach[j] = std::max(reach[j], static_cast<float>(extent / 20) / most);
  return reach;
}

}  // namespace limber::view
