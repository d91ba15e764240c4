// Reading a batch: the positions of its nodes, its material at a given activation. Inside fem/ only.
#pragma once

#include <limber/fem/elements_impl.hpp>

#include <span>

namespace limber::fem {

// Throw Error when the arguments do not fit the elements.
void check_positions(const Elements& elements, const VecX& x);
void check_activation(const Elements& elements, std::span<const double> activation);

// Ds = (x1 - x0 | x2 - x0 | x3 - x0) of each lane, from a 3n vector of positions or velocities.
inline material::M3<Pack> gather_edges(const Batch& batch, const double* x) {
  material::M3<Pack> Ds;
  for (int lane = 0; lane < kLanes; ++lane) {
    const double* x0 = x + 3 * static_cast<std::ptrdiff_t>(batch.node[0][lane]);
    for (int a = 0; a < 3; ++a) {
      const double* xa = x + 3 * static_cast<std::ptrdiff_t>(batch.node[a + 1][lane]);
      for (int i = 0; i < 3; ++i) Ds(i, a).set(lane, xa[i] - x0[i]);
    }
  }
  return Ds;
}

inline ElementData<Pack> element_data(const Elements& elements, const Batch& batch,
                                      std::span<const double> activation) {
  ElementData<Pack> e{batch.B, batch.volume, batch.mu, batch.lambda, {}, {}};
  if (batch.fibres >= 0) {
    const FibreBatch& fibres = elements.fibres[batch.fibres];
    Pack stretch = 1;
    for (int lane = 0; lane < kLanes; ++lane)
      if (fibres.channel[lane] >= 0) stretch.set(lane, 1 - activation[fibres.channel[lane]]);
    e.k = fibres.k;
    e.d = material::scaled(fibres.direction, Pack(1) / stretch);
  }
  return e;
}

}  // namespace limber::fem
