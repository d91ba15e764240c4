// Products of a few long columns: as Eigen has them, and the same bits for every width of registers.
#include <limber/core/instruction_set.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/tall.hpp>

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace limber {
namespace {

struct Products {
  MatX transposed, product, difference, in_place;
};

Products products(const MatX& A, const MatX& B, const MatX& C, const MatX& D) {
  Products out{tall_product(A, B), multiplied(A, C), B, A};
  subtract_product(A, D, out.difference);
  multiply_right(out.in_place, C);
  return out;
}

TEST(Tall, ProductsAreEigens) {
  const InstructionSet chosen = instruction_set();
  for (const auto& [n, p, q] :
       {std::array<int, 3>{5000, 8, 8}, {4099, 6, 1}, {17, 5, 7}, {3, 2, 3}, {2048, 1, 9}, {8, 13, 4}}) {
    const MatX A = MatX::Random(n, p), B = MatX::Random(n, q), C = MatX::Random(p, p), D = MatX::Random(p, q);
    std::vector<Products> of;
    for (const InstructionSet set : instruction_sets()) {
      choose_instruction_set(set);
      of.push_back(products(A, B, C, D));
      const Products& x = of.back();
      EXPECT_LE((x.transposed - A.transpose() * B).norm(), 1e-14 * A.norm() * B.norm()) << name(set);
      EXPECT_LE((x.product - A * C).norm(), 1e-14 * A.norm() * C.norm()) << name(set);
      EXPECT_EQ(x.in_place, x.product) << name(set);
      EXPECT_LE((x.difference - (B - A * D)).norm(), 1e-14 * A.norm() * D.norm()) << name(set);
      if (set != InstructionSet::kBase) {
        EXPECT_EQ(x.transposed, of.front().transposed) << name(set);
        EXPECT_EQ(x.product, of.front().product) << name(set);
        EXPECT_EQ(x.difference, of.front().difference) << name(set);
      }
    }
  }
  choose_instruction_set(chosen);
}

// A column is what it is whatever stands beside it.
TEST(Tall, ColumnsDoNotDependOnEachOther) {
  const MatX A = MatX::Random(4100, 7), B = MatX::Random(4100, 9), C = MatX::Random(7, 9);
  const MatX all = tall_product(A, B), moved = multiplied(A, C);
  for (Eigen::Index j = 0; j < B.cols(); ++j) {
    EXPECT_EQ(tall_product(A, B.col(j)), all.col(j));
    EXPECT_EQ(multiplied(A, C.col(j)), moved.col(j));
  }
  for (const int count : {1, 2, 5}) {
    set_threads(count);
    EXPECT_EQ(tall_product(A, B), all);
  }
  set_threads(0);
}

}  // namespace
}  // namespace limber
