// The one virtual interface of Limber: a method advances the state by one step.
#pragma once

#include <limber/contact/contact_force.hpp>
#include <limber/core/phase_clock.hpp>
#include <limber/core/types.hpp>
#include <limber/sim/diagnostics.hpp>
#include <limber/sim/state.hpp>
#include <limber/sim/topology.hpp>

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace limber {

struct Model;

// What the scene's script says about the step from t to t + h.
struct StepInput {
  double t = 0, h = 0;              // [s]
  Vec3 gravity = Vec3::Zero();      // [m/s^2]
  VecX force;                       // external nodal forces other than gravity, 3n [N]
  std::vector<std::uint8_t> fixed;  // 3n: 1 where the degree of freedom is pinned or scripted
  VecX fixed_velocity;              // 3n: its velocity over the step [m/s]; zero where free
  std::vector<double> activation;   // fibre activation per channel
  // The same without nodes: whether each hold of the model is active, and the share of each load that acts.
  std::vector<std::uint8_t> holding;
  std::vector<double> loading;
};

enum class StepStatus { kOk, kFailed };

struct StepReport {
  StepStatus status = StepStatus::kOk;
  std::string why;       // of a failure: what, where (node, element), and what to try
  Index dofs = 0;        // unknowns of this step's system
  Index iterations = 1;  // linear solves or Newton iterations
  double residual = 0;   // force residual [N] after the step, where the method knows it
  Index contacts = 0;
  Index inverted = 0;          // elements with det F <= 0 at the start of the step
  long symbolic_analyses = 0;  // so far in this epoch
  // [J]: "kinetic", "elastic", "gravity", "contact" after the step, where the method knows them: rows between
  // two measurements (/output/measure_every) have these.
  std::map<std::string, double> energy;
  std::map<std::string, double> extra;                 // further columns of steps.csv, by method
  std::vector<std::string> warnings;                   // what a user should hear about this step
  std::map<std::string, int> fallbacks;                // every deviation from the plain step: name -> count
  std::vector<std::pair<std::string, double>> phases;  // seconds per phase
};

// Per-node, per-element or per-link numbers of a method for output and viewer (dynamic nodes, liveliness,
// ...).
struct MethodFields {
  std::map<std::string, std::vector<double>> node;     // one number per node
  std::map<std::string, std::vector<double>> element;  // one number per element
  std::map<std::string, std::vector<double>> link;     // one number per link
  std::map<std::string, std::string> units;            // of those that have one
  std::set<std::string> constant;    // fields of nodes or elements: the same as long as the topology is
  std::vector<std::string> regions;  // what the numbers 1, 2, ... of the element field "region" are called
};

// What only the method knows about the forces of its last step, for output (sim/nodal_forces.hpp).
struct StepForces {
  bool inertia = true;         // its equations have inertia and damping
  bool contact_known = false;  // `contact` holds all contacts; else they are springs at the end of the step
  std::vector<ContactForce> contact;
};

class Stepper {
 public:
  virtual ~Stepper() = default;
  virtual StepReport step(const Model& model, State& state, const StepInput& input) = 0;
  virtual MethodFields fields(const Model&, const State&) const { return {}; }
  virtual StepForces forces(const Model&, const State&) const { return {}; }

  // Puts right what was measured at the nodes, where the motion is more than that of nodes with lumped masses
  // on the model's rest shape (cloth that slides through its nodes, energies of its own).
  virtual void measure(const Model&, const State&, Diagnostics&) const {}

  // What in the method's memory does not fit the model, of a state that comes from a file; empty: all fits.
  virtual std::string misfit(const Model&, const State&) const { return {}; }

  // Asked before each step of the scene: into how many equal parts it is to be cut (what moves too far in one
  // go needs a change of topology in between). May write to its memory.
  virtual int parts(const Model&, State&) { return 1; }

  // Asked before each step and each part of one: a change of the topology that is to come first.
  virtual std::optional<TopologyChange> change(const Model&, const State&) { return std::nullopt; }
  // The topology has changed (`state` is of the new model, its memory of the old one): takes over what is
  // still good. By default the memory is dropped.
  virtual void carry(const Model&, const TopologyChange&, State& state) const { state.memory = {}; }

  // A method whose unknowns are not the nodes need not move these in every step. It then says true here:
  // step() changes the memory, leaves x and v alone and the state as it was when it fails; expand() brings x
  // and v up to the memory, when somebody wants to see them. What step() does must not depend on when that
  // was.
  virtual bool reduced() const { return false; }
  // Whether it wants `force`, `fixed` and `fixed_velocity` of its input. A reduced method that can do with
  // `holding` and `loading` says false: moving holds then cost no look at the nodes.
  virtual bool nodal_input() const { return true; }
  // Of a reduced method whose nodes are x = X + Phi u: Phi, one row a node, u, three numbers for each of its
  // columns, and du/dt. Recordings then hold these instead of positions and velocities. Null: it has none.
  virtual const MatX* basis() const { return nullptr; }
  virtual const VecX* coordinates(const State&) const { return nullptr; }
  virtual const VecX* velocity_coordinates(const State&) const { return nullptr; }
  virtual void expand(const Model&, State&) const {}
};

}  // namespace limber
