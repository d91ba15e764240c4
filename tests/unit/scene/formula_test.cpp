#include <limber/core/error.hpp>
#include <limber/scene/formula.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace limber {
namespace {

double at(const std::string& text, double x = 0, double y = 0, double z = 0) {
  return Formula(text)(Vec3(x, y, z));
}

TEST(Formula, ArithmeticAndPrecedence) {
  EXPECT_EQ(at("1 + 2 * 3"), 7);
  EXPECT_EQ(at("(1 + 2) * 3"), 9);
  EXPECT_EQ(at("8 / 4 / 2"), 1);
  EXPECT_EQ(at("5 - 3 - 1"), 1);
  EXPECT_EQ(at("2 ^ 3 ^ 2"), 512);
  EXPECT_EQ(at("-2 ^ 2"), -4);
  EXPECT_EQ(at("2 ^ -1"), 0.5);
  EXPECT_EQ(at("--3"), 3);
  EXPECT_EQ(at("1e-3"), 1e-3);
  EXPECT_EQ(at(".5"), 0.5);
  EXPECT_EQ(at("x - y*z", 10, 2, 3), 4);
}

TEST(Formula, ComparisonsAndLogic) {
  EXPECT_EQ(at("x > 1 and y <= 2", 2, 2), 1);
  EXPECT_EQ(at("x > 1 && y < 2", 2, 2), 0);
  EXPECT_EQ(at("x > 5 or not y == 2", 2, 3), 1);
  EXPECT_EQ(at("!(x != 2)", 2), 1);
  EXPECT_EQ(at("not x < 1 and y < 1", 2, 0), 1) << "not binds tighter than and";
  EXPECT_EQ(at("1 < 2 + 3"), 1);
  EXPECT_EQ(at("1 or 0 and 0"), 1) << "and binds tighter than or";
}

TEST(Formula, Functions) {
  const double a = 0.37, b = -1.7;
  EXPECT_EQ(at("sin(x)", a), std::sin(a));
  EXPECT_EQ(at("cos(x)", a), std::cos(a));
  EXPECT_EQ(at("tan(x)", a), std::tan(a));
  EXPECT_EQ(at("exp(x)", a), std::exp(a));
  EXPECT_EQ(at("log(x)", a), std::log(a));
  EXPECT_EQ(at("sqrt(x)", a), std::sqrt(a));
  EXPECT_EQ(at("abs(x)", b), 1.7);
  EXPECT_EQ(at("atan2(x, y)", a, b), std::atan2(a, b));
  EXPECT_EQ(at("asin(x) + acos(x)", a), std::asin(a) + std::acos(a));
  EXPECT_EQ(at("atan(x)", a), std::atan(a));
  EXPECT_EQ(at("floor(x)", b), -2);
  EXPECT_EQ(at("ceil(x)", b), -1);
  EXPECT_EQ(at("min(3, x, 2)", b), b);
  EXPECT_EQ(at("max(3, x)", b), 3);
  EXPECT_NEAR(at("mod(x, 1)", b), 0.3, 1e-15);
  EXPECT_EQ(at("step(1, x)", 0.9), 0);
  EXPECT_EQ(at("step(1, x)", 1.0), 1);
  EXPECT_EQ(at("if(x > 0, 5, 7)", 1), 5);
  EXPECT_EQ(at("if(x > 0, 5, 7)", -1), 7);
  EXPECT_EQ(at("cos(pi)"), -1);
}

TEST(Formula, ErrorsNameThePlace) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      Formula f(text);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInput);
      return e.what();
    }
    return "no error";
  };
  EXPECT_NE(message("").find("empty"), std::string::npos);
  EXPECT_NE(message("1 +").find("at the end"), std::string::npos);
  EXPECT_NE(message("1 2").find("character 3"), std::string::npos);
  EXPECT_NE(message("x = 1").find("=="), std::string::npos);
  EXPECT_NE(message("x ** 2").find("^"), std::string::npos);
  EXPECT_NE(message("q + 1").find("unknown name \"q\""), std::string::npos);
  EXPECT_NE(message("min(1)").find("2 to"), std::string::npos);
  EXPECT_NE(message("if(1, 2)").find("3 arguments"), std::string::npos);
  EXPECT_NE(message("(1").find("expected )"), std::string::npos);
  EXPECT_NE(message("0 < x < 1").find("chain"), std::string::npos);
  EXPECT_NE(message("1e999").find("finite"), std::string::npos);
  EXPECT_NE(message("1.2.3").find("operator"), std::string::npos);
  EXPECT_NE(message(std::string(20000, '1')).find("too long"), std::string::npos);
  EXPECT_NE(message(std::string(5000, '(') + "1" + std::string(4999, ')')).find("deep"), std::string::npos);
  EXPECT_NE(message(std::string(5000, '-') + "1").find("deep"), std::string::npos);
}

// A long right-leaning sum of nested calls uses the stack; the compiler must refuse before it overflows.
TEST(Formula, StackIsBounded) {
  std::string text = "1";
  for (int i = 0; i < 60; ++i) text = "min(1, 2, 3, 4, 5, 6, " + text + ")";
  EXPECT_THROW(Formula{text}, Error);
  std::string fine = "x";
  for (int i = 0; i < 60; ++i) fine = "(" + fine + " + 1)";
  EXPECT_EQ(at(fine), 60);
}

TEST(Formula, RandomTextNeverCrashes) {
  const std::string alphabet = "xyz0123.eE+-*/^()<>=!&|,andorifmnstqp ";
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (unsigned n = random() % 30; n > 0; --n) text += alphabet[random() % alphabet.size()];
    try {
      (void)Formula(text)(Vec3(1, 2, 3));
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace limber
