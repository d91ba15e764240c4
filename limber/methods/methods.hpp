// The methods of the library, by name: one folder here and one line in methods.cpp each; common/ is what
// several use. The table itself is sim/method.hpp's, which a program may add to.
#pragma once

#include <limber/sim/method.hpp>
