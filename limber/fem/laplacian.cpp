#include <limber/fem/laplacian.hpp>

#include <limber/core/parallel.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/mesh/geometry.hpp>

#include <Eigen/LU>

namespace limber::fem {

Eigen::Matrix<double, 3, 4> shape_gradients(std::span<const Vec3> rest, const Tet& tet) {
  const bool triangle = tet[3] < 0;
  Mat3 Dm;
  for (int a = 0; a < (triangle ? 2 : 3); ++a) Dm.col(a) = rest[at(tet[a + 1])] - rest[at(tet[0])];
  if (triangle) Dm.col(2) = cross(Dm.col(0), Dm.col(1));
  const Mat3 B = Dm.inverse();
  Eigen::Matrix<double, 3, 4> g;
  g.rightCols<3>() = B.transpose();
  if (triangle) g.col(3).setZero();
  g.col(0) = -g.rightCols<3>().rowwise().sum();
  return g;
}

Mat3 laplacian_coefficient(const ElementMaterial& material) {
  const material::Mat9 H = material::dpk1(material, Mat3::Identity());
  Mat3 D = Mat3::Zero();
  for (int j = 0; j < 3; ++j)
    for (int l = 0; l < 3; ++l)
      for (int i = 0; i < 3; ++i) D(j, l) += H(i + 3 * j, i + 3 * l);
  return D;
}

ScalarMatrix laplacian(const ElementInput& mesh, std::shared_ptr<const BlockPattern> pattern,
                       std::span<const Mat3> D) {
  ScalarMatrix L(std::move(pattern));
  const BlockPattern& p = *L.pattern;
  // Every node's column by one thread: the elements around it, in their order.
  std::vector<Index> begin(static_cast<std::size_t>(p.n) + 1, 0), around;
  for (const Tet& t : mesh.elements)
    for (const Index i : t) ++begin[at(i) + 1];
  for (Index i = 0; i < p.n; ++i) begin[at(i) + 1] += begin[at(i)];
  around.resize(at(begin.back()));
  std::vector<Index> next(begin.begin(), begin.end() - 1);
  for (std::size_t e = 0; e < mesh.elements.size(); ++e)
    for (const Index i : mesh.elements[e]) around[at(next[at(i)]++)] = static_cast<Index>(e);
  parallel_for(p.n, 512, [&](std::ptrdiff_t j) {
    for (Index k = begin[static_cast<std::size_t>(j)]; k < begin[static_cast<std::size_t>(j) + 1]; ++k) {
      const Index e = around[at(k)];
      const Tet& t = mesh.elements[at(e)];
      const Eigen::Matrix<double, 3, 4> g = shape_gradients(mesh.rest, t);
      Mat3 Dm;
      for (int a = 0; a < 3; ++a) Dm.col(a) = mesh.rest[at(t[a + 1])] - mesh.rest[at(t[0])];
      const double volume = Dm.determinant() / 6;
      int own = 0;
      while (t[own] != j) ++own;
      const Vec3 flux = volume * (D[at(e)] * g.col(own));
      for (int a = 0; a < 4; ++a)
        if (t[a] >= j) L.values[at(p.find(t[a], static_cast<Index>(j)))] += g.col(a).dot(flux);
    }
  });
  return L;
}

}  // namespace limber::fem
