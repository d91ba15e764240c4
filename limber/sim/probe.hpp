// Probes: one value of some nodes or elements over time, as columns of steps.csv and a plot on the page.
#pragma once

#include <limber/sim/measured_fields.hpp>

#include <string>
#include <vector>

namespace limber {

struct ProbeColumn {
  std::string csv;   // "probe/tip/x"
  std::string plot;  // "tip: displacement [m]/x": all columns of a probe go into one plot
};
// Of all probes of the model, in their order.
std::vector<ProbeColumn> probe_columns(const Model& model);
// Their values; not a number where a probe has nothing left to measure (cut away).
std::vector<double> probe_values(const Model& model, MeasuredFields& fields);

}  // namespace limber
