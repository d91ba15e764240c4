// How the command lets methods prepare themselves: with a line on the terminal, and a cache.
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

// `shown`: says on standard error what is being prepared when that takes longer than a second. The cache is
// $LIMBER_CACHE, or limber in $XDG_CACHE_HOME or ~/.cache; with LIMBER_CACHE empty there is none.
Preparation user_preparation(bool shown);

}  // namespace limber
