// Skinning eigenmodes, bases and cubature.
#include "unit/reduction/jointed_bar.hpp"

#include <limber/core/cache.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/fem/laplacian.hpp>
#include <limber/material/lame.hpp>
#include <limber/reduction/seeded_numbers.hpp>

#include <gtest/gtest.h>

#include <Eigen/Geometry>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include <unistd.h>

namespace limber {
namespace {

// Facts, test 3: the elastic energy Laplacian of any isotropic model is (4 mu + lambda) times the Laplacian.
TEST(Laplacian, IsTheSumOfTheDiagonalsOfTheStiffnessAtRest) {
  for (const MaterialModel model :
       {MaterialModel::kStableNeoHookean, MaterialModel::kFixedCorotated, MaterialModel::kStVenantKirchhoff,
        MaterialModel::kCorotational, MaterialModel::kStableNeoHookeanLog}) {
    const JointedBar bar(100, {9, 3, 3}, model, 0.3);
    const auto elements = fem::make_elements(bar.mesh);
    fem::Assembled rest;
    VecX x(3 * static_cast<Eigen::Index>(bar.mesh.rest.size()));
    for (std::size_t i = 0; i < bar.mesh.rest.size(); ++i) node(x, static_cast<Index>(i)) = bar.mesh.rest[i];
    fem::assemble(*elements, x, {}, rest, fem::Projection::kNone);
    std::vector<Mat3> D, plain;
    for (const ElementMaterial& m : bar.mesh.material) {
      D.push_back(fem::laplacian_coefficient(m));
      const material::Lame l = material::lame(m.young, m.poisson);
      plain.push_back(Mat3::Identity() * (4 * l.mu + l.lambda));
    }
    const ScalarMatrix L = fem::laplacian(bar.mesh, bar.pattern, D);
    const ScalarMatrix P = fem::laplacian(bar.mesh, bar.pattern, plain);
    double most = 0, error = 0, other = 0;
    for (Index b = 0; b < bar.pattern->blocks(); ++b) {
      most = std::max(most, std::abs(L.values[at(b)]));
      error = std::max(error, std::abs(L.values[at(b)] - rest.K.block(b).trace()));
      other = std::max(other, std::abs(L.values[at(b)] - P.values[at(b)]));
    }
    EXPECT_LT(error, 1e-13 * most);
    EXPECT_LT(other, 1e-13 * most);
  }
}

// Facts, test 4: a free homogeneous bar has the eigenvalues of a string, c^2 (k pi / L)^2, up to the mesh.
TEST(SkinningModes, OfAFreeBarAreThoseOfAString) {
  const JointedBar bar(1);
  const SkinningWeights modes = skinning_eigenmodes(bar.mesh, bar.pattern, bar.mass, {}, 6, false);
  const material::Lame l = material::lame(1e5, 0.45);
  const double expected[] = {.9995, .9979, .9952, .9915};
  EXPECT_LT(std::abs(modes.gamma[0] / modes.gamma[1]), 1e-9);
  for (int k = 1; k <= 4; ++k)
    EXPECT_NEAR(modes.gamma[k] * 1000 / ((4 * l.mu + l.lambda) * std::pow(k * M_PI, 2)), expected[k - 1],
                1e-3);
  const VecX constant = modes.W.col(0);
  EXPECT_LT(constant.maxCoeff() - constant.minCoeff(), 1e-8 * constant.maxCoeff());
}

// Facts, test 5.
TEST(SkinningBasis, HoldsEveryRigidMotionAndIsMassOrthonormal) {
  const JointedBar bar(1e4);
  const ReducedBar reduced(bar, 6, 120, false);
  EXPECT_LT((reduced.basis.Phi.transpose() * bar.mass.asDiagonal() * reduced.basis.Phi -
             MatX::Identity(reduced.basis.functions(), reduced.basis.functions()))
                .norm(),
            1e-12);
  const Mat3 R = Eigen::AngleAxisd(2.1, Vec3(1, 2, -0.5).normalized()).toRotationMatrix();
  VecX x(3 * bar.mass.size());
  for (std::size_t i = 0; i < bar.mesh.rest.size(); ++i)
    node(x, static_cast<Index>(i)) = R * bar.mesh.rest[i] + Vec3(3, -1, 2) - bar.mesh.rest[i];
  EXPECT_LT((reduced.displacement(reduced.reduced(x)) - x).norm(), 1e-12 * x.norm());
  // The same functions from the weights, as a page draws them.
  const Eigen::Index m = reduced.weights.W.cols();
  MatX raw(bar.mass.size(), 4 * m);
  for (Eigen::Index i = 0; i < raw.rows(); ++i)
    for (Eigen::Index k = 0; k < m; ++k) {
      const Vec3 X = bar.mesh.rest[static_cast<std::size_t>(i)] - reduced.basis.center;
      raw.block<1, 4>(i, 4 * k) << X.transpose() * reduced.weights.W(i, k), reduced.weights.W(i, k);
    }
  EXPECT_LT((raw * reduced.basis.affine - reduced.basis.Phi).norm(), 1e-9 * reduced.basis.Phi.norm());
}

// Facts, test 6: a stiff block moves as one, the more so the stiffer it is.
TEST(SkinningModes, VaryInStiffPartsAsTheInverseRatio) {
  for (const double ratio : {1e2, 1e4, 1e6}) {
    const JointedBar bar(ratio);
    const SkinningWeights modes = skinning_eigenmodes(bar.mesh, bar.pattern, bar.mass, bar.pinned, 4, false);
    double stiff = 0, soft = 0;
    for (std::size_t e = 0; e < bar.volume.size(); ++e) {
      const Eigen::Matrix<double, 3, 4> g = fem::shape_gradients(bar.mesh.rest, bar.mesh.elements[e]);
      double slope = 0;
      for (Eigen::Index k = 0; k < 4; ++k) {
        Vec3 gradient = Vec3::Zero();
        for (int a = 0; a < 4; ++a) gradient += modes.W(bar.mesh.elements[e][a], k) * g.col(a);
        slope = std::max(slope, gradient.norm());
      }
      (bar.mesh.material[e].young > 2e5 ? stiff : soft) =
          std::max(bar.mesh.material[e].young > 2e5 ? stiff : soft, slope);
    }
    EXPECT_NEAR(std::log10(stiff / soft), -std::log10(ratio), 0.5) << ratio;
  }
  for (const Index i : {0, 41, 82}) {
    const JointedBar bar(1e2);
    const SkinningWeights modes = skinning_eigenmodes(bar.mesh, bar.pattern, bar.mass, bar.pinned, 4, false);
    EXPECT_EQ(modes.W.row(i).norm(), 0) << "pinned node " << i;
  }
}

TEST(DiffusedHandles, ArePositiveSmoothAndSumToOne) {
  const JointedBar bar(1e4);
  const SkinningWeights handles = diffused_handles(bar.mesh, bar.pattern, {}, 8);
  EXPECT_GE(handles.W.minCoeff(), 0);
  EXPECT_LT((handles.W.rowwise().sum() - VecX::Ones(bar.mass.size())).norm(), 1e-12);
  EXPECT_EQ(skinning_basis(handles.W, bar.mesh.rest, bar.mass).functions(), 32);
  const SkinningWeights pinned = diffused_handles(bar.mesh, bar.pattern, bar.pinned, 8);
  EXPECT_EQ(pinned.W.row(0).norm(), 0);
}

TEST(Cubature, HasNoElementTwiceAndWeighsAllTheVolume) {
  const JointedBar bar(1e4);
  const SkinningWeights modes = skinning_eigenmodes(bar.mesh, bar.pattern, bar.mass, bar.pinned, 8, false);
  double volume = 0;
  for (const double v : bar.volume) volume += v;
  for (const double exponent : {0.0, 2.0})
    for (const Index points : {16, 160, 959, 960}) {
      KMeansOptions options;
      options.points = points;
      const auto features = weight_features(modes.W, modes.gamma, bar.mesh.elements, exponent);
      const Cubature c = kmeans_cubature(features, bar.volume, options);
      EXPECT_EQ(std::set<Index>(c.elements.begin(), c.elements.end()).size(), at(points));
      double sum = 0;
      for (const double w : c.weights) {
        EXPECT_GT(w, 0);
        sum += w;
      }
      EXPECT_NEAR(sum, volume, 1e-12 * volume);
      set_threads(1);
      const Cubature again = kmeans_cubature(features, bar.volume, options);
      set_threads(0);
      EXPECT_EQ(c.elements, again.elements);
      EXPECT_EQ(c.weights, again.weights);
    }
  KMeansOptions many;
  many.points = 961;
  EXPECT_THROW(kmeans_cubature(weight_features(modes.W, modes.gamma, bar.mesh.elements, 0), bar.volume, many),
               Error);
}

// Soft parts get more points than their volume alone would (paper, Fig. 6).
TEST(Cubature, GoesWhereTheBodyDeforms) {
  const JointedBar bar(1e4);
  const ReducedBar reduced(bar, 8, 40);
  double joints = 0, points = 0, volume = 0, all = 0;
  for (std::size_t e = 0; e < bar.volume.size(); ++e) {
    all += bar.volume[e];
    if (bar.mesh.material[e].young < 2e5) volume += bar.volume[e];
  }
  for (const Index e : reduced.cubature.elements) {
    points += 1;
    joints += bar.mesh.material[at(e)].young < 2e5;
  }
  EXPECT_GT(joints / points, 2 * volume / all);
}

// On a coarse mesh few elements have weights of their own: 160 points for about 40 different ones. Where they
// are then put is chance, unless an element's place counts where weights vary.
TEST(Cubature, FindsSoftJointsOnACoarseMesh) {
  const JointedBar bar(1e4);
  const auto share_in_joints = [&](bool strain) {
    const ReducedBar reduced(bar, 8, 160, true, 0, 1, strain);
    double soft = 0;
    for (const Index e : reduced.cubature.elements) soft += bar.mesh.material[at(e)].young < 2e5;
    return soft / 160;
  };
  EXPECT_LT(share_in_joints(false), 0.25);  // a fifth of the volume
  EXPECT_GT(share_in_joints(true), 0.5);
}

TEST(Cubature, IsTrainedToReproduceForces) {
  // Poses of a bar: random reduced displacements; the trained points must integrate poses they have not seen.
  const JointedBar bar(10);
  const ReducedBar all(bar, 4, -1);
  mixed::Points points(bar.all_points());
  const Index r = 3 * all.basis.functions();
  std::vector<std::vector<double>> stresses;
  std::vector<double> lengths;
  std::uint64_t state = 5;
  const auto pose = [&](std::vector<double>& P) {
    VecX u(r);
    for (Eigen::Index k = 0; k < r; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      u[k] = (static_cast<double>(state >> 33) * 0x1p-31 - 0.5) * 0.02;
    }
    std::vector<double> F;
    all.map->gradients(u, F);
    for (std::size_t c = 0; c < F.size(); c += 9) F[c] += 1, F[c + 4] += 1, F[c + 8] += 1;
    points.stress(F, 1, P);
    VecX g = VecX::Zero(r);
    all.map->add_transposed(P, g);
    return g;
  };
  const Index poses = 12;
  VecX target(poses * r), unseen;
  for (Index p = 0; p < poses; ++p) {
    stresses.emplace_back();
    const VecX g = pose(stresses.back());
    lengths.push_back(g.norm());
    target.segment(p * r, r) = g / g.norm();
  }
  const MatX b = basis_gradients(all.basis.Phi, bar.mesh, all.cubature.elements);
  const auto force_of = [&](const std::vector<double>& P, Index e, double scale, Eigen::Ref<VecX> out) {
    Eigen::Map<Eigen::Matrix<double, 3, Eigen::Dynamic>>(out.data(), 3, b.rows()) =
        Eigen::Map<const Mat3>(P.data() + 9 * at(e)) * b.middleCols(3 * e, 3).transpose() * scale /
        bar.volume[at(e)];
  };
  TrainingOptions options;
  options.points = 120;
  const TrainedCubature trained = train_cubature(
      static_cast<Index>(bar.volume.size()),
      [&](Index e, Eigen::Ref<VecX> out) {
        for (Index p = 0; p < poses; ++p)
          force_of(stresses[at(p)], e, 1 / lengths[at(p)], out.segment(p * r, r));
      },
      target, options);
  EXPECT_LT(trained.error, 0.05);
  EXPECT_LE(trained.cubature.elements.size(), 120u);
  std::vector<double> P;
  const VecX g = pose(P);
  VecX sum = VecX::Zero(r), one(r);
  for (std::size_t c = 0; c < trained.cubature.elements.size(); ++c) {
    force_of(P, trained.cubature.elements[c], 1, one);
    sum += trained.cubature.weights[c] * one;
  }
  EXPECT_LT((sum - g).norm(), 0.15 * g.norm());
  EXPECT_THROW(train_cubature(
                   10, [](Index, Eigen::Ref<VecX> out) { out.setOnes(); }, VecX::Zero(5), options),
               Error);
}

// Elements that hardly move fit a residual as well as any, with weights that make their energies all rounding
// error and lock the body when they do move.
TEST(Cubature, WeakElementsGetNoHugeWeights) {
  constexpr Index kStrong = 60, kWeak = 20;
  constexpr Eigen::Index kRows = 40;
  SeededNumbers numbers(3);
  MatX forces(kRows, kStrong + kWeak);
  for (double& f : forces.reshaped()) f = numbers.normal();
  const VecX target = forces.leftCols(kStrong).rowwise().sum();
  for (Eigen::Index k = kStrong; k < forces.cols(); ++k)
    forces.col(k) = 1e-9 * (target / target.norm() + 0.3 * forces.col(k) / forces.col(k).norm());
  const auto train = [&](const TrainingOptions& options) {
    return train_cubature(
        kStrong + kWeak, [&](Index e, Eigen::Ref<VecX> out) { out = forces.col(e); }, target, options);
  };
  const auto greatest = [](const TrainedCubature& trained) {
    return *std::max_element(trained.cubature.weights.begin(), trained.cubature.weights.end());
  };
  TrainingOptions options;
  options.points = 30;
  EXPECT_GT(greatest(train(options)), 1e6);
  options.greatest.assign(at(kStrong + kWeak), 20.0);
  options.replace = true;
  const TrainedCubature bounded = train(options);
  EXPECT_LE(greatest(bounded), 20);
  EXPECT_LT(bounded.error, 0.1);
  // Weights are those of the points that are left: nothing of what was dropped is in them.
  VecX residual = target;
  for (std::size_t k = 0; k < bounded.cubature.elements.size(); ++k)
    residual -= bounded.cubature.weights[k] * forces.col(bounded.cubature.elements[k]);
  EXPECT_NEAR(residual.norm() / target.norm(), bounded.error, 1e-9);
}

TEST(Cache, GivesBackWhatWasStoredAndNothingElse) {
  const std::string folder =
      std::filesystem::temp_directory_path() / ("limber_cache_test_" + std::to_string(::getpid()));
  std::filesystem::remove_all(folder);
  CachedMatrices out;
  EXPECT_FALSE(load_cached(folder, "basis", 42, out));
  const CachedMatrices in{{"W", MatX::Random(7, 3)}, {"gamma", MatX::Random(3, 1)}};
  ASSERT_TRUE(store_cached(folder, "basis", 42, in));
  ASSERT_TRUE(load_cached(folder, "basis", 42, out));
  EXPECT_EQ(in, out);
  EXPECT_FALSE(load_cached(folder, "basis", 43, out));
  // A damaged file is as good as none.
  const std::filesystem::path file = std::filesystem::directory_iterator(folder)->path();
  std::fstream edit(file, std::ios::in | std::ios::out | std::ios::binary);
  edit.seekp(80);
  edit.put('x');
  edit.close();
  EXPECT_FALSE(load_cached(folder, "basis", 42, out));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace limber
