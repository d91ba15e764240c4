// A bar of stiff blocks and soft joints, 1 x .08 x .08 m, and its reduction: the subject of most tests of
// mixed FEM.
#pragma once

#include <limber/fem/mesh_map.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/methods/mixed/sqp.hpp>
#include <limber/reduction/cubature.hpp>
#include <limber/reduction/skinning.hpp>

#include <cmath>

namespace limber {

struct JointedBar {
  fem::ElementInput mesh;
  std::shared_ptr<const BlockPattern> pattern;
  VecX mass;                         // per node [kg]
  std::vector<double> volume;        // per element
  std::vector<std::uint8_t> pinned;  // per node: the end at x = 0
  double total_mass = 0;

  // Four joints of Young's modulus `soft`; the blocks between them are `ratio` times as stiff.
  explicit JointedBar(double ratio, std::array<Index, 3> nodes = {41, 3, 3},
                      MaterialModel model = MaterialModel::kFixedCorotated, double poisson = 0.45,
                      double soft = 1e5) {
    const TetMesh box = make_box(Vec3(1, 0.08, 0.08), nodes);
    mesh.rest = box.nodes;
    mesh.elements.assign(box.tets.begin(), box.tets.end());
    for (const Tet& t : mesh.elements) {
      double x = 0;
      for (const Index i : t) x += mesh.rest[i][0] / 4;
      ElementMaterial m;
      m.model = model;
      m.poisson = poisson;
      m.young = in_joint(x) ? soft : ratio * soft;
      mesh.material.push_back(m);
    }
    const auto elements = fem::make_elements(mesh);
    pattern = fem::pattern(*elements);
    mass = fem::lumped_mass(*elements);
    volume = fem::rest_volume(*elements);
    total_mass = mass.sum();
    for (const Vec3& x : mesh.rest) pinned.push_back(x[0] < 1e-9);
  }

  // Joints of .05 m around x = .2, .4, .6, .8
  static bool in_joint(double x) {
    const double phase = x / 0.2 - std::round(x / 0.2);
    return std::abs(phase) * 0.2 < 0.0251 && x > 0.1 && x < 0.9;
  }
  // Rest position X moved to a bar that is bent by `angle` in all, in its joints alone.
  static Vec3 bent(const Vec3& X, double angle) {
    double turned = 0;
    Vec3 centre(0, 0.04, 0.04);
    const int pieces = 2000;
    for (int k = 0; k < pieces && (k + 0.5) / pieces < X[0]; ++k) {
      if (in_joint((k + 0.5) / pieces)) turned += angle / 4 / (0.05 * pieces);
      centre += Vec3(std::cos(turned), std::sin(turned), 0) / pieces;
    }
    return centre + (X[1] - 0.04) * Vec3(-std::sin(turned), std::cos(turned), 0) +
           (X[2] - 0.04) * Vec3::UnitZ();
  }
  VecX bent_displacement(double angle) const {
    VecX u(3 * static_cast<Eigen::Index>(mesh.rest.size()));
    for (std::size_t i = 0; i < mesh.rest.size(); ++i)
      node(u, static_cast<Index>(i)) = bent(mesh.rest[i], angle) - mesh.rest[i];
    return u;
  }

  std::vector<mixed::Point> all_points() const {
    std::vector<mixed::Point> out;
    for (std::size_t e = 0; e < volume.size(); ++e) out.push_back({mesh.material[e], volume[e]});
    return out;
  }
  std::vector<mixed::Point> points(const Cubature& cubature) const {
    std::vector<mixed::Point> out;
    for (std::size_t c = 0; c < cubature.elements.size(); ++c)
      out.push_back({mesh.material[at(cubature.elements[c])], cubature.weights[c]});
    return out;
  }
};

// The bar in the space of m skinning eigenmodes, with k-means cubature (all elements when points < 0).
struct ReducedBar {
  const JointedBar& bar;
  SkinningWeights weights;
  ScalarBasis basis;
  Cubature cubature;
  std::unique_ptr<DeformationMap> map;

  ReducedBar(const JointedBar& b, Index modes, Index points, bool pinned = true, double exponent = 0,
             std::uint64_t seed = 1, bool strain = false)
      : bar(b) {
    const std::vector<std::uint8_t> none;
    weights = skinning_eigenmodes(bar.mesh, bar.pattern, bar.mass, pinned ? bar.pinned : none, modes, false);
    basis = skinning_basis(weights.W, bar.mesh.rest, bar.mass);
    KMeansOptions options;
    options.points = points < 0 ? static_cast<Index>(bar.volume.size()) : points;
    options.seed = seed;
    cubature = kmeans_cubature(features(exponent, strain), bar.volume, options);
    map = make_kronecker_map(basis_gradients(basis.Phi, bar.mesh, cubature.elements));
  }

  Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> features(double exponent,
                                                                                 bool strain) const {
    return strain ? strain_features(weights.W, weights.gamma, bar.mesh.rest, bar.mesh.elements, exponent)
                  : weight_features(weights.W, weights.gamma, bar.mesh.elements, exponent);
  }

  // Coordinates nearest to the displacements x of the nodes, by mass.
  VecX reduced(const VecX& x) const {
    VecX u(3 * basis.functions());
    const Eigen::Map<const Eigen::Matrix<double, 3, Eigen::Dynamic>> all(x.data(), 3, bar.mass.size());
    Eigen::Map<Eigen::Matrix<double, 3, Eigen::Dynamic>>(u.data(), 3, basis.functions()) =
        all * bar.mass.asDiagonal() * basis.Phi;
    return u;
  }
  VecX displacement(const VecX& u) const {
    VecX x(3 * bar.mass.size());
    const Eigen::Map<const Eigen::Matrix<double, 3, Eigen::Dynamic>> U(u.data(), 3, basis.functions());
    Eigen::Map<Eigen::Matrix<double, 3, Eigen::Dynamic>>(x.data(), 3, bar.mass.size()) =
        U * basis.Phi.transpose();
    return x;
  }
};

// diag(d) as a block matrix.
inline BlockMatrix diagonal_matrix(const std::shared_ptr<const BlockPattern>& pattern, const VecX& d) {
  BlockMatrix A(pattern);
  for (Index j = 0; j < pattern->n; ++j) A.block(pattern->col_begin[at(j)]) = Mat3(node(d, j).asDiagonal());
  return A;
}

}  // namespace limber
