#include <limber/methods/condense/oracle.hpp>

#include <limber/mesh/geometry.hpp>
#include <limber/sim/model_parts.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace limber::condense {
namespace {

constexpr double kRegionWaste = 1.5;  // times as many nodes as are needed: a region that is greater shrinks

}  // namespace

Oracle::Oracle(const Model& model, const Skeleton& skeleton, const CondenseOptions& options)
    : model_(model), skeleton_(skeleton), options_(options) {
  size_ = bounding_box(model.mesh.rest).size().maxCoeff();
  for (const GivenRegion& region : options.given)
    given_.push_back(select_nodes(model, region.nodes, region.body));
}

void Oracle::reach(const std::vector<Index>& hits, double relative, std::vector<std::uint8_t>& found) const {
  found.assign(at(model_.nodes()), 0);
  const double radius = relative * size_;
  for (const Index i : hits) found[at(i)] = 1;
  if (!(radius > 0) || hits.empty()) return;
  // Hits by the cell of a grid that they are in.
  using Cell = std::array<long, 3>;
  const auto cell = [&](const Vec3& x) {
    return Cell{std::lround(std::floor(x[0] / radius)), std::lround(std::floor(x[1] / radius)),
                std::lround(std::floor(x[2] / radius))};
  };
  std::map<Cell, std::vector<Vec3>> grid;
  for (const Index i : hits) grid[cell(model_.mesh.rest[at(i)])].push_back(model_.mesh.rest[at(i)]);
  const auto near = [&](const Vec3& x) {
    const Cell c = cell(x);
    for (long dx = -1; dx <= 1; ++dx)
      for (long dy = -1; dy <= 1; ++dy)
        for (long dz = -1; dz <= 1; ++dz)
          if (const auto list = grid.find({c[0] + dx, c[1] + dy, c[2] + dz}); list != grid.end())
            for (const Vec3& hit : list->second)
              if ((hit - x).squaredNorm() <= radius * radius) return true;
    return false;
  };
  std::vector<std::uint8_t> seen = found;
  std::vector<Index> front = hits;
  const BlockPattern& p = *model_.pattern;
  while (!front.empty()) {
    const Index j = front.back();
    front.pop_back();
    const auto visit = [&](Index i) {
      if (seen[at(i)]) return;
      seen[at(i)] = 1;
      if (!near(model_.mesh.rest[at(i)])) return;
      found[at(i)] = 1;
      front.push_back(i);
    };
    for (Index k = p.rows.begin[at(j)]; k < p.rows.begin[at(j) + 1]; ++k) visit(p.rows.col[at(k)]);
    for (Index b = p.col_begin[at(j)] + 1; b < p.col_begin[at(j) + 1]; ++b) visit(p.row[at(b)]);
  }
}

std::vector<std::uint8_t> Oracle::region(const std::vector<Index>& hits, double t, bool moving,
                                         CondenseMemory& memory) const {
  std::vector<std::uint8_t> found;
  reach(hits, options_.radius, found);
  const double eps = 1e-6 * model_.scene->h;
  for (std::size_t g = 0; g < given_.size(); ++g) {
    const GivenRegion& region = options_.given[g];
    if (t < region.from - eps || (region.until && t >= *region.until - eps)) continue;
    for (const Index i : given_[g]) found[at(i)] = 1;
  }
  memory.keep.resize(at(model_.nodes()), 0);
  memory.full.resize(memory.keep.size(), 0);
  std::vector<std::uint8_t> out(memory.keep.size(), 0);
  Index needed = 0, last = 0;
  bool inside = true;  // the last region holds all that is needed
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (skeleton_.bone_of_node[i] >= 0) continue;
    // Fading nodes stay as long as the region moves.
    memory.keep[i] =
        found[i] ? options_.memory + 1 : std::max(memory.keep[i] - 1, moving && memory.keep[i] > 0 ? 1 : 0);
    out[i] = memory.keep[i] > 0;
    needed += out[i];
    last += memory.full[i];
    inside &= !out[i] || memory.full[i];
  }
  if (needed == 0 || !(options_.slack > 0)) return out;
  if (inside) return last <= kRegionWaste * needed ? memory.full : out;
  widen(hits, out);
  return out;
}

void Oracle::widen(const std::vector<Index>& hits, std::vector<std::uint8_t>& region) const {
  if (!(options_.slack > 0)) return;
  std::vector<std::uint8_t> found;
  reach(hits, (1 + options_.slack) * options_.radius, found);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] && skeleton_.bone_of_node[i] < 0) region[i] = 1;
}

bool Oracle::grow(const std::vector<Index>& hits, CondenseMemory& memory, std::vector<std::uint8_t>& region,
                  double radii) const {
  std::vector<std::uint8_t> found;
  reach(hits, radii * options_.radius, found);
  bool grown = false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!found[i] || skeleton_.bone_of_node[i] >= 0) continue;
    memory.keep[i] = options_.memory + 1;
    grown |= !region[i];
    region[i] = 1;
  }
  if (grown) widen(hits, region);
  return grown;
}

}  // namespace limber::condense
