// A clock with named phases, always on (two clock reads a phase). The phases of a method are the columns of
// steps.csv: "assemble", "factor", "solve", ... Nested phases are named "outer/inner".
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace limber {

class PhaseClock {
 public:
  using Clock = std::chrono::steady_clock;

  // Adds the time until the returned object dies to the phase `name`.
  class Scope {
   public:
    Scope(PhaseClock& clock, std::size_t slot) : clock_(clock), slot_(slot), start_(Clock::now()) {}
    ~Scope() { clock_.phases_[slot_].second += std::chrono::duration<double>(Clock::now() - start_).count(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    PhaseClock& clock_;
    std::size_t slot_;
    Clock::time_point start_;
  };

  [[nodiscard]] Scope phase(const char* name) { return Scope(*this, slot(name)); }

  // Seconds per phase, in the order in which the phases were first entered.
  const std::vector<std::pair<std::string, double>>& phases() const { return phases_; }
  void reset() {
    for (auto& p : phases_) p.second = 0;
  }

 private:
  std::size_t slot(const char* name) {
    for (std::size_t i = 0; i < phases_.size(); ++i)
      if (phases_[i].first == name) return i;
    phases_.emplace_back(name, 0.0);
    return phases_.size() - 1;
  }

  std::vector<std::pair<std::string, double>> phases_;
};

}  // namespace limber
