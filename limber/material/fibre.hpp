// Fibres that add to a base material: psi(I5) with I5 = |w|^2, w = F d, d = a / l; a is the unit direction in
// the rest shape and l = 1 - activation the fibre's own rest stretch.
//   st-venant-kirchhoff: k/2 (I5 - 1)^2           fung: k (exp(I5 - 1) - I5)
// d2psi/dF2 = (d d^T) (x) B with the 3x3 matrix B = l1 (I - n n^T) + l0 n n^T, n = w/|w|; clamping l0 and l1
// is the exact projection (Kim, de Goes, Iben 2019).
#pragma once

#include <limber/material/material.hpp>
#include <limber/material/small.hpp>

namespace limber::material {

template <class T>
struct FibreTerms {
  T psi;       // [J/m^3]
  V3<T> pk1d;  // pk1 = pk1d d^T
  T l1, l0;    // eigenvalues of B: twice across the fibre, once along it
};

template <class T>
FibreTerms<T> fibre_terms(FibreModel model, const T& k, const V3<T>& w) {
  const T I5 = dot(w, w), e = I5 - T(1);
  FibreTerms<T> out;
  if (model == FibreModel::kFung) {
    const T exponential = vexp(e);
    out.psi = k * (exponential - I5);
    out.l1 = T(2) * k * (exponential - T(1));
    out.l0 = out.l1 + T(4) * k * I5 * exponential;
  } else {
    out.psi = T(0.5) * k * e * e;
    out.l1 = T(2) * k * e;
    out.l0 = out.l1 + T(4) * k * I5;
  }
  out.pk1d = scaled(w, out.l1);
  return out;
}

// B, projected or not.
template <class T>
Sym3<T> fibre_hessian(const FibreTerms<T>& terms, const V3<T>& w, bool projected) {
  const T l1 = projected ? vmax(terms.l1, T(0)) : terms.l1;
  const T l0 = projected ? vmax(terms.l0, T(0)) : terms.l0;
  const T I5 = dot(w, w);
  const auto has_length = I5 > T(0);
  const T k = select(has_length, (l0 - l1) / select(has_length, I5, T(1)), T(0));
  return {l1 + k * w[0] * w[0], l1 + k * w[1] * w[1], l1 + k * w[2] * w[2],
          k * w[0] * w[1],      k * w[0] * w[2],      k * w[1] * w[2]};
}

}  // namespace limber::material
