#include <limber/core/error.hpp>
#include <limber/view/codec.hpp>

#include <zlib.h>

#include <algorithm>
#include <bit>

namespace limber::view {

std::string deflated(std::string_view bytes, int level) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                static_cast<uLong>(bytes.size()), level) != Z_OK)
    throw Error(ErrorKind::kIo, "page: not enough memory to compress the data");
  out.resize(size);
  return out;
}

void append_planes(std::string& out, std::span<const std::uint32_t> values, int planes) {
  const std::size_t start = out.size(), n = values.size();
  out.resize(start + n * static_cast<std::size_t>(planes));
  for (int b = 0; b < planes; ++b)
    for (std::size_t i = 0; i < n; ++i)
      out[start + static_cast<std::size_t>(b) * n + i] = static_cast<char>(values[i] >> (8 * b));
}

namespace {

// Residuals of frame f, zigzag coded. Arithmetic is modulo 2^32, as it is in the page.
void residuals(const std::vector<std::vector<std::int32_t>>& frames, std::span<const std::int32_t> reference,
               std::span<const Index> parent, int components, std::size_t f, int order, bool spatial,
               std::vector<std::uint32_t>& r) {
  const std::size_t n = frames[f].size(), c = static_cast<std::size_t>(components);
  r.resize(n);
  auto at = [](const std::vector<std::int32_t>& v, std::size_t i) {
    return static_cast<std::uint32_t>(v[i]);
  };
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t p = 0;
    if (f == 0)
      p = reference.empty() ? 0u : static_cast<std::uint32_t>(reference[i]);
    else if (order == 1 || (order == 2 && f == 1))
      p = at(frames[f - 1], i);
    else if (order == 2)
      p = 2 * at(frames[f - 1], i) - at(frames[f - 2], i);
    r[i] = at(frames[f], i) - p;
  }
  if (spatial)  // from the back, so that a parent's residual is still whole when it is subtracted
    for (std::size_t i = n / c; i-- > 0;)
      if (const Index q = parent[i]; q >= 0)
        for (std::size_t d = 0; d < c; ++d) r[c * i + d] -= r[c * static_cast<std::size_t>(q) + d];
  for (std::uint32_t& v : r) v = zigzag(v);
}

}  // namespace

Coded encode_frames(const std::vector<std::vector<std::int32_t>>& frames,
                    std::span<const std::int32_t> reference, std::span<const Index> parent, int components) {
  Coded best;
  std::vector<std::uint32_t> r;
  // Bits that the residuals need, by a quick estimate on a few frames; the cheapest prediction is taken.
  double best_cost = -1;
  const std::size_t stride = std::max<std::size_t>(1, frames.size() / 4);
  for (int order : {1, 2, 0})
    for (bool spatial : {false, true}) {
      if (spatial && parent.empty()) continue;
      double cost = 0;
      for (std::size_t f = std::min<std::size_t>(2, frames.size() - 1); f < frames.size(); f += stride) {
        residuals(frames, reference, parent, components, f, order, spatial, r);
        for (std::uint32_t v : r) cost += std::bit_width(v);
      }
      if (best_cost < 0 || cost < best_cost) {
        best_cost = cost;
        best.order = order;
        best.spatial = spatial;
      }
    }
  std::vector<std::uint32_t> all;
  std::uint32_t top = 0;
  for (std::size_t f = 0; f < frames.size(); ++f) {
    residuals(frames, reference, parent, components, f, best.order, best.spatial, r);
    // Component by component: the three directions have different statistics.
    for (std::size_t d = 0; d < static_cast<std::size_t>(components); ++d)
      for (std::size_t i = d; i < r.size(); i += static_cast<std::size_t>(components)) all.push_back(r[i]);
  }
  for (std::uint32_t v : all) top |= v;
  best.planes = std::max(1, (static_cast<int>(std::bit_width(top)) + 7) / 8);
  append_planes(best.bytes, all, best.planes);
  return best;
}

}  // namespace limber::view
