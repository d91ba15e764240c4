#include <limber/core/error.hpp>
#include <limber/fem/dof.hpp>

#include "bars.hpp"

#include <gtest/gtest.h>

namespace limber::fem {
namespace {

struct System {
  BlockMatrix A;
  MatX dense;
  std::vector<std::uint8_t> fixed;
};

System make_system() {
  ElementMaterial m;
  const ElementInput input = bars::block(3, 2, 2, 0.1, m);
  const auto elements = make_elements(input);
  Assembled out;
  assemble(*elements, bars::perturbed(input, 0.01, 2), {}, out);
  System s{out.K, bars::dense(out.K), std::vector<std::uint8_t>(3 * input.rest.size(), 0)};
  std::mt19937 rng(1);
  for (auto& f : s.fixed) f = rng() % 4 == 0;
  for (int i = 0; i < 3; ++i) s.fixed[3 * 5 + i] = 1;  // one whole node
  return s;
}

TEST(DofEliminator, ZeroesRowsAndColumns) {
  System s = make_system();
  DofEliminator(*s.A.pattern).eliminate(s.A, s.fixed, 7.5);
  for (std::size_t i = 0; i < s.fixed.size(); ++i)
    if (s.fixed[i]) {
      s.dense.row(i).setZero();
      s.dense.col(i).setZero();
      s.dense(i, i) = 7.5;
    }
  EXPECT_TRUE((bars::dense(s.A).array() == s.dense.array()).all());
}

TEST(DofEliminator, MultipliesWithTheFixedPart) {
  System s = make_system();
  const VecX v = VecX::LinSpaced(s.dense.rows(), -1, 2);
  VecX masked = v, y;
  for (std::size_t i = 0; i < s.fixed.size(); ++i)
    if (!s.fixed[i]) masked[i] = 0;
  DofEliminator(*s.A.pattern).multiply_fixed(s.A, s.fixed, v, y);
  EXPECT_LE((y - s.dense * masked).norm(), 1e-13 * y.norm());
}

TEST(DofEliminator, ChecksSizes) {
  System s = make_system();
  const DofEliminator eliminator(*s.A.pattern);
  EXPECT_THROW(eliminator.eliminate(s.A, std::vector<std::uint8_t>(4, 0), 1), Error);
  BlockMatrix other;
  EXPECT_THROW(eliminator.eliminate(other, s.fixed, 1), Error);
}

}  // namespace
}  // namespace limber::fem
