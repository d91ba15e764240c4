// Other programs: the browser and ffmpeg. Nothing goes through a shell.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace limber::view {

// The full path of a program on PATH, or empty.
std::string find_program(const std::string& name);

// A program that is fed through its standard input. What it prints on standard error is kept.
class PipedProgram {
 public:
  explicit PipedProgram(const std::vector<std::string>& command);
  ~PipedProgram();
  PipedProgram(const PipedProgram&) = delete;
  PipedProgram& operator=(const PipedProgram&) = delete;

  // False when the program has stopped reading.
  bool write(std::span<const std::uint8_t> bytes);
  // Closes the input and waits. Returns the exit code; `messages` receives its standard error.
  int finish(std::string& messages);

 private:
  int input_ = -1, errors_ = -1;
  int pid_ = -1;
};

// Opens a file or address in the user's browser; false when there is no display or no way to do it.
bool open_in_browser(const std::string& address);

}  // namespace limber::view
