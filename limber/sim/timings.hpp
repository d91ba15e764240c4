// Where the time of a run went: mean, 95th percentile and largest time per step of every phase. Needs the
// same memory for a hundred steps and for a million.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace limber {

class Timings {
 public:
  // Adds a step's seconds of a phase. Nested phases are called "outer/inner".
  void add(const std::string& phase, double seconds);

  struct Phase {
    std::string name;
    std::uint64_t count = 0;
    double sum = 0, max = 0;  // [s]
    // Times between 0.1 us and 10^6 s in steps of about 2 %.
    std::array<std::uint32_t, 1500> histogram{};
    double percentile(double share) const;  // [s], to about 2 %
  };
  const std::vector<Phase>& phases() const { return phases_; }  // in the order of first appearance
  double total(const std::string& phase) const;                 // [s]

  // A table for people, as a tree; shares are of `whole` seconds.
  std::string table(double whole) const;
  // {"assemble": {"mean_ms": .., "p95_ms": .., "max_ms": .., "total_s": ..}}
  nlohmann::ordered_json json() const;

 private:
  std::vector<Phase> phases_;
};

}  // namespace limber
