// The loops over elements that the time goes to, compiled once per instruction set. kernels_simd.hpp has the
// code; element_kernel.hpp and limber/material have the arithmetic. Inside fem/ only.
#pragma once

#include <limber/fem/assemble.hpp>
#include <limber/fem/elements_impl.hpp>

#include <limits>

namespace limber::fem {

// What a kernel reads. Plain pointers: nothing of the standard library may be instantiated in files that are
// compiled for an instruction set, since the linker keeps one copy for the whole program.
struct Reading {
  const Batch* batch;
  const FibreBatch* fibres;
  const double* x;           // 3n [m]
  const double* activation;  // one per channel
  Projection projection;
  double strain_weight;          // StrainTerm
  const double* strain_history;  // null: no such term
};

// What one chunk found out; put together in the order of the chunks.
struct Outcome {
  double energy = 0;
  Index inverted = 0;
  Index first_bad = std::numeric_limits<Index>::max();
};

// A chunk's own sums: 3 numbers a node, 9 a block, and one more of each for what triangles do not have.
struct Sums {
  double* f = nullptr;
  double* K = nullptr;
};

struct Kernels {
  // The batches [begin, end): energy; with forces added to `sums`; with stiffness added too.
  void (*energy)(const Reading&, Index begin, Index end, const Sums& sums, Outcome& outcome);
  void (*force)(const Reading&, Index begin, Index end, const Sums& sums, Outcome& outcome);
  void (*stiffness)(const Reading&, Index begin, Index end, const Sums& sums, Outcome& outcome);

  // K v added to `sums`, without K.
  void (*product)(const Reading&, const double* v, Index begin, Index end, const Sums& sums,
                  Outcome& outcome);

  // Per element, at the element's own place in `out`: F (9 numbers), Green strain (6), energy density (1),
  // and for the velocities `v` the squared rate of the Green strain (1) and the stretch rate (9).
  void (*deformation_gradients)(const Reading&, Index begin, Index end, double* out);
  void (*green_strains)(const Reading&, Index begin, Index end, double* out);
  void (*energy_densities)(const Reading&, Index begin, Index end, double* out);
  void (*strain_rates)(const Reading&, const double* v, Index begin, Index end, double* out);
  void (*stretch_rates)(const Reading&, const double* v, Index begin, Index end, double* out);
};

// Of the chosen instruction set (core/instruction_set.hpp).
const Kernels& kernels();

}  // namespace limber::fem
