#include <limber/command.hpp>

int main(int argc, char** argv) { return limber::command(argc, argv); }
