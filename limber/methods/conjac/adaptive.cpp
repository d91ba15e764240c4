#include <limber/methods/conjac/adaptive.hpp>

#include <limber/core/error.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/scene/selection.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber {
namespace {

// Elements by centroid or set, of `body` or (sets as "body/set") of all bodies.
std::vector<Index> select_elements(const Model& model, const Selection& selection, const std::string& body) {
  IndexRange range{0, static_cast<Index>(model.mesh.elements.size())};
  std::string prefix;
  if (!body.empty() || model.bodies.size() == 1) {
    const auto found = body.empty() ? model.bodies.begin()
                                    : std::find_if(model.bodies.begin(), model.bodies.end(),
                                                   [&](const Body& b) { return b.name == body; });
    if (found == model.bodies.end())
      throw Error(ErrorKind::kInput, fmt::format("{}: no body is called \"{}\"", selection.where, body));
    range = found->elements;
    prefix = found->name + "/";
  }
  std::vector<Vec3> center;
  for (Index e = range.begin; e < range.end; ++e) {
    const Tet& t = model.mesh.elements[e];
    const int k = corners(t);
    Vec3 sum = Vec3::Zero();
    for (int c = 0; c < k; ++c) sum += model.mesh.rest[t[c]];
    center.push_back(sum / k);
  }
  IndexSets sets;
  for (const auto& [name, members] : model.element_sets) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    auto& set = sets[name.substr(prefix.size())];
    for (Index e : members) set.push_back(e - range.begin);
  }
  std::vector<Index> chosen = select(selection, center, sets);
  for (Index& e : chosen) e += range.begin;
  return chosen;
}

}  // namespace

LivelyRegions make_regions(const Model& model, const DynamicNodes& nodes,
                           const std::vector<RegionChoice>& choices) {
  const auto count = static_cast<std::size_t>(nodes.regions);
  if (!choices.empty() && choices.size() != count)
    throw Error(
        ErrorKind::kInput,
        fmt::format("/method/adaptive/regions: found {} regions, expected one for each of the {} nodes "
                    "of /method/dynamic, in their order (nodes of one entry by their index), or none",
                    choices.size(), count));
  LivelyRegions out;
  for (std::size_t r = 0; r < count; ++r) {
    const std::string name = choices.empty() ? "" : choices[r].name;
    out.names.push_back(name.empty() ? fmt::format("{}", r + 1) : name);
    if (std::count(out.names.begin(), out.names.end(), out.names.back()) > 1)
      throw Error(ErrorKind::kInput,
                  fmt::format("/method/adaptive/regions/{}: there are two regions \"{}\"", r, name));
  }

  std::vector<Index> sources(count, -1);
  for (std::size_t k = static_cast<std::size_t>(nodes.chosen); k-- > 0;)
    sources[nodes.region[k]] = model.origin[nodes.nodes[k]];
  const NearestSource nearest = nearest_source(model, sources);
  out.of_element.reserve(model.mesh.elements.size());
  for (const Tet& t : model.mesh.elements) {
    Index best = model.origin[t[0]];
    for (int c = 1; c < 4; ++c)
      if (t[c] >= 0 && nearest.distance[model.origin[t[c]]] < nearest.distance[best])
        best = model.origin[t[c]];
    out.of_element.push_back(nearest.source[best]);
  }
  for (std::size_t r = 0; r < choices.size(); ++r) {
    if (!choices[r].elements) continue;
    // What the region says is its own, and nothing else.
    for (Index& region : out.of_element)
      if (region == static_cast<Index>(r)) region = -1;
  }
  for (std::size_t r = 0; r < choices.size(); ++r) {
    if (!choices[r].elements) continue;
    for (Index e : select_elements(model, *choices[r].elements, choices[r].body))
      out.of_element[e] = static_cast<Index>(r);
  }
  const std::vector<double>& volume = fem::rest_volume(*model.elements);
  out.volume.assign(count, 0.0);
  for (std::size_t e = 0; e < out.of_element.size(); ++e)
    if (out.of_element[e] >= 0) out.volume[out.of_element[e]] += volume[e];
  return out;
}

std::vector<double> liveliness(const Model& model, const LivelyRegions& regions, const VecX& x0,
                               const VecX& x1, double h, std::vector<Mat3>& Sdot) {
  fem::stretch_rates(*model.elements, 0.5 * (x0 + x1), (x1 - x0) / h, Sdot);
  const std::vector<double>& volume = fem::rest_volume(*model.elements);
  std::vector<double> metric(regions.names.size(), 0.0);
  for (std::size_t e = 0; e < Sdot.size(); ++e) {
    const Index r = regions.of_element[e];
    if (r >= 0) metric[r] += volume[e] * Sdot[e].cwiseAbs().mean();
  }
  for (std::size_t r = 0; r < metric.size(); ++r)
    if (regions.volume[r] > 0) metric[r] /= regions.volume[r];
  return metric;
}

Adaptivity::Adaptivity(const Model& model, const DynamicNodes& nodes, const AdaptiveOptions& options)
    : regions_(make_regions(model, nodes, options.regions)),
      wake_(options.threshold),
      sleep_(options.hysteresis * wake_),
      window_(options.window),
      start_dynamic_(options.start_dynamic) {}

double Adaptivity::mean(const ConJacMemory& memory, Index region) const {
  const double* past = memory.liveliness_window.data() + static_cast<std::ptrdiff_t>(region) * window_;
  const std::int64_t count = std::min<std::int64_t>(memory.liveliness_steps, window_);
  double sum = 0;
  for (std::int64_t k = 0; k < count; ++k) sum += past[k];
  return count > 0 ? sum / static_cast<double>(count) : 0.0;
}

std::vector<double> Adaptivity::means(const ConJacMemory& memory) const {
  std::vector<double> out(regions_.names.size(), 0.0);
  if (memory.liveliness_window.size() != out.size() * static_cast<std::size_t>(window_)) return out;
  for (std::size_t r = 0; r < out.size(); ++r) out[r] = mean(memory, static_cast<Index>(r));
  return out;
}

void Adaptivity::calm(ConJacMemory& memory) {
  const std::size_t count = regions_.names.size();
  if (memory.region_age.size() != count) {
    memory.region_age.assign(count, start_dynamic_ ? 1 : -1);
    memory.liveliness_window.assign(count * static_cast<std::size_t>(window_), 0.0);
    memory.liveliness_steps = 0;
    before_ = memory.region_age;
    return;
  }
  before_ = memory.region_age;
  for (std::size_t r = 0; r < count; ++r) {
    std::int64_t& age = memory.region_age[r];
    age += age > 0 ? 1 : -1;
    // Not before the window tells of nothing but dynamic steps.
    if (age > window_ && mean(memory, static_cast<Index>(r)) < sleep_) age = -1;
  }
}

const std::vector<double>& Adaptivity::measure(const Model& model, const VecX& x0, double h, const VecX& x1) {
  if (x0_.size() != x0.size() || x0_ != x0 || x1_ != x1) {
    x0_ = x0;
    x1_ = x1;
    metric_ = liveliness(model, regions_, x0, x1, h, Sdot_);
  }
  return metric_;
}

bool Adaptivity::rouse(const Model& model, const VecX& x0, double h, const VecX& x1, ConJacMemory& memory) {
  if (std::none_of(memory.region_age.begin(), memory.region_age.end(), [](std::int64_t a) { return a < 0; }))
    return false;
  const std::vector<double>& metric = measure(model, x0, h, x1);
  bool any = false;
  for (std::size_t r = 0; r < metric.size(); ++r)
    if (memory.region_age[r] < 0 && metric[r] > wake_) {
      memory.region_age[r] = 1;
      any = true;
    }
  return any;
}

int Adaptivity::switches(const ConJacMemory& memory) const {
  int count = 0;
  for (std::size_t r = 0; r < before_.size(); ++r) count += (before_[r] > 0) != (memory.region_age[r] > 0);
  return count;
}

void Adaptivity::record(const Model& model, const VecX& x0, double h, const VecX& x1, ConJacMemory& memory) {
  if (regions_.names.empty()) return;
  const std::vector<double>& metric = measure(model, x0, h, x1);
  const auto slot = static_cast<std::size_t>(memory.liveliness_steps % window_);
  for (std::size_t r = 0; r < metric.size(); ++r)
    memory.liveliness_window[r * static_cast<std::size_t>(window_) + slot] = metric[r];
  ++memory.liveliness_steps;
}

std::string Adaptivity::misfit(const ConJacMemory& memory) const {
  const std::size_t count = regions_.names.size(), window = count * static_cast<std::size_t>(window_);
  if (memory.region_age.empty() && memory.liveliness_window.empty()) return {};  // before the first step
  if (memory.region_age.size() != count)
    return fmt::format("\"region_age\" has {} numbers, expected {}", memory.region_age.size(), count);
  if (memory.liveliness_window.size() != window)
    return fmt::format("\"liveliness_window\" has {} numbers, expected {}", memory.liveliness_window.size(),
                       window);
  if (memory.liveliness_steps < 0)
    return fmt::format("\"liveliness_steps\" is {}, expected 0 or more", memory.liveliness_steps);
  for (const double metric : memory.liveliness_window)
    if (!(metric >= 0 && std::isfinite(metric)))
      return fmt::format("\"liveliness_window\" has the number {}, expected one from 0 on", metric);
  return {};
}

bool Adaptivity::dynamic(const ConJacMemory& memory, Index region) const {
  return memory.region_age[region] > 0;
}

bool Adaptivity::relaxing(const ConJacMemory& memory) const {
  return std::any_of(memory.region_age.begin(), memory.region_age.end(),
                     [&](std::int64_t age) { return age < 0 && age >= -window_; });
}

}  // namespace limber
