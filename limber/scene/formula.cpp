#include <limber/core/error.hpp>
#include <limber/scene/formula.hpp>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string_view>

namespace limber {
namespace {

enum Code : std::uint8_t {
  kConst,
  kX,
  kY,
  kZ,
  kNeg,
  kNot,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kPow,
  kLess,
  kLessEq,
  kMore,
  kMoreEq,
  kEq,
  kNotEq,
  kAnd,
  kOr,
  kMin,
  kMax,
  kAbs,
  kSqrt,
  kExp,
  kLog,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kAtan2,
  kFloor,
  kCeil,
  kMod,
  kStep,
  kIf
};

struct Function {
  std::string_view name;
  Code code;
  int least, most;
};

constexpr int kMany = 16;
constexpr Function kFunctions[] = {
    {"min", kMin, 2, kMany}, {"max", kMax, 2, kMany}, {"abs", kAbs, 1, 1},   {"sqrt", kSqrt, 1, 1},
    {"exp", kExp, 1, 1},     {"log", kLog, 1, 1},     {"sin", kSin, 1, 1},   {"cos", kCos, 1, 1},
    {"tan", kTan, 1, 1},     {"asin", kAsin, 1, 1},   {"acos", kAcos, 1, 1}, {"atan", kAtan, 1, 1},
    {"atan2", kAtan2, 2, 2}, {"floor", kFloor, 1, 1}, {"ceil", kCeil, 1, 1}, {"mod", kMod, 2, 2},
    {"step", kStep, 2, 2},   {"if", kIf, 3, 3},
};

constexpr std::size_t kLongest = 10000;  // characters
constexpr int kDeepest = 200;            // nested parentheses, signs and powers
constexpr std::size_t kStack = 256;

bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

// Recursive descent, one function per level of precedence, straight into the stack program.
class Compiler {
 public:
  Compiler(std::string_view text, std::vector<Formula::Op>& program) : text_(text), program_(program) {}

  void run() {
    if (text_.size() > kLongest)
      throw Error(ErrorKind::kInput,
                  fmt::format("a formula of {} characters is too long (at most {})", text_.size(), kLongest));
    space();
    if (at_ == text_.size()) throw Error(ErrorKind::kInput, "the formula is empty");
    disjunction();
    if (at_ < text_.size()) fail("expected an operator or the end");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()), 20);
    throw Error(ErrorKind::kInput, rest.empty()
                                       ? fmt::format("formula \"{}\": {} at the end", text_, what)
                                       : fmt::format("formula \"{}\": {} at character {}, before \"{}\"",
                                                     text_, what, at_ + 1, rest));
  }

  void space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
      ++at_;
  }

  // Takes a symbol, or a word when it is one ("and" is not taken from "android").
  bool take(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    const std::size_t end = at_ + token.size();
    if (letter(token[0]) && end < text_.size() && (letter(text_[end]) || digit(text_[end]))) return false;
    at_ = end;
    space();
    return true;
  }

  void emit(Code code, int taken, double value = 0) {
    program_.push_back({code, value});
    height_ += 1 - static_cast<std::size_t>(taken);
    most_ = std::max(most_, height_);
    if (most_ > kStack) fail("nested too deeply");
  }

  struct Deeper {
    explicit Deeper(Compiler& c) : c_(c) {
      if (++c_.nesting_ > kDeepest) c_.fail("nested too deeply");
    }
    ~Deeper() { --c_.nesting_; }
    Compiler& c_;
  };

  void disjunction() {
    conjunction();
    while (take("or") || take("||")) {
      conjunction();
      emit(kOr, 2);
    }
  }

  void conjunction() {
    negation();
    while (take("and") || take("&&")) {
      negation();
      emit(kAnd, 2);
    }
  }

  void negation() {
    const Deeper deeper(*this);
    if (take("not") || (text_.substr(at_, 2) != "!=" && take("!"))) {
      negation();
      emit(kNot, 1);
    } else {
      comparison();
    }
  }

  bool take_comparison(Code& code) {
    constexpr std::pair<std::string_view, Code> kTokens[] = {{"<=", kLessEq}, {">=", kMoreEq}, {"==", kEq},
                                                             {"!=", kNotEq},  {"<", kLess},    {">", kMore}};
    for (const auto& [token, c] : kTokens)
      if (take(token)) {
        code = c;
        return true;
      }
    return false;
  }

  void comparison() {
    sum();
    Code code;
    if (take_comparison(code)) {
      sum();
      emit(code, 2);
      if (take_comparison(code)) fail("comparisons do not chain; write a < b and b < c");
    } else if (text_.substr(at_, 1) == "=") {
      fail("equality is written ==");
    }
  }

  void sum() {
    product();
    for (;;) {
      const bool add = take("+");
      if (!add && !take("-")) return;
      product();
      emit(add ? kAdd : kSub, 2);
    }
  }

  void product() {
    sign();
    for (;;) {
      if (text_.substr(at_, 2) == "**") fail("a power is written ^");
      const bool mul = take("*");
      if (!mul && !take("/")) return;
      sign();
      emit(mul ? kMul : kDiv, 2);
    }
  }

  void sign() {
    const Deeper deeper(*this);
    if (take("-")) {
      sign();
      emit(kNeg, 1);
    } else if (take("+")) {
      sign();
    } else {
      primary();
      if (take("^")) {
        sign();  // right to left, and 2^-1 is allowed
        emit(kPow, 2);
      }
    }
  }

  void primary() {
    if (at_ == text_.size()) fail("expected a number, x, y, z, a function or (");
    const char c = text_[at_];
    if (digit(c) || c == '.') return number();
    if (letter(c)) return word();
    if (take("(")) {
      disjunction();
      if (!take(")")) fail("expected )");
      return;
    }
    fail("expected a number, x, y, z, a function or (");
  }

  void number() {
    double value = 0;
    const auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (r.ec != std::errc()) fail("expected a finite number");
    at_ = static_cast<std::size_t>(r.ptr - text_.data());
    if (at_ < text_.size() && (letter(text_[at_]) || text_[at_] == '.')) fail("expected an operator");
    space();
    emit(kConst, 0, value);
  }

  void word() {
    std::size_t end = at_;
    while (end < text_.size() && (letter(text_[end]) || digit(text_[end]))) ++end;
    const std::string_view name = text_.substr(at_, end - at_);
    if (name == "x" || name == "y" || name == "z") {
      take(name);
      return emit(name == "x" ? kX : name == "y" ? kY : kZ, 0);
    }
    if (name == "pi") {
      take(name);
      return emit(kConst, 0, std::numbers::pi);
    }
    for (const Function& f : kFunctions) {
      if (name != f.name) continue;
      take(name);
      if (!take("(")) fail(fmt::format("expected ( after {}", name));
      int count = 0;
      do {
        disjunction();
        ++count;
      } while (take(","));
      if (!take(")")) fail("expected , or )");
      if (count < f.least || count > f.most)
        fail(f.least == f.most
                 ? fmt::format("{} takes {} arguments, found {}", name, f.least, count)
                 : fmt::format("{} takes {} to {} arguments, found {}", name, f.least, f.most, count));
      return emit(f.code, count, count);
    }
    fail(
        fmt::format("unknown name \"{}\" (known: x, y, z, pi, and, or, not, min, max, abs, sqrt, exp, log, "
                    "sin, cos, tan, asin, acos, atan, atan2, floor, ceil, mod, step, if)",
                    name));
  }

  std::string_view text_;
  std::vector<Formula::Op>& program_;
  std::size_t at_ = 0, height_ = 0, most_ = 0;
  int nesting_ = 0;
};

}  // namespace

Formula::Formula(const std::string& text) : text_(text) { Compiler(text_, program_).run(); }

double Formula::operator()(const Vec3& p) const {
  std::array<double, kStack> stack;
  double* top = stack.data();  // one past the last entry
  for (const Op& op : program_) {
    const auto binary = [&](auto f) {
      --top;
      top[-1] = f(top[-1], top[0]);
    };
    const auto unary = [&](auto f) { top[-1] = f(top[-1]); };
    switch (op.code) {
      case kConst:
        *top++ = op.value;
        break;
      case kX:
        *top++ = p.x();
        break;
      case kY:
        *top++ = p.y();
        break;
      case kZ:
        *top++ = p.z();
        break;
      case kNeg:
        unary([](double a) { return -a; });
        break;
      case kNot:
        unary([](double a) { return a == 0 ? 1.0 : 0.0; });
        break;
      case kAdd:
        binary([](double a, double b) { return a + b; });
        break;
      case kSub:
        binary([](double a, double b) { return a - b; });
        break;
      case kMul:
        binary([](double a, double b) { return a * b; });
        break;
      case kDiv:
        binary([](double a, double b) { return a / b; });
        break;
      case kPow:
        binary([](double a, double b) { return std::pow(a, b); });
        break;
      case kLess:
        binary([](double a, double b) { return a < b ? 1.0 : 0.0; });
        break;
      case kLessEq:
        binary([](double a, double b) { return a <= b ? 1.0 : 0.0; });
        break;
      case kMore:
        binary([](double a, double b) { return a > b ? 1.0 : 0.0; });
        break;
      case kMoreEq:
        binary([](double a, double b) { return a >= b ? 1.0 : 0.0; });
        break;
      case kEq:
        binary([](double a, double b) { return a == b ? 1.0 : 0.0; });
        break;
      case kNotEq:
        binary([](double a, double b) { return a != b ? 1.0 : 0.0; });
        break;
      case kAnd:
        binary([](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; });
        break;
      case kOr:
        binary([](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; });
        break;
      case kMin:
        for (int k = 1; k < static_cast<int>(op.value); ++k)
          binary([](double a, double b) { return std::min(a, b); });
        break;
      case kMax:
        for (int k = 1; k < static_cast<int>(op.value); ++k)
          binary([](double a, double b) { return std::max(a, b); });
        break;
      case kAbs:
        unary([](double a) { return std::abs(a); });
        break;
      case kSqrt:
        unary([](double a) { return std::sqrt(a); });
        break;
      case kExp:
        unary([](double a) { return std::exp(a); });
        break;
      case kLog:
        unary([](double a) { return std::log(a); });
        break;
      case kSin:
        unary([](double a) { return std::sin(a); });
        break;
      case kCos:
        unary([](double a) { return std::cos(a); });
        break;
      case kTan:
        unary([](double a) { return std::tan(a); });
        break;
      case kAsin:
        unary([](double a) { return std::asin(a); });
        break;
      case kAcos:
        unary([](double a) { return std::acos(a); });
        break;
      case kAtan:
        unary([](double a) { return std::atan(a); });
        break;
      case kAtan2:
        binary([](double a, double b) { return std::atan2(a, b); });
        break;
      case kFloor:
        unary([](double a) { return std::floor(a); });
        break;
      case kCeil:
        unary([](double a) { return std::ceil(a); });
        break;
      // The remainder has the sign of b, so that mod(x, 1) repeats over the origin.
      case kMod:
        binary([](double a, double b) { return a - b * std::floor(a / b); });
        break;
      case kStep:
        binary([](double edge, double a) { return a < edge ? 0.0 : 1.0; });
        break;
      case kIf:
        top -= 2;
        top[-1] = top[-1] != 0 ? top[0] : top[1];
        break;
    }
  }
  return top[-1];
}

}  // namespace limber
