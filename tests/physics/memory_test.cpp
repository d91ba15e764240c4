// A long run does not grow.
#include "scenes.hpp"

#include <gtest/gtest.h>

#include <malloc.h>
#include <unistd.h>
#include <fstream>

namespace limber::test {
namespace {

double resident_megabytes() {
  malloc_trim(0);
  std::ifstream statm("/proc/self/statm");
  double all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

void expect_no_growth(std::shared_ptr<Scene> s) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer keeps freed memory";
#endif
  s->gravity = {0, -9.81, 0};
  Simulation sim = simulate(s);
  run(sim, 500);
  const double before = resident_megabytes();
  run(sim, 9500);
  EXPECT_LT(resident_megabytes() - before, 1.0);
}

TEST(Memory, TenThousandStepsOfVanilla) {
  auto s = bar({.04, .04, .08}, {3, 3, 4}, 1e4, .4);
  use_vanilla(*s, 1);
  expect_no_growth(s);
}

TEST(Memory, TenThousandStepsOfConJac) {
  auto s = bar({.04, .04, .08}, {3, 3, 4}, 1e4, .4);
  use_conjac(*s, {{.02, .02, .08}});
  expect_no_growth(s);
}

}  // namespace
}  // namespace limber::test
