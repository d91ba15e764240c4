// Fingerprints: of bytes, of a state (two runs agree bit for bit when these agree), of a scene.
#pragma once

#include <limber/sim/state.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace limber {

struct Scene;

// 64 bits, eight bytes at a time. Not for security.
class Hasher {
 public:
  void add(const void* data, std::size_t bytes);
  void add(std::string_view text) {
    add_word(text.size());
    add(text.data(), text.size());
  }
  void add_word(std::uint64_t word);
  std::uint64_t digest() const;

 private:
  std::uint64_t h_ = 0x6c696d626572;  // "limber"
};

std::uint64_t hash_bytes(std::string_view bytes);

// Everything in the state: the same number means the same bits.
std::uint64_t hash_state(const State& state);

// What decides the motion: the resolved scene without end time, output, names and tests, and the contents of
// the files it refers to, wherever they are. A run may be resumed only with the same one.
std::uint64_t hash_scene(const Scene& scene);

std::string to_hex(std::uint64_t value);  // 16 digits

}  // namespace limber
