// The whole command as a function, for programs that bring methods of their own: they register these and call
// it.
#pragma once

namespace limber {

// What `limber ARGUMENTS` does; the result is the exit code.
int command(int argc, char** argv);

}  // namespace limber
