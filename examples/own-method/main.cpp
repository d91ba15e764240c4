// The command `limber` with one method more.
#include "leapfrog.hpp"

#include <limber/command.hpp>

int main(int argc, char** argv) {
  limber::register_method(leapfrog_method);
  return limber::command(argc, argv);
}
