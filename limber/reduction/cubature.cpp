#include <limber/reduction/cubature.hpp>

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/laplacian.hpp>
#include <limber/linalg/nnls.hpp>
#include <limber/mesh/geometry.hpp>
#include <limber/reduction/seeded_numbers.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

namespace limber {
namespace {

using Features = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Some of 0 .. n - 1, ascending, no number twice.
std::vector<Index> sample_of(Index n, Index count, SeededNumbers& numbers) {
  std::vector<Index> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  if (count >= n) return all;
  for (Index i = 0; i < count; ++i) std::swap(all[at(i)], all[at(i + numbers.below(n - i))]);
  all.resize(at(count));
  std::sort(all.begin(), all.end());
  return all;
}

// Centroids lie one after the other in lanes of eight, so that the distances to eight of them are found at
// once.
constexpr Index kGroup = 8;

struct Centroids {
  Index count, dims;
  std::vector<float> values;  // [group][dimension][lane]; unused lanes are far away

  Centroids(Index c, Index d)
      : count(c), dims(d), values(at((c + kGroup - 1) / kGroup * kGroup * d), 1e18f) {}
  float& value(Index c, Index d) { return values[at((c / kGroup * dims + d) * kGroup + c % kGroup)]; }

  // The nearest one (the first of equals) and the squared distance to it.
  std::pair<Index, float> nearest(const float* x) const {
    float best[kGroup];
    Index group[kGroup];
    std::fill_n(best, kGroup, std::numeric_limits<float>::infinity());
    std::fill_n(group, kGroup, 0);
    for (Index g = 0; g * kGroup < count; ++g) {
      const float* c = values.data() + static_cast<std::ptrdiff_t>(g) * dims * kGroup;
      float sum[kGroup] = {};
      for (Index d = 0; d < dims; ++d)
        for (Index l = 0; l < kGroup; ++l) {
          const float e = x[d] - c[d * kGroup + l];
          sum[l] += e * e;
        }
      for (Index l = 0; l < kGroup; ++l)
        if (sum[l] < best[l]) {
          best[l] = sum[l];
          group[l] = g;
        }
    }
    Index winner = 0;
    for (Index l = 1; l < kGroup; ++l)
      if (best[l] < best[winner] ||
          (best[l] == best[winner] && group[l] * kGroup + l < group[winner] * kGroup + winner))
        winner = l;
    return {group[winner] * kGroup + winner, best[winner]};
  }
};

// k-means++ on the rows of the sample.
Centroids spread_centroids(const Features& x, Index count, SeededNumbers& numbers) {
  const Index n = static_cast<Index>(x.rows()), dims = static_cast<Index>(x.cols());
  Centroids out(count, dims);
  std::vector<float> distance(at(n), std::numeric_limits<float>::infinity());
  Index chosen = numbers.below(n);
  for (Index c = 0; c < count; ++c) {
    for (Index d = 0; d < dims; ++d) out.value(c, d) = x(chosen, d);
    parallel_for(n, 2048, [&](std::ptrdiff_t i) {
      const float to = (x.row(i) - x.row(chosen)).squaredNorm();
      distance[static_cast<std::size_t>(i)] = std::min(distance[static_cast<std::size_t>(i)], to);
    });
    double sum = 0;
    for (const float d : distance) sum += static_cast<double>(d);
    if (sum == 0) {  // fewer different rows than centroids
      chosen = numbers.below(n);
      continue;
    }
    double pick = numbers.unit() * sum;
    chosen = n - 1;
    for (Index i = 0; i < n; ++i) {
      pick -= static_cast<double>(distance[at(i)]);
      if (pick < 0) {
        chosen = i;
        break;
      }
    }
  }
  return out;
}

struct Assignment {
  std::vector<Index> cluster;
  std::vector<float> distance;
};

Assignment assign(const Eigen::Ref<const Features>& x, const Centroids& centroids) {
  Assignment out{std::vector<Index>(static_cast<std::size_t>(x.rows())),
                 std::vector<float>(static_cast<std::size_t>(x.rows()))};
  parallel_for(x.rows(), 1024, [&](std::ptrdiff_t i) {
    const auto k = static_cast<std::size_t>(i);
    std::tie(out.cluster[k], out.distance[k]) = centroids.nearest(x.row(i).data());
  });
  return out;
}

// A cluster without members takes the row that lies farthest from its centroid; from a cluster with several.
void fill_empty(Assignment& a, Index clusters) {
  std::vector<Index> members(at(clusters), 0);
  for (const Index c : a.cluster) ++members[at(c)];
  std::vector<Index> empty;
  for (Index c = 0; c < clusters; ++c)
    if (members[at(c)] == 0) empty.push_back(c);
  if (empty.empty()) return;
  std::vector<Index> order(a.cluster.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](Index i, Index j) { return a.distance[at(i)] > a.distance[at(j)]; });
  std::size_t next = 0;
  for (const Index c : empty) {
    while (members[at(a.cluster[at(order[next])])] < 2) ++next;
    const Index row = order[next++];
    --members[at(a.cluster[at(row)])];
    a.cluster[at(row)] = c;
    a.distance[at(row)] = 0;
    members[at(c)] = 1;
  }
}

// Of the typical length of the weights' gradients: less than this an element's place never counts, so that
// stiff parts get points too. Measured on the jointed bar (limber bench mixed cubature): without it, one
// point a block lets blocks deform without energy; with 1, joints get too few.
constexpr double kLeastSlope = 0.3;

// Columns of W that tell elements something, times gamma^-exponent, with one scale for all, so that floats
// neither over- nor underflow.
struct ScaledWeights {
  const MatX& W;
  std::vector<Eigen::Index> columns;
  VecX factor;

  ScaledWeights(const MatX& weights, const VecX& gamma, double exponent)
      : W(weights), factor(VecX::Ones(weights.cols())) {
    const double largest = gamma.size() > 0 ? gamma.cwiseAbs().maxCoeff() : 0;
    for (Eigen::Index k = 0; k < W.cols(); ++k) {
      if (gamma.size() > 0) {
        const bool constant =
            std::abs(gamma[k]) < 1e-7 * largest &&
            W.col(k).maxCoeff() - W.col(k).minCoeff() < 1e-6 * W.col(k).cwiseAbs().maxCoeff();
        if (constant) continue;
        factor[k] = std::pow(std::max(gamma[k], 1e-7 * largest), -exponent);
      }
      columns.push_back(k);
    }
    double scale = 0;
    for (const Eigen::Index k : columns) scale = std::max(scale, factor[k] * W.col(k).cwiseAbs().maxCoeff());
    if (scale > 0) factor /= scale;
  }

  void average(const std::array<Index, 4>& t, float* out) const {
    for (const Eigen::Index k : columns)
      *out++ = static_cast<float>(factor[k] * 0.25 * (W(t[0], k) + W(t[1], k) + W(t[2], k) + W(t[3], k)));
  }
};

}  // namespace

Features weight_features(const MatX& W, const VecX& gamma, std::span<const std::array<Index, 4>> elements,
                         double exponent) {
  const ScaledWeights weights(W, gamma, exponent);
  const auto m = static_cast<Eigen::Index>(weights.columns.size());
  Features out(static_cast<Eigen::Index>(elements.size()), m);
  parallel_for(static_cast<std::ptrdiff_t>(elements.size()), 4096, [&](std::ptrdiff_t e) {
    weights.average(elements[static_cast<std::size_t>(e)], out.row(e).data());
  });
  return out;
}

Features strain_features(const MatX& W, const VecX& gamma, std::span<const Vec3> rest,
                         std::span<const std::array<Index, 4>> elements, double exponent) {
  const ScaledWeights weights(W, gamma, exponent);
  const auto m = static_cast<Eigen::Index>(weights.columns.size());
  const Box box = bounding_box(rest);
  const Vec3 centre = 0.5 * (box.lo + box.hi);
  const auto n = static_cast<std::ptrdiff_t>(elements.size());
  Features out(n, m + 3);
  std::vector<double> slope(elements.size());  // length of all gradients together [1/m]
  parallel_for(n, 4096, [&](std::ptrdiff_t e) {
    const auto& t = elements[static_cast<std::size_t>(e)];
    weights.average(t, out.row(e).data());
    const Eigen::Matrix<double, 3, 4> g = fem::shape_gradients(rest, t);
    double square = 0;
    for (const Eigen::Index k : weights.columns) {
      Vec3 gradient = Vec3::Zero();
      for (int a = 0; a < 4; ++a) gradient += W(t[static_cast<std::size_t>(a)], k) * g.col(a);
      square += (weights.factor[k] * gradient).squaredNorm();
    }
    slope[static_cast<std::size_t>(e)] = std::sqrt(square);
  });
  double square = 0, volume = 0;
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const double v = tet_volume(rest, elements[e]);
    square += v * slope[e] * slope[e];
    volume += v;
  }
  const double least = kLeastSlope * std::sqrt(square / volume);
  parallel_for(n, 4096, [&](std::ptrdiff_t e) {
    const auto k = static_cast<std::size_t>(e);
    Vec3 x = -centre;
    for (const Index i : elements[k]) x += 0.25 * rest[at(i)];
    out.row(e).tail<3>() = (std::hypot(slope[k], least) * x).cast<float>();
  });
  return out;
}

Cubature kmeans_cubature(const Eigen::Ref<const Features>& features, std::span<const double> volume,
                         const KMeansOptions& options) {
  const Index n = static_cast<Index>(features.rows()), clusters = options.points;
  const Index dims = static_cast<Index>(features.cols());
  if (clusters < 1 || clusters > n)
    throw Error(ErrorKind::kInput,
                fmt::format("{} cubature points were asked for, but there are {} elements", clusters, n));
  Cubature out;
  if (clusters == n) {
    out.elements.resize(at(n));
    std::iota(out.elements.begin(), out.elements.end(), 0);
    out.weights.assign(volume.begin(), volume.end());
    return out;
  }
  SeededNumbers numbers(options.seed);
  const std::vector<Index> rows = sample_of(n, std::min<Index>(n, options.sample * clusters), numbers);
  Features sample(static_cast<Eigen::Index>(rows.size()), dims);
  for (std::size_t i = 0; i < rows.size(); ++i)
    sample.row(static_cast<Eigen::Index>(i)) = features.row(rows[i]);
  Centroids centroids = spread_centroids(sample, clusters, numbers);
  // Means of the members, weighted by volume.
  const auto recentre = [&](const Assignment& a, const auto& x, const auto& row_volume) {
    std::vector<double> sum(at(clusters * dims), 0), weight(at(clusters), 0);
    for (std::size_t i = 0; i < a.cluster.size(); ++i) {
      const double w = row_volume(i);
      weight[at(a.cluster[i])] += w;
      for (Index d = 0; d < dims; ++d)
        sum[at(a.cluster[i] * dims + d)] += w * static_cast<double>(x(static_cast<Eigen::Index>(i), d));
    }
    for (Index c = 0; c < clusters; ++c)
      for (Index d = 0; d < dims; ++d)
        if (weight[at(c)] > 0)
          centroids.value(c, d) = static_cast<float>(sum[at(c * dims + d)] / weight[at(c)]);
  };
  std::vector<Index> before;
  for (int round = 0; round < options.rounds; ++round) {
    Assignment a = assign(sample, centroids);
    fill_empty(a, clusters);
    recentre(a, sample, [&](std::size_t i) { return volume[at(rows[i])]; });
    if (a.cluster == before) break;
    before = std::move(a.cluster);
  }
  Assignment all = assign(features, centroids);
  fill_empty(all, clusters);
  // The representative is nearest to the mean of all members, not to the sample's.
  recentre(all, features, [&](std::size_t i) { return volume[i]; });
  std::vector<Index> representative(at(clusters), -1);
  std::vector<float> nearest(at(clusters), std::numeric_limits<float>::infinity());
  std::vector<double> weight(at(clusters), 0);
  for (Index e = 0; e < n; ++e) {
    const Index c = all.cluster[at(e)];
    weight[at(c)] += volume[at(e)];
    float distance = 0;
    for (Index d = 0; d < dims; ++d) {
      const float step = features(e, d) - centroids.value(c, d);
      distance += step * step;
    }
    if (distance < nearest[at(c)]) {
      nearest[at(c)] = distance;
      representative[at(c)] = e;
    }
  }
  std::vector<Index> order(at(clusters));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](Index a, Index b) { return representative[at(a)] < representative[at(b)]; });
  for (const Index c : order) {
    out.elements.push_back(representative[at(c)]);
    out.weights.push_back(weight[at(c)]);
  }
  return out;
}

TrainedCubature train_cubature(Index elements, const std::function<void(Index, Eigen::Ref<VecX>)>& force,
                               const VecX& target, const TrainingOptions& options) {
  SeededNumbers numbers(options.seed);
  const Eigen::Index rows = target.size();
  const double size = target.norm();
  if (!(size > 0))
    throw Error(ErrorKind::kInput,
                "cubature training: the training forces are zero; poses in equilibrium cannot train it, "
                "displace them first");
  std::vector<Index> chosen;
  std::vector<std::uint8_t> used(at(elements), 0);
  const Index most = std::min(elements, options.replace ? 2 * options.points : options.points);
  MatX A(rows, most);
  MatX G = MatX::Zero(most, most);
  VecX c = VecX::Zero(most), x, residual = target;
  TrainedCubature out;
  out.error = 1;
  while (static_cast<Index>(chosen.size()) < most && out.error > options.tolerance &&
         !(options.replace && (x.array() > 0).count() >= options.points)) {
    const std::vector<Index> candidates =
        sample_of(elements, std::min<Index>(elements, options.candidates), numbers);
    std::vector<double> score(candidates.size(), -1);
    parallel_for(static_cast<std::ptrdiff_t>(candidates.size()), 16, [&](std::ptrdiff_t i) {
      const auto k = static_cast<std::size_t>(i);
      if (used[at(candidates[k])]) return;
      VecX g(rows);
      force(candidates[k], g);
      const double length = g.norm();
      if (length > 0) score[k] = g.dot(residual) / length;
    });
    const std::size_t best =
        static_cast<std::size_t>(std::max_element(score.begin(), score.end()) - score.begin());
    if (!(score[best] > 0)) {
      if (static_cast<Index>(candidates.size()) == elements) break;  // nothing helps any more
      used[at(candidates[best])] = 1;                                // look at others
      if (std::all_of(used.begin(), used.end(), [](std::uint8_t u) { return u != 0; })) break;
      continue;
    }
    const Eigen::Index k = static_cast<Eigen::Index>(chosen.size());
    VecX g(rows);
    force(candidates[best], g);
    A.col(k) = g;
    used[at(candidates[best])] = 1;
    chosen.push_back(candidates[best]);
    G.row(k).head(k + 1) = (A.leftCols(k + 1).transpose() * g).transpose();
    G.col(k).head(k) = G.row(k).head(k).transpose();
    c[k] = g.dot(target);
    VecX start = VecX::Zero(k + 1);
    if (k > 0) start.head(k) = x;
    x = nnls(G.topLeftCorner(k + 1, k + 1), c.head(k + 1), start);
    while (!options.greatest.empty()) {
      Eigen::Index worst = 0;
      const auto excess = [&](Eigen::Index i) {
        return x[i] / options.greatest[at(chosen[static_cast<std::size_t>(i)])];
      };
      for (Eigen::Index i = 1; i < x.size(); ++i)
        if (excess(i) > excess(worst)) worst = i;
      if (x.size() == 0 || !(excess(worst) > 1)) break;
      const Eigen::Index after = x.size() - 1 - worst, left = x.size() - 1;
      chosen.erase(chosen.begin() + worst);
      for (Eigen::Index i = worst; i < left; ++i) A.col(i) = A.col(i + 1);
      c.segment(worst, after) = c.segment(worst + 1, after).eval();
      G.middleRows(worst, after) = G.middleRows(worst + 1, after).eval();
      G.middleCols(worst, after) = G.middleCols(worst + 1, after).eval();
      VecX again(left);
      again << x.head(worst), x.tail(after);
      x = left > 0 ? nnls(G.topLeftCorner(left, left), c.head(left), again) : VecX();
    }
    residual = target - A.leftCols(x.size()) * x;
    out.error = residual.norm() / size;
  }
  std::vector<std::pair<Index, double>> kept;
  for (std::size_t k = 0; k < chosen.size(); ++k)
    if (x[static_cast<Eigen::Index>(k)] > 0) kept.emplace_back(chosen[k], x[static_cast<Eigen::Index>(k)]);
  std::sort(kept.begin(), kept.end());
  for (const auto& [element, weight] : kept) {
    out.cubature.elements.push_back(element);
    out.cubature.weights.push_back(weight);
  }
  return out;
}

}  // namespace limber
