#include <limber/material/energy_formula.hpp>

#include <limber/core/error.hpp>
#include <limber/material/dual.hpp>
#include <limber/material/own_energy.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numbers>
#include <string_view>
#include <vector>

namespace limber::material {
namespace {

enum class EnergyCode {
  kConstant,
  kI1,
  kI2,
  kJ,
  kMu,
  kLambda,
  kNegate,
  kAdd,
  kSubtract,
  kTimes,
  kOver,
  kPower,
  kLog,
  kExp,
  kSqrt
};

struct EnergyOp {
  EnergyCode code;
  double value = 0;
};

constexpr std::size_t kEnergyStack = 64, kEnergyLongest = 4000;
constexpr int kEnergyDeepest = 60;

struct EnergyWord {
  std::string_view name;
  EnergyCode code;
  bool function;
};
constexpr EnergyWord kEnergyWords[] = {
    {"I1", EnergyCode::kI1, false},  {"I2", EnergyCode::kI2, false},         {"J", EnergyCode::kJ, false},
    {"mu", EnergyCode::kMu, false},  {"lambda", EnergyCode::kLambda, false}, {"log", EnergyCode::kLog, true},
    {"exp", EnergyCode::kExp, true}, {"sqrt", EnergyCode::kSqrt, true}};

// The formula as a program for a stack of duals.
struct EnergyFormula : InvariantEnergy {
  std::vector<EnergyOp> program;
};

Dual run_formula(const EnergyFormula& formula, const double I[3], const double lame[2]) {
  Dual stack[kEnergyStack];
  Dual* top = stack;  // one past the last entry
  for (const EnergyOp& op : formula.program) {
    const auto binary = [&](auto f) {
      --top;
      top[-1] = f(top[-1], top[0]);
    };
    switch (op.code) {
      case EnergyCode::kConstant:
        *top++ = Dual(op.value);
        break;
      case EnergyCode::kI1:
        *top++ = Dual::variable(I[0], 0);
        break;
      case EnergyCode::kI2:
        *top++ = Dual::variable(I[1], 1);
        break;
      case EnergyCode::kJ:
        *top++ = Dual::variable(I[2], 2);
        break;
      case EnergyCode::kMu:
        *top++ = Dual(lame[0]);
        break;
      case EnergyCode::kLambda:
        *top++ = Dual(lame[1]);
        break;
      case EnergyCode::kNegate:
        top[-1] = -top[-1];
        break;
      case EnergyCode::kAdd:
        binary([](const Dual& a, const Dual& b) { return a + b; });
        break;
      case EnergyCode::kSubtract:
        binary([](const Dual& a, const Dual& b) { return a - b; });
        break;
      case EnergyCode::kTimes:
        binary([](const Dual& a, const Dual& b) { return a * b; });
        break;
      case EnergyCode::kOver:
        binary([](const Dual& a, const Dual& b) { return a / b; });
        break;
      case EnergyCode::kPower:
        binary([](const Dual& a, const Dual& b) { return pow(a, b); });
        break;
      case EnergyCode::kLog:
        top[-1] = log(top[-1]);
        break;
      case EnergyCode::kExp:
        top[-1] = exp(top[-1]);
        break;
      case EnergyCode::kSqrt:
        top[-1] = sqrt(top[-1]);
        break;
    }
  }
  return top[-1];
}

void formula_terms(const InvariantEnergy& self, const double I[3], const double lame[2], EnergyTerms& out) {
  const Dual psi = run_formula(static_cast<const EnergyFormula&>(self), I, lame);
  out.psi = psi.v;
  for (int i = 0; i < 3; ++i) out.d[i] = psi.g[i];
  for (int k = 0; k < 6; ++k) out.dd[k] = psi.h[k];
}

// Recursive descent, one function per level of precedence.
class EnergyCompiler {
 public:
  EnergyCompiler(std::string_view text, std::vector<EnergyOp>& program) : text_(text), program_(program) {}

  void run() {
    if (text_.size() > kEnergyLongest)
      throw Error(ErrorKind::kInput, fmt::format("an energy of {} characters is too long (at most {})",
                                                 text_.size(), kEnergyLongest));
    space();
    if (at_ == text_.size()) throw Error(ErrorKind::kInput, "the energy is empty");
    sum();
    if (at_ < text_.size()) fail("expected an operator or the end");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const std::string_view rest = text_.substr(std::min(at_, text_.size()), 20);
    throw Error(ErrorKind::kInput, rest.empty()
                                       ? fmt::format("energy \"{}\": {} at the end", text_, what)
                                       : fmt::format("energy \"{}\": {} at character {}, before \"{}\"",
                                                     text_, what, at_ + 1, rest));
  }
  static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
  static bool digit(char c) { return c >= '0' && c <= '9'; }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    space();
    return true;
  }
  void emit(EnergyCode code, int taken, double value = 0) {
    program_.push_back({code, value});
    height_ += 1 - taken;
    if (height_ > static_cast<int>(kEnergyStack)) fail("nested too deeply");
  }
  struct Deeper {
    explicit Deeper(EnergyCompiler& c) : c_(c) {
      if (++c_.nesting_ > kEnergyDeepest) c_.fail("nested too deeply");
    }
    ~Deeper() { --c_.nesting_; }
    EnergyCompiler& c_;
  };

  void sum() {
    product();
    for (;;) {
      const bool add = take('+');
      if (!add && !take('-')) return;
      product();
      emit(add ? EnergyCode::kAdd : EnergyCode::kSubtract, 2);
    }
  }
  void product() {
    sign();
    for (;;) {
      if (text_.substr(at_, 2) == "**") fail("a power is written ^");
      const bool times = take('*');
      if (!times && !take('/')) return;
      sign();
      emit(times ? EnergyCode::kTimes : EnergyCode::kOver, 2);
    }
  }
  void sign() {
    const Deeper deeper(*this);
    if (take('-')) {
      sign();
      emit(EnergyCode::kNegate, 1);
    } else if (take('+')) {
      sign();
    } else {
      primary();
      if (take('^')) {
        sign();
        emit(EnergyCode::kPower, 2);
      }
    }
  }
  void primary() {
    constexpr const char* kExpected = "expected a number, I1, I2, J, mu, lambda, a function or (";
    if (at_ == text_.size()) fail(kExpected);
    const char c = text_[at_];
    if (digit(c) || c == '.') return number();
    if (letter(c)) return word();
    if (!take('(')) fail(kExpected);
    sum();
    if (!take(')')) fail("expected )");
  }
  void number() {
    double value = 0;
    const auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (r.ec != std::errc()) fail("expected a finite number");
    at_ = static_cast<std::size_t>(r.ptr - text_.data());
    if (at_ < text_.size() && (letter(text_[at_]) || text_[at_] == '.'))
      fail("expected an operator (a product is written with *)");
    space();
    emit(EnergyCode::kConstant, 0, value);
  }
  void word() {
    std::size_t end = at_;
    while (end < text_.size() && (letter(text_[end]) || digit(text_[end]))) ++end;
    const std::string_view name = text_.substr(at_, end - at_);
    if (name == "pi") {
      at_ = end;
      space();
      return emit(EnergyCode::kConstant, 0, std::numbers::pi);
    }
    for (const EnergyWord& w : kEnergyWords) {
      if (name != w.name) continue;
      at_ = end;
      space();
      if (!w.function) return emit(w.code, 0);
      if (!take('(')) fail(fmt::format("expected ( after {}", name));
      sum();
      if (!take(')')) fail("expected )");
      return emit(w.code, 1);
    }
    if (name == "x" || name == "y" || name == "z")
      fail(fmt::format("unknown name \"{}\": an energy does not depend on the place; let young vary", name));
    if (name == "I3") fail("unknown name \"I3\": it is J^2");
    if (name == "Ic" || name == "IC") fail(fmt::format("unknown name \"{}\": it is called I1", name));
    fail(fmt::format("unknown name \"{}\" (known: I1, I2, J, mu, lambda, pi, log, exp, sqrt)", name));
  }

  std::string_view text_;
  std::vector<EnergyOp>& program_;
  std::size_t at_ = 0;
  int height_ = 0, nesting_ = 0;
};

}  // namespace

std::shared_ptr<const InvariantEnergy> parse_energy(const std::string& text) {
  auto out = std::make_shared<EnergyFormula>();
  out->terms = &formula_terms;
  EnergyCompiler(text, out->program).run();
  out->zero_at_rest = rest_state(*out, 1e5, 1e5).psi == 0;
  return out;
}

}  // namespace limber::material
