// What assemble.hpp offers per element: for output, metrics and adaptivity.
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/fem/kernels.hpp>

#include <fmt/core.h>

namespace limber::fem {
namespace {

// Calls kernel(reading, begin, end) for all batches, in parallel.
template <class Kernel>
void for_all_batches(const Elements& elements, const VecX& x, std::span<const double> activation,
                     Kernel&& kernel) {
  const Reading reading{elements.batch.data(),
                        elements.fibres.data(),
                        x.data(),
                        activation.data(),
                        Projection::kNone,
                        0,
                        nullptr};
  parallel_ranges(static_cast<std::ptrdiff_t>(elements.batch.size()), 64,
                  [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                    kernel(reading, static_cast<Index>(begin), static_cast<Index>(end));
                  });
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
  for_all_batches(elements, x, {}, [&](const Reading& reading, Index begin, Index end) {
    kernels().deformation_gradients(reading, begin, end, F.front().data());
  });
}

void green_strains(const Elements& elements, const VecX& x, std::vector<double>& strain) {
  check_positions(elements, x);
  strain.resize(6 * elements.element.size());
  for_all_batches(elements, x, {}, [&](const Reading& reading, Index begin, Index end) {
    kernels().green_strains(reading, begin, end, strain.data());
  });
}

void energy_densities(const Elements& elements, const VecX& x, std::span<const double> activation,
                      std::vector<double>& psi) {
  check_positions(elements, x);
  check_activation(elements, activation);
  psi.resize(elements.element.size());
  for_all_batches(elements, x, activation, [&](const Reading& reading, Index begin, Index end) {
    kernels().energy_densities(reading, begin, end, psi.data());
  });
}

void strain_rates(const Elements& elements, const VecX& x, const VecX& v, std::vector<double>& rate) {
  check_positions(elements, x);
  check_positions(elements, v);
  rate.resize(elements.element.size());
  for_all_batches(elements, x, {}, [&](const Reading& reading, Index begin, Index end) {
    kernels().strain_rates(reading, v.data(), begin, end, rate.data());
  });
}

void stretch_rates(const Elements& elements, const VecX& x, const VecX& v, std::vector<Mat3>& Sdot) {
  check_positions(elements, x);
  check_positions(elements, v);
  Sdot.resize(elements.element.size());
  for_all_batches(elements, x, {}, [&](const Reading& reading, Index begin, Index end) {
    kernels().stretch_rates(reading, v.data(), begin, end, Sdot.front().data());
  });
}

}  // namespace limber::fem
