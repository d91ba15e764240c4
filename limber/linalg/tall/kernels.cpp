#include <limber/core/instruction_set.hpp>
#include <limber/linalg/tall/kernels.hpp>

namespace limber::tall {

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
  return choose_table(base::table, avx2::table, avx512::table);
#else
  return choose_table(base::table);
#endif
}

}  // namespace limber::tall
