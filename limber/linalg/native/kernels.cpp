#include <limber/core/instruction_set.hpp>
#include <limber/linalg/native/kernels.hpp>

namespace limber::sparse {

namespace base {
extern const Kernels table;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#endif

const Kernels& kernels() {
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

}  // namespace limber::sparse
