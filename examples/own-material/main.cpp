// The command `limber` with one material more.
#include "mooney_rivlin.hpp"

#include <limber/command.hpp>

int main(int argc, char** argv) {
  limber::register_material<MooneyRivlin>();
  return limber::command(argc, argv);
}
