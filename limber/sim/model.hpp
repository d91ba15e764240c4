// All that is constant in one epoch of a run: bodies, elements, masses, names, the resolved script. A cut
// makes a new Model; nothing ever edits one.
#pragma once

#include <limber/contact/detect.hpp>
#include <limber/fem/elements.hpp>
#include <limber/scene/scene.hpp>
#include <limber/sim/state.hpp>
#include <limber/sim/stepper.hpp>

#include <memory>
#include <string>
#include <vector>

namespace limber {

namespace rigid {
struct Articulation;
struct LinkSurfaces;
}  // namespace rigid

struct EmbeddedSurface;

struct IndexRange {
  Index begin = 0, end = 0;
  Index size() const { return end - begin; }
};

struct Body {
  std::string name;
  IndexRange elements;  // of the model's elements
  ElementKind kind = ElementKind::kTetrahedron;
};

// Scene constraints and forces with their nodes looked up.
struct Hold {
  std::size_t constraint;  // index into Scene::constraints
  std::vector<Index> nodes;
};
struct Load {
  std::size_t force;  // index into Scene::forces
  std::vector<Index> nodes;
  double mass = 0;  // of the nodes together [kg]
  // Of each of the nodes [m/s^2], in place of the one acceleration that Scene::forces has for all; empty:
  // that one holds. Forces per node are in it too, over the nodes' masses, so that copies of a node share its
  // force.
  std::vector<Vec3> acceleration;
};

struct Probe {
  std::size_t probe;         // index into Scene::probes
  std::vector<Index> items;  // nodes or elements, as its value asks for
};

// One connected piece of material.
struct Piece {
  std::vector<Index> nodes;
  double mass = 0;  // [kg]
};

struct Model {
  std::shared_ptr<const Scene> scene;
  std::vector<Body> bodies;
  fem::ElementInput mesh;  // rest positions, elements, materials
  std::shared_ptr<const fem::Elements> elements;
  std::shared_ptr<const BlockPattern> pattern;
  VecX mass;                          // lumped, 3n: one entry per degree of freedom [kg]
  std::vector<Index> body_of_node;    // index into bodies
  std::vector<Index> origin;          // node -> node of epoch 0 that it is a copy of
  VecX velocity;                      // initial, 3n, without the bodies' spin [m/s]
  IndexSets node_sets, element_sets;  // "body/set" -> ids in the model
  std::vector<Hold> holds;
  std::vector<Load> loads;
  std::vector<Probe> probes;
  std::vector<std::shared_ptr<const EmbeddedSurface>> embedded;  // sim/embedded_surface.hpp
  std::vector<std::string> activations;                          // channel names
  std::vector<Piece> pieces;
  std::vector<Index> piece_of_node;
  ContactModel contact;
  // Links and joints, and the triangles they are drawn with; null when the scene has none.
  std::shared_ptr<const rigid::Articulation> articulation;
  std::shared_ptr<const rigid::LinkSurfaces> link_surfaces;
  std::vector<std::string> notices;  // what a user should know about the scene, one line each
  double size = 1;                   // diagonal of the bounding box at rest, links included [m]

  Index nodes() const { return static_cast<Index>(mesh.rest.size()); }
};

// Reads the meshes and looks everything up. Throws Error(kInput) with all that is wrong with the scene's
// references.
Model build_model(std::shared_ptr<const Scene> scene);

// The state at time 0.
State initial_state(const Model& model);

// What a cut did.
struct CutSummary {
  Index faces = 0;      // separated
  Index new_nodes = 0;  // duplicated
};

// Event `event` of the scene as a change of the topology.
TopologyChange cut_of_event(const Model& model, std::size_t event, CutSummary& summary);

// What the script says about the step from t to t + h: external forces, held degrees of freedom and their
// velocities, fibre activation. A held node follows its motion keys exactly, whatever moved it before.
void script_input(const Model& model, const State& state, double h, StepInput& input);

}  // namespace limber
