// VANILLA: the full-space, linearly implicit method that the others are measured against (ConJac paper, Eq.
// 10 and Algorithm 2).
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

extern const Method vanilla_method;

}  // namespace limber
