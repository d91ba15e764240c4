// The loops over elements, for the instruction set that the including file is compiled for: kLanes elements
// at a time, one per lane. Everything here is in an anonymous namespace or a template over Pack, and nothing
// of the standard library is used: see kernels.hpp. A test looks at the object files.
//
// Every element goes through the same arithmetic in its lane, and sums are taken element by element in the
// order of the batch, so that results do not depend on the number of lanes.
#pragma once

#include <limber/fem/element_kernel.hpp>
#include <limber/fem/kernels.hpp>
#include <limber/material/polar.hpp>

namespace limber::fem {
namespace {

using material::M3;
using material::V3;

enum class Work { kEnergy, kForce, kStiffness };

// The elements [first, first + kLanes) of a batch.
struct Part {
  const Batch& batch;
  int first;

  Pack read(const PerElement& values) const { return Pack::load(values.a + first); }
  // Those that are elements and not padding; may be negative or more than kLanes.
  int count() const { return batch.count - first; }
};

// Ds = (x1 - x0 | x2 - x0 | x3 - x0) of each lane, from a 3n vector of positions or velocities.
M3<Pack> gather_edges(const Part& part, const double* x) {
  M3<Pack> Ds;
  for (int lane = 0; lane < kLanes; ++lane) {
    const double* x0 = x + 3 * static_cast<std::ptrdiff_t>(part.batch.node[0][part.first + lane]);
    for (int a = 0; a < 3; ++a) {
      const double* xa = x + 3 * static_cast<std::ptrdiff_t>(part.batch.node[a + 1][part.first + lane]);
      for (int i = 0; i < 3; ++i) Ds(i, a).set(lane, xa[i] - x0[i]);
    }
  }
  return Ds;
}

M3<Pack> shape_gradients(const Part& part) {
  M3<Pack> B;
  for (int i = 0; i < 9; ++i) B.a[i] = part.read(part.batch.B[i]);
  return B;
}

ElementData<Pack> element_data(const Reading& in, const Part& part, const M3<Pack>& B) {
  const Batch& batch = part.batch;
  ElementData<Pack> e{B, part.read(batch.volume), part.read(batch.mu), part.read(batch.lambda), {}, {}};
  if (batch.fibres >= 0) {
    const FibreBatch& fibres = in.fibres[batch.fibres];
    Pack stretch = 1;
    for (int lane = 0; lane < kLanes; ++lane)
      if (const Index channel = fibres.channel[part.first + lane]; channel >= 0)
        stretch.set(lane, 1 - in.activation[channel]);
    e.k = part.read(fibres.k);
    const V3<Pack> d{
        {part.read(fibres.direction[0]), part.read(fibres.direction[1]), part.read(fibres.direction[2])}};
    e.d = material::scaled(d, Pack(1) / stretch);
  }
  return e;
}

// E - history, and weight * young.
material::Sym3<Pack> strain_difference(const Reading& in, const Part& part, const M3<Pack>& F, Pack& s) {
  material::Sym3<Pack> S = green_strain(F);
  Pack* const entry[6] = {&S.xx, &S.yy, &S.zz, &S.xy, &S.xz, &S.yz};
  for (int k = 0; k < 6; ++k) {
    Pack h;
    for (int lane = 0; lane < kLanes; ++lane)
      h.set(lane,
            in.strain_history[6 * static_cast<std::ptrdiff_t>(part.batch.element[part.first + lane]) + k]);
    *entry[k] -= h;
  }
  const Pack mu = part.read(part.batch.mu), lambda = part.read(part.batch.lambda);
  if (part.batch.kind == ElementKind::kClothTriangle)
    s = Pack(in.strain_weight) * material::membrane_young(mu, lambda);
  else
    s = Pack(in.strain_weight) * mu * (Pack(3) * lambda + Pack(2) * mu) / (lambda + mu);
  return S;
}

void add_forces(const Part& part, const V3<Pack> f[3], double* sums) {
  for (int lane = 0; lane < kLanes && lane < part.count(); ++lane) {
    const std::uint16_t* local = part.batch.local_node[part.first + lane];
    double f0[3] = {0, 0, 0};
    for (int a = 0; a < 3; ++a) {
      double* sum = sums + 3 * local[a + 1];
      for (int i = 0; i < 3; ++i) {
        const double fi = f[a][i][lane];
        sum[i] += fi;
        f0[i] -= fi;
      }
    }
    double* sum = sums + 3 * local[0];
    for (int i = 0; i < 3; ++i) sum[i] += f0[i];
  }
}

// Uses K as work space.
void add_blocks(const Part& part, M3<Pack> K[kElementBlocks], double* sums) {
  // Eight entries of each element side by side; the ninth is left over.
  for (int k = 0; k < kElementBlocks; ++k)
    for (int i = 0; i < 8; i += kLanes) transpose(K[k].a + i);
  // Elements outside, blocks inside: neighbours in a batch often add to the same block, and an addition that
  // waits for the one before it is slow.
  for (int lane = 0; lane < kLanes && lane < part.count(); ++lane) {
    const std::uint16_t* local = part.batch.local_block[part.first + lane];
    for (int k = 0; k < kElementBlocks; ++k) {
      double* sum = sums + 9 * local[k];
      for (int i = 0; i < 8; i += kLanes) (Pack::load(sum + i) + K[k].a[i + lane]).store(sum + i);
      sum[8] += K[k].a[8][lane];
    }
  }
}

template <bool needed>
auto decompose([[maybe_unused]] const M3<Pack>& F, [[maybe_unused]] const M3<Pack>& B,
               [[maybe_unused]] ElementKind kind) {
  if constexpr (needed)
    return element_svd(F, B, kind);
  else
    return material::NoSvd{};
}

template <Work work, class Model>
void run_part(const Model& model, const Reading& in, const Part& part, const ElementData<Pack>& e,
              const M3<Pack>& F, const Sums& sums, Pack& energy, Outcome& outcome) {
  const Batch& batch = part.batch;
  Pack psi, check;
  if constexpr (work == Work::kEnergy) {
    psi = element_psi(model, batch.fibre, e, F);
    check = psi;
  } else {
    const auto svd = decompose < Model::kForceNeedsSvd || work == Work::kStiffness > (F, e.B, batch.kind);
    V3<Pack> f[3];
    psi = element_force(model, batch.fibre, batch.kind, e, F, svd, f);
    material::Sym3<Pack> S;
    Pack s;
    if (in.strain_history) {
      S = strain_difference(in, part, F, s);
      add_strain_force(e, batch.kind, F, s, S, psi, f);
    }
    add_forces(part, f, sums.f);
    check = psi;
    for (int a = 0; a < 3; ++a) check += f[a][0] + f[a][1] + f[a][2];
    if constexpr (work == Work::kStiffness) {
      M3<Pack> K[kElementBlocks];
      element_stiffness(model, batch.fibre, batch.kind, in.projection == Projection::kPsd, e, F, svd, K);
      if (in.strain_history)
        add_strain_stiffness(e, batch.kind, in.projection != Projection::kNone, F, s, S, K);
      for (int a = 1; a < 4; ++a) check += K[a](0, 0) + K[a](1, 1) + K[a](2, 2);
      add_blocks(part, K, sums.K);
    }
  }
  energy += e.volume * psi;
  const Mask bad = !(check - check == Pack(0)), inverted = material::determinant(F) <= Pack(0);
  if (any(bad | inverted))
    for (int lane = 0; lane < kLanes && lane < part.count(); ++lane) {
      const Index element = batch.element[part.first + lane];
      if (bad[lane] && element < outcome.first_bad) outcome.first_bad = element;
      if (inverted[lane]) ++outcome.inverted;
    }
}

template <Work work>
void run_batches(const Reading& in, Index begin, Index end, const Sums& sums, Outcome& outcome) {
  Pack energy[kBatch / kLanes];
  for (Pack& e : energy) e = 0;
  for (Index b = begin; b < end; ++b)
    for (int p = 0; p < kBatch / kLanes; ++p) {
      const Part part{in.batch[b], p * kLanes};
      if (part.count() <= 0) break;
      const M3<Pack> B = shape_gradients(part);
      const ElementData<Pack> e = element_data(in, part, B);
      const M3<Pack> F = deformation_gradient(gather_edges(part, in.x), B, part.batch.kind);
      material::with_model(part.batch.model, part.batch.energy, e.mu, e.lambda, [&](const auto& model) {
        run_part<work>(model, in, part, e, F, sums, energy[p], outcome);
      });
    }
  for (const Pack& e : energy)
    for (int lane = 0; lane < kLanes; ++lane) outcome.energy += e[lane];
}

// Calls body(part, B, F) for every part of the batches.
template <class Body>
void for_each_part(const Reading& in, Index begin, Index end, Body&& body) {
  for (Index b = begin; b < end; ++b)
    for (int first = 0; first < in.batch[b].count; first += kLanes) {
      const Part part{in.batch[b], first};
      const M3<Pack> B = shape_gradients(part);
      body(part, B, deformation_gradient(gather_edges(part, in.x), B, part.batch.kind));
    }
}

// Writes `width` numbers per element.
template <int width>
void store(const Part& part, const Pack* values, double* out) {
  for (int lane = 0; lane < kLanes && lane < part.count(); ++lane)
    for (int i = 0; i < width; ++i)
      out[width * static_cast<std::ptrdiff_t>(part.batch.element[part.first + lane]) + i] = values[i][lane];
}

void all_gradients(const Reading& in, Index begin, Index end, double* out) {
  for_each_part(in, begin, end,
                [&](const Part& part, const M3<Pack>&, const M3<Pack>& F) { store<9>(part, F.a, out); });
}

void all_strains(const Reading& in, Index begin, Index end, double* out) {
  for_each_part(in, begin, end, [&](const Part& part, const M3<Pack>&, const M3<Pack>& F) {
    const material::Sym3<Pack> E = green_strain(F);
    const Pack entry[6] = {E.xx, E.yy, E.zz, E.xy, E.xz, E.yz};
    store<6>(part, entry, out);
  });
}

void all_densities(const Reading& in, Index begin, Index end, double* out) {
  for_each_part(in, begin, end, [&](const Part& part, const M3<Pack>& B, const M3<Pack>& F) {
    const ElementData<Pack> e = element_data(in, part, B);
    const Pack psi =
        material::with_model(part.batch.model, part.batch.energy, e.mu, e.lambda,
                             [&](const auto& model) { return element_psi(model, part.batch.fibre, e, F); });
    store<1>(part, &psi, out);
  });
}

void all_strain_rates(const Reading& in, const double* v, Index begin, Index end, double* out) {
  for_each_part(in, begin, end, [&](const Part& part, const M3<Pack>& B, const M3<Pack>& F) {
    const M3<Pack> Fdot = gradient_change(gather_edges(part, v), B, part.batch.kind);
    Pack sum = 0;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j <= i; ++j) {
        Pack rate = 0;  // 2 dE/dt
        for (int k = 0; k < 3; ++k) rate += Fdot(k, i) * F(k, j) + F(k, i) * Fdot(k, j);
        sum += Pack(i == j ? 0.25 : 0.5) * rate * rate;
      }
    store<1>(part, &sum, out);
  });
}

void all_stretch_rates(const Reading& in, const double* v, Index begin, Index end, double* out) {
  for_each_part(in, begin, end, [&](const Part& part, const M3<Pack>& B, const M3<Pack>& F) {
    const M3<Pack> Fdot = gradient_rate(F, gather_edges(part, v), B, part.batch.kind);
    store<9>(part, material::stretch_rate(element_svd(F, B, part.batch.kind), Fdot).a, out);
  });
}

// K v, element by element; `first_bad` of the outcome is set.
void product_batches(const Reading& in, const double* v, Index begin, Index end, const Sums& sums,
                     Outcome& outcome) {
  for_each_part(in, begin, end, [&](const Part& part, const M3<Pack>& B, const M3<Pack>& F) {
    const Batch& batch = part.batch;
    const ElementData<Pack> e = element_data(in, part, B);
    V3<Pack> y[3];
    material::with_model(batch.model, batch.energy, e.mu, e.lambda, [&](const auto& model) {
      element_stiffness_product(model, batch.fibre, batch.kind, in.projection == Projection::kPsd, e, F,
                                element_svd(F, B, batch.kind), gather_edges(part, v), y);
    });
    add_forces(part, y, sums.f);
    Pack check = 0;
    for (int a = 0; a < 3; ++a) check += y[a][0] + y[a][1] + y[a][2];
    const Mask bad = !(check - check == Pack(0));
    if (!any(bad)) return;
    for (int lane = 0; lane < kLanes && lane < part.count(); ++lane)
      if (bad[lane] && batch.element[part.first + lane] < outcome.first_bad)
        outcome.first_bad = batch.element[part.first + lane];
  });
}

constexpr Kernels kKernels{run_batches<Work::kEnergy>,
                           run_batches<Work::kForce>,
                           run_batches<Work::kStiffness>,
                           product_batches,
                           all_gradients,
                           all_strains,
                           all_densities,
                           all_strain_rates,
                           all_stretch_rates};

}  // namespace
}  // namespace limber::fem
