#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/fem/batch.hpp>

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace limber::fem {
namespace {

using material::M3;
using material::V3;

enum class Work { kEnergy, kForce, kStiffness };

// What one chunk found out; put together in the order of the chunks.
struct Outcome {
  double energy = 0;
  Index inverted = 0;
  Index first_inverted = std::numeric_limits<Index>::max();
  Index first_bad = std::numeric_limits<Index>::max();
};

// A chunk's own sums: 3 numbers a node, 9 a block, and one more of each for what triangles do not have.
struct Sums {
  double* f = nullptr;
  double* K = nullptr;
};

// E - history, and weight * young.
material::Sym3<Pack> strain_difference(const StrainTerm& term, const Batch& batch, const M3<Pack>& F,
                                       Pack& s) {
  material::Sym3<Pack> S = green_strain(F);
  Pack* const entry[6] = {&S.xx, &S.yy, &S.zz, &S.xy, &S.xz, &S.yz};
  for (int k = 0; k < 6; ++k) {
    Pack h;
    for (int lane = 0; lane < kLanes; ++lane)
      h.set(lane,
            term.history[6 * static_cast<std::size_t>(batch.element[lane]) + static_cast<std::size_t>(k)]);
    *entry[k] -= h;
  }
  const Pack mu = batch.mu, lambda = batch.lambda;
  s = Pack(term.weight) * mu * (Pack(3) * lambda + Pack(2) * mu) / (lambda + mu);
  return S;
}

void add_forces(const Batch& batch, const V3<Pack> f[3], double* sums) {
  for (int lane = 0; lane < batch.count; ++lane) {
    double f0[3] = {0, 0, 0};
    for (int a = 0; a < 3; ++a) {
      double* sum = sums + 3 * batch.local_node[lane][a + 1];
      for (int i = 0; i < 3; ++i) {
        const double fi = f[a][i][lane];
        sum[i] += fi;
        f0[i] -= fi;
      }
    }
    double* sum = sums + 3 * batch.local_node[lane][0];
    for (int i = 0; i < 3; ++i) sum[i] += f0[i];
  }
}

// Uses K as work space.
void add_blocks(const Batch& batch, M3<Pack> K[kElementBlocks], double* sums) {
  // Eight entries of each element side by side; the ninth is left over.
  for (int k = 0; k < kElementBlocks; ++k)
    for (int i = 0; i < 8; i += kLanes) transpose(K[k].a + i);
  // Elements outside, blocks inside: neighbours in a batch often add to the same block, and an addition that
  // waits for the one before it is slow.
  for (int lane = 0; lane < batch.count; ++lane)
    for (int k = 0; k < kElementBlocks; ++k) {
      double* sum = sums + 9 * batch.local_block[lane][k];
      for (int i = 0; i < 8; i += kLanes) (Pack::load(sum + i) + K[k].a[i + lane]).store(sum + i);
      sum[8] += K[k].a[8][lane];
    }
}

template <bool needed>
auto decompose([[maybe_unused]] const M3<Pack>& F) {
  if constexpr (needed)
    return material::svd(F);
  else
    return material::NoSvd{};
}

template <Work work, class Model>
void run_batch(const Model& model, const Batch& batch, const ElementData<Pack>& e, const M3<Pack>& F,
               Projection projection, const StrainTerm* term, const Sums& sums, Pack& energy,
               Outcome& outcome) {
  Pack psi, check;
  if constexpr (work == Work::kEnergy) {
    psi = element_psi(model, batch.fibre, e, F);
    check = psi;
  } else {
    const auto svd = decompose < Model::kForceNeedsSvd || work == Work::kStiffness > (F);
    V3<Pack> f[3];
    psi = element_force(model, batch.fibre, batch.plane, e, F, svd, f);
    material::Sym3<Pack> S;
    Pack s;
    if (term) {
      S = strain_difference(*term, batch, F, s);
      add_strain_force(e, batch.plane, F, s, S, psi, f);
    }
    add_forces(batch, f, sums.f);
    check = psi;
    for (int a = 0; a < 3; ++a) check += f[a][0] + f[a][1] + f[a][2];
    if constexpr (work == Work::kStiffness) {
      M3<Pack> K[kElementBlocks];
      element_stiffness(model, batch.fibre, batch.plane, projection == Projection::kPsd, e, F, svd, K);
      if (term) add_strain_stiffness(e, batch.plane, projection != Projection::kNone, F, s, S, K);
      for (int a = 1; a < 4; ++a) check += K[a](0, 0) + K[a](1, 1) + K[a](2, 2);
      add_blocks(batch, K, sums.K);
    }
  }
  energy += batch.volume * psi;
  const Mask bad = !(check - check == Pack(0)), inverted = material::determinant(F) <= Pack(0);
  if (any(bad | inverted))
    for (int lane = 0; lane < batch.count; ++lane) {
      if (bad[lane]) outcome.first_bad = std::min(outcome.first_bad, batch.element[lane]);
      if (!inverted[lane]) continue;
      ++outcome.inverted;
      outcome.first_inverted = std::min(outcome.first_inverted, batch.element[lane]);
    }
}

template <Work work>
Outcome run_chunk(const Elements& elements, const Chunk& chunk, const VecX& x,
                  std::span<const double> activation, Projection projection, const StrainTerm* term,
                  const Sums& sums) {
  Outcome outcome;
  Pack energy = 0;
  for (Index b = chunk.batch_begin; b < chunk.batch_end; ++b) {
    const Batch& batch = elements.batch[b];
    const ElementData<Pack> e = element_data(elements, batch, activation);
    const M3<Pack> F = deformation_gradient(gather_edges(batch, x.data()), e.B, batch.plane);
    material::with_model(batch.model, e.mu, e.lambda, [&](const auto& model) {
      run_batch<work>(model, batch, e, F, projection, term, sums, energy, outcome);
    });
  }
  for (int lane = 0; lane < kLanes; ++lane) outcome.energy += energy[lane];
  return outcome;
}

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

template <Work work>
void run(const Elements& elements, const VecX& x, std::span<const double> activation, Projection projection,
         const StrainTerm* term, Assembled& out) {
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

  std::vector<Outcome> outcome(elements.chunk.size());
  parallel_for(static_cast<std::ptrdiff_t>(elements.chunk.size()), 1, [&](std::ptrdiff_t c) {
    const Chunk& chunk = elements.chunk[c];
    Sums sums;
    sums.f = out.scratch.data() + own * static_cast<std::size_t>(thread_index());
    sums.K = sums.f + own_f;
    const Index nodes = chunk.node_end - chunk.node_begin, blocks = chunk.block_end - chunk.block_begin;
    if (with_f) std::fill_n(sums.f, 3 * (nodes + 1), 0.0);
    if (with_K) std::fill_n(sums.K, 9 * (blocks + 1), 0.0);
    outcome[c] = run_chunk<work>(elements, chunk, x, activation, projection, term, sums);
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
    total.first_inverted = std::min(total.first_inverted, o.first_inverted);
    total.first_bad = std::min(total.first_bad, o.first_bad);
  }
  constexpr Index kNone = std::numeric_limits<Index>::max();
  out.energy = total.energy;
  out.inverted = total.inverted;
  out.first_inverted = total.first_inverted == kNone ? -1 : total.first_inverted;
  out.finite = total.first_bad == kNone;
  out.first_bad = out.finite ? -1 : total.first_bad;
}

}  // namespace

void assemble(const Elements& elements, const VecX& x, std::span<const double> activation, Assembled& out,
              Projection projection, const StrainTerm* strain) {
  run<Work::kStiffness>(elements, x, activation, projection, strain, out);
}

void assemble_force(const Elements& elements, const VecX& x, std::span<const double> activation,
                    Assembled& out, const StrainTerm* strain) {
  run<Work::kForce>(elements, x, activation, Projection::kNone, strain, out);
}

double elastic_energy(const Elements& elements, const VecX& x, std::span<const double> activation) {
  Assembled out;
  run<Work::kEnergy>(elements, x, activation, Projection::kNone, nullptr, out);
  return out.energy;
}

}  // namespace limber::fem
