// Products of a few long columns; columns are contiguous, `ld` doubles apart.
#pragma once

namespace limber::tall {

struct Kernels {
  // C (p x q, columns p apart) = A^T B over n rows.
  void (*transposed_product)(long n, const double* A, long lda, long p, const double* B, long ldb, long q,
                             double* C);
  // X = A C, or X -= A C with `subtract`; A is n x p, C p x q.
  void (*product)(long n, const double* A, long lda, long p, const double* C, long ldc, long q, bool subtract,
                  double* X, long ldx);
};

// Of the chosen instruction set (core/instruction_set.hpp).
const Kernels& kernels();

}  // namespace limber::tall
