#include <limber/methods/condense/subspace.hpp>

#include <limber/core/cache.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/linalg/tall.hpp>
#include <limber/methods/condense/force_samples.hpp>
#include <limber/reduction/linear_modes.hpp>
#include <limber/reduction/seeded_numbers.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

namespace limber::condense {
namespace {

constexpr double kRoom = 1e8;         // numbers: forces of elements that cubature is chosen from
constexpr double kNewMode = 1e-3;     // of a vibration mode's length that must be new
constexpr double kLeastNoise = 0.03;  // of the greatest spread: coordinates that no pose moves get that

// Singular vectors of the poses, by masses, and what is new of the vibration modes.
void make_basis(const Model& model, const Skeleton& skeleton, const MatX& displacements,
                const CondenseOptions& o, Subspace& out) {
  const Eigen::Index n = displacements.rows();
  out.mean_mass = model.mass.sum() / static_cast<double>(n);
  const VecX root = (model.mass / out.mean_mass).cwiseSqrt();
  const MatX weighted = root.asDiagonal() * displacements;
  const DenseEigen svd = symmetric_eigen(tall_product(weighted, weighted));
  const Eigen::Index poses = displacements.cols();
  std::vector<Eigen::Index> kept;
  const double first = std::sqrt(std::max(0.0, svd.values[poses - 1]));
  for (Eigen::Index k = poses - 1; k >= 0 && static_cast<Index>(kept.size()) < o.modes; --k)
    if (svd.values[k] > 0 && std::sqrt(svd.values[k]) > o.least_spread * first) kept.push_back(k);
  MatX B(n, static_cast<Eigen::Index>(kept.size()));
  for (std::size_t k = 0; k < kept.size(); ++k)
    B.col(static_cast<Eigen::Index>(k)) =
        weighted * svd.vectors.col(kept[k]) / std::sqrt(svd.values[kept[k]]);
  if (o.linear_modes > 0) {
    VecX mass(model.nodes());
    std::vector<std::uint8_t> pinned(at(model.nodes()));
    for (Index i = 0; i < model.nodes(); ++i) {
      mass[i] = model.mass[3 * i];
      pinned[at(i)] = skeleton.bone_of_node[at(i)] >= 0;
    }
    const MatX modes = vibration_modes(model.mesh, mass, pinned, o.linear_modes);
    const Eigen::Index from_poses = B.cols();
    B.conservativeResize(n, from_poses + modes.cols());
    B.rightCols(modes.cols()) = std::sqrt(out.mean_mass) * (root.asDiagonal() * modes);
  }
  std::vector<Index> columns;
  orthonormalize(B, kNewMode, columns);  // singular vectors of small values are not quite orthogonal
  if (B.cols() == 0)
    throw Error(ErrorKind::kInput,
                "the training poses need no correction of the skinned shape, so that there is no subspace: "
                "expected a skeleton that moves or forces on the body (or method/linear_modes)");
  out.U = root.cwiseInverse().asDiagonal() * B;
  for (Index i = 0; i < model.nodes(); ++i)
    if (skeleton.bone_of_node[at(i)] >= 0) out.U.middleRows<3>(3 * static_cast<Eigen::Index>(i)).setZero();
  out.q = tall_product(B, weighted);
  out.spread.resize(out.q.rows());
  for (Eigen::Index k = 0; k < out.q.rows(); ++k)
    out.spread[k] = out.q.row(k).norm() / std::sqrt(static_cast<double>(poses));
  // Vibration modes alone, of a body that no pose moves: a hundredth of its size, root mean square.
  if (const double rms = 0.01 * model.size * std::sqrt(static_cast<double>(model.nodes()));
      out.spread.maxCoeff() < 1e-9 * rms)
    out.spread.setConstant(rms);
}

// Greedy training over all elements, or over as many as there is room for the forces of.
void train_points(const ForceSamples& samples, Index elements, TrainingOptions& training, Subspace& out) {
  const Index room = std::max<Index>(2 * training.points, static_cast<Index>(kRoom / samples.rows()));
  SeededNumbers numbers(training.seed + 17);
  std::vector<Index> pool(at(elements));
  std::iota(pool.begin(), pool.end(), 0);
  if (room < elements) {
    for (Index i = 0; i < room; ++i) std::swap(pool[at(i)], pool[at(i + numbers.below(elements - i))]);
    pool.resize(at(room));
    std::sort(pool.begin(), pool.end());
  }
  const auto size = static_cast<Eigen::Index>(pool.size());
  Eigen::MatrixXf forces(samples.rows(), size);
  parallel_for(size, 64, [&](std::ptrdiff_t k) {
    VecX one(samples.rows());
    samples.element(pool[static_cast<std::size_t>(k)], one);
    forces.col(k) = one.cast<float>();
  });
  training.points = std::min<Index>(training.points, static_cast<Index>(size));
  training.candidates = static_cast<Index>(size);
  TrainedCubature trained = train_cubature(
      static_cast<Index>(size), [&](Index k, Eigen::Ref<VecX> f) { f = forces.col(k).cast<double>(); },
      samples.total(), training);
  for (Index& e : trained.cubature.elements) e = pool[at(e)];
  out.cubature = std::move(trained.cubature);
  out.error = trained.error;
}

bool take_subspace(CachedMatrices& stored, const Model& model, Subspace& out) {
  for (const char* name : {"U", "q", "spread", "points", "numbers"})
    if (!stored.count(name)) return false;
  const MatX& points = stored["points"];
  if (stored["U"].rows() != 3 * model.nodes() || points.cols() != 2 || stored["numbers"].size() != 3 ||
      stored["spread"].size() != stored["U"].cols() || stored["q"].rows() != stored["U"].cols())
    return false;
  for (Eigen::Index c = 0; c < points.rows(); ++c) {
    if (!(points(c, 0) >= 0 && points(c, 0) < static_cast<double>(model.mesh.elements.size()))) return false;
    out.cubature.elements.push_back(static_cast<Index>(points(c, 0)));
    out.cubature.weights.push_back(points(c, 1));
  }
  out.U = std::move(stored["U"]);
  out.q = std::move(stored["q"]);
  out.spread = stored["spread"];
  out.mean_mass = stored["numbers"](0);
  out.error = stored["numbers"](1);
  out.held_out = stored["numbers"](2);
  out.from_cache = true;
  return true;
}

void store_subspace(const Subspace& s, const std::filesystem::path& cache) {
  MatX points(static_cast<Eigen::Index>(s.cubature.elements.size()), 2);
  for (Eigen::Index c = 0; c < points.rows(); ++c)
    points.row(c) << s.cubature.elements[static_cast<std::size_t>(c)],
        s.cubature.weights[static_cast<std::size_t>(c)];
  MatX numbers(3, 1);
  numbers << s.mean_mass, s.error, s.held_out;
  store_cached(cache, "condense", s.hash,
               {{"U", s.U}, {"q", s.q}, {"spread", s.spread}, {"points", points}, {"numbers", numbers}});
}

}  // namespace

VecX reduced_force(const Subspace& subspace, const SkinnedBody& skin, const VecX& f,
                   std::span<const std::uint8_t> skip) {
  MatX turned(f.size(), 1);
  parallel_for(f.size() / 3, 2048, [&](std::ptrdiff_t i) {
    const auto k = static_cast<std::size_t>(i);
    turned.col(0).segment<3>(3 * i) =
        !skip.empty() && skip[k] ? Vec3(Vec3::Zero()) : Vec3(skin.R[k].transpose() * f.segment<3>(3 * i));
  });
  return tall_product(subspace.U, turned).col(0);
}

void subspace_positions(const Subspace& subspace, const SkinnedBody& skin, const VecX& q, VecX& x) {
  x.resize(skin.x.size());
  parallel_ranges(
      static_cast<std::ptrdiff_t>(skin.R.size()), 1024, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
        const VecX local = subspace.U.middleRows(3 * begin, 3 * (end - begin)) * q;
        for (std::ptrdiff_t i = begin; i < end; ++i)
          x.segment<3>(3 * i) = skin.x.segment<3>(3 * i) +
                                skin.R[static_cast<std::size_t>(i)] * local.segment<3>(3 * (i - begin));
      });
}

VecX local_displacement(const SkinnedBody& skin, const VecX& x) {
  VecX out(x.size());
  parallel_for(x.size() / 3, 2048, [&](std::ptrdiff_t i) {
    out.segment<3>(3 * i) =
        skin.R[static_cast<std::size_t>(i)].transpose() * (x.segment<3>(3 * i) - skin.x.segment<3>(3 * i));
  });
  return out;
}

MatX turned_rows(const Subspace& subspace, const SkinnedBody& skin, std::span<const Index> nodes) {
  MatX out(3 * static_cast<Eigen::Index>(nodes.size()), subspace.columns());
  for (std::size_t k = 0; k < nodes.size(); ++k)
    out.middleRows<3>(3 * static_cast<Eigen::Index>(k)).noalias() =
        skin.R[at(nodes[k])] * subspace.U.middleRows<3>(3 * static_cast<Eigen::Index>(nodes[k]));
  return out;
}

Subspace train_subspace(const Model& model, const Skeleton& skeleton, const BoneSkinning& skinning,
                        std::span<const TrainingPose> poses, const CondenseOptions& o,
                        const Preparation& preparation) {
  InputHash hash = body_hash(model, skeleton, o);
  for (const TrainingPose& pose : poses) {
    add_poses(hash, pose.bones);
    hash.number(pose.t).number(pose.restart);
  }
  hash.number(o.modes).number(o.least_spread).number(o.linear_modes).number(o.points).number(o.samples);
  hash.number(o.noise).number(o.seed).number(o.exact);
  hash.bytes(model.scene->gravity.data(), sizeof model.scene->gravity);
  for (const Load& load : model.loads) {
    const ForceSpec& f = model.scene->forces[load.force];
    hash.numbers(std::span<const Index>(load.nodes)).bytes(f.force.data(), sizeof f.force).number(f.from);
    hash.bytes(f.acceleration.value.data(), sizeof f.acceleration.value).number(f.until.value_or(-1));
    hash.numbers(std::span<const Vec3>(load.acceleration)).number(f.ramp);
  }
  Subspace out;
  out.hash = hash.value();
  CachedMatrices stored;
  if (load_cached(preparation.cache, "condense", out.hash, stored) && take_subspace(stored, model, out))
    return out;
  out.cubature = {};
  check_held(model, skeleton);
  if (!preparation.train) return out;
  std::vector<std::size_t> solved;
  const MatX displacements = solve_poses(model, skeleton, skinning, poses, o, preparation, solved);
  preparation.say("training the subspace: basis", 0.8);
  make_basis(model, skeleton, displacements, o, out);
  std::vector<TrainingPose> used;
  for (const std::size_t k : solved) used.push_back(poses[k]);
  if (!o.exact) {
    preparation.say("training the subspace: cubature", 0.82);
    const ForceSamples samples(model, skinning, used, out, kLeastNoise, o.noise, o.samples, o.seed);
    samples.check();
    TrainingOptions training;
    training.points = o.points > 0 ? o.points : 10 * out.columns();
    training.points = std::min<Index>(training.points, static_cast<Index>(model.mesh.elements.size()));
    training.seed = o.seed;
    training.replace = true;
    train_points(samples, static_cast<Index>(model.mesh.elements.size()), training, out);
    out.held_out = cubature_error(model, skinning, used, out, o, o.seed + 1000);
  }
  preparation.say("storing", 0.98);
  store_subspace(out, preparation.cache);
  return out;
}

double cubature_error(const Model& model, const BoneSkinning& skinning, std::span<const TrainingPose> poses,
                      const Subspace& subspace, const CondenseOptions& o, std::uint64_t seed) {
  const ForceSamples samples(model, skinning, poses, subspace, kLeastNoise, o.noise, 1, seed);
  return samples.error(subspace.cubature);
}

}  // namespace limber::condense
