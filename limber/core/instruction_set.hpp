// Which of the instruction sets that the kernels are compiled for is used. A program is compiled for plain
// x86-64, so that it runs everywhere; the few functions that take the time (limber/fem/kernels*.cpp,
// limber/linalg/*/kernels*.cpp, limber/methods/mixed/kernels*.cpp) exist once per instruction set, and a
// table of them is chosen by choose_table.
#pragma once

#include <string_view>
#include <vector>

namespace limber {

enum class InstructionSet { kBase, kAvx2, kAvx512 };  // kAvx2: with FMA

// "base", "avx2", "avx512"
const char* name(InstructionSet set);

// The sets that this machine can run, the best one first; kBase is always among them.
const std::vector<InstructionSet>& instruction_sets();

// The best one, or the one that was chosen. Results are the same bits with kAvx2 and kAvx512; kBase has no
// fused multiply-add and rounds differently.
InstructionSet instruction_set();

// For tests, benchmarks and the variable LIMBER_KERNELS; not while anything is being computed. Throws
// Error(kUsage) where this machine cannot run it.
void choose_instruction_set(InstructionSet set);
void choose_instruction_set(std::string_view name);

// Of a table of functions for each instruction set the one for instruction_set(). Other processors than
// x86-64 have the first only.
template <class Table>
const Table& choose_table(const Table& base) {
  return base;
}
template <class Table>
const Table& choose_table(const Table& base, const Table& avx2, const Table& avx512) {
  const InstructionSet set = instruction_set();
  return set == InstructionSet::kAvx512 ? avx512 : set == InstructionSet::kAvx2 ? avx2 : base;
}

}  // namespace limber
