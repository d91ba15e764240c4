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
  switch (instruction_set()) {
    case InstructionSet::kAvx512:
      return avx512::table;
    case InstructionSet::kAvx2:
      return avx2::table;
    case InstructionSet::kBase:
      break;
  }
#endif
  return base::table;
}

}  // namespace limber::mixed
