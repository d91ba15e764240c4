// Products A B^T of two sets of rows that lie one after the other, with the kernels of the native Cholesky.
#pragma once

#include <limber/core/types.hpp>

#include <vector>

namespace limber {

// Rows in strips of 8: entry (r, c) lies at 8 (r / 8 * cols + c) + r % 8. Rows are padded with zeros.
class StripRows {
 public:
  static constexpr long kStrip = 8;
  StripRows(long strips, long cols)
      : strips_(strips), cols_(cols), values_(at(kStrip * strips * cols), 0.0) {}

  long strips() const { return strips_; }
  long cols() const { return cols_; }
  double* strip(long s) { return values_.data() + kStrip * s * cols_; }
  const double* strip(long s) const { return values_.data() + kStrip * s * cols_; }

  // C = -A B^T: A the strips [a0, a1), B the strips [b0, b1); C column-major with leading dimension ld.
  void negative_product(long a0, long a1, long b0, long b1, double* C, long ld) const;

 private:
  static std::size_t at(long n) { return static_cast<std::size_t>(n); }
  long strips_, cols_;
  std::vector<double> values_;
};

}  // namespace limber
