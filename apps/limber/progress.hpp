// The line that shows how a run is getting on.
#pragma once

#include <limber/sim/stepper.hpp>

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

namespace limber {

// step 812/2000  t 4.060  12.3 ms (assemble 31% factor 44% contact 9%)  dof 318/30375  it 2  eta 0:15
// Redrawn in place on a terminal; a plain line every few seconds elsewhere.
class Progress {
 public:
  Progress(bool shown, std::int64_t target, double h, std::int64_t all_dofs);
  ~Progress() { clear(); }

  // `seconds`: of the step and of recording it.
  void step(std::int64_t step, double t, const StepReport& report, double seconds);
  // What comes after the steps; it takes a while.
  void page(double share);
  // A line of text that stays, above the progress line.
  void say(const std::string& line);
  void clear();  // takes the progress line away

 private:
  std::string line(std::int64_t step, double t, const StepReport& report) const;
  void draw(std::string text);

  using Clock = std::chrono::steady_clock;
  bool shown_, terminal_, drawn_ = false;
  std::int64_t target_, all_dofs_;
  int decimals_;
  Clock::time_point last_ = Clock::now();
  struct Sample {
    double seconds;
    std::vector<std::pair<std::string, double>> phases;
  };
  std::deque<Sample> window_;
};

}  // namespace limber
