// The cubature points of mixed FEM: everything that is local to a point. What joins the points, the map from
// the unknowns to their deformation gradients, is a DeformationMap.
//
// Arrays over points: F, P and dF have 9 numbers a point (column-major), Z and Lambda 6 (xx yy zz xy xz yz),
// H 54 (RowTensor). All sums over points are in a fixed order.
#pragma once

#include <limber/material/material.hpp>

#include <limber/methods/mixed/kernels.hpp>

#include <span>
#include <vector>

namespace limber::mixed {

struct Point {
  ElementMaterial material;
  double weight = 0;  // volume that the point stands for [m^3]
};

class Points {
 public:
  explicit Points(std::vector<Point> points);

  Index size() const { return static_cast<Index>(points_.size()); }
  const std::vector<Point>& points() const { return points_; }
  double volume() const { return volume_; }
  // Sum of w times Young's modulus [J]: terms of that size cancel in an energy.
  double elastic_scale() const { return elastic_scale_; }

  // Fibre activation of the step, one number per channel.
  void set_activation(std::span<const double> activation);

  // Z = S(F) and Lambda = dpsi/dZ: the state of a body that is in equilibrium point by point.
  void start(const std::vector<double>& F, std::vector<double>& Z, std::vector<double>& Lambda) const;

  // At (F, Z): P = w dS^T (psi' + H_z (S - Z)), the points' share of minus the right side of Eq. 6, and H = w
  // (dS^T H_z dS [+ Lambda : d2S]), the kernel of its K. Keeps what update() needs.
  void linearize(const std::vector<double>& F, const std::vector<double>& Z,
                 const std::vector<double>& Lambda, bool geometric, double scale, std::vector<double>& P,
                 std::vector<double>& H);

  // Eqs. 7 and 8 for the change dF: dZ = S - Z + dS, Lambda = psi' + H_z dZ. Returns the slope of the points'
  // part of the Lagrangian along (dF, dZ), w (psi' : dZ + Lambda : (dS - dZ)), and its size in `strain`: the
  // sum of w |dZ|^2.
  double update(const std::vector<double>& dF, double scale, std::vector<double>& dZ,
                std::vector<double>& Lambda, double& strain) const;

  // The sum of w (psi(Z) + Lambda : (S(F) - Z)) at F + alpha dF, Z + alpha dZ. With `Lambda` empty: of w
  // psi(Z).
  double lagrangian(const std::vector<double>& F, const std::vector<double>& dF, const std::vector<double>& Z,
                    const std::vector<double>& dZ, const std::vector<double>& Lambda, double alpha,
                    double scale) const;

  // Plain FEM with the same points: energy [J], P = w dpsi/dF, H = w d2psi/dF2 as it is or projected.
  double energy(const std::vector<double>& F, const std::vector<double>& dF, double alpha,
                double scale) const;
  double stress(const std::vector<double>& F, double scale, std::vector<double>& P) const;
  void stiffness(const std::vector<double>& F, bool projected, double scale, std::vector<double>& H) const;

  // Points with det F <= 0.
  Index inverted(const std::vector<double>& F) const;

 private:
  // Calls body(range) in parallel, for pieces that do not depend on the number of threads.
  template <class Body>
  void for_ranges(double scale, Body&& body) const;

  std::vector<Point> points_;
  std::vector<Index> pieces_;  // where the pieces begin, and the end
  std::vector<double> weight_, mu_, lambda_, k_, d_;
  std::vector<double> kept_;           // of linearize()
  mutable std::vector<double> terms_;  // of a sum over points
  double volume_ = 0, elastic_scale_ = 0;
};

}  // namespace limber::mixed
