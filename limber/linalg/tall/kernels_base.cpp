// The kernels for any machine.
#include <limber/linalg/tall/kernels.hpp>

namespace limber::tall::base {

#include <limber/linalg/tall/kernels_simd.hpp>

extern const Kernels table;
constexpr Kernels table = {transposed_product, product};

}  // namespace limber::tall::base
