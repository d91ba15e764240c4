// How numbers travel into the page: quantised to integers, predicted, split into byte planes, deflated,
// base64.
//
// Prediction. A node moves nearly as before and nearly as its neighbour does. With q the quantised value of a
// node, p its prediction from earlier frames, r = q - p, the stored number is r - r(parent), where the parent
// is a neighbouring node that comes earlier. For smooth motion what is left is mostly the rounding: 2 or 3
// bits. web/src/data.ts undoes all this.
#pragma once

#include <limber/core/types.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace limber::view {

// zlib format: the browser's DecompressionStream("deflate") checks its checksum.
std::string deflated(std::string_view bytes, int level);

inline std::span<const std::uint8_t> bytes_of(std::string_view s) {
  return {reinterpret_cast<const std::uint8_t*>(s.data()), s.size()};
}

// Little-endian numbers, byte plane by byte plane.
void append_planes(std::string& out, std::span<const std::uint32_t> values, int planes);
inline std::uint32_t zigzag(std::uint32_t r) {
  return (r << 1) ^ static_cast<std::uint32_t>(static_cast<std::int32_t>(r) >> 31);
}

// The values of several frames of one quantity with `components` numbers per item.
struct Coded {
  int order = 1;         // 0: no prediction in time, 1: as in the last frame, 2: moves on as before
  bool spatial = false;  // relative to the parent
  int planes = 1;        // bytes per number
  std::string bytes;
};
// `frames[f]`: components * items; `reference`: what the first frame is predicted from (same size, or empty
// for zero); `parent[i]` < i, or -1.
Coded encode_frames(const std::vector<std::vector<std::int32_t>>& frames,
                    std::span<const std::int32_t> reference, std::span<const Index> parent, int components);

}  // namespace limber::view
