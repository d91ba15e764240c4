#include <limber/sim/timings.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

constexpr double kLeast = 1e-7;   // [s], lower end of the histogram
constexpr double kBinsPerE = 50;  // bins per factor of e
double bin_end(std::size_t bin) { return kLeast * std::exp((static_cast<double>(bin) + 1) / kBinsPerE); }

std::size_t depth(const std::string& name) {
  return static_cast<std::size_t>(std::count(name.begin(), name.end(), '/'));
}

}  // namespace

void Timings::add(const std::string& phase, double seconds) {
  auto p = std::find_if(phases_.begin(), phases_.end(), [&](const Phase& q) { return q.name == phase; });
  if (p == phases_.end()) {
    phases_.push_back({});
    p = phases_.end() - 1;
    p->name = phase;
  }
  ++p->count;
  p->sum += seconds;
  p->max = std::max(p->max, seconds);
  const double bin = seconds > kLeast ? std::floor(kBinsPerE * std::log(seconds / kLeast)) : 0;
  ++p->histogram[std::min(static_cast<std::size_t>(bin), p->histogram.size() - 1)];
}

double Timings::Phase::percentile(double share) const {
  const double wanted = share * static_cast<double>(count);
  double seen = 0;
  for (std::size_t bin = 0; bin < histogram.size(); ++bin) {
    seen += histogram[bin];
    if (seen >= wanted) return std::min(max, bin_end(bin));
  }
  return max;
}

double Timings::total(const std::string& phase) const {
  for (const Phase& p : phases_)
    if (p.name == phase) return p.sum;
  return 0;
}

std::string Timings::table(double whole) const {
  // The longest first; a child stands below its parent, whenever either was first seen.
  std::vector<const Phase*> order;
  for (const Phase& p : phases_)
    if (depth(p.name) == 0) order.push_back(&p);
  std::stable_sort(order.begin(), order.end(),
                   [](const Phase* a, const Phase* b) { return a->sum > b->sum; });
  for (const Phase& p : phases_) {
    if (depth(p.name) == 0) continue;
    const std::string parent = p.name.substr(0, p.name.rfind('/'));
    auto at = order.end();
    for (auto it = order.begin(); it != order.end(); ++it)
      if ((*it)->name == parent || (*it)->name.starts_with(parent + "/")) at = it + 1;
    order.insert(at, &p);
  }
  std::string out =
      fmt::format("  {:<28} {:>6} {:>10} {:>10} {:>10}\n", "phase", "share", "mean ms", "p95 ms", "max ms");
  for (const Phase* p : order) {
    const std::size_t level = depth(p->name);
    const std::string name =
        std::string(2 * level, ' ') + p->name.substr(level == 0 ? 0 : p->name.rfind('/') + 1);
    out += fmt::format("  {:<28} {:>5.1f}% {:>10.3f} {:>10.3f} {:>10.3f}\n", name,
                       whole > 0 ? 100 * p->sum / whole : 0, 1e3 * p->sum / static_cast<double>(p->count),
                       1e3 * p->percentile(0.95), 1e3 * p->max);
  }
  return out;
}

nlohmann::ordered_json Timings::json() const {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const Phase& p : phases_)
    out[p.name] = {{"mean_ms", 1e3 * p.sum / static_cast<double>(p.count)},
                   {"p95_ms", 1e3 * p.percentile(0.95)},
                   {"max_ms", 1e3 * p.max},
                   {"total_s", p.sum}};
  return out;
}

}  // namespace limber
