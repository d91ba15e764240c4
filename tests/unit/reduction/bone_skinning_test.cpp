#include <limber/core/error.hpp>
#include <limber/core/motion.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/reduction/bone_skinning.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

// A bar of 2 x 0.4 x 0.4 whose ends are fixed to two bones.
struct SkinnedBar {
  fem::ElementInput mesh;
  std::shared_ptr<const BlockPattern> pattern;
  std::vector<Index> bone_of_node;

  explicit SkinnedBar(bool second = true) {
    const TetMesh box = make_box(Vec3(2, 0.4, 0.4), {21, 5, 5});
    mesh.rest = box.nodes;
    mesh.elements = box.tets;
    mesh.material.resize(mesh.elements.size());
    pattern = std::make_shared<const BlockPattern>(
        make_block_pattern(static_cast<Index>(mesh.rest.size()), mesh.elements));
    for (const Vec3& x : mesh.rest) bone_of_node.push_back(x[0] < 0.45 ? 0 : second && x[0] > 1.55 ? 1 : -1);
  }
};

TEST(BoneSkinning, HeatBetweenTwoPlatesIsLinear) {
  const SkinnedBar bar;
  const MatX W = heat_weights(bar.mesh, bar.pattern, bar.bone_of_node, 2);
  for (std::size_t i = 0; i < bar.mesh.rest.size(); ++i) {
    const double expected = std::clamp((bar.mesh.rest[i][0] - 0.4) / 1.2, 0.0, 1.0);
    EXPECT_NEAR(W(static_cast<Eigen::Index>(i), 1), expected, 1e-9);
    EXPECT_NEAR(W.row(static_cast<Eigen::Index>(i)).sum(), 1, 1e-12);
  }
}

TEST(BoneSkinning, PieceWithoutBoneIsAnError) {
  SkinnedBar bar;
  std::fill(bar.bone_of_node.begin(), bar.bone_of_node.end(), -1);
  EXPECT_THROW((void)heat_weights(bar.mesh, bar.pattern, bar.bone_of_node, 2), Error);
}

TEST(BoneSkinning, RigidMotionOfAllBonesIsRigid) {
  const SkinnedBar bar;
  const MatX W = heat_weights(bar.mesh, bar.pattern, bar.bone_of_node, 2);
  const BonePose pose{rotation_of(Vec3(0.3, -2.1, 0.8)), Vec3(1, 2, -3)};
  for (const Blend blend : {Blend::kDualQuaternion, Blend::kLinear}) {
    SkinnedBody out;
    BoneSkinning(bar.mesh.rest, W, blend).pose(std::vector<BonePose>{pose, pose}, out);
    for (Index i = 0; i < static_cast<Index>(bar.mesh.rest.size()); ++i) {
      EXPECT_LT((Vec3(node(out.x, i)) - pose.R * bar.mesh.rest[at(i)] - pose.t).norm(), 1e-13);
      EXPECT_LT((out.R[at(i)] - pose.R).norm(), 1e-13);
    }
  }
}

// A twist of half a turn: dual quaternions keep the section, linear blending makes a candy wrapper of it.
// Half way both turn by half the angle.
TEST(BoneSkinning, TwistKeepsItsSection) {
  const SkinnedBar bar;
  const MatX W = heat_weights(bar.mesh, bar.pattern, bar.bone_of_node, 2);
  const Vec3 axis_point(0, 0.2, 0.2);
  const Mat3 R = rotation_of(Vec3(3.0, 0, 0));
  const std::vector<BonePose> poses{{}, {R, axis_point - R * axis_point}};
  double radius[2] = {0, 0};
  for (const Blend blend : {Blend::kDualQuaternion, Blend::kLinear}) {
    SkinnedBody out;
    BoneSkinning(bar.mesh.rest, W, blend).pose(poses, out);
    for (Index i = 0; i < static_cast<Index>(bar.mesh.rest.size()); ++i) {
      const Vec3& X = bar.mesh.rest[at(i)];
      if (std::abs(X[0] - 1) > 1e-9 || X[1] > 1e-9 || X[2] > 1e-9)
        continue;  // a corner of the middle section
      const Vec3 x = node(out.x, i);
      radius[blend == Blend::kLinear] = (x - Vec3(x[0], 0.2, 0.2)).norm();
      EXPECT_LT((out.R[at(i)] - rotation_of(Vec3(1.5, 0, 0))).norm(), 1e-9);
      EXPECT_NEAR(x[0], 1, 1e-12);
    }
  }
  EXPECT_NEAR(radius[0], 0.2 * std::sqrt(2.0), 1e-12);
  EXPECT_LT(radius[1], 0.05);
}

}  // namespace
}  // namespace limber
