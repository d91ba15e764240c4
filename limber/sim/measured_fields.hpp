// What frames (/output/fields) and probes can ask for of one moment, each computed when it is first asked
// for.
#pragma once

#include <limber/sim/nodal_forces.hpp>
#include <limber/sim/simulation.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace limber {

class MeasuredFields {
 public:
  // `input`: forces, held nodes and activation that go with the state of the simulation. Both must outlive
  // it.
  MeasuredFields(const Simulation& simulation, const StepInput& input)
      : simulation_(simulation), input_(input) {}

  // By name: per node "position", "displacement", "velocity", "force", "reaction", "contact_force" (3 numbers
  // each), "mass"; per element "energy_density", "volume_ratio", "von_mises", "principal_stress" (3),
  // "cauchy_stress" (6), "strain" (6), "principal_stretches" (3).
  const Field& get(const std::string& name);
  const NodalForces& forces();

  static bool of_elements(const std::string& name);
  static const char* unit(const std::string& name);
  // What the components are called: "x", "xy", "1"; one empty name for a plain number.
  static std::vector<std::string> components(const std::string& name);

 private:
  Field compute(const std::string& name);
  const std::vector<Mat3>& gradients();
  const std::vector<std::array<double, 6>>& stresses();

  const Simulation& simulation_;
  const StepInput& input_;
  std::map<std::string, Field> fields_;
  std::optional<NodalForces> forces_;
  std::optional<std::vector<Mat3>> F_;
  std::optional<std::vector<std::array<double, 6>>> stress_;
};

}  // namespace limber
