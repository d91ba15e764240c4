#include <limber/sim/describe_run.hpp>

#include <limber/core/build_info.hpp>
#include <limber/core/instruction_set.hpp>
#include <limber/core/parallel.hpp>
#include <limber/io/file.hpp>
#include <limber/sim/hash.hpp>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace limber {
namespace {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

void describe_run(const Simulation& simulation, const std::vector<std::string>& overrides,
                  std::int64_t target, RunFolder& folder) {
  const Model& model = simulation.model();
  const Libraries libs = libraries();
  nlohmann::ordered_json& manifest = *folder.manifest;
  manifest["limber"] = version();
  manifest["commit"] = commit();
  manifest["compiler"] = compiler() + ", " + build_type();
  manifest["host"] = host_name();
  manifest["cpu"] = cpu_name();
  manifest["kernels"] = name(instruction_set());
  manifest["suitesparse"] = libs.suitesparse;
  manifest["threads"] = threads();
  manifest["method"] = simulation.scene().method;
  manifest["overrides"] = overrides;
  manifest["nodes"] = model.nodes();
  manifest["elements"] = model.mesh.elements.size();
  manifest["step_s"] = simulation.scene().h;
  manifest["target_steps"] = target;
  if (!manifest.contains("started"))
    manifest["started"] = utc_now();
  else
    manifest["resumed"].push_back({{"at", utc_now()}, {"step", simulation.state().step}});
}

void dump_failure(const RunFolder& folder, const Simulation& simulation, const std::string& why) {
  Checkpoint c;
  c.state = simulation.state();
  c.method = simulation.scene().method;
  c.scene_hash = folder.scene_hash();
  *c.notes = {{"why", why}, {"limber", version()}, {"commit", commit()}};
  write_checkpoint(folder.file("failure.lmc"), c);
  StepInput input;
  script_input(simulation.model(), c.state, simulation.scene().h, input);
  const Diagnostics d = simulation.measured(input.activation);
  nlohmann::ordered_json report{{"why", why},
                                {"step", c.state.step},
                                {"t", c.state.t},
                                {"hash", to_hex(hash_state(c.state))},
                                {"kinetic_energy", d.kinetic},
                                {"elastic_energy", d.elastic},
                                {"max_speed", d.max_speed},
                                {"max_displacement", d.max_displacement},
                                {"commit", commit()},
                                {"note", "the state before the step that failed is in failure.lmc"}};
  write_file_atomic(folder.file("failure.json").string(), report.dump(2) + "\n");
}

std::string place_of(const Model& model, Index i) {
  const Vec3 p = model.mesh.rest[i];
  const std::string& body = model.bodies[model.body_of_node[i]].name;
  const std::vector<Index>* smallest = nullptr;
  std::string set;
  for (const auto& [name, nodes] : model.node_sets)
    if (name.starts_with(body + "/") && (!smallest || nodes.size() < smallest->size()) &&
        std::find(nodes.begin(), nodes.end(), i) != nodes.end()) {
      smallest = &nodes;
      set = fmt::format(", set \"{}\"", name.substr(body.size() + 1));
    }
  return fmt::format("body \"{}\"{} at ({:.3g}, {:.3g}, {:.3g})", body, set, p.x(), p.y(), p.z());
}

std::string followed_text(const Model& model, const StepReport& report) {
  const auto below = report.extra.find("followed_below"), missed = report.extra.find("missed_node");
  if (below == report.extra.end() || missed == report.extra.end()) return {};
  return fmt::format("what is slower than {:.3g} Hz; {}, which swings at {:.3g} Hz, is not followed",
                     below->second, place_of(model, static_cast<Index>(missed->second)), below->second);
}

}  // namespace limber
