// A mesh and a force of one's own: a ring with a gap, made by bending a bar, is held at one end; a spring
// that the library knows nothing about pulls the other end along a circle and then lets go. Recorded as
// `limber run` records.
//   own-mesh [FOLDER]     (out/ring)
#include <limber/limber.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numbers>

using namespace limber;

namespace {

// Any tetrahedra do (those that are inside out are turned when they are read): here a straight bar, bent
// around z.
TetMesh make_ring() {
  TetMesh mesh = make_box({1, 0.03, 0.03}, {61, 4, 4});
  for (Vec3& x : mesh.nodes) {
    const double angle = 1.8 * std::numbers::pi * x[0], radius = 0.1 + x[1];
    x = Vec3(radius * std::sin(angle), -radius * std::cos(angle), x[2]);
  }
  return mesh;
}

constexpr const char* kScene = R"({
  "limber": 1,
  "name": "ring",
  "time": {"step": 0.005, "end": 1},
  "gravity": [0, 0, 0],
  "method": {"type": "implicit", "integrator": "bdf2"},
  "bodies": [{"name": "ring", "mesh": "ring.msh", "material": {"young": 3e5, "poisson": 0.4, "density": 1000}}],
  "constraints": [{"nodes": {"set": "x0"}}],
  "output": {"every": 2}
})";

}  // namespace

int main(int argc, char** argv) try {
  const std::filesystem::path output = argc > 1 ? argv[1] : "out/ring";
  std::filesystem::create_directories(output.parent_path() / "ring-inputs");
  const std::filesystem::path inputs = output.parent_path() / "ring-inputs";
  write_msh((inputs / "ring.msh").string(), make_ring());
  const auto scene = std::make_shared<const Scene>(read_scene(kScene, (inputs / "ring.json").string()));

  Simulation simulation(scene);
  RunFolder folder(*scene, {.folder = output, .overwrite = true});
  describe_run(simulation, {}, simulation.total_steps(), folder);
  Recorder recorder(folder, simulation);
  recorder.begin();
  const std::vector<Index>& end = simulation.model().node_sets.at("ring/x1");
  const VecX rest = simulation.state().x;
  while (!simulation.done()) {
    // The force of the next step: springs from the free end to a point that goes round, until t = 0.5 s.
    Guidance guidance;
    if (const double t = simulation.time(); t < 0.5) {
      const double angle = 2 * std::numbers::pi * t / 0.5;
      const Vec3 offset(0.08 * std::sin(angle), 0, 0.08 * (1 - std::cos(angle)));
      guidance.force.setZero(rest.size());
      for (const Index i : end)
        node(guidance.force, i) = 4.0 * (node(rest, i) + offset - node(simulation.state().x, i));
    }
    simulation.set_guidance(std::move(guidance));
    const auto start = std::chrono::steady_clock::now();
    const StepReport report = simulation.step();
    recorder.record(report, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  recorder.finish("finished");
  std::printf("%d nodes, largest displacement %.4f m\nhash %s\n", simulation.model().nodes(),
              recorder.diagnostics().max_displacement, to_hex(hash_state(simulation.state())).c_str());
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return e.exit_code();
}
