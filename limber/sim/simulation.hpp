// The outer loop, thin: script, events, step, watch.
#pragma once

#include <limber/sim/model.hpp>
#include <limber/sim/stepper.hpp>

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
  // `make` builds the scene's method (methods/methods.hpp: make_stepper); it is called again after every
  // topology change.
  using MakeStepper = std::unique_ptr<Stepper> (*)(const Scene&);
  Simulation(std::shared_ptr<const Scene> scene, MakeStepper make);

  // Takes over a state from a checkpoint: replays its topology changes, then continues from it.
  void restore(const State& state);

  // One step, with the events that are due before it. Throws Error(kSimulation) that names step, time and
  // cause when the step fails; the state is then the one before the step.
  StepReport step();

  bool done() const;                 // the scene's end time is reached
  std::int64_t total_steps() const;  // from 0 to the end time
  const Scene& scene() const { return *scene_; }
  const Model& model() const { return *model_; }
  const State& state() const { return state_; }
  const StepInput& input() const { return input_; }  // of the last step
  MethodFields fields() const { return stepper_->fields(*model_, state_); }
  // Messages about events since the last call ("cut ... separated 120 faces"), for the log.
  std::vector<std::string> take_notices();

 private:
  void apply_event(std::size_t event, bool quiet);
  void apply_due_events();

  std::shared_ptr<const Scene> scene_;
  std::unique_ptr<Model> model_;
  State state_;
  StepInput input_;
  MakeStepper make_;
  std::unique_ptr<Stepper> stepper_;
  std::vector<std::string> notices_;
};

}  // namespace limber
