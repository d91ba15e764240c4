// Least squares with weights that must not be negative.
#pragma once

#include <limber/core/types.hpp>

namespace limber {

// argmin |A x - b| with x >= 0 (Lawson and Hanson's active set method), from the normal equations G = A^T A,
// c = A^T b. `start` may name columns that are probably positive (their entries > 0); empty: none.
VecX nnls(const MatX& G, const VecX& c, const VecX& start = {});

}  // namespace limber
