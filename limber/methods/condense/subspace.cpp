#include <limber/methods/condense/subspace.hpp>

#include <limber/core/cache.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/linalg/tall.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/condense/force_samples.hpp>
#include <limber/methods/condense/hybrid_system.hpp>
#include <limber/reduction/linear_modes.hpp>
#include <limber/reduction/seeded_numbers.hpp>
#include <limber/sim/script.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace limber::condense {
namespace {

constexpr std::uint64_t kTrainingVersion = 2;  // to be raised when the same input trains another subspace
constexpr double kPoseTolerance = 1e-7;        // of the static solutions
constexpr double kPoseAccuracy = 1e-9;         // times stiffness and size: forces that nobody sees
constexpr int kPoseIterations = 500;
constexpr double kRoom = 1e8;         // numbers: forces of elements that cubature is chosen from
constexpr double kNewMode = 1e-3;     // of a vibration mode's length that must be new
constexpr double kLeastNoise = 0.03;  // of the greatest spread: coordinates that no pose moves get that

std::span<const double> numbers_of(const MatX& m) { return {m.data(), static_cast<std::size_t>(m.size())}; }

void add_poses(InputHash& hash, const std::vector<BonePose>& bones) {
  for (const BonePose& b : bones) hash.bytes(b.R.data(), sizeof b.R).bytes(b.t.data(), sizeof b.t);
}

// All that a static solution depends on but the pose.
InputHash body_hash(const Model& model, const Skeleton& skeleton, const CondenseOptions& o) {
  InputHash hash;
  hash.number(kTrainingVersion).numbers(std::span<const Vec3>(model.mesh.rest));
  hash.numbers(std::span<const Tet>(model.mesh.elements));
  hash.numbers(std::span<const Index>(skeleton.bone_of_node)).number(o.linear_skinning);
  for (const ElementMaterial& m : model.mesh.material) {
    hash.number(m.model).number(m.young).number(m.poisson).number(m.density).number(m.fibre);
    hash.number(m.fibre_stiffness).bytes(m.fibre_direction.data(), 3 * sizeof(double));
  }
  return hash;
}

bool same_pose(const std::vector<BonePose>& a, const std::vector<BonePose>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](const BonePose& p, const BonePose& q) {
    return (p.R - q.R).norm() < 1e-9 && (p.t - q.t).norm() < 1e-9;
  });
}

// A body that is fixed along one line can turn about it. Conjugate directions do not see that, so it is
// looked for: throws Error(kInput).
void check_held(const Model& model, const Skeleton& skeleton) {
  std::vector<Index> root(at(model.nodes()));
  std::iota(root.begin(), root.end(), 0);
  const auto root_of = [&](Index i) {
    while (root[at(i)] != i) i = root[at(i)] = root[at(root[at(i)])];
    return i;
  };
  for (const Tet& t : model.mesh.elements)
    for (const Index i : t)
      if (i >= 0) root[at(root_of(i))] = root_of(t[0]);
  std::map<Index, std::vector<Vec3>> fixed;  // of each connected piece
  for (Index i = 0; i < model.nodes(); ++i)
    if (skeleton.bone_of_node[at(i)] >= 0) fixed[root_of(i)].push_back(model.mesh.rest[at(i)]);
  for (const auto& piece : fixed) {
    const std::vector<Vec3>& x = piece.second;
    const auto far = std::max_element(x.begin(), x.end(), [&](const Vec3& a, const Vec3& b) {
      return (a - x[0]).squaredNorm() < (b - x[0]).squaredNorm();
    });
    const Vec3 along = (*far - x[0]).stableNormalized();
    if (std::all_of(x.begin(), x.end(), [&](const Vec3& p) {
          return (p - x[0] - along.dot(p - x[0]) * along).norm() < 1e-6 * model.size;
        }))
      throw Error(ErrorKind::kInput,
                  fmt::format("the {} nodes that bones hold are on one line, about which the body is free to "
                              "turn: expected bones with a greater radius, or a finer mesh",
                              x.size()));
  }
}

// Static solutions of the whole body: the hybrid energy when all nodes are full. Each pose has a factor of
// its own, so that it is the same whether those before it were solved just now or long ago.
class PoseSolver {
 public:
  PoseSolver(const Model& model, const Skeleton& skeleton, const CondenseOptions& o)
      : model_(model), options_(pose_options(model, o)), system_(model, skeleton, none_, options_, {}) {
    system_.set_region(std::vector<std::uint8_t>(at(model.nodes()), 1), false);
  }

  // Moves x to equilibrium; false: not found.
  bool solve(const StepInput& in, const SkinnedBody& skin, VecX& x) {
    HybridStep step;
    step.skin = &skin;
    step.load = external_force(model_, in);
    step.activation = in.activation;
    system_.pose(std::move(step), x, {});
    RegionFactor factor;
    PhaseClock clock;
    system_.begin_step();
    if (!system_.solve(factor, clock).converged) return false;
    x = system_.positions();
    return true;
  }

 private:
  static CondenseOptions pose_options(const Model& model, const CondenseOptions& o) {
    CondenseOptions out;
    out.linear_skinning = o.linear_skinning;
    out.relative = kPoseTolerance;
    double young = 0;
    for (const ElementMaterial& m : model.mesh.material) young = std::max(young, m.young);
    out.absolute = kPoseAccuracy * young * model.size * model.size;
    out.max_iterations = kPoseIterations;
    return out;
  }

  const Model& model_;
  const Subspace none_;
  const CondenseOptions options_;
  HybridSystem system_;
};

// Static solutions in the skinned frame, one column a pose that has one.
MatX solve_poses(const Model& model, const Skeleton& skeleton, const BoneSkinning& skinning,
                 std::span<const TrainingPose> poses, const CondenseOptions& o,
                 const Preparation& preparation, std::vector<std::size_t>& solved) {
  const InputHash body = body_hash(model, skeleton, o);
  std::optional<PoseSolver> solver;
  Script script(model);
  State state = initial_state(model);
  MatX all(3 * model.nodes(), static_cast<Eigen::Index>(poses.size()));
  VecX before = VecX::Zero(all.rows());
  SkinnedBody skin;
  for (std::size_t k = 0; k < poses.size(); ++k) {
    preparation.say(fmt::format("training the subspace: pose {} of {}", k + 1, poses.size()),
                    0.8 * static_cast<double>(k) / static_cast<double>(poses.size()));
    state.t = poses[k].t;
    StepInput in = script.at(state, model.scene->h);
    if (poses[k].restart) before.setZero();
    InputHash hash = body;
    add_poses(hash, poses[k].bones);
    hash.numbers(numbers_of(in.force)).bytes(in.gravity.data(), sizeof in.gravity);
    hash.numbers(std::span<const double>(in.activation)).numbers(numbers_of(before));
    CachedMatrices stored;
    if (load_cached(preparation.cache, "condense-pose", hash.value(), stored) && stored.count("u") &&
        stored["u"].size() == all.rows()) {
      before = stored["u"];
    } else {
      if (!solver) solver.emplace(model, skeleton, o);
      skinning.pose(poses[k].bones, skin);
      VecX x(all.rows());
      for (Index i = 0; i < model.nodes(); ++i)
        node(x, i) = Vec3(node(skin.x, i)) + skin.R[at(i)] * Vec3(node(before, i));
      if (!solver->solve(in, skin, x)) continue;
      before = local_displacement(skin, x);
      store_cached(preparation.cache, "condense-pose", hash.value(), {{"u", before}});
    }
    all.col(static_cast<Eigen::Index>(solved.size())) = before;
    solved.push_back(k);
  }
  if (2 * solved.size() < poses.size())
    throw Error(
        ErrorKind::kInput,
        fmt::format("a static solution was found for {} of {} training poses only: expected smaller steps "
                    "between poses (method/poses), or bones that hold the body (nodes on one line let it "
                    "turn about that line)",
                    solved.size(), poses.size()));
  if (solved.size() < poses.size())
    preparation.say(
        fmt::format("training the subspace: {} of {} poses have no static solution that was found and "
                    "are left out",
                    poses.size() - solved.size(), poses.size()),
        0.8);
  return all.leftCols(static_cast<Eigen::Index>(solved.size()));
}

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

std::vector<TrainingPose> training_poses(const Model& model, const Skeleton& skeleton,
                                         const CondenseOptions& o) {
  const Scene& scene = *model.scene;
  std::vector<TrainingPose> out;
  // An animation that comes back has poses twice; where forces do not depend on time either, once is enough.
  const auto add = [&](TrainingPose pose) {
    const bool known = model.loads.empty() && scene.activations.empty() &&
                       std::any_of(out.begin(), out.end(), [&](const TrainingPose& other) {
                         return same_pose(other.bones, pose.bones);
                       });
    if (!known) out.push_back(std::move(pose));
  };
  if (!o.each_bone) {
    for (Index k = 1; k <= o.poses; ++k) {
      const double t = scene.end * k / o.poses;
      add({bone_poses(scene, skeleton, t), t, out.empty()});
    }
    return out;
  }
  for (Index b = 0; b < skeleton.bones(); ++b) {
    const std::vector<MotionKey>& keys = scene.constraints[skeleton.constraint[at(b)]].motion;
    if (keys.empty()) continue;
    const double first = keys.front().t, last = keys.back().t;
    for (Index k = 1; k <= o.poses; ++k)
      add({bone_poses(scene, skeleton, first + (last - first) * k / o.poses, b), 0, k == 1});
  }
  if (out.empty())
    throw Error(ErrorKind::kInput,
                "/method/training: found \"bones\", but no bone has a motion of its own; "
                "expected keys (bones/N/motion), or \"animation\"");
  return out;
}

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
