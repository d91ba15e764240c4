#include <limber/fem/plan.hpp>

#include <limber/core/error.hpp>
#include <limber/fem/elements_impl.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber::fem {
namespace {

void check_list(const Elements& all, std::span<const Index> list, std::span<const double> weights) {
  const auto n = static_cast<Index>(all.element.size());
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] < 0 || list[i] >= n || (i > 0 && list[i] <= list[i - 1]))
      throw Error(ErrorKind::kUsage,
                  fmt::format("plan: entry {} is element {}, expected ascending numbers from 0 to {}", i,
                              list[i], n - 1));
  if (!weights.empty() && weights.size() != list.size())
    throw Error(ErrorKind::kUsage,
                fmt::format("plan: found {} weights for {} elements", weights.size(), list.size()));
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (!std::isfinite(weights[i]))
      throw Error(ErrorKind::kUsage, fmt::format("plan: the weight of entry {} is not finite", i));
}

// Marks of a whole mesh, and the numbers of what is marked.
class Renumbering {
 public:
  explicit Renumbering(std::size_t items) : number_(items, -1) {}
  void mark(Index i) { number_[at(i)] = 0; }
  bool marked(Index i) const { return number_[at(i)] >= 0; }
  void set(Index i, Index number) { number_[at(i)] = number; }
  Index operator[](Index i) const { return number_[at(i)]; }
  // Numbers the marked items in their order, and returns them.
  std::vector<Index> finish() {
    std::vector<Index> kept;
    for (std::size_t i = 0; i < number_.size(); ++i)
      if (number_[i] >= 0) {
        number_[i] = static_cast<Index>(kept.size());
        kept.push_back(static_cast<Index>(i));
      }
    return kept;
  }

 private:
  std::vector<Index> number_;  // -1: not marked
};

// The columns of the kept nodes with the marked blocks. Nodes keep their order, and so do the blocks.
BlockPattern kept_pattern(const BlockPattern& whole, const std::vector<Index>& nodes,
                          const Renumbering& new_node, const Renumbering& block) {
  std::vector<Index> col_begin{0}, row;
  for (const Index j : nodes) {
    for (Index b = whole.col_begin[at(j)]; b < whole.col_begin[at(j) + 1]; ++b)
      if (block.marked(b)) row.push_back(new_node[whole.row[at(b)]]);
    col_begin.push_back(static_cast<Index>(row.size()));
  }
  return make_block_pattern(std::move(col_begin), std::move(row));
}

// Copies elements one by one into batches of one kind.
class BatchWriter {
 public:
  BatchWriter(const Elements& all, Elements& out) : all_(all), out_(out) {}

  void add(const Batch& from, int lane, Index element, double weight, const Renumbering& node,
           std::span<const std::uint16_t> new_node, std::span<const std::uint16_t> new_block) {
    if (count_ == kBatch || (count_ > 0 && (from.kind != batch_.kind || from.model != batch_.model ||
                                            from.fibre != batch_.fibre || from.energy != batch_.energy)))
      close();
    if (count_ == 0) {
      batch_ = Batch{};
      fibres_ = FibreBatch{};
      batch_.kind = from.kind;
      batch_.model = from.model;
      batch_.fibre = from.fibre;
      batch_.energy = from.energy;
    }
    const int to = count_++;
    for (int i = 0; i < 9; ++i) batch_.B[i][to] = from.B[i][lane];
    batch_.volume[to] = weight * from.volume[lane];
    batch_.mu[to] = from.mu[lane];
    batch_.lambda[to] = from.lambda[lane];
    for (int a = 0; a < 4; ++a) batch_.node[a][to] = node[from.node[a][lane]];
    batch_.element[to] = element;
    for (int a = 0; a < 4; ++a) batch_.local_node[to][a] = new_node[from.local_node[lane][a]];
    for (int k = 0; k < kElementBlocks; ++k) batch_.local_block[to][k] = new_block[from.local_block[lane][k]];
    if (from.fibres < 0) return;
    const FibreBatch& f = all_.fibres[at(from.fibres)];
    fibres_.k[to] = f.k[lane];
    for (int i = 0; i < 3; ++i) fibres_.direction[i][to] = f.direction[i][lane];
    fibres_.channel[to] = f.channel[lane];
  }

  void close() {
    if (count_ == 0) return;
    for (int lane = count_; lane < kBatch; ++lane) pad(count_ - 1, lane);
    batch_.count = static_cast<std::uint8_t>(count_);
    batch_.fibres = -1;
    if (batch_.fibre != FibreModel::kNone) {
      batch_.fibres = static_cast<Index>(out_.fibres.size());
      out_.fibres.push_back(fibres_);
    }
    out_.batch.push_back(batch_);
    count_ = 0;
  }

 private:
  // The rest of a batch repeats its last element with volume 0.
  void pad(int from, int to) {
    for (int i = 0; i < 9; ++i) batch_.B[i][to] = batch_.B[i][from];
    batch_.volume[to] = 0;
    batch_.mu[to] = batch_.mu[from];
    batch_.lambda[to] = batch_.lambda[from];
    for (int a = 0; a < 4; ++a) batch_.node[a][to] = batch_.node[a][from];
    batch_.element[to] = batch_.element[from];
    fibres_.k[to] = fibres_.k[from];
    for (int i = 0; i < 3; ++i) fibres_.direction[i][to] = fibres_.direction[i][from];
    fibres_.channel[to] = fibres_.channel[from];
  }

  const Elements& all_;
  Elements& out_;
  Batch batch_{};
  FibreBatch fibres_{};
  int count_ = 0;
};

// Which of a chunk's own entries are used, and their places among those; the entry after the last, for what
// triangles do not have, stays the entry after the last.
void pack_entries(std::span<const Index> entries, const Renumbering& number, std::vector<std::uint8_t>& used,
                  std::vector<std::uint16_t>& place, std::vector<Index>& kept) {
  place.resize(entries.size() + 1);
  std::uint16_t count = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    place[i] = count;
    if (!used[i]) continue;
    kept.push_back(number[entries[i]]);
    ++count;
  }
  place.back() = count;
}

}  // namespace

Plan make_plan(const Elements& all, std::span<const Index> list, std::span<const double> weights) {
  check_list(all, list, weights);
  auto out = std::make_shared<Elements>();
  Renumbering element(all.element.size()), node(at(all.nodes)), block(at(all.pattern->blocks()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    element.set(list[i], static_cast<Index>(i));
    const Tet& t = all.element[at(list[i])];
    for (int a = 0; a < corners(all.kind[at(list[i])]); ++a) node.mark(t[static_cast<std::size_t>(a)]);
  }
  Plan plan;
  plan.nodes = node.finish();
  out->nodes = static_cast<Index>(plan.nodes.size());
  out->mass = VecX::Zero(out->nodes);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::size_t e = at(list[i]);
    Tet t = all.element[e];
    for (Index& a : t)
      if (a >= 0) a = node[a];
    const ElementMaterial& m = all.material[e];
    out->element.push_back(t);
    out->kind.push_back(all.kind[e]);
    out->material.push_back(m);
    out->volume.push_back((weights.empty() ? 1 : weights[i]) * all.volume[e]);
    const int n = corners(all.kind[e]);
    for (int a = 0; a < n; ++a) out->mass[t[static_cast<std::size_t>(a)]] += m.density * out->volume[i] / n;
    if (m.fibre != FibreModel::kNone) out->channels = std::max(out->channels, m.activation_channel + 1);
  }

  // Chunks stay as they are, without the elements that are not in the list; empty ones go.
  struct Used {
    std::vector<std::uint8_t> node, block;
    bool any = false;
  };
  std::vector<Used> used(all.chunk.size());
  for (std::size_t c = 0; c < all.chunk.size(); ++c) {
    const Chunk& chunk = all.chunk[c];
    Used& u = used[c];
    u.node.assign(at(chunk.node_end - chunk.node_begin) + 1, 0);
    u.block.assign(at(chunk.block_end - chunk.block_begin) + 1, 0);
    for (Index b = chunk.batch_begin; b < chunk.batch_end; ++b) {
      const Batch& batch = all.batch[at(b)];
      for (int lane = 0; lane < batch.count; ++lane) {
        if (!element.marked(batch.element[lane])) continue;
        u.any = true;
        for (const std::uint16_t i : batch.local_node[lane]) u.node[i] = 1;
        for (const std::uint16_t i : batch.local_block[lane]) u.block[i] = 1;
      }
    }
    for (Index i = chunk.block_begin; i < chunk.block_end; ++i)
      if (u.block[at(i - chunk.block_begin)]) block.mark(all.chunk_block[at(i)]);
  }
  block.finish();
  out->pattern = std::make_shared<const BlockPattern>(kept_pattern(*all.pattern, plan.nodes, node, block));

  std::vector<std::uint16_t> new_node, new_block;
  BatchWriter writer(all, *out);
  for (std::size_t c = 0; c < all.chunk.size(); ++c) {
    if (!used[c].any) continue;
    const Chunk& from = all.chunk[c];
    Chunk to{};
    to.batch_begin = static_cast<Index>(out->batch.size());
    to.node_begin = static_cast<Index>(out->chunk_node.size());
    to.block_begin = static_cast<Index>(out->chunk_block.size());
    const auto part = [](const std::vector<Index>& v, Index begin, Index end) {
      return std::span(v).subspan(at(begin), at(end - begin));
    };
    pack_entries(part(all.chunk_node, from.node_begin, from.node_end), node, used[c].node, new_node,
                 out->chunk_node);
    pack_entries(part(all.chunk_block, from.block_begin, from.block_end), block, used[c].block, new_block,
                 out->chunk_block);
    for (Index b = from.batch_begin; b < from.batch_end; ++b) {
      const Batch& batch = all.batch[at(b)];
      for (int lane = 0; lane < batch.count; ++lane)
        if (const Index i = element[batch.element[lane]]; i >= 0)
          writer.add(batch, lane, i, weights.empty() ? 1 : weights[at(i)], node, new_node, new_block);
    }
    writer.close();
    to.batch_end = static_cast<Index>(out->batch.size());
    to.node_end = static_cast<Index>(out->chunk_node.size());
    to.block_end = static_cast<Index>(out->chunk_block.size());
    out->max_chunk_nodes = std::max(out->max_chunk_nodes, to.node_end - to.node_begin);
    out->max_chunk_blocks = std::max(out->max_chunk_blocks, to.block_end - to.block_begin);
    out->chunk.push_back(to);
  }
  set_targets(*out);
  plan.elements = out;
  return plan;
}

VecX Plan::gather(const VecX& whole) const {
  VecX own(3 * static_cast<Eigen::Index>(nodes.size()));
  for (std::size_t k = 0; k < nodes.size(); ++k) node(own, static_cast<Index>(k)) = node(whole, nodes[k]);
  return own;
}

void Plan::scatter_add(const VecX& own, VecX& whole) const {
  for (std::size_t k = 0; k < nodes.size(); ++k) node(whole, nodes[k]) += node(own, static_cast<Index>(k));
}

void assemble(const Plan& plan, const VelocityMap& G, const VecX& x, std::span<const double> activation,
              ReducedAssembly& out, Projection projection) {
  assemble(*plan.elements, plan.gather(x), activation, out.own, projection);
  G.multiply_transpose(out.own.f, out.f);
  congruence(G, out.own.K, out.K);
}

}  // namespace limber::fem
