#include <limber/sim/probe.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace limber {
namespace {

// Of one component. Means over elements go by rest volume, and sums are integrals over it.
double reduced(const std::string& how, const Field& field, std::size_t component,
               const std::vector<Index>& items, const std::vector<double>* volume) {
  double sum = 0, weight = 0, low = std::numeric_limits<double>::infinity(), high = -low;
  const auto width = static_cast<std::size_t>(field.components);
  for (const Index i : items) {
    const double v = field.values[width * static_cast<std::size_t>(i) + component],
                 w = volume ? (*volume)[static_cast<std::size_t>(i)] : 1.0;
    sum += w * v;
    weight += w;
    low = std::min(low, v);
    high = std::max(high, v);
  }
  if (items.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (how == "min") return low;
  if (how == "max") return high;
  return how == "sum" ? sum : sum / weight;
}

}  // namespace

std::vector<ProbeColumn> probe_columns(const Model& model) {
  std::vector<ProbeColumn> out;
  for (const Probe& probe : model.probes) {
    const ProbeSpec& spec = model.scene->probes[probe.probe];
    const std::string unit =
        spec.reduce == "sum" && MeasuredFields::of_elements(spec.value)
            ? fmt::format("{}m^3", *MeasuredFields::unit(spec.value)
                                       ? fmt::format("{} ", MeasuredFields::unit(spec.value))
                                       : "")
            : MeasuredFields::unit(spec.value);
    std::string value = spec.value;
    std::replace(value.begin(), value.end(), '_', ' ');
    const std::string title =
        fmt::format("{}: {}{}", spec.name, value, unit.empty() ? "" : fmt::format(" [{}]", unit));
    for (const std::string& c : MeasuredFields::components(spec.value)) {
      std::string plotted = title;
      std::replace(plotted.begin(), plotted.end(), '/',
                   '|');  // what follows the first stroke is the curve's name
      out.push_back({c.empty() ? "probe/" + spec.name : fmt::format("probe/{}/{}", spec.name, c),
                     fmt::format("{}/{}", plotted, c.empty() ? spec.reduce : c)});
    }
  }
  return out;
}

std::vector<double> probe_values(const Model& model, MeasuredFields& fields) {
  std::vector<double> out;
  for (const Probe& probe : model.probes) {
    const ProbeSpec& spec = model.scene->probes[probe.probe];
    const bool elements = MeasuredFields::of_elements(spec.value);
    const Field& field = fields.get(spec.value);
    for (std::size_t c = 0; c < static_cast<std::size_t>(field.components); ++c)
      out.push_back(reduced(spec.reduce, field, c, probe.items,
                            elements ? &fem::rest_volume(*model.elements) : nullptr));
  }
  return out;
}

}  // namespace limber
