// The outer loop, thin: script, events, step, watch.
#pragma once

#include <limber/core/error.hpp>
#include <limber/sim/method.hpp>
#include <limber/sim/model.hpp>
#include <limber/sim/script.hpp>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace limber {

// Of the nodes and links, with lumped masses and the elements' energy.
Diagnostics measure(const Model& model, const State& state, const std::vector<double>& activation);

// What a program adds to the scene's script between steps. Members of size 0 add nothing.
struct Guidance {
  VecX force;                       // on the nodes, beside the script's, 3n [N]
  std::vector<std::uint8_t> fixed;  // 3n: 1 where the program holds it, whatever the script says
  VecX fixed_velocity;              // and its velocity, 3n [m/s]
};

// A step that failed: the parts of the message.
class StepFailure : public Error {
 public:
  StepFailure(std::int64_t step, double t, std::string why, std::string remedy);
  std::int64_t step;        // the step before which the state is now
  double t;                 // [s]
  std::string why, remedy;  // what and where, and what to try
};

class Simulation {
 public:
  // Builds the model and prepares the scene's method (sim/method.hpp), which is made again after every change
  // of topology.
  explicit Simulation(std::shared_ptr<const Scene> scene, Preparation preparation = {});

  // Takes over a state from a checkpoint. Throws Error(kInput) when something in it does not fit the scene or
  // the method; the simulation is then as it was.
  void restore(const State& state);

  // One step, with the events and changes of topology that are due before it. Throws StepFailure
  // (Error(kSimulation)) when the step fails; the state is then the one before the step and all of them.
  StepReport step();

  // Other positions and velocities, 3n each [m, m/s], between two steps. What the method remembers of earlier
  // steps and the anchors of friction belong to the old ones and are dropped. Throws Error(kUsage) when the
  // sizes do not fit, a number is not finite, or the method moves other unknowns than the nodes.
  void set_motion(const VecX& x, const VecX& v);
  // Forces and held degrees of freedom beside the script's, from the next step on until they are replaced. A
  // change of topology, after which nodes have other numbers, drops them with a notice. They are no part of a
  // checkpoint: a program that goes on from one sets them again. Throws Error(kUsage) when something in them
  // does not fit.
  void set_guidance(Guidance guidance);
  const Guidance& guidance() const { return guidance_; }

  // A force that begins now or later, or an event, as if the scene had had it from the beginning: a run of
  // that scene does the same to the last bit. Nodes are those of the scene's meshes. Throws Error(kInput)
  // when it does not fit, Error(kUsage) when it would have acted before.
  std::size_t add_force(ForceSpec force);
  void add_event(EventSpec event);
  // Takes back events from number `first` on that have not happened (one could not: the step that tried has
  // thrown). How many.
  std::size_t withdraw_events(std::size_t first);
  // The same for a spring's force: where it pulls to at a later time, and when it ends.
  void pull(std::size_t force, double t, const Vec3& point);
  void release(std::size_t force);

  bool done() const { return state_.step >= total_steps(); }  // the scene's end time is reached
  std::int64_t total_steps() const;                           // from 0 to the end time
  const Scene& scene() const { return *scene_; }              // with what events have set
  const Method& method() const { return *method_; }
  const Model& model() const { return *model_; }
  // With positions and velocities of all nodes, which a reduced method computes only now; the next three cost
  // nothing.
  const State& state() const;
  std::int64_t steps_done() const { return state_.step; }
  double time() const { return state_.t; }  // [s]
  std::int64_t epoch() const { return state_.epoch; }
  // Counts the models there have been: topologies, and materials or methods that events have set.
  std::int64_t model_number() const { return state_.epoch + remade_; }
  // Of the last step.
  const StepInput& input() const { return used_guidance_ ? guided_input_ : script_->input(); }
  MethodFields fields() const { return stepper_->fields(*model_, state()); }
  StepForces forces() const { return stepper_->forces(*model_, state()); }
  // Velocities at the start of the last step, 3n [m/s]; empty: there was none, or a reduced method's scene
  // asks for no reactions.
  const VecX& velocity_before() const { return before_.v; }
  bool reduced() const { return stepper_->reduced(); }  // see Stepper, also for the next three
  const MatX* basis() const { return stepper_->basis(); }
  const VecX* coordinates() const { return stepper_->coordinates(state_); }
  const VecX* velocity_coordinates() const { return stepper_->velocity_coordinates(state_); }
  // Energies and momenta of now: measure() above, put right by a method whose motion is more than its nodes'.
  Diagnostics measured(const std::vector<double>& activation) const;
  // Messages about events since the last call ("cut ... separated 120 faces"), for the log.
  std::vector<std::string> take_notices();

 private:
  std::unique_ptr<Stepper> make_stepper(const Model& model) const;
  void use(std::shared_ptr<Model> model, std::unique_ptr<Stepper> stepper);
  void apply(const TopologyChange& change);
  void apply_event(std::size_t event);
  void apply_setting(std::size_t event);
  void cut(std::size_t event);
  void apply_due_changes();
  void keep_start();
  void take_back();
  StepReport step_part(double h);
  void watch_nodes(StepReport& report) const;
  bool guided() const { return guidance_.force.size() > 0 || !guidance_.fixed.empty(); }
  const StepInput& guide(const StepInput& script);
  [[noreturn]] void fail(const std::string& why) const;

  std::shared_ptr<Scene> scene_, start_;  // of now, and before events have set anything
  const Method* method_;
  Preparation preparation_;
  std::shared_ptr<Model> base_, model_;  // of epoch 0, and of now
  std::int64_t remade_ = 0;              // models, by events
  std::unique_ptr<Script> script_;
  std::unique_ptr<Stepper> stepper_;
  mutable State state_;
  mutable bool behind_ = false;  // the nodes have not been moved since the last step of a reduced method
  State before_;                 // a step, where the method needs it
  bool copied_ = false;          // before_ is that of the step to come
  std::optional<State> kept_;    // from before the step, once it has changed more than that
  bool wants_reactions_;  // output or probes of the scene: a reduced method's velocities are looked at too
  Guidance guidance_;
  StepInput guided_input_;
  bool used_guidance_ = false;  // in the last step
  std::vector<std::string> notices_;
  bool inverted_ = false;  // said so already
};

}  // namespace limber
