// "static": every step jumps to the equilibrium under the loads of its end. The reference that reduced
// methods are compared with.
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

extern const Method static_method;

}  // namespace limber
