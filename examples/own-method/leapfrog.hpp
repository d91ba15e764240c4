// LEAPFROG: explicit steps with lumped masses, as many small ones in a time step as stability asks for.
// docs/your-own-method.md walks through it.
#pragma once

#include <limber/sim/method.hpp>

extern const limber::Method leapfrog_method;
