// Small meshes for the tests of this folder, and a plain reference assembly to compare with.
#pragma once

#include <limber/fem/assemble.hpp>
#include <limber/material/evaluate.hpp>

#include <Eigen/Geometry>
#include <Eigen/LU>
#include <algorithm>
#include <array>
#include <random>
#include <vector>

namespace limber::fem::bars {

// A block of nx x ny x nz cubes of edge `size`, six tetrahedra each (one per order of the axes).
inline ElementInput block(int nx, int ny, int nz, double size, const ElementMaterial& material) {
  ElementInput input;
  for (int k = 0; k <= nz; ++k)
    for (int j = 0; j <= ny; ++j)
      for (int i = 0; i <= nx; ++i) input.rest.emplace_back(i * size, j * size, k * size);
  const auto id = [&](int i, int j, int k) { return static_cast<Index>(i + (nx + 1) * (j + (ny + 1) * k)); };
  for (int k = 0; k < nz; ++k)
    for (int j = 0; j < ny; ++j)
      for (int i = 0; i < nx; ++i) {
        std::array<int, 3> axes = {0, 1, 2};
        do {
          std::array<int, 3> p = {i, j, k};
          Tet t;
          t[0] = id(p[0], p[1], p[2]);
          for (int a = 0; a < 3; ++a) {
            ++p[axes[a]];
            t[a + 1] = id(p[0], p[1], p[2]);
          }
          const auto& r = input.rest;
          if ((r[t[1]] - r[t[0]]).dot((r[t[2]] - r[t[0]]).cross(r[t[3]] - r[t[0]])) < 0)
            std::swap(t[2], t[3]);
          input.elements.push_back(t);
        } while (std::next_permutation(axes.begin(), axes.end()));
      }
  input.material.assign(input.elements.size(), material);
  return input;
}

// A plate of nx x ny squares in the xy plane, two triangles each.
inline ElementInput plate(int nx, int ny, double size, ElementMaterial material, double thickness,
                          ElementKind kind = ElementKind::kPlaneTriangle) {
  ElementInput input;
  for (int j = 0; j <= ny; ++j)
    for (int i = 0; i <= nx; ++i) input.rest.emplace_back(i * size, j * size, 0);
  for (int j = 0; j < ny; ++j)
    for (int i = 0; i < nx; ++i) {
      const Index a = i + (nx + 1) * j, b = a + 1, c = a + nx + 2, d = a + nx + 1;
      input.elements.push_back({a, b, c, -1});
      input.elements.push_back({a, c, d, -1});
    }
  material.thickness = thickness;
  input.material.assign(input.elements.size(), material);
  input.kinds.assign(input.elements.size(), kind);
  return input;
}

inline VecX positions(const ElementInput& input) {
  VecX x(3 * static_cast<Eigen::Index>(input.rest.size()));
  for (std::size_t i = 0; i < input.rest.size(); ++i) node(x, static_cast<Index>(i)) = input.rest[i];
  return x;
}

inline VecX perturbed(const ElementInput& input, double amplitude, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<double> uniform(-amplitude, amplitude);
  VecX x = positions(input);
  for (double& xi : x) xi += uniform(rng);
  return x;
}

// The whole symmetric matrix.
inline MatX dense(const BlockMatrix& A) {
  const BlockPattern& p = *A.pattern;
  MatX D = MatX::Zero(3 * p.n, 3 * p.n);
  for (Index j = 0; j < p.n; ++j)
    for (Index b = p.col_begin[j]; b < p.col_begin[j + 1]; ++b) {
      D.block<3, 3>(3 * p.row[b], 3 * j) = A.block(b);
      D.block<3, 3>(3 * j, 3 * p.row[b]) = Mat3(A.block(b)).transpose();
    }
  return D;
}

struct Reference {
  double energy = 0;
  VecX f;
  MatX K;
};

// One element after the other, with the scalar material functions and the 9 x 12 matrix dF/dx.
inline Reference reference(const ElementInput& input, const VecX& x, std::span<const double> activation,
                           bool projected) {
  Reference out;
  out.f = VecX::Zero(x.size());
  out.K = MatX::Zero(x.size(), x.size());
  for (std::size_t e = 0; e < input.elements.size(); ++e) {
    const Tet& t = input.elements[e];
    const ElementMaterial& m = input.material[e];
    const bool plane = t[3] < 0;
    const int nodes = plane ? 3 : 4;
    Mat3 Dm = Mat3::Identity(), Ds = Mat3::Identity();
    for (int a = 1; a < nodes; ++a) {
      Dm.col(a - 1) = input.rest[t[a]] - input.rest[t[0]];
      Ds.col(a - 1) = node(x, t[a]) - node(x, t[0]);
      if (plane) Dm(2, a - 1) = Ds(2, a - 1) = 0;
    }
    const double volume = plane ? Dm.determinant() / 2 * m.thickness : Dm.determinant() / 6;
    const Mat3 B = Dm.inverse(), F = Ds * B;
    const double act = m.activation_channel >= 0 ? activation[m.activation_channel] : 0;
    Eigen::Matrix<double, 9, Eigen::Dynamic> dFdx =
        Eigen::Matrix<double, 9, Eigen::Dynamic>::Zero(9, 3 * nodes);
    for (int a = 0; a < nodes; ++a)
      for (int i = 0; i < (plane ? 2 : 3); ++i)
        for (int j = 0; j < 3; ++j) {
          double gradient = 0;
          if (a > 0)
            gradient = B(a - 1, j);
          else
            for (int b = 1; b < nodes; ++b) gradient -= B(b - 1, j);
          dFdx(i + 3 * j, 3 * a + i) = gradient;
        }
    out.energy += volume * material::psi(m, F, act);
    const Mat3 P = material::pk1(m, F, act);
    const VecX f = -volume * dFdx.transpose() * Eigen::Map<const Eigen::Matrix<double, 9, 1>>(P.data());
    const MatX K = volume * dFdx.transpose() * material::dpk1(m, F, act, projected) * dFdx;
    for (int a = 0; a < nodes; ++a) {
      out.f.segment<3>(3 * t[a]) += f.segment<3>(3 * a);
      for (int b = 0; b < nodes; ++b) out.K.block<3, 3>(3 * t[a], 3 * t[b]) += K.block<3, 3>(3 * a, 3 * b);
    }
  }
  return out;
}

}  // namespace limber::fem::bars
