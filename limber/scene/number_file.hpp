// Arrays of numbers in files: NumPy .npy, or text with numbers apart by spaces, commas or lines (# begins a
// comment).
#pragma once

#include <string>
#include <vector>

namespace limber {

struct NumberFile {
  int columns = 1;             // numbers per row; 1 for a flat array
  std::vector<double> values;  // row by row
};

// Throws Error(kIo) when the file cannot be read and Error(kInput) when it makes no sense.
NumberFile read_numbers(const std::string& path);

}  // namespace limber
