// The capsule of the condense tests: two bones, flesh around them.
#pragma once

#include <limber/methods/condense/hybrid_system.hpp>
#include <limber/methods/condense/options.hpp>
#include <limber/methods/condense/subspace.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/simulation.hpp>
#include <limber/sim/static_solve.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <unistd.h>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>

namespace limber::condense_tests {

using namespace condense;

// One long, 0.24 thick. The upper bone bends by 1.4 rad in two seconds; `more`: further keys of the scene.
inline std::string capsule_text(const std::string& method, const std::string& more = "", double edge = 0.04) {
  return fmt::format(R"({{"limber": 1, "time": {{"step": 0.25, "end": 2}}, "gravity": [0, 0, 0],
    "bodies": [{{"name": "capsule", "mesh": {{"shape": "capsule", "radius": 0.12, "length": 0.76, "edge": {}}},
                "material": {{"young": 1e5, "poisson": 0.45}}}}],
    "bones": [{{"name": "lower", "head": [0, 0, -0.4], "tail": [0, 0, -0.1], "radius": 0.045}},
              {{"name": "upper", "parent": "lower", "joint": [0, 0, 0], "head": [0, 0, 0.1], "tail": [0, 0, 0.4],
                "radius": 0.045, "interpolation": "linear",
                "motion": [{{"t": 0}}, {{"t": 2, "rotation": [1.4, 0, 0]}}]}}],
    "contact": {{"friction": 0}}{},
    "method": {}}})",
                     edge, more, method);
}

inline void replace(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("not in the scene: " + from);
  text.replace(at, from.size(), to);
}

inline std::shared_ptr<const Scene> capsule_scene(const std::string& method, const std::string& more = "",
                                                  double edge = 0.04) {
  return std::make_shared<const Scene>(read_scene(capsule_text(method, more, edge), "capsule.json"));
}

// A folder that all tests of a program keep trained subspaces in, until it ends.
inline std::filesystem::path test_cache() {
  struct Folder {
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / fmt::format("limber-condense-{}", ::getpid());
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(path, ignored);
    }
  };
  static const Folder folder;
  return folder.path;
}

inline Preparation with_cache() {
  Preparation p;
  p.cache = test_cache();
  return p;
}

inline BonePose turned(const Vec3& rotation) { return {rotation_of(rotation), Vec3::Zero()}; }

// The body of the tests with a subspace. Poses: the lower bone stays, the upper one turns about the origin.
struct Trained {
  std::shared_ptr<const Scene> scene;
  Model model;
  Skeleton skeleton;
  BoneSkinning skinning;
  std::vector<TrainingPose> poses;
  CondenseOptions options;
  Subspace subspace;

  Trained(const std::vector<Vec3>& rotations, const CondenseOptions& o)
      : scene(capsule_scene(R"({"type": "condense"})")),
        model(build_model(scene)),
        skeleton(read_skeleton(model)),
        skinning(model.mesh.rest,
                 heat_weights(model.mesh, model.pattern, skeleton.bone_of_node, skeleton.bones()),
                 Blend::kDualQuaternion),
        options(o) {
    for (const Vec3& r : rotations) poses.push_back({{BonePose{}, turned(r)}, 0, poses.empty()});
    subspace = train_subspace(model, skeleton, skinning, poses, options, with_cache());
  }

  SkinnedBody skinned(const Vec3& rotation) const {
    SkinnedBody out;
    skinning.pose(std::vector<BonePose>{BonePose{}, turned(rotation)}, out);
    return out;
  }

  // Equilibrium of the whole mesh.
  VecX full_solution(const Vec3& rotation) const {
    VecX x = skinned(rotation).x;
    StepInput in;
    script_input(model, initial_state(model), scene->h, in);
    const StaticResult r = solve_static(model, in, x, 1e-10);
    if (!r.converged) throw std::runtime_error(r.why);
    return x;
  }

  // The share of the free nodes that is nearest to a point of the rest shape.
  std::vector<std::uint8_t> nearest(const Vec3& point, double share) const {
    std::vector<Index> free;
    for (Index i = 0; i < model.nodes(); ++i)
      if (skeleton.bone_of_node[at(i)] < 0) free.push_back(i);
    std::sort(free.begin(), free.end(), [&](Index a, Index b) {
      return (model.mesh.rest[at(a)] - point).squaredNorm() < (model.mesh.rest[at(b)] - point).squaredNorm();
    });
    std::vector<std::uint8_t> out(at(model.nodes()), 0);
    for (std::size_t k = 0; k < static_cast<std::size_t>(share * static_cast<double>(free.size())); ++k)
      out[at(free[k])] = 1;
    return out;
  }
};

// Twelve bends (basis B of the measured facts).
inline const Trained& bends() {
  static const Trained trained = [] {
    std::vector<Vec3> rotations;
    for (int k = 1; k <= 12; ++k) rotations.push_back({1.4 * k / 12, 0, 0});
    CondenseOptions o;
    o.modes = 11;
    o.least_spread = 1e-9;
    return Trained(rotations, o);
  }();
  return trained;
}

// The same bends, with columns of their own around each bone and springs between them.
inline const Trained& bend_domains() {
  static const Trained trained = [] {
    std::vector<Vec3> rotations;
    for (int k = 1; k <= 12; ++k) rotations.push_back({1.4 * k / 12, 0, 0});
    CondenseOptions o;
    o.modes = 16;
    o.least_spread = 1e-9;
    o.bone_domains = true;
    o.coupling = 0.1;
    return Trained(rotations, o);
  }();
  return trained;
}

// Bends to both sides and across, and twists (basis A).
inline const Trained& many_poses() {
  static const Trained trained = [] {
    std::vector<Vec3> rotations;
    for (int k = 1; k <= 8; ++k) rotations.push_back({1.4 * k / 8, 0, 0});
    for (int k = 1; k <= 4; ++k) rotations.push_back({-1.4 * k / 4, 0, 0});
    for (int k = 1; k <= 4; ++k) rotations.push_back({0, 1.2 * k / 4, 0});
    for (int k = 1; k <= 4; ++k) rotations.push_back({0, -1.2 * k / 4, 0});
    for (int k = 1; k <= 3; ++k) rotations.push_back({0, 0, 0.9 * k / 3});
    for (int k = 1; k <= 3; ++k) rotations.push_back({0, 0, -0.9 * k / 3});
    CondenseOptions o;
    o.modes = 20;
    o.least_spread = 1e-9;
    return Trained(rotations, o);
  }();
  return trained;
}

inline double max_distance(const VecX& a, const VecX& b) {
  double largest = 0;
  for (Eigen::Index i = 0; i < a.size() / 3; ++i)
    largest = std::max(largest, (a.segment<3>(3 * i) - b.segment<3>(3 * i)).norm());
  return largest;
}

}  // namespace limber::condense_tests
