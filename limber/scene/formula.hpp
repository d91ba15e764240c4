// Small formulas of the position, as they appear in scene files: "if(y > 0.1 and x < 2, 1e5, 2e4)".
//
//   numbers, x y z, pi, + - * / ^ (right to left, before the sign: -x^2 is -(x^2)), ( )
//   < <= > >= == !=   and or not (also && || !)   true is 1, false is 0; anything but 0 counts as true
//   min max (two or more)  abs sqrt exp log sin cos tan asin acos atan atan2(y, x) floor ceil mod(a, b)
//   step(edge, a): 0 below the edge, 1 from it on      if(condition, a, b)
//
// A formula only computes: no names but these, no loops, no side effects.
#pragma once

#include <limber/core/types.hpp>

#include <string>
#include <vector>

namespace limber {

class Formula {
 public:
  // Throws Error(kInput) that says where in the text it stops making sense.
  explicit Formula(const std::string& text);

  // The value at a point; not finite where the formula has no value (1/0, sqrt(-1)).
  double operator()(const Vec3& p) const;
  const std::string& text() const { return text_; }

  // One step of the stack program that the text is compiled to. Only the compiler in formula.cpp makes them.
  struct Op {
    std::uint8_t code;
    double value = 0;  // a constant, or the number of arguments
  };

 private:
  std::string text_;
  std::vector<Op> program_;
};

}  // namespace limber
