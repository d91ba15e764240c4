#include <limber/methods/mixed/kernels.hpp>

#include <limber/core/instruction_set.hpp>

namespace limber::mixed {

namespace base {
extern const PointKernels table;
}
#if defined(__x86_64__)
namespace avx2 {
extern const PointKernels table;
}
namespace avx512 {
extern const PointKernels table;
}
#endif

const PointKernels& point_kernels() {
#if defined(__x86_64__)
  return choose_table(base::table, avx2::table, avx512::table);
#else
  return choose_table(base::table);
#endif
}

}  // namespace limber::mixed
