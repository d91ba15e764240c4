#include <limber/core/error.hpp>
#include <limber/fem/elements_impl.hpp>
#include <limber/material/lame.hpp>
#include <limber/material/membrane.hpp>
#include <limber/material/own_energy.hpp>
#include <limber/mesh/geometry.hpp>

#include <fmt/core.h>

#include <Eigen/LU>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace limber::fem {
namespace {

constexpr std::array<std::array<int, 2>, kElementBlocks> kBlockNodes = {
    {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {1, 0}, {2, 0}, {3, 0}, {2, 1}, {3, 1}, {3, 2}}};

[[noreturn]] void fail(std::size_t element, const std::string& what) {
  throw Error(ErrorKind::kInput, fmt::format("element {}: {}", element, what));
}

void check_sizes(const ElementInput& input) {
  if (input.material.size() != input.elements.size())
    throw Error(ErrorKind::kUsage,
                fmt::format("make_elements: found {} materials for {} elements, expected one each",
                            input.material.size(), input.elements.size()));
  if (!input.kinds.empty() && input.kinds.size() != input.elements.size())
    throw Error(ErrorKind::kUsage,
                fmt::format("make_elements: found {} kinds for {} elements, expected one each or none",
                            input.kinds.size(), input.elements.size()));
  if (input.rest.size() > static_cast<std::size_t>(std::numeric_limits<Index>::max() / 3))
    throw Error(ErrorKind::kInput, fmt::format("mesh: found {} nodes, expected at most {}", input.rest.size(),
                                               std::numeric_limits<Index>::max() / 3));
  for (std::size_t i = 0; i < input.rest.size(); ++i)
    if (!input.rest[i].allFinite())
      throw Error(ErrorKind::kInput, fmt::format("node {}: its rest position is not finite", i));
}

void check_nodes(const ElementInput& input, std::size_t e) {
  const Tet& t = input.elements[e];
  const int n = corners(input.kind(e));
  for (int a = n; a < 4; ++a)
    if (t[a] != -1) fail(e, fmt::format("is a {} with a fourth node, {}", name_of(input.kind(e)), t[a]));
  for (int a = 0; a < n; ++a) {
    if (t[a] < 0 || static_cast<std::size_t>(t[a]) >= input.rest.size())
      fail(e, fmt::format("refers to node {}, expected 0 to {}", t[a], input.rest.size() - 1));
    for (int b = 0; b < a; ++b)
      if (t[a] == t[b]) fail(e, fmt::format("has node {} twice", t[a]));
  }
}

void check_material(const ElementMaterial& m, ElementKind kind, std::size_t e) {
  try {
    material::lame(m.young, m.poisson);
  } catch (const Error& error) {
    fail(e, error.what());
  }
  if (m.poisson < material::least_poisson(m.model))
    fail(e, fmt::format("poisson: found {}, expected at least {} for this material model", m.poisson,
                        material::least_poisson(m.model)));
  if ((m.model == MaterialModel::kInvariants) != (m.energy != nullptr))
    fail(e, "its material has an energy of the invariants and another model, or neither");
  if (m.energy && is_sheet(kind)) fail(e, "an energy of the invariants is for solids, not for cloth");
  if (m.energy) {
    const material::Lame l = material::lame(m.young, m.poisson);
    if (const std::string why = material::rest_misfit(material::rest_state(*m.energy, l.mu, l.lambda));
        !why.empty())
      fail(e, fmt::format("energy: {}", why));
  }
  if (!(m.density > 0) || !std::isfinite(m.density))
    fail(e, fmt::format("density: found {} kg/m^3, expected a finite number > 0", m.density));
  if (has_thickness(kind) && (!(m.thickness > 0) || !std::isfinite(m.thickness)))
    fail(e, fmt::format("thickness: found {} m, expected a finite number > 0 for a {}", m.thickness,
                        name_of(kind)));
  if (m.fibre == FibreModel::kNone) return;
  if (!(m.fibre_stiffness >= 0) || !std::isfinite(m.fibre_stiffness))
    fail(e, fmt::format("fibre stiffness: found {} Pa, expected a finite number >= 0", m.fibre_stiffness));
  if (!(std::abs(m.fibre_direction.norm() - 1) < 1e-6))
    fail(e, fmt::format("fibre direction: found a vector of length {}, expected a unit vector",
                        m.fibre_direction.norm()));
}

// Rest shape: columns are the edges from the first node. A plane triangle is completed by the unit normal +z,
// one in space by its own.
Mat3 rest_edges(const ElementInput& input, const Tet& t, ElementKind kind) {
  Mat3 Dm;
  const Vec3& x0 = input.rest[t[0]];
  for (int a = 1; a < corners(kind); ++a) Dm.col(a - 1) = input.rest[t[a]] - x0;
  if (kind == ElementKind::kPlaneTriangle) {
    Dm.row(2).setZero();
    Dm.col(2) = Vec3::UnitZ();
  }
  if (kind == ElementKind::kClothTriangle) Dm.col(2) = cross(Dm.col(0), Dm.col(1)).stableNormalized();
  return Dm;
}

double checked_volume(const ElementInput& input, std::size_t e) {
  const ElementKind kind = input.kind(e);
  const Mat3 Dm = rest_edges(input, input.elements[e], kind);
  const double det = Dm.determinant();
  if (is_triangle(kind)) {
    const double longest = std::max(Dm.col(0).norm(), Dm.col(1).norm());
    if (moves_in_plane(kind) && !(det > 0))
      fail(e, fmt::format("is inverted or flat in the rest shape (area {:g} m^2), expected its nodes "
                          "counter-clockwise seen from +z; swap two of them",
                          det / 2));
    if (!(det > 1e-14 * longest * longest)) fail(e, fmt::format("is degenerate (area {:g} m^2)", det / 2));
    return det / 2 * input.material[e].thickness;
  }
  const double longest = Dm.colwise().norm().maxCoeff();
  if (!(det > 0))
    fail(e, fmt::format("is inverted or flat in the rest shape (volume {:g} m^3), expected "
                        "det(x1-x0, x2-x0, x3-x0) > 0; swap two of its nodes",
                        det / 6));
  if (!(det > 1e-14 * longest * longest * longest))
    fail(e, fmt::format("is degenerate (volume {:g} m^3)", det / 6));
  return det / 6;
}

// Fibres of cloth run in it.
void check_fibre(const ElementInput& input, std::size_t e) {
  const ElementMaterial& m = input.material[e];
  if (!is_sheet(input.kind(e)) || m.fibre == FibreModel::kNone) return;
  const Vec3 N = rest_edges(input, input.elements[e], input.kind(e)).col(2);
  if (!(std::abs(N.dot(m.fibre_direction)) < 1e-6))
    fail(e, fmt::format("fibre direction: found {:.3g} of it normal to the cloth, expected one in its plane",
                        N.dot(m.fibre_direction)));
}

Tet with_ascending_nodes(Tet t, ElementKind kind) {
  for (int a = 1; a < corners(kind); ++a)
    for (int b = a; b > 0 && t[b] < t[b - 1]; --b) std::swap(t[b], t[b - 1]);
  return t;
}

// Position on a Morton curve through the box of all centres.
std::vector<std::uint64_t> morton_keys(const ElementInput& input) {
  std::vector<Vec3> centre(input.elements.size());
  Vec3 low = Vec3::Constant(std::numeric_limits<double>::max()), high = -low;
  for (std::size_t e = 0; e < centre.size(); ++e) {
    const Tet& t = input.elements[e];
    const int n = corners(input.kind(e));
    centre[e] = Vec3::Zero();
    for (int a = 0; a < n; ++a) centre[e] += input.rest[t[a]] / n;
    low = low.cwiseMin(centre[e]);
    high = high.cwiseMax(centre[e]);
  }
  const double scale = 2097151.0 / std::max((high - low).maxCoeff(), std::numeric_limits<double>::min());
  std::vector<std::uint64_t> key(centre.size());
  for (std::size_t e = 0; e < key.size(); ++e)
    for (int d = 0; d < 3; ++d) {
      const auto c = static_cast<std::uint64_t>(std::clamp((centre[e][d] - low[d]) * scale, 0.0, 2097151.0));
      for (int bit = 0; bit < 21; ++bit) key[e] |= ((c >> bit) & 1) << (3 * bit + d);
    }
  return key;
}

// Energies in the order of their first element, -1: none. Addresses would sort differently from run to run.
std::vector<Index> energy_numbers(const ElementInput& input) {
  std::vector<Index> out;
  std::vector<const material::InvariantEnergy*> known;
  for (const ElementMaterial& m : input.material) {
    if (!m.energy) {
      out.push_back(-1);
      continue;
    }
    const auto found = std::find(known.begin(), known.end(), m.energy.get());
    out.push_back(static_cast<Index>(found - known.begin()));
    if (found == known.end()) known.push_back(m.energy.get());
  }
  return out;
}

auto batch_key(const ElementInput& input, const std::vector<Index>& energy, Index e) {
  const ElementMaterial& m = input.material[e];
  return std::make_tuple(input.kind(e), m.model, m.fibre, energy[e]);
}

void fill_lane(const ElementInput& input, const Elements& out, Index e, int lane, bool real, Batch& batch,
               FibreBatch& fibres) {
  const ElementKind kind = input.kind(e);
  const Tet t = with_ascending_nodes(input.elements[e], kind);
  const ElementMaterial& m = input.material[e];
  Mat3 B = rest_edges(input, t, kind).inverse();
  if (is_triangle(kind)) B.row(2).setZero();
  for (int i = 0; i < 9; ++i) batch.B[i][lane] = B.data()[i];
  const material::Lame l = material::lame(m.young, m.poisson);
  batch.volume[lane] = real ? out.volume[e] : 0.0;
  batch.mu[lane] = l.mu;
  batch.lambda[lane] = is_sheet(kind) ? material::membrane_lambda(l.mu, l.lambda) : l.lambda;
  batch.element[lane] = e;
  for (int a = 0; a < 4; ++a) batch.node[a][lane] = t[a] < 0 ? t[0] : t[a];
  fibres.k[lane] = m.fibre_stiffness;
  const Vec3 direction = m.fibre_direction.normalized();
  for (int i = 0; i < 3; ++i) fibres.direction[i][lane] = direction[i];
  fibres.channel[lane] = m.activation_channel;
}

// Batches of the elements order[begin, end): by kind, and along the curve in each kind.
void make_batches(const ElementInput& input, const std::vector<Index>& energy, std::span<Index> order,
                  Elements& out) {
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
    return batch_key(input, energy, a) < batch_key(input, energy, b);
  });
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && end < begin + kBatch &&
           batch_key(input, energy, order[end]) == batch_key(input, energy, order[begin]))
      ++end;
    Batch batch{};
    FibreBatch fibres{};
    std::tie(batch.kind, batch.model, batch.fibre, std::ignore) = batch_key(input, energy, order[begin]);
    batch.energy = input.material[order[begin]].energy.get();
    batch.count = static_cast<std::uint8_t>(end - begin);
    for (int lane = 0; lane < kBatch; ++lane) {
      const std::size_t i = begin + static_cast<std::size_t>(lane);
      fill_lane(input, out, order[std::min(i, end - 1)], lane, i < end, batch, fibres);
    }
    batch.fibres = -1;
    if (batch.fibre != FibreModel::kNone) {
      batch.fibres = static_cast<Index>(out.fibres.size());
      out.fibres.push_back(fibres);
    }
    out.batch.push_back(batch);
    begin = end;
  }
}

// Numbers the items (nodes or blocks) that a chunk touches.
class ChunkItems {
 public:
  struct Use {
    Index item;            // -1: nothing, the entry after the last
    std::uint16_t* place;  // receives the item's place in the chunk's own array
  };

  ChunkItems(Index items, std::vector<Index>& all) : local_(at(items)), all_(all) {}

  // Returns how many different items the chunk uses. They ascend in its array, so that results are written
  // through memory in one direction.
  Index add_chunk(const std::vector<Use>& uses) {
    std::vector<Index> own;
    for (const Use& use : uses)
      if (use.item >= 0) own.push_back(use.item);
    std::sort(own.begin(), own.end());
    own.erase(std::unique(own.begin(), own.end()), own.end());
    for (std::size_t i = 0; i < own.size(); ++i) local_[at(own[i])] = static_cast<std::uint16_t>(i);
    for (const Use& use : uses)
      *use.place = use.item < 0 ? static_cast<std::uint16_t>(own.size()) : local_[at(use.item)];
    all_.insert(all_.end(), own.begin(), own.end());
    return static_cast<Index>(own.size());
  }

 private:
  std::vector<std::uint16_t> local_;
  std::vector<Index>& all_;
};

void number_chunks(Elements& out) {
  ChunkItems nodes(out.nodes, out.chunk_node), blocks(out.pattern->blocks(), out.chunk_block);
  for (Chunk& chunk : out.chunk) {
    std::vector<ChunkItems::Use> node_uses, block_uses;
    for (Index b = chunk.batch_begin; b < chunk.batch_end; ++b) {
      Batch& batch = out.batch[b];
      for (int lane = 0; lane < batch.count; ++lane) {
        const auto node = [&](int a) { return a < corners(batch.kind) ? batch.node[a][lane] : -1; };
        for (int a = 0; a < 4; ++a) node_uses.push_back({node(a), &batch.local_node[lane][a]});
        for (int k = 0; k < kElementBlocks; ++k) {
          const Index row = node(kBlockNodes[k][0]), column = node(kBlockNodes[k][1]);
          block_uses.push_back({row < 0 ? -1 : out.pattern->find(row, column), &batch.local_block[lane][k]});
        }
      }
    }
    const Index n = nodes.add_chunk(node_uses), m = blocks.add_chunk(block_uses);
    chunk.node_end = static_cast<Index>(out.chunk_node.size());
    chunk.node_begin = chunk.node_end - n;
    chunk.block_end = static_cast<Index>(out.chunk_block.size());
    chunk.block_begin = chunk.block_end - m;
    out.max_chunk_nodes = std::max(out.max_chunk_nodes, n);
    out.max_chunk_blocks = std::max(out.max_chunk_blocks, m);
  }
  set_targets(out);
}

// Items that several chunks touch get a slot for each of them.
void share_items(Index items, const std::vector<Index>& all, std::vector<Index>& target, Shared& shared,
                 std::vector<Index>& idle) {
  std::vector<Index> chunks(at(items), 0), next(at(items), -1);
  for (const Index i : all) ++chunks[at(i)];
  shared.begin.push_back(0);
  for (Index i = 0; i < items; ++i) {
    if (chunks[at(i)] == 0) idle.push_back(i);
    if (chunks[at(i)] < 2) continue;
    next[at(i)] = shared.begin.back();
    shared.item.push_back(i);
    shared.begin.push_back(shared.begin.back() + chunks[at(i)]);
  }
  target = all;
  for (Index& t : target)
    if (next[at(t)] >= 0) t = -1 - next[at(t)]++;
}

// Large chunks share fewer blocks, but their sums must stay in the second-level cache (72 bytes a block,
// about 1.7 blocks an element), and a mesh should give at least some twenty of them to keep all cores busy.
std::size_t chunk_size(std::size_t elements) {
  return std::clamp<std::size_t>(elements / 24 / 8 * 8, 256, 2048);
}

}  // namespace

std::shared_ptr<const Elements> make_elements(const ElementInput& input) {
  check_sizes(input);
  auto out = std::make_shared<Elements>();
  out->nodes = static_cast<Index>(input.rest.size());
  out->element = input.elements;
  out->material = input.material;
  out->mass = VecX::Zero(out->nodes);
  const std::size_t n = input.elements.size();
  for (std::size_t e = 0; e < n; ++e) {
    const Tet& t = input.elements[e];
    const ElementMaterial& m = input.material[e];
    check_nodes(input, e);
    check_material(m, input.kind(e), e);
    out->volume.push_back(checked_volume(input, e));
    check_fibre(input, e);
    out->kind.push_back(input.kind(e));
    const int nodes = corners(input.kind(e));
    for (int a = 0; a < nodes; ++a) out->mass[t[a]] += m.density * out->volume[e] / nodes;
    if (m.fibre != FibreModel::kNone) out->channels = std::max(out->channels, m.activation_channel + 1);
  }
  out->pattern = std::make_shared<const BlockPattern>(make_block_pattern(out->nodes, input.elements));

  const std::vector<std::uint64_t> key = morton_keys(input);
  const std::vector<Index> energy = energy_numbers(input);
  std::vector<Index> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return key[a] < key[b]; });
  const std::size_t size = chunk_size(n);
  for (std::size_t begin = 0; begin < n; begin += size) {
    Chunk chunk{};
    chunk.batch_begin = static_cast<Index>(out->batch.size());
    make_batches(input, energy, std::span(order).subspan(begin, std::min(size, n - begin)), *out);
    chunk.batch_end = static_cast<Index>(out->batch.size());
    out->chunk.push_back(chunk);
  }
  number_chunks(*out);
  return out;
}

void set_targets(Elements& out) {
  share_items(out.nodes, out.chunk_node, out.node_target, out.shared_nodes, out.idle_nodes);
  share_items(out.pattern->blocks(), out.chunk_block, out.block_target, out.shared_blocks, out.idle_blocks);
}

Index element_count(const Elements& elements) { return static_cast<Index>(elements.element.size()); }
Index node_count(const Elements& elements) { return elements.nodes; }
std::shared_ptr<const BlockPattern> pattern(const Elements& elements) { return elements.pattern; }
const VecX& lumped_mass(const Elements& elements) { return elements.mass; }
const std::vector<double>& rest_volume(const Elements& elements) { return elements.volume; }
ElementKind kind_of(const Elements& elements, Index e) { return elements.kind[at(e)]; }

}  // namespace limber::fem
