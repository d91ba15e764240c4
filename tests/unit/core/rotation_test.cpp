#include <limber/core/rotation.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

using Direction = Eigen::Vector3d;

TEST(Rotation, TurnsOneDirectionToAnotherTheShortWay) {
  for (const Direction& a : {Direction(1, 2, -3), Direction(0, 0, 5), Direction(-1, 1e-3, 0)})
    for (const Direction& b : {Direction(3, -1, .5), Direction(0, 0, -1), Direction(1, 1, 1)}) {
      const Eigen::Quaterniond q = turn_between<double>(a, b);
      EXPECT_NEAR(q.norm(), 1, 1e-12);
      EXPECT_NEAR((q * a.normalized() - b.normalized()).norm(), 0, 1e-12);
      EXPECT_NEAR(2 * std::acos(std::min(1.0, q.w())), std::acos(a.normalized().dot(b.normalized())), 1e-7);
    }
}

TEST(Rotation, TurnsOppositeDirectionsByHalfATurn) {
  for (const Direction& a :
       {Direction(1, 2, -3), Direction(0, 0, 1), Direction(1, 0, 0), Direction(0, -2, 0)}) {
    const Eigen::Quaterniond q = turn_between<double>(a, -a);
    EXPECT_NEAR((q * a + a).norm(), 0, 1e-12);
    EXPECT_NEAR(q.norm(), 1, 1e-12);
  }
}

}  // namespace
}  // namespace limber
