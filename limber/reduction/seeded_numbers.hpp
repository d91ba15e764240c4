// Random numbers that are the same on every machine (splitmix64).
#pragma once

#include <limber/core/types.hpp>

#include <cmath>
#include <cstdint>

namespace limber {

class SeededNumbers {
 public:
  explicit SeededNumbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // in [0, 1)
  Index below(Index n) { return static_cast<Index>(next() % static_cast<std::uint64_t>(n)); }
  // Of mean 0 and deviation 1 (Box and Muller).
  double normal() {
    const double u = 1 - unit(), v = unit();
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);
  }

 private:
  std::uint64_t state_;
};

}  // namespace limber
