// The same bits on every x86-64 machine with AVX2 and FMA: fingerprints of positions and velocities stand
// here as constants, for the kernels of every instruction set that this machine has. They change when the
// arithmetic of a method does; then take over the new ones (the message has them) and say why in the commit.
#include <limber/core/instruction_set.hpp>
#include <limber/core/parallel.hpp>
#include <limber/methods/methods.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/simulation.hpp>

#include <gtest/gtest.h>

namespace limber {
namespace {

struct KnownBits {
  const char* scene;
  int steps;
  const char *fused, *base;  // with fused multiply-add (AVX2, AVX-512), and without
};

std::string bits_after(const KnownBits& known) {
  auto scene = std::make_shared<Scene>(load_scene(std::string(LIMBER_SOURCE_DIR) + "/scenes/" + known.scene));
  Simulation sim(scene);
  for (int i = 0; i < known.steps; ++i) sim.step();
  Hasher hasher;
  for (const VecX* part : {&sim.state().x, &sim.state().v, &sim.state().joint_q, &sim.state().joint_v})
    hasher.add(part->data(), sizeof(double) * static_cast<std::size_t>(part->size()));
  return to_hex(hasher.digest());
}

// Eigen cuts large products into blocks by these, and sums block by block: they are constants, not the CPU's.
TEST(Caches, OfTheMachineDoNotMatter) {
  EXPECT_EQ(Eigen::l1CacheSize(), 32 * 1024);
  EXPECT_EQ(Eigen::l2CacheSize(), 256 * 1024);
}

class SameBits : public testing::TestWithParam<KnownBits> {};

TEST_P(SameBits, ForTheKernelsOfEveryInstructionSet) {
  const InstructionSet best = instruction_set();
  for (const InstructionSet set : instruction_sets()) {
    choose_instruction_set(set);
    EXPECT_EQ(bits_after(GetParam()), set == InstructionSet::kBase ? GetParam().base : GetParam().fused)
        << name(set);
  }
  choose_instruction_set(best);
}

INSTANTIATE_TEST_SUITE_P(
    Scenes, SameBits,
    testing::Values(KnownBits{"hello/bar.json", 20, "7a889793d9997609", "9cda9d8f39a8f5ff"},
                    KnownBits{"conjac/dragon.json", 4, "5c887a93e8368d54", "7fb59392a8c994aa"},
                    KnownBits{"conjac/aniso-helical.json", 5, "955f265f2ca4d4bd", "57bedd4baea7d0f9"},
                    KnownBits{"implicit/bar-hetero.json", 2, "5953d5b62bf74f8e", "9f38595e9bda96d8"},
                    KnownBits{"joints/klann.json", 20, "60c6235cee4c71d4", "60c6235cee4c71d4"}),
    [](const auto& info) {
      std::string name = info.param.scene;
      for (char& c : name)
        if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
      return name;
    });

}  // namespace
}  // namespace limber
