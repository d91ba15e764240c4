// The smallest eigenpairs of A w = gamma M w, A symmetric positive semi-definite, M diagonal and positive, by
// block Lanczos on the shifted inverse.
#pragma once

#include <limber/core/types.hpp>

#include <functional>
#include <vector>

namespace limber {

struct EigenOptions {
  // Below zero: A - shift M is then positive definite even where A is singular (a free body), and the
  // eigenvalues next to zero are told apart best when it is about as large as they are.
  double shift = 0;
  double tolerance = 1e-10;  // residual of the shifted inverse, relative to its eigenvalue
  int block = 4;             // vectors at a time: eigenvalues of this multiplicity are found for certain
  int most = 600;            // vectors in all
  // What the vectors may look like, in columns, beside the numbers that the search begins with in any case:
  // it is the shorter the better they are, and finds the same.
  MatX start = {};
};

struct Eigenpairs {
  VecX values;       // ascending
  MatX vectors;      // M-orthonormal columns; the largest entry of each is positive
  int solves = 0;    // right-hand sides
  double error = 0;  // greatest residual as in EigenOptions::tolerance
};

// `solve`: B <- (A - shift M)^-1 B. Rows that `solve` leaves at zero where `active` is false are no unknowns.
// Throws Error(kSimulation) when `most` vectors do not suffice. The same bits for any number of threads.
using ShiftedSolve = std::function<void(Eigen::Ref<MatX>)>;
Eigenpairs smallest_eigenpairs(const VecX& mass, const std::vector<std::uint8_t>& active,
                               const ShiftedSolve& solve, Index count, const EigenOptions& options);

}  // namespace limber
