// Errors. The library throws, never prints and never exits; the command turns the kind into an exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace limber {

enum class ErrorKind {
  kUsage = 1,       // a wrong command line or a wrong call
  kInput = 2,       // an invalid scene or mesh
  kSimulation = 3,  // the simulation failed: NaN, no convergence, a bad pivot
  kIo = 4,          // a file or folder cannot be read or written
};

// `what()` is one message for a person: the place (file, line or JSON pointer), what was found, what was
// expected, and how to mend it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

}  // namespace limber
