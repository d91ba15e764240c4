#include <limber/core/parallel.hpp>

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <vector>

namespace limber {
namespace {

class Parallel : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_threads(GetParam()); }
  void TearDown() override { set_threads(0); }
};

TEST_P(Parallel, CoversEveryItemOnce) {
  std::vector<int> hits(10007, 0);
  parallel_for(static_cast<std::ptrdiff_t>(hits.size()), 13,
               [&](std::ptrdiff_t i) { ++hits[static_cast<std::size_t>(i)]; });
  for (int h : hits) ASSERT_EQ(h, 1);
  parallel_for(0, 5, [&](std::ptrdiff_t) { FAIL(); });
}

TEST_P(Parallel, RethrowsTheFirstErrorInOrder) {
  for (int round = 0; round < 50; ++round) {
    try {
      parallel_for(1000, 7, [&](std::ptrdiff_t i) {
        if (i == 300 || i == 900) throw std::runtime_error(std::to_string(i));
      });
      FAIL();
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "300");
    }
  }
}

TEST_P(Parallel, LoopsInsideLoopsFinish) {
  std::vector<long> sums(64, 0);
  parallel_for(64, 1, [&](std::ptrdiff_t i) {
    std::vector<long> part(100, 0);
    parallel_for(100, 9, [&](std::ptrdiff_t k) { part[static_cast<std::size_t>(k)] = i * k; });
    sums[static_cast<std::size_t>(i)] = std::accumulate(part.begin(), part.end(), 0L);
  });
  for (long i = 0; i < 64; ++i) EXPECT_EQ(sums[static_cast<std::size_t>(i)], 4950 * i);
}

TEST_P(Parallel, ThreadIndexIsInRange) {
  std::vector<int> index(2000, -1);
  parallel_for(2000, 3, [&](std::ptrdiff_t i) { index[static_cast<std::size_t>(i)] = thread_index(); });
  for (int i : index) {
    EXPECT_GE(i, 0);
    EXPECT_LT(i, threads());
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Parallel, ::testing::Values(1, 2, 5));

}  // namespace
}  // namespace limber
