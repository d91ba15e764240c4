// How the command lets methods prepare themselves: with a line on the terminal, and a cache.
#pragma once

#include <limber/sim/method.hpp>

namespace limber {

// `shown`: says on standard error what is being prepared when that takes longer than a second.
Preparation user_preparation(bool shown);

}  // namespace limber
