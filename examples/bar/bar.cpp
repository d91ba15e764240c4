// A bar in thirty lines: held at one end, it swings under gravity on four dynamic nodes.
#include <limber/limber.hpp>

#include <cstdio>

constexpr const char* kScene = R"({
  "limber": 1,
  "time": {"step": 0.005, "end": 0.5},
  "gravity": [0, 0, -9.81],
  "method": {"type": "conjac", "dynamic": [{"auto": 4}]},
  "bodies": [{"mesh": {"shape": "bar", "size": [0.14, 0.04, 0.04], "nodes": [15, 5, 5]},
              "material": {"young": 2e4, "poisson": 0.4, "density": 1000}}],
  "constraints": [{"nodes": {"set": "x0"}}]
})";

int main() try {
  const auto scene = std::make_shared<const limber::Scene>(limber::read_scene(kScene, "bar.json"));
  limber::Simulation simulation(scene);
  const limber::Index tip = simulation.model().node_sets.at("bar/x1").front();
  while (!simulation.done()) {
    simulation.step();
    if (simulation.steps_done() % 10 != 0) continue;
    const limber::Diagnostics d = measure(simulation.model(), simulation.state(), {});
    std::printf("t = %.2f s  tip at z = %+.4f m  energy %.6f J\n", simulation.time(),
                limber::node(simulation.state().x, tip).z(), d.total());
  }
  std::printf("hash %s\n", limber::to_hex(hash_state(simulation.state())).c_str());
} catch (const limber::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return e.exit_code();
}
