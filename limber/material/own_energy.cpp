#include <limber/material/own_energy.hpp>

#include <limber/core/error.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/material/invariants.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace limber::material {
namespace {

std::vector<OwnEnergy>& registry() {
  static std::vector<OwnEnergy> all;
  return all;
}

constexpr double kRestTolerance = 1e-9;  // of the largest modulus

}  // namespace

const std::vector<OwnEnergy>& own_energies() { return registry(); }

const OwnEnergy* find_own_energy(const std::string& name) {
  for (const OwnEnergy& e : registry())
    if (e.name == name) return &e;
  return nullptr;
}

RestState rest_state(const InvariantEnergy& energy, double mu, double lambda) {
  const double at_rest[3] = {3, 3, 1}, lame[2] = {mu, lambda};
  EnergyTerms t;
  energy.terms(energy, at_rest, lame, t);
  const Principal<double> H = Invariants<double>{&energy, mu, lambda}.principal({{1, 1, 1}});
  RestState out;
  out.psi = t.psi;
  out.stress = 2 * t.d[0] + 4 * t.d[1] + t.d[2];
  out.lambda = H.scaling.xy;
  // At rest flip is 2 mu where there is no stress, and scaling.xx is lambda + 2 mu.
  out.mu = 0.5 * (H.scaling.xx - H.scaling.xy);
  return out;
}

std::string rest_misfit(const RestState& rest) {
  const double size = std::max(std::abs(rest.mu), std::abs(rest.lambda));
  if (!std::isfinite(rest.psi) || !std::isfinite(rest.stress) || !std::isfinite(size))
    return "it has no finite value in the rest shape (I1 = I2 = 3, J = 1)";
  if (size == 0) return "it resists nothing in the rest shape: no energy of I1, I2 and J";
  if (std::abs(rest.stress) > kRestTolerance * size)
    return fmt::format(
        "the rest shape (I1 = I2 = 3, J = 1) is not free of stress: 2 psi_I1 + 4 psi_I2 + psi_J is {:.6g} Pa "
        "there, "
        "expected 0; subtract a term such as {:.6g}*(J - 1) or {:.6g}*log(J)",
        rest.stress, rest.stress, rest.stress);
  if (!(rest.mu > 0) || !(3 * rest.lambda + 2 * rest.mu > 0))
    return fmt::format(
        "small strain is not stable: shear modulus {:.6g} Pa, bulk modulus {:.6g} Pa, expected both > 0",
        rest.mu, rest.lambda + 2 * rest.mu / 3);
  return {};
}

void add_own_energy(OwnEnergy energy) {
  bool taken = find_own_energy(energy.name) != nullptr;
  try {
    parse_material_model(energy.name.c_str());
    taken = true;
  } catch (const Error&) {
  }
  if (taken) throw Error(ErrorKind::kUsage, fmt::format("material \"{}\": the name is taken", energy.name));
  if (const std::string why = rest_misfit(rest_state(*energy.energy, 1e5, 1e5)); !why.empty())
    throw Error(ErrorKind::kUsage, fmt::format("material \"{}\": {}", energy.name, why));
  registry().push_back(std::move(energy));
}

}  // namespace limber::material
