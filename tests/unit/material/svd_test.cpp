#include <limber/material/svd.hpp>

#include "samples.hpp"

#include <gtest/gtest.h>
#include <Eigen/Eigenvalues>
#include <Eigen/SVD>

namespace limber::material {
namespace {

std::vector<samples::Sample> all_samples() {
  auto all = samples::regular();
  for (const auto& s : samples::extreme()) all.push_back(s);
  std::mt19937 rng(3);
  for (int i = 0; i < 2000; ++i) all.push_back({"random", samples::noise(rng)});
  for (int i = 0; i < 200; ++i) {
    std::uniform_real_distribution<double> exponent(-12, 0);
    all.push_back(
        {"graded", samples::turned(rng, 1, std::pow(10, exponent(rng)), std::pow(10, exponent(rng)))});
    all.push_back(
        {"nearly a rotation", samples::rotation(rng) + std::pow(10, exponent(rng)) * samples::noise(rng)});
  }
  return all;
}

void expect_svd(const Mat3& F, const Mat3& U, const Vec3& s, const Mat3& V, const std::string& name) {
  const double size = F.norm();
  EXPECT_LT((U.transpose() * U - Mat3::Identity()).norm(), 1e-14) << name;
  EXPECT_LT((V.transpose() * V - Mat3::Identity()).norm(), 1e-14) << name;
  EXPECT_GT(U.determinant(), 0.9) << name;
  EXPECT_GT(V.determinant(), 0.9) << name;
  EXPECT_LE((U * s.asDiagonal() * V.transpose() - F).norm(), 2e-14 * size) << name;
  const Vec3 expected = Eigen::JacobiSVD<Mat3>(F).singularValues();
  EXPECT_LE((s.cwiseAbs() - expected).norm(), 1e-14 * size) << name;
  EXPECT_GE(s[0], s[1] - 1e-14 * size) << name;
  EXPECT_GE(s[1], std::abs(s[2]) - 1e-14 * size) << name;
}

TEST(Svd, AgreesWithJacobi) {
  for (const auto& sample : all_samples()) {
    const Svd<double> d = svd(from_eigen(sample.F));
    expect_svd(sample.F, to_eigen(d.U), Vec3(d.s.a), to_eigen(d.V), sample.name);
  }
}

TEST(Svd, LanesAgreeWithJacobi) {
  const auto all = all_samples();
  for (std::size_t first = 0; first + kLanes <= all.size(); first += kLanes) {
    M3<Pack> F;
    for (int lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < 9; ++i) F.a[i].set(lane, all[first + lane].F.data()[i]);
    const Svd<Pack> d = svd(F);
    for (int lane = 0; lane < kLanes; ++lane) {
      Mat3 U, V;
      for (int i = 0; i < 9; ++i) U.data()[i] = d.U.a[i][lane], V.data()[i] = d.V.a[i][lane];
      expect_svd(all[first + lane].F, U, Vec3(d.s[0][lane], d.s[1][lane], d.s[2][lane]), V,
                 all[first + lane].name);
    }
  }
}

Mat3 full(const Sym3<double>& a) {
  Mat3 A;
  A << a.xx, a.xy, a.xz, a.xy, a.yy, a.yz, a.xz, a.yz, a.zz;
  return A;
}

TEST(ProjectPsd, AgreesWithEigenvalues) {
  std::mt19937 rng(5);
  std::vector<Mat3> matrices = {Mat3::Zero(), Mat3::Identity(), -Mat3::Identity(), Mat3::Ones(),
                                -Mat3::Ones()};
  for (int i = 0; i < 1000; ++i) {
    const Mat3 n = samples::noise(rng);
    matrices.push_back(n + n.transpose());
  }
  std::uniform_real_distribution<double> exponent(-14, 0);
  for (int i = 0; i < 500; ++i) {
    const Mat3 R = samples::rotation(rng);
    const double e = std::pow(10, exponent(rng));
    for (const Vec3& d :
         {Vec3(1, e, -e), Vec3(-1, e, -e), Vec3(e, e, -1), Vec3(1, 1 + e, -1), Vec3(1, 1, -e)})
      matrices.push_back(R * d.asDiagonal() * R.transpose());
    matrices.push_back(-Mat3::Identity() * 1e9 + e * samples::noise(rng));
  }
  for (Mat3 A : matrices) {
    A = (0.5 * (A + A.transpose())).eval();
    const Sym3<double> P = project_psd<double>({A(0, 0), A(1, 1), A(2, 2), A(0, 1), A(0, 2), A(1, 2)});
    const Eigen::SelfAdjointEigenSolver<Mat3> eigen(A);
    const Mat3 expected = eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(0).asDiagonal() *
                          eigen.eigenvectors().transpose();
    EXPECT_LE((full(P) - expected).norm(), 1e-14 * A.norm()) << A;
  }
}

}  // namespace
}  // namespace limber::material
