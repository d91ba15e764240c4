// What is running, and on what.
#pragma once

#include <cstdint>
#include <string>

namespace limber {

std::string version();     // "0.1.0"
std::string commit();      // of the source; "unknown" outside git
std::string compiler();    // "g++ 12.2.0"
std::string build_type();  // "Release"

// Found at run time, in what has really been loaded.
struct Libraries {
  std::string suitesparse;  // "CHOLMOD 3.0.14 of SuiteSparse 5.12.0"; empty when none is loaded
  std::string eigen;        // "3.4.0"
};
Libraries libraries();

std::string host_name();
std::string cpu_name();
std::uint64_t memory_bytes();  // of the machine; 0: unknown

}  // namespace limber
