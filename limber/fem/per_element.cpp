// What assemble.hpp offers per element: for output, metrics and adaptivity.
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/fem/batch.hpp>
#include <limber/material/polar.hpp>

#include <fmt/core.h>

namespace limber::fem {
namespace {

using material::M3;

// Calls body(batch, F) for every batch, in parallel.
template <class Body>
void for_each_gradient(const Elements& elements, const VecX& x, Body&& body) {
  parallel_for(static_cast<std::ptrdiff_t>(elements.batch.size()), 64, [&](std::ptrdiff_t b) {
    const Batch& batch = elements.batch[b];
    body(batch, deformation_gradient(gather_edges(batch, x.data()), batch.B, batch.plane));
  });
}

void store(const Batch& batch, const M3<Pack>& A, std::vector<Mat3>& out) {
  for (int lane = 0; lane < batch.count; ++lane)
    for (int i = 0; i < 9; ++i) out[batch.element[lane]].data()[i] = A.a[i][lane];
}

}  // namespace

void check_positions(const Elements& elements, const VecX& x) {
  const Eigen::Index expected = 3 * static_cast<Eigen::Index>(elements.nodes);
  if (x.size() != expected)
    throw Error(ErrorKind::kUsage,
                fmt::format("elements: found {} coordinates, expected {} (3 for each of {} nodes)", x.size(),
                            expected, elements.nodes));
}

void check_activation(const Elements& elements, std::span<const double> activation) {
  if (static_cast<Index>(activation.size()) < elements.channels)
    throw Error(ErrorKind::kUsage,
                fmt::format("elements: found {} activations, expected {} (one per channel)",
                            activation.size(), elements.channels));
  for (Index c = 0; c < elements.channels; ++c)
    if (!(activation[c] < 1))
      throw Error(ErrorKind::kSimulation,
                  fmt::format("activation of channel {}: found {}, expected a number < 1 "
                              "(1 would shorten the fibres to nothing)",
                              c, activation[c]));
}

void deformation_gradients(const Elements& elements, const VecX& x, std::vector<Mat3>& F) {
  check_positions(elements, x);
  F.resize(elements.element.size());
  for_each_gradient(elements, x, [&](const Batch& batch, const M3<Pack>& Fs) { store(batch, Fs, F); });
}

void green_strains(const Elements& elements, const VecX& x, std::vector<double>& strain) {
  check_positions(elements, x);
  strain.resize(6 * elements.element.size());
  for_each_gradient(elements, x, [&](const Batch& batch, const M3<Pack>& F) {
    const material::Sym3<Pack> E = green_strain(F);
    const Pack* const entry[6] = {&E.xx, &E.yy, &E.zz, &E.xy, &E.xz, &E.yz};
    for (int lane = 0; lane < batch.count; ++lane)
      for (int k = 0; k < 6; ++k)
        strain[6 * static_cast<std::size_t>(batch.element[lane]) + static_cast<std::size_t>(k)] =
            (*entry[k])[lane];
  });
}

void energy_densities(const Elements& elements, const VecX& x, std::span<const double> activation,
                      std::vector<double>& psi) {
  check_positions(elements, x);
  check_activation(elements, activation);
  psi.resize(elements.element.size());
  for_each_gradient(elements, x, [&](const Batch& batch, const M3<Pack>& F) {
    const ElementData<Pack> e = element_data(elements, batch, activation);
    const Pack density = material::with_model(batch.model, e.mu, e.lambda, [&](const auto& model) {
      return element_psi(model, batch.fibre, e, F);
    });
    for (int lane = 0; lane < batch.count; ++lane) psi[batch.element[lane]] = density[lane];
  });
}

void stretch_rates(const Elements& elements, const VecX& x, const VecX& v, std::vector<Mat3>& Sdot) {
  check_positions(elements, x);
  check_positions(elements, v);
  Sdot.resize(elements.element.size());
  for_each_gradient(elements, x, [&](const Batch& batch, const M3<Pack>& F) {
    M3<Pack> Fdot = deformation_gradient(gather_edges(batch, v.data()), batch.B, batch.plane);
    if (batch.plane) Fdot(2, 2) = 0;
    store(batch, material::stretch_rate(material::svd(F), Fdot), Sdot);
  });
}

}  // namespace limber::fem
