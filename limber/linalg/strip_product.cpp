#include <limber/linalg/strip_product.hpp>

#include <limber/linalg/native/kernels.hpp>

#include <cstdint>

namespace limber {

void StripRows::negative_product(long a0, long a1, long b0, long b1, double* C, long ld) const {
  // The rows below the pivots of a panel with `cols_` pivots; the pivots themselves are never touched.
  sparse::ConstPanel panel{nullptr, cols_, kStrip * strips_};
  const long P = panel.pivot_strips();
  panel.values =
      reinterpret_cast<const double*>(reinterpret_cast<std::uintptr_t>(values_.data()) -
                                      sizeof(double) * static_cast<std::uintptr_t>(panel.offset(P)));
  sparse::kernels().in_double.multiply(panel, P + a0, P + a1, P + b0, P + b1, 0, cols_, false, false, C, ld);
}

}  // namespace limber
