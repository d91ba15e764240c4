// The kernels for any machine of the family that the compiler targets; limber/CMakeLists.txt has the options.
#include <limber/linalg/native/kernels.hpp>

namespace limber::sparse::base {

#include <limber/linalg/native/kernels_table.hpp>

}  // namespace limber::sparse::base
