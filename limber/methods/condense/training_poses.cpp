#include <limber/methods/condense/training_poses.hpp>

#include <limber/core/cache.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/methods/common/system.hpp>
#include <limber/methods/condense/hybrid_system.hpp>
#include <limber/sim/script.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>

namespace limber::condense {
namespace {

constexpr std::uint64_t kTrainingVersion = 3;  // to be raised when the same input trains another subspace
constexpr double kPoseTolerance = 1e-7;        // of the static solutions
constexpr double kPoseAccuracy = 1e-9;         // times stiffness and size: forces that nobody sees
constexpr int kPoseIterations = 500;
constexpr int kPoseRevisions = 5;    // of contacts
constexpr std::size_t kChain = 8;    // poses of an animation that follow each other: others go beside them
constexpr double kFactorRoom = 6e9;  // bytes that the factors of all workers may take

std::span<const double> numbers_of(const VecX& v) { return {v.data(), static_cast<std::size_t>(v.size())}; }

bool same_pose(const std::vector<BonePose>& a, const std::vector<BonePose>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](const BonePose& p, const BonePose& q) {
    return (p.R - q.R).norm() < 1e-9 && (p.t - q.t).norm() < 1e-9;
  });
}

// Static solutions of the whole body: the hybrid energy when all nodes are full. Each pose has a factor of
// its own, so that it is the same whether those before it were solved just now or long ago.
class PoseSolver {
 public:
  PoseSolver(const Model& model, const Skeleton& skeleton, const CondenseOptions& o)
      : model_(model), options_(pose_options(model, o)), system_(model, skeleton, none_, options_, {}) {
    system_.set_region(std::vector<std::uint8_t>(at(model.nodes()), 1), false);
  }

  // Moves x to equilibrium; false: not found. `before`: where the body was, for contacts on the way.
  bool solve(const StepInput& in, const SkinnedBody& skin, const VecX& before, VecX& x) {
    RegionFactor factor;
    PhaseClock clock;
    system_.begin_step();
    if (system_.bodies()) system_.bodies()->pose(before, x, before, 1);
    for (int revision = 0;; ++revision) {
      if (system_.couple_pairs(before, x)) factor.forget();
      HybridStep step;
      step.skin = &skin;
      step.load = external_force(model_, in);
      step.activation = in.activation;
      system_.pose(std::move(step), x, {});
      if (!system_.solve(factor, clock).converged) return false;
      x = system_.positions();
      if (!system_.bodies() || revision == kPoseRevisions || !system_.bodies()->revise(x)) return true;
    }
  }

  double bytes() const { return system_.solver().stats().bytes; }

 private:
  static CondenseOptions pose_options(const Model& model, const CondenseOptions& o) {
    CondenseOptions out;
    out.linear_skinning = o.linear_skinning;
    out.relative = kPoseTolerance;
    double young = 0;
    for (const ElementMaterial& m : model.mesh.material) young = std::max(young, m.young);
    out.absolute = kPoseAccuracy * young * model.size * model.size;
    out.max_iterations = kPoseIterations;
    out.body_contact = o.trained_contact;
    out.frictionless = true;
    return out;
  }

  const Model& model_;
  const Subspace none_;
  const CondenseOptions options_;
  HybridSystem system_;
};

// One pose: from the cache, or solved from `before`, the displacement in the skinned frame to begin with,
// which becomes that of the pose. `from`: the bones in the pose that it comes from. False: not found.
bool solve_pose(const Model& model, const TrainingPose& pose, const std::vector<BonePose>& from,
                const InputHash& body, const BoneSkinning& skinning, const std::filesystem::path& cache,
                const std::function<PoseSolver&()>& solver, VecX& before) {
  Script script(model);
  State state = initial_state(model);
  state.t = pose.t;
  const StepInput& in = script.at(state, model.scene->h);
  InputHash hash = body;
  add_poses(hash, pose.bones);
  hash.numbers(numbers_of(in.force)).bytes(in.gravity.data(), sizeof in.gravity);
  hash.numbers(std::span<const double>(in.activation)).numbers(numbers_of(before));
  CachedMatrices stored;
  if (load_cached(cache, "condense-pose", hash.value(), stored) && stored.count("u") &&
      stored["u"].size() == before.size()) {
    before = stored["u"];
    return true;
  }
  SkinnedBody skin;
  const auto placed = [&](const std::vector<BonePose>& bones) {
    skinning.pose(bones, skin);
    VecX x(before.size());
    for (Index i = 0; i < model.nodes(); ++i)
      node(x, i) = Vec3(node(skin.x, i)) + skin.R[at(i)] * Vec3(node(before, i));
    return x;
  };
  const VecX start = placed(from);
  VecX x = placed(pose.bones);
  if (!solver().solve(in, skin, start, x)) return false;
  before = local_displacement(skin, x);
  store_cached(cache, "condense-pose", hash.value(), {{"u", before}});
  return true;
}

}  // namespace

MatX solve_poses(const Model& model, const Skeleton& skeleton, const BoneSkinning& skinning,
                 std::span<const TrainingPose> poses, const CondenseOptions& o,
                 const Preparation& preparation, std::vector<std::size_t>& solved) {
  const InputHash body = body_hash(model, skeleton, o);
  const VecX zero = VecX::Zero(3 * static_cast<Eigen::Index>(model.nodes()));
  const std::vector<BonePose> rest(at(skeleton.bones()));
  std::vector<VecX> found(poses.size());  // empty: not found
  std::vector<std::size_t> chains;        // where they begin
  for (std::size_t k = 0; k < poses.size(); ++k)
    if (k == 0 || poses[k].restart) chains.push_back(k);
  std::atomic<std::size_t> begun = 0, next = 0;
  const auto say = [&] {
    const std::size_t number = ++begun;
    // Only the thread that called: others do not know what it may do.
    if (thread_index() == 0)
      preparation.say(fmt::format("training the subspace: pose {} of {}", number, poses.size()),
                      0.8 * static_cast<double>(number - 1) / static_cast<double>(poses.size()));
  };
  // Chains are independent of each other, and a worker takes the next one that nobody has taken. What it
  // finds does not depend on who it is.
  const auto work = [&](std::optional<PoseSolver>& own) {
    const auto solver = [&]() -> PoseSolver& {
      if (!own) own.emplace(model, skeleton, o);
      return *own;
    };
    for (std::size_t c; (c = next++) < chains.size();) {
      VecX before = zero;
      const std::size_t end = c + 1 < chains.size() ? chains[c + 1] : poses.size();
      for (std::size_t k = chains[c]; k < end; ++k) {
        say();
        const std::vector<BonePose>& from = k == chains[c] ? rest : poses[k - 1].bones;
        if (solve_pose(model, poses[k], from, body, skinning, preparation.cache, solver, before))
          found[k] = before;
      }
    }
  };
  std::optional<PoseSolver> first;
  const auto wanted = static_cast<double>(std::min<std::size_t>(at(threads()), chains.size()));
  // Each has a factor of the whole body. Where there is no room for two, all threads work at one pose.
  first.emplace(model, skeleton, o);
  const auto workers = static_cast<std::ptrdiff_t>(
      std::max(1.0, std::min(wanted, kFactorRoom / std::max(1.0, first->bytes()))));
  if (workers == 1) {
    work(first);
  } else {
    first.reset();
    parallel_for(workers, 1, [&](std::ptrdiff_t) {
      std::optional<PoseSolver> own;
      work(own);
    });
  }
  // Those that were not found from the skinned shape, or from the pose before: from the nearest one that was.
  for (std::size_t k = 0; k < poses.size(); ++k) {
    if (found[k].size() > 0) continue;
    for (std::size_t away = 1; away < poses.size() && found[k].size() == 0; ++away)
      for (const std::size_t other : {k - away, k + away}) {
        if (other >= poses.size() || found[other].size() == 0) continue;
        VecX before = found[other];
        const auto solver = [&]() -> PoseSolver& {
          if (!first) first.emplace(model, skeleton, o);
          return *first;
        };
        if (solve_pose(model, poses[k], poses[other].bones, body, skinning, preparation.cache, solver,
                       before))
          found[k] = before;
        away = poses.size();  // one more try, no more
        break;
      }
  }
  MatX all(zero.size(), static_cast<Eigen::Index>(poses.size()));
  for (std::size_t k = 0; k < poses.size(); ++k) {
    if (found[k].size() == 0) continue;
    all.col(static_cast<Eigen::Index>(solved.size())) = found[k];
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

void add_poses(InputHash& hash, const std::vector<BonePose>& bones) {
  for (const BonePose& b : bones) hash.bytes(b.R.data(), sizeof b.R).bytes(b.t.data(), sizeof b.t);
}

InputHash body_hash(const Model& model, const Skeleton& skeleton, const CondenseOptions& o) {
  InputHash hash;
  hash.number(kTrainingVersion).numbers(std::span<const Vec3>(model.mesh.rest));
  hash.numbers(std::span<const Tet>(model.mesh.elements));
  hash.numbers(std::span<const Index>(skeleton.bone_of_node)).number(o.linear_skinning);
  for (const ElementMaterial& m : model.mesh.material) {
    hash.number(m.model).number(m.young).number(m.poisson).number(m.density).number(m.fibre);
    hash.number(m.fibre_stiffness).bytes(m.fibre_direction.data(), 3 * sizeof(double));
  }
  if (o.trained_contact) hash.text("contact").number(model.scene->contact.stiffness);
  return hash;
}

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
  std::vector<double> times;
  for (Index k = 1; k <= o.poses; ++k) times.push_back(scene.end * k / o.poses);
  const std::vector<VecX> joints = joints_at(model, times);
  if (!o.each_bone) {
    for (std::size_t k = 0; k < times.size(); ++k)
      add({bone_poses(model, skeleton, times[k], joints[k]), times[k], out.size() % kChain == 0});
    return out;
  }
  const auto keyed = static_cast<Index>(skeleton.constraint.size());
  for (Index b = 0; b < skeleton.bones(); ++b) {
    double first = 0, last = scene.end;
    if (b < keyed) {
      const std::vector<MotionKey>& keys = scene.constraints[skeleton.constraint[at(b)]].motion;
      if (keys.empty()) continue;
      first = keys.front().t;
      last = keys.back().t;
    }
    for (Index k = 1; k <= o.poses; ++k)
      add({bone_poses(model, skeleton, first + (last - first) * k / o.poses, joints[at(k - 1)], b), 0,
           k == 1});
  }
  if (out.empty())
    throw Error(ErrorKind::kInput,
                "/method/training: found \"bones\", but no bone has a motion of its own; "
                "expected keys (bones/N/motion), or \"animation\"");
  return out;
}

}  // namespace limber::condense
