// The arithmetic of points that the time goes to, compiled once per instruction set. kernels_simd.hpp has the
// loops, stretch.hpp the formulas.
#pragma once

#include <limber/core/types.hpp>
#include <limber/material/material.hpp>

namespace limber::mixed {

// Consecutive points [begin, end) of one kind, and arrays over all points. Plain pointers: see
// fem/kernels.hpp.
struct PointRange {
  Index begin, end;
  MaterialModel model;
  FibreModel fibre;
  const double *weight, *mu, *lambda, *k;  // [m^3], [Pa]
  const double* d;                         // fibre direction / rest stretch, 3 a point
  double scale;                            // of all energies
};

// What linearize() keeps of a point for update(), in doubles.
inline constexpr int kKeptNumbers = 63;

// See Points for the meaning; sums are left to the caller, so that they do not depend on the number of lanes.
struct PointKernels {
  const char* name;
  void (*start)(const PointRange&, const double* F, double* Z, double* Lambda);
  void (*linearize)(const PointRange&, const double* F, const double* Z, const double* Lambda, bool geometric,
                    double* kept, double* P, double* H);
  // `slope` and `square` (of dZ), one number a point.
  void (*update)(const PointRange&, const double* dF, const double* kept, double* dZ, double* Lambda,
                 double* slope, double* square);
  // dF, dZ and Lambda may be null.
  void (*lagrangian)(const PointRange&, const double* F, const double* dF, const double* Z, const double* dZ,
                     const double* Lambda, double alpha, double* out);
  void (*energy)(const PointRange&, const double* F, const double* dF, double alpha, double* out);
  void (*stress)(const PointRange&, const double* F, double* P, double* energy);
  void (*stiffness)(const PointRange&, const double* F, bool projected, double* H);
};

// Of the chosen instruction set (core/instruction_set.hpp).
const PointKernels& point_kernels();

}  // namespace limber::mixed
