#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/view/compare.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

namespace limber::view {

using nlohmann::json;

namespace {

// Positions at time t, linear between frames; empty when t is outside or a cut lies between. `topology`
// receives the one that holds.
std::vector<float> positions_at(const ReplayReader& run, double t, Index& topology) {
  const Index count = run.frame_count();
  if (count == 0) return {};
  const double slack = 1e-6 * std::max(1e-3, std::abs(t));
  Index low = 0, high = count - 1;
  while (low < high) {  // the last frame at or before t
    const Index mid = (low + high + 1) / 2;
    if (run.frame_time(mid) <= t + slack)
      low = mid;
    else
      high = mid - 1;
  }
  const double t0 = run.frame_time(low);
  topology = run.frame_topology(low);
  if (t0 > t + slack) return {};
  std::vector<float> x = run.frame(low).x;
  if (t - t0 <= slack) return x;
  if (low + 1 == count || run.frame_topology(low + 1) != topology) return {};
  const double s = (t - t0) / (run.frame_time(low + 1) - t0);
  const std::vector<float> next = run.frame(low + 1).x;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(x[i] + s * (double(next[i]) - x[i]));
  return x;
}

void check_same_mesh(const ReplayReader& a, const ReplayReader& b, const std::string& label_a,
                     const std::string& label_b) {
  if (a.topology_count() == 0 || b.topology_count() == 0)
    throw Error(ErrorKind::kInput, fmt::format("compare: {} has no body in its recording",
                                               a.topology_count() == 0 ? label_a : label_b));
  const ReplayTopology ta = a.topology(0), tb = b.topology(0);
  if (ta.node_count() != tb.node_count() || ta.elements != tb.elements)
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "compare: {} has {} nodes and {} elements, {} has {} and {}; runs must have the same mesh",
            label_a, ta.node_count(), ta.element_count(), label_b, tb.node_count(), tb.element_count()));
  float size = 0, apart = 0;
  for (std::size_t i = 0; i < ta.rest.size(); ++i) {
    size = std::max(size, std::abs(ta.rest[i] - ta.rest[i % 3]));
    apart = std::max(apart, std::abs(ta.rest[i] - tb.rest[i]));
  }
  if (apart > 1e-5f * size)
    throw Error(ErrorKind::kInput,
                fmt::format("compare: the rest shapes of {} and {} differ by up to {:.3g} m; runs "
                            "must have the same mesh",
                            label_a, label_b, apart));
}

Cost cost_of(const ReplayReader& run, const std::string& label) {
  Cost c;
  c.label = label;
  c.method = run.header().method;
  c.nodes = run.topology(0).node_count();
  std::vector<double> ms;
  double dofs = 0;
  std::size_t with_dofs = 0;
  for (const ReplayRow& row : run.rows()) {
    double sum = 0;
    bool timed = false;
    for (const auto& [name, value] : row.values) {
      if (name == "dofs") {
        dofs += value;
        ++with_dofs;
      }
      // Top-level phases only: "phase/assemble", not "phase/assemble/gather".
      if (name.starts_with("phase/") && name.find('/', 6) == std::string::npos) {
        sum += value;
        timed = true;
      }
    }
    if (timed) ms.push_back(sum);
    c.steps = std::max(c.steps, row.step);
  }
  const double none = std::numeric_limits<double>::quiet_NaN();
  c.dofs = with_dofs > 0 ? dofs / static_cast<double>(with_dofs) : none;
  c.ms_per_step = c.ms_p95 = none;
  if (!ms.empty()) {
    double sum = 0;
    for (double v : ms) sum += v;
    c.ms_per_step = sum / static_cast<double>(ms.size());
    std::sort(ms.begin(), ms.end());
    c.ms_p95 = ms[std::min(ms.size() - 1, static_cast<std::size_t>(0.95 * static_cast<double>(ms.size())))];
  }
  return c;
}

// Seconds per simulated second and energies, which the rows have.
void add_rates(const ReplayReader& run, Cost& c) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  c.h = run.header().h;
  c.s_per_second = c.h > 0 ? 1e-3 * c.ms_per_step / c.h : none;
  double first = none, last = none, kinetic = 0;
  for (const ReplayRow& row : run.rows())
    for (const auto& [name, value] : row.values) {
      if (name == "energy/kinetic") kinetic = std::max(kinetic, value);
      if (name != "energy/total") continue;
      if (std::isnan(first)) first = value;
      last = value;
    }
  c.energy_change = kinetic > 0 ? (last - first) / kinetic : none;
}

// The box that a node stays in from time `from` on.
struct Reach {
  std::array<float, 3> low{}, high{};
  bool any = false;
  void add(const float* x) {
    for (std::size_t k = 0; k < 3; ++k) {
      low[k] = any ? std::min(low[k], x[k]) : x[k];
      high[k] = any ? std::max(high[k], x[k]) : x[k];
    }
    any = true;
  }
  double half_diagonal() const {
    return 0.5 * std::hypot(double(high[0]) - low[0], double(high[1]) - low[1], double(high[2]) - low[2]);
  }
};

double second_half(const ReplayReader& run) {
  const Index n = run.frame_count();
  return n > 0 ? 0.5 * (run.frame_time(0) + run.frame_time(n - 1)) : 0;
}

// The node of the first mesh that swings most, and its amplitude; -1: no frames.
std::pair<Index, double> most_swinging(const ReplayReader& run) {
  std::vector<Reach> reach(static_cast<std::size_t>(run.topology(0).node_count()));
  const double from = second_half(run);
  for (Index f = 0; f < run.frame_count(); ++f) {
    if (run.frame_time(f) < from) continue;
    const ReplayFrame frame = run.frame(f);
    for (std::size_t i = 0; i < std::min(reach.size(), frame.x.size() / 3); ++i)
      reach[i].add(frame.x.data() + 3 * i);
  }
  std::pair<Index, double> most{-1, 0};
  for (std::size_t i = 0; i < reach.size(); ++i)
    if (const double a = reach[i].half_diagonal(); reach[i].any && a > most.second)
      most = {static_cast<Index>(i), a};
  return most;
}

double amplitude_of(const ReplayReader& run, Index node) {
  Reach reach;
  const double from = second_half(run);
  for (Index f = 0; f < run.frame_count(); ++f)
    if (run.frame_time(f) >= from) reach.add(run.frame(f).x.data() + 3 * static_cast<std::size_t>(node));
  return reach.half_diagonal();
}

// NaN has no place in JSON.
json number(double v) { return std::isfinite(v) ? json(v) : json("-"); }

}  // namespace

std::vector<float> distance_to(const ReplayReader& reference, const ReplayFrame& frame) {
  Index topology = 0;
  const std::vector<float> x = positions_at(reference, frame.t, topology);
  if (x.size() != frame.x.size() || topology != frame.topology) return {};
  std::vector<float> out(x.size() / 3);
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(std::hypot(double(x[3 * i]) - frame.x[3 * i],
                                           double(x[3 * i + 1]) - frame.x[3 * i + 1],
                                           double(x[3 * i + 2]) - frame.x[3 * i + 2]));
  return out;
}

Comparison compare_runs(const std::vector<const ReplayReader*>& runs,
                        const std::vector<std::string>& labels) {
  Comparison out;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    Distance d;
    if (k > 0) {
      check_same_mesh(*runs[0], *runs[k], labels[0], labels[k]);
      for (Index f = 0; f < runs[k]->frame_count(); ++f) {
        const ReplayFrame frame = runs[k]->frame(f);
        const std::vector<float> distance = distance_to(*runs[0], frame);
        if (distance.empty()) continue;
        double sum = 0;
        for (float v : distance) sum += double(v) * v;
        const auto largest = std::max_element(distance.begin(), distance.end());
        d.t.push_back(frame.t);
        d.max.push_back(double(*largest));
        d.rms.push_back(std::sqrt(sum / static_cast<double>(distance.size())));
        d.node.push_back(static_cast<Index>(largest - distance.begin()));
      }
      if (d.t.empty())
        throw Error(ErrorKind::kInput,
                    fmt::format("compare: {} and {} have no time in common", labels[0], labels[k]));
    }
    out.distance.push_back(std::move(d));
    out.costs.push_back(cost_of(*runs[k], labels[k]));
    add_rates(*runs[k], out.costs.back());
  }
  Reach rest;
  const ReplayTopology first = runs[0]->topology(0);
  for (std::size_t i = 0; i + 2 < first.rest.size(); i += 3) rest.add(first.rest.data() + i);
  out.size = 2 * rest.half_diagonal();
  std::tie(out.swinging, out.costs[0].amplitude) = most_swinging(*runs[0]);
  for (std::size_t k = 1; k < runs.size() && out.swinging >= 0; ++k)
    out.costs[k].amplitude = amplitude_of(*runs[k], out.swinging);
  return out;
}

PageReport write_compare_page(const std::vector<const ReplayReader*>& runs,
                              const std::vector<std::string>& labels, const Comparison& comparison,
                              const std::filesystem::path& html, const PageOptions& options) {
  json manifest = page_manifest("compare", runs[0]->header().scene);
  std::vector<std::unique_ptr<RunEncoder>> encoders;
  std::vector<const RunEncoder*> list;
  PageReport report;
  report.inside = true;
  const double room = std::max(1e5, (options.max_bytes - 1e6) / static_cast<double>(runs.size()));
  for (std::size_t k = 0; k < runs.size(); ++k) {
    std::vector<ExtraField> extra;
    if (k > 0)
      extra.push_back({{"distance", "distance to " + labels[0], "m", false, false, false, {}},
                       [&](const ReplayFrame& frame) {
                         std::vector<float> d = distance_to(*runs[0], frame);
                         d.resize(frame.x.size() / 3, 0.0f);
                         return d;
                       }});
    encoders.push_back(
        encode_within(*runs[k], options, room, std::string(1, static_cast<char>('a' + k)), extra));
    const RunEncoder& run = *encoders.back();
    json entry = run.manifest();
    entry["label"] = labels[k];
    for (const std::string& n : entry.at("notices").get<std::vector<std::string>>())
      report.notices.push_back(labels[k] + ": " + n);
    report.frames = std::max(report.frames, run.frames());
    report.error = std::max(report.error, run.error());
    for (const json& e : entry.at("epochs")) report.inside = report.inside && e.at("inside").get<bool>();
    manifest["runs"].push_back(std::move(entry));
    list.push_back(&run);
  }
  json compared = json::array();
  for (std::size_t k = 1; k < runs.size(); ++k) {
    const Distance& d = comparison.distance[k];
    const auto worst = static_cast<std::size_t>(std::max_element(d.max.begin(), d.max.end()) - d.max.begin());
    compared.push_back({{"run", k},
                        {"t", d.t},
                        {"max", d.max},
                        {"rms", d.rms},
                        {"worst", {{"max", d.max[worst]}, {"t", d.t[worst]}, {"node", d.node[worst]}}}});
  }
  json rows = json::array();
  const Cost& reference = comparison.costs[0];
  for (std::size_t k = 0; k < comparison.costs.size(); ++k) {
    const Cost& c = comparison.costs[k];
    const Distance& d = comparison.distance[k];
    const double far = d.max.empty() ? 0 : *std::max_element(d.max.begin(), d.max.end());
    rows.push_back({c.label, c.method, number(reference.s_per_second / c.s_per_second),
                    number(c.s_per_second), number(c.ms_per_step), number(c.ms_p95), number(c.h),
                    number(c.dofs), c.nodes, number(100 * c.energy_change), number(c.amplitude),
                    number(100 * c.amplitude / reference.amplitude), number(100 * far / comparison.size)});
  }
  manifest["compare"] = {
      {"reference", 0},
      {"runs", std::move(compared)},
      {"swinging", comparison.swinging},
      {"costs",
       {{"columns",
         {"run", "method", "times faster", "s per simulated s", "ms per step", "95 % below [ms]",
          "time step [s]", "unknowns", "nodes", "energy change [% of largest kinetic]", "amplitude [m]",
          "amplitude [% of reference]", "largest distance [% of size]"}},
        {"rows", std::move(rows)}}}};
  const std::string text = page_html(manifest, list);
  report.bytes = text.size();
  write_file_atomic(html.string(), text);
  return report;
}

}  // namespace limber::view
