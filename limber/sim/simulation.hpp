// The outer loop, thin: script, events, step, watch.
#pragma once

#include <limber/sim/method.hpp>
#include <limber/sim/model.hpp>
#include <limber/sim/script.hpp>

#include <memory>
#include <string>
#include <vector>

namespace limber {

// Energies and momenta of a state, measured the same way for every method.
struct Diagnostics {
  // [J]; links and their springs included; gravity is potential energy, zero at the origin
  double kinetic = 0, elastic = 0, gravity = 0;
  double contact = 0;  // of the penalty springs [J]
  double total() const { return kinetic + elastic + gravity + contact; }
  Vec3 momentum = Vec3::Zero();          // [kg m/s]
  Vec3 angular_momentum = Vec3::Zero();  // about the origin [kg m^2/s]
  Vec3 center_of_mass = Vec3::Zero();    // [m]
  double max_displacement = 0;           // from the rest shape [m]
  double max_speed = 0;                  // [m/s]
};
Diagnostics measure(const Model& model, const State& state, const std::vector<double>& activation);

class Simulation {
 public:
  // Builds the model and prepares the scene's method (sim/method.hpp), which is made again after every change
  // of topology.
  explicit Simulation(std::shared_ptr<const Scene> scene, Preparation preparation = {});

  // Takes over a state from a checkpoint. Throws Error(kInput) when something in it does not fit the scene or
  // the method; the simulation is then as it was.
  void restore(const State& state);

  // One step, with the events and changes of topology that are due before it. Throws Error(kSimulation) that
  // names step, time and cause when the step fails; the state is then the one before the step.
  StepReport step();

  bool done() const { return state_.step >= total_steps(); }  // the scene's end time is reached
  std::int64_t total_steps() const;                           // from 0 to the end time
  const Scene& scene() const { return *scene_; }
  const Method& method() const { return *method_; }
  const Model& model() const { return *model_; }
  // With positions and velocities of all nodes, which a reduced method computes only now; the next three cost
  // nothing.
  const State& state() const;
  std::int64_t steps_done() const { return state_.step; }
  double time() const { return state_.t; }  // [s]
  std::int64_t epoch() const { return state_.epoch; }
  const StepInput& input() const { return script_->input(); }  // of the last step
  MethodFields fields() const { return stepper_->fields(*model_, state()); }
  bool reduced() const { return stepper_->reduced(); }  // see Stepper
  // Messages about events since the last call ("cut ... separated 120 faces"), for the log.
  std::vector<std::string> take_notices();

 private:
  std::unique_ptr<Stepper> make_stepper(const Model& model) const;
  void use(std::shared_ptr<const Model> model, std::unique_ptr<Stepper> stepper);
  void apply(const TopologyChange& change);
  void apply_event(std::size_t event);
  void apply_due_changes();
  void watch_nodes(StepReport& report) const;
  [[noreturn]] void fail(const std::string& why) const;

  std::shared_ptr<const Scene> scene_;
  const Method* method_;
  Preparation preparation_;
  std::shared_ptr<const Model> base_, model_;  // of epoch 0, and of now
  std::unique_ptr<Script> script_;
  std::unique_ptr<Stepper> stepper_;
  mutable State state_;
  mutable bool behind_ = false;  // the nodes have not been moved since the last step of a reduced method
  State before_;                 // a step, where the method needs it
  std::vector<std::string> notices_;
  bool inverted_ = false;  // said so already
};

}  // namespace limber
