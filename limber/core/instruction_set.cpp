#include <limber/core/error.hpp>
#include <limber/core/instruction_set.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace limber {
namespace {

InstructionSet& chosen_instruction_set() {
  static InstructionSet set = instruction_sets().front();
  return set;
}

}  // namespace

const char* name(InstructionSet set) {
  switch (set) {
    case InstructionSet::kAvx512:
      return "avx512";
    case InstructionSet::kAvx2:
      return "avx2";
    default:
      return "base";
  }
}

const std::vector<InstructionSet>& instruction_sets() {
  static const std::vector<InstructionSet> all = [] {
    std::vector<InstructionSet> found;
#if defined(__x86_64__)
    // What -march=x86-64-v3 and -march=x86-64-v4 let the compiler use.
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd");
    if (v4) found.push_back(InstructionSet::kAvx512);
    if (v3) found.push_back(InstructionSet::kAvx2);
#endif
    found.push_back(InstructionSet::kBase);
    return found;
  }();
  return all;
}

InstructionSet instruction_set() { return chosen_instruction_set(); }

void choose_instruction_set(InstructionSet set) { choose_instruction_set(name(set)); }

void choose_instruction_set(std::string_view wanted) {
  std::string names;
  for (const InstructionSet set : instruction_sets()) {
    if (wanted == name(set)) {
      chosen_instruction_set() = set;
      return;
    }
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name(set));
  }
  throw Error(
      ErrorKind::kUsage,
      fmt::format("kernels: found \"{}\", expected one that this machine can run: {}", wanted, names));
}

}  // namespace limber
