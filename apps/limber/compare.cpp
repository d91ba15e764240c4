#include "commands.hpp"
#include "numbers.hpp"

#include <limber/core/error.hpp>
#include <limber/view/compare.hpp>
#include <limber/view/fields.hpp>
#include <limber/view/process.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

namespace limber {
namespace {

namespace fs = std::filesystem;

struct CompareOptions {
  std::vector<std::string> folders, labels;
  std::string output = "compare.html";
  bool page = true, json = false, open = false;
  double max_mb = 30;
};

// The method's name, or the folder's where methods repeat.
std::vector<std::string> make_labels(const std::vector<std::unique_ptr<ReplayReader>>& runs,
                                     const CompareOptions& o) {
  if (!o.labels.empty()) {
    if (o.labels.size() != runs.size())
      throw Error(ErrorKind::kUsage,
                  fmt::format("--labels: {} names for {} runs", o.labels.size(), runs.size()));
    return o.labels;
  }
  std::vector<std::string> methods, folders;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    methods.push_back(runs[k]->header().method);
    folders.push_back(fs::path(o.folders[k]).lexically_normal().filename().string());
    if (folders.back().empty()) folders.back() = fs::path(o.folders[k]).parent_path().filename().string();
  }
  auto distinct = [](std::vector<std::string> v) {
    std::sort(v.begin(), v.end());
    return std::adjacent_find(v.begin(), v.end()) == v.end();
  };
  if (distinct(methods)) return methods;
  if (distinct(folders)) return folders;
  return o.folders;
}

void print_text(const view::Comparison& c, const std::vector<std::string>& labels) {
  std::size_t width = 3;
  for (const std::string& l : labels) width = std::max(width, l.size());
  auto number = [](double v) { return std::isfinite(v) ? view::short_number(v) : std::string("-"); };
  const view::Cost& reference = c.costs[0];
  const auto percent = [&](double v) { return std::isfinite(v) ? fmt::format("{:.3g} %", 100 * v) : "-"; };
  fmt::print("{:<{}}  {:>8}  {:>12}  {:>9}  {:>10}  {:>9}  {:>10}  {:>8}  {:>10}  {:>10}\n", "run", width,
             "faster", "s/simulated s", "ms/step", "95% below", "step [s]", "unknowns", "nodes", "energy",
             "amplitude");
  for (const view::Cost& k : c.costs)
    fmt::print("{:<{}}  {:>8}  {:>13}  {:>9}  {:>10}  {:>9}  {:>10}  {:>8}  {:>10}  {:>10}\n", k.label, width,
               number(reference.s_per_second / k.s_per_second), number(k.s_per_second), number(k.ms_per_step),
               number(k.ms_p95), number(k.h), number(k.dofs), k.nodes,
               std::isfinite(k.energy_change) ? fmt::format("{:+.3g} %", 100 * k.energy_change) : "-",
               percent(k.amplitude / reference.amplitude));
  fmt::print(
      "faster: by simulated time; energy: change of the total, of the largest kinetic; amplitude: of node {} "
      "in the second half, of that of {}\n",
      c.swinging, labels[0]);
  fmt::print("\ndistance to {} [m]\n{:<{}}  {:>10}  {:>9}  {:>10}  {:>10}  {:>10}\n", labels[0], "run", width,
             "largest", "at t [s]", "at node", "RMS max", "RMS mean");
  for (std::size_t k = 1; k < labels.size(); ++k) {
    const view::Distance& d = c.distance[k];
    const auto worst = static_cast<std::size_t>(std::max_element(d.max.begin(), d.max.end()) - d.max.begin());
    double sum = 0;
    for (double r : d.rms) sum += r;
    fmt::print("{:<{}}  {:>10}  {:>9}  {:>10}  {:>10}  {:>10}\n", labels[k], width, number(d.max[worst]),
               number(d.t[worst]), d.node[worst], number(*std::max_element(d.rms.begin(), d.rms.end())),
               number(sum / static_cast<double>(d.rms.size())));
  }
}

void print_json(const view::Comparison& c, const std::vector<std::string>& labels) {
  nlohmann::json out = nlohmann::json::array();
  auto number = [](double v) { return std::isfinite(v) ? nlohmann::json(v) : nlohmann::json(); };
  for (std::size_t k = 0; k < labels.size(); ++k) {
    const view::Cost& cost = c.costs[k];
    nlohmann::json run{{"label", labels[k]},
                       {"method", cost.method},
                       {"nodes", cost.nodes},
                       {"steps", cost.steps},
                       {"unknowns", number(cost.dofs)},
                       {"ms_per_step", number(cost.ms_per_step)},
                       {"ms_p95", number(cost.ms_p95)},
                       {"step_s", number(cost.h)},
                       {"s_per_simulated_s", number(cost.s_per_second)},
                       {"times_faster", number(c.costs[0].s_per_second / cost.s_per_second)},
                       {"energy_change", number(cost.energy_change)},
                       {"amplitude", number(cost.amplitude)}};
    if (k > 0)
      run["distance"] = {{"t", c.distance[k].t},
                         {"max", c.distance[k].max},
                         {"rms", c.distance[k].rms},
                         {"node", c.distance[k].node}};
    out.push_back(std::move(run));
  }
  fmt::print("{}\n", out.dump(2));
}

int compare(const CompareOptions& o) {
  std::vector<std::unique_ptr<ReplayReader>> runs;
  std::vector<const ReplayReader*> list;
  for (const std::string& folder : o.folders) {
    runs.push_back(std::make_unique<ReplayReader>(view::find_recording(folder)));
    list.push_back(runs.back().get());
    if (const std::string damage = runs.back()->damage(); !damage.empty())
      fmt::print(stderr, "limber: {}: {}\n", folder, damage);
  }
  const std::vector<std::string> labels = make_labels(runs, o);
  const view::Comparison result = view::compare_runs(list, labels);
  if (o.json)
    print_json(result, labels);
  else
    print_text(result, labels);
  if (!o.page) return 0;
  view::PageOptions options;
  options.max_bytes = o.max_mb * 1e6;
  const view::PageReport report = view::write_compare_page(list, labels, result, o.output, options);
  for (const std::string& n : report.notices) fmt::print(stderr, "limber: {}\n", n);
  if (!o.json) fmt::print("\n{}: {:.1f} MB\n", o.output, static_cast<double>(report.bytes) / 1e6);
  if (o.open) view::open_in_browser(fs::absolute(o.output).string());
  return 0;
}

}  // namespace

void add_compare_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command =
      app.add_subcommand("compare", "Show two or more runs of the same mesh against each other");
  auto o = std::make_shared<CompareOptions>();
  command->add_option("folders", o->folders, "Output folders; the first one is the reference")
      ->required()
      ->expected(2, 8);
  command->add_option("-o,--output", o->output, "The page to write")->capture_default_str();
  command->add_option("--labels", o->labels, "Names of the runs (default: their methods)")->delimiter(',');
  command->add_flag("!--no-page", o->page, "Print the numbers only");
  command->add_flag("--json", o->json, "Print the numbers as JSON, with the distances over time");
  command->add_flag("--open", o->open, "Open the page in the browser");
  command->add_option("--max-mb", o->max_mb, "Largest size of the page [MB]")
      ->check(more_than_zero())
      ->capture_default_str();
  command->callback([&action, o] { action = [o] { return compare(*o); }; });
}

}  // namespace limber
