#include <limber/core/error.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/material/lame.hpp>
#include <limber/material/own_energy.hpp>

#include <fmt/core.h>

#include <cmath>

namespace limber::material {

Lame lame(double young, double poisson) {
  if (!(young > 0) || !std::isfinite(young))
    throw Error(
        ErrorKind::kInput,
        fmt::format("young: found {} Pa, expected a finite number > 0; soft rubber is about 1e6", young));
  if (!(poisson > -1 && poisson < 0.5))
    throw Error(ErrorKind::kInput, fmt::format("poisson: found {}, expected -1 < poisson < 0.5; "
                                               "0.5 itself is incompressible, use 0.49 or less",
                                               poisson));
  return {young / (2 * (1 + poisson)), young * poisson / ((1 + poisson) * (1 - 2 * poisson))};
}

double least_poisson(MaterialModel model) {
  switch (model) {
    case MaterialModel::kStableNeoHookean:
    case MaterialModel::kFixedCorotated:
      return 0;
    case MaterialModel::kStableNeoHookeanLog:
      return -0.8;
    default:
      return -1;
  }
}

double least_poisson(const std::string& name) {
  return find_own_energy(name) ? -1.0 : least_poisson(parse_material_model(name.c_str()));
}

}  // namespace limber::material
