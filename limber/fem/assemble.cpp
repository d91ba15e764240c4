#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/fem/kernels.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace limber::fem {
namespace {

// Moves a chunk's sums of `width` numbers per item to the result or to the chunk's slots.
template <int width>
void flush(std::span<const Index> target, const double* sums, double* result, double* slots) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    const std::ptrdiff_t t = target[i];
    double* const to = t >= 0 ? result + width * t : slots + width * (-1 - t);
    std::memcpy(to, sums + static_cast<std::ptrdiff_t>(i) * width, width * sizeof(double));
  }
}

template <int width>
void sum_shared(const Shared& shared, const double* slots, double* result) {
  parallel_for(static_cast<std::ptrdiff_t>(shared.item.size()), 1024, [&](std::ptrdiff_t i) {
    double sum[width] = {};
    for (Index s = shared.begin[i]; s < shared.begin[i + 1]; ++s)
      for (int k = 0; k < width; ++k) sum[k] += slots[width * static_cast<std::ptrdiff_t>(s) + k];
    std::copy_n(sum, width, result + width * static_cast<std::ptrdiff_t>(shared.item[i]));
  });
}

enum class Work { kEnergy, kForce, kStiffness, kProduct };

// `v`: for kProduct, whose result goes where forces go.
void run(Work work, const Elements& elements, const VecX& x, std::span<const double> activation,
         Projection projection, const StrainTerm* term, Assembled& out, const VecX* v = nullptr) {
  check_positions(elements, x);
  check_activation(elements, activation);
  if (term && term->history.size() != 6 * elements.element.size())
    throw Error(ErrorKind::kUsage,
                fmt::format("assemble: found {} strains, expected {} (6 for each of {} elements)",
                            term->history.size(), 6 * elements.element.size(), elements.element.size()));
  const bool with_K = work == Work::kStiffness, with_f = work != Work::kEnergy;
  const std::size_t own_f = with_f ? 3 * (static_cast<std::size_t>(elements.max_chunk_nodes) + 1) : 0;
  const std::size_t own_K = with_K ? 9 * (static_cast<std::size_t>(elements.max_chunk_blocks) + 1) : 0;
  const std::size_t slots_f = with_f ? 3 * static_cast<std::size_t>(elements.shared_nodes.slots()) : 0;
  const std::size_t slots_K = with_K ? 9 * static_cast<std::size_t>(elements.shared_blocks.slots()) : 0;
  const std::size_t own = own_f + own_K;
  const std::size_t needed = own * static_cast<std::size_t>(threads()) + slots_f + slots_K;
  if (out.scratch.size() < needed) out.scratch.resize(needed);
  double* const f_slots = out.scratch.data() + own * static_cast<std::size_t>(threads());
  double* const K_slots = f_slots + slots_f;
  if (with_f && out.f.size() != x.size()) out.f.resize(x.size());
  if (with_K && out.K.pattern != elements.pattern) out.K = BlockMatrix(elements.pattern);

  const Kernels& k = kernels();
  const auto kernel = with_K ? k.stiffness : with_f ? k.force : k.energy;
  const Reading reading{elements.batch.data(),
                        elements.fibres.data(),
                        x.data(),
                        activation.data(),
                        projection,
                        term ? term->weight : 0,
                        term ? term->history.data() : nullptr};
  std::vector<Outcome> outcome(elements.chunk.size());
  parallel_for(static_cast<std::ptrdiff_t>(elements.chunk.size()), 1, [&](std::ptrdiff_t c) {
    const Chunk& chunk = elements.chunk[c];
    Sums sums;
    sums.f = out.scratch.data() + own * static_cast<std::size_t>(thread_index());
    sums.K = sums.f + own_f;
    const Index nodes = chunk.node_end - chunk.node_begin, blocks = chunk.block_end - chunk.block_begin;
    if (with_f) std::fill_n(sums.f, 3 * (nodes + 1), 0.0);
    if (with_K) std::fill_n(sums.K, 9 * (blocks + 1), 0.0);
    if (v)
      k.product(reading, v->data(), chunk.batch_begin, chunk.batch_end, sums, outcome[c]);
    else
      kernel(reading, chunk.batch_begin, chunk.batch_end, sums, outcome[c]);
    if (with_f)
      flush<3>(std::span(elements.node_target).subspan(chunk.node_begin, nodes), sums.f, out.f.data(),
               f_slots);
    if (with_K)
      flush<9>(std::span(elements.block_target).subspan(chunk.block_begin, blocks), sums.K,
               out.K.values.data(), K_slots);
  });
  if (with_f) {
    sum_shared<3>(elements.shared_nodes, f_slots, out.f.data());
    for (Index i : elements.idle_nodes) node(out.f, i).setZero();
  }
  if (with_K) {
    sum_shared<9>(elements.shared_blocks, K_slots, out.K.values.data());
    for (Index b : elements.idle_blocks) out.K.block(b).setZero();
  }

  Outcome total;
  for (const Outcome& o : outcome) {
    total.energy += o.energy;
    total.inverted += o.inverted;
    total.first_bad = std::min(total.first_bad, o.first_bad);
  }
  constexpr Index kNone = std::numeric_limits<Index>::max();
  out.energy = total.energy;
  out.inverted = total.inverted;
  out.finite = total.first_bad == kNone;
  out.first_bad = out.finite ? -1 : total.first_bad;
}

}  // namespace

void assemble(const Elements& elements, const VecX& x, std::span<const double> activation, Assembled& out,
              Projection projection, const StrainTerm* strain) {
  run(Work::kStiffness, elements, x, activation, projection, strain, out);
}

void assemble_force(const Elements& elements, const VecX& x, std::span<const double> activation,
                    Assembled& out, const StrainTerm* strain) {
  run(Work::kForce, elements, x, activation, Projection::kNone, strain, out);
}

void multiply_stiffness(const Elements& elements, const VecX& x, std::span<const double> activation,
                        const VecX& v, Assembled& out, Projection projection) {
  check_positions(elements, v);
  run(Work::kProduct, elements, x, activation, projection, nullptr, out, &v);
}

double elastic_energy(const Elements& elements, const VecX& x, std::span<const double> activation) {
  Assembled out;
  run(Work::kEnergy, elements, x, activation, Projection::kNone, nullptr, out);
  return out.energy;
}

}  // namespace limber::fem
