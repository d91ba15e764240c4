// A scene as plain data: parsed, defaulted, validated. It describes and never steps. SI units throughout.
#pragma once

#include <limber/core/motion.hpp>
#include <limber/core/types.hpp>
#include <limber/io/boxed_json.hpp>
#include <limber/material/material.hpp>

#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace limber {

// Which nodes or elements: exactly one of the members that are not `not_`, or several which must all hold.
// JSON: "all", {"set": "name"}, {"ids": [..]}, {"box": {"min": .., "max": ..}}, {"sphere": {"center": ..,
// "radius": ..}},
// {"capsule": {"point": .., "end": .., "radius": ..}}, {"plane": {"point": .., "normal": ..}} (the side the
// normal points to), {"nearest": [[x,y,z], ..]},
// {"formula": "z > 0.1"}, {"any": [..]}, {"every": [..]}, {"not": ..}. Positions are rest positions after the
// body's transform.
struct Selection {
  std::string kind = "all";  // "all", "set", "ids", "box", "sphere", "capsule", "plane", "nearest",
                             // "formula", "any", "every", "not"
  std::string name;          // set, or the formula's text
  std::vector<Index> ids;
  Vec3 a = Vec3::Zero(), b = Vec3::Zero();  // box min/max; sphere center; capsule ends; plane point/normal
  double radius = 0;
  std::vector<Vec3> points;
  std::vector<Selection> parts;
  std::string where = {};  // "scene.json:14: /constraints/0/nodes", for messages
};

// Which numbers are allowed; an open end excludes the bound itself.
struct Range {
  double min = -std::numeric_limits<double>::infinity(), max = std::numeric_limits<double>::infinity();
  bool min_open = false, max_open = false;

  bool holds(double value) const {
    return (min_open ? value > min : value >= min) && (max_open ? value < max : value <= max);
  }
};

// A number that may vary over a body: a constant, a formula of the rest position (x, y, z), or an array in a
// file or mesh field.
struct Varying {
  std::optional<double> value;
  std::string formula = {};
  std::string file = {};              // text or .npy file with one number per element
  std::string field = {};             // element field of the mesh file
  Range range = {};                   // every value must be inside
  std::string unit = {}, where = {};  // for messages: "Pa", "scene.json:14: /bodies/0/material/young"
};

// A vector that may differ from node to node: a constant, three formulas of the rest position (x, y, z), or
// three numbers per node from the scene, a file or a mesh field.
struct NodeVectors {
  NodeVectors() = default;
  NodeVectors(double x, double y, double z) : value(x, y, z) {}

  Vec3 value = Vec3::Zero();
  std::array<std::string, 3> formula = {};
  std::vector<Vec3> values = {};      // one per node of the body, or
  std::string file = {}, field = {};  // text or .npy file, node field of the mesh file
  std::string where = {};             // for messages: "scene.json:14: /bodies/0/velocity"

  bool varies() const { return !formula[0].empty() || !values.empty() || !file.empty() || !field.empty(); }
};

struct FibreSpec {
  FibreModel model = FibreModel::kNone;
  Varying stiffness{0.0};              // [Pa]
  std::optional<Vec3> direction;       // constant direction, or
  std::array<std::string, 3> formula;  // three formulas of x, y, z, or
  std::string field, file;             // a 3-component element field of the mesh, or a text/.npy file
  std::string activation;              // name of the activation channel; empty: none
  std::string where;                   // of the direction, for messages
};

struct MaterialSpec {
  MaterialModel model = MaterialModel::kStableNeoHookean;
  std::shared_ptr<const material::InvariantEnergy> energy;  // of kInvariants
  Varying young{1e5}, poisson{0.4}, density{1000.0};
  std::optional<FibreSpec> fibre;
};

// Overrides of the body's material where the selection (of elements, by centroid for geometric kinds) holds.
struct RegionSpec {
  Selection elements;
  std::optional<Varying> young, poisson, density;
  std::optional<FibreSpec> fibre;
  std::string name;  // becomes an element set
};

struct GenerateSpec {
  std::string shape;  // "box", "bar", "sphere", "capsule", "cylinder", "torus", "rectangle" (triangles)
  Vec3 size = Vec3::Ones();                                // box: edge lengths [m]
  std::array<Index, 3> nodes{2, 2, 2};                     // box: nodes per edge
  std::string pattern = "regular";                         // rectangle: "regular", "crossed", "irregular"
  double radius = 0.05, tube_radius = 0.02, length = 0.1;  // [m]
  double edge = 0.01;                                      // target edge length for round shapes [m]
};

struct BodySpec {
  std::string name;
  std::string mesh_file;  // relative to the scene file; empty when generated
  std::optional<GenerateSpec> generate;
  int refine = 0;             // times that every element is cut into eight (plane bodies: four)
  std::optional<double> fit;  // scale uniformly so that the longest side of the bounding box is this [m]
  Vec3 scale = Vec3::Ones();
  Vec3 rotation = Vec3::Zero();     // rotation vector [rad], applied after scaling
  Vec3 translation = Vec3::Zero();  // [m], applied last
  MaterialSpec material;
  std::vector<RegionSpec> regions;
  std::vector<std::pair<std::string, Selection>> node_sets, element_sets;  // further named sets
  std::string elements = "auto";         // what triangles are: "auto" (plane strain) or "cloth"
  double thickness = 0.01;               // bodies of triangles [m]
  double bending = 0;                    // cloth: stiffness of a hinge, beta [N m]
  std::optional<double> area_density;    // bodies of triangles: in place of density times thickness [kg/m^2]
  NodeVectors velocity;                  // initial [m/s]
  Vec3 angular_velocity = Vec3::Zero();  // initial, about the centre of mass, added to `velocity` [rad/s]
  std::string embed_file;                // a surface that the tetrahedra carry along; empty: none
  std::string initial_file;  // optional mesh with the same nodes: initial positions differ from rest
};

struct ConstraintSpec {
  std::string name, body;
  Selection nodes;
  std::string axes = "xyz";              // which components are held
  double from = 0;                       // [s]
  std::optional<double> until;           // released at this time; never when absent
  std::vector<MotionKey> motion;         // empty: pinned
  Vec3 center = Vec3::Zero();            // of rotation and scaling
  std::string interpolation = "smooth";  // "smooth" (cubic, zero speed at keys) or "linear"
  // Of a bone, whose nodes are held for ever: its end (its head is nodes.a; `center` is its joint), and the
  // bone that carries it, an index into Scene::constraints below its own; -1: none.
  std::optional<Vec3> tail = {};
  Index parent = -1;
};

// A spring from the centre of mass of some nodes to a point that moves: what a hand does.
struct SpringSpec {
  double stiffness = 0, damping = 0;          // [N/m], [N s/m] against the nodes' velocity
  std::vector<std::pair<double, Vec3>> keys;  // (time [s], point [m]), linear between, constant outside
};

struct ForceSpec {
  std::string name, body;
  Selection nodes;
  // What these say is added up.
  Vec3 force = Vec3::Zero();   // total over the selected nodes [N], shared by mass
  NodeVectors acceleration;    // [m/s^2], times the mass of each node
  NodeVectors force_per_node;  // [N], on each node
  std::optional<SpringSpec> spring = {};
  double from = 0;
  std::optional<double> until;
  double ramp = 0;  // time over which it grows from zero, counted from `from` [s]
};

struct ActivationSpec {
  std::string name;
  std::vector<std::pair<double, double>> keys;  // (time [s], activation 0..0.9), linear between
};

struct EventSpec {
  std::string type = "cut";  // or "set"
  double time = 0;           // [s]
  std::string body;
  Vec3 point = Vec3::Zero(), normal = Vec3::UnitX();  // the plane, in the rest shape
  std::string face_set;                               // or: node ids of faces in a file
  std::string path, value = {};                       // set: a JSON pointer, and the new value as JSON
  std::string name;
};

struct ObstacleSpec {
  std::string name, shape;   // "plane", "sphere", "capsule", "box", "mesh", "wire", "points"
  std::vector<Vec3> points;  // wire: its corners in order; points: the tips of nails [m]
  Vec3 point = Vec3::Zero(), normal = Vec3::UnitY(), size = Vec3::Ones(), end = Vec3::Zero();
  double radius = 0.1;
  std::string mesh_file;
  Vec3 scale = Vec3::Ones(), rotation = Vec3::Zero(), translation = Vec3::Zero();
  std::vector<MotionKey> motion;
  std::string interpolation = "smooth";
  std::optional<double> friction;
};

struct ContactSpec {
  double stiffness = 0;           // K [N/m] per node; 0: chosen from the material
  double alpha = 0.1;             // isotropic share of the penalty
  double friction = 0.3;          // mu
  std::string rule = "anchored";  // of friction: "anchored" or "filter"
};

// One value of some nodes or elements over time.
struct ProbeSpec {
  std::string name, body;
  std::string value;            // of sim/measured_fields.hpp
  Selection items;              // nodes or elements, as the value asks for
  std::string reduce = "mean";  // "mean", "sum", "min", "max"
};

struct OutputSpec {
  Index every = 1;                    // record a frame every this many steps
  Index checkpoint_every = 100;       // steps
  bool vtu = false, surface = false;  // frames/*.vtu; surface/*.ply
  std::vector<std::string> fields{"displacement", "velocity", "energy_density"};
  std::vector<std::string> bodies;  // empty: all
};

struct Scene {
  std::string name, description;
  std::string file;              // the scene file as it was named
  std::string folder;            // of the scene file: paths are relative to it
  double h = 5e-3, end = 1;      // time step and end time [s]
  Vec3 gravity{0, -9.81, 0};     // [m/s^2]
  double damping_mass = 0;       // Rayleigh a in D = a M + b K [1/s]
  double damping_stiffness = 0;  // Rayleigh b [s]
  std::string method = "vanilla";
  BoxedJson method_options;  // validated and defaulted by the method's own spec table
  std::string solver = "auto", ordering = "auto";
  std::vector<BodySpec> bodies;
  std::vector<ConstraintSpec> constraints;  // the file's, then one for each bone
  std::vector<ForceSpec> forces;
  std::vector<ActivationSpec> activations;
  std::vector<EventSpec> events;
  std::vector<ObstacleSpec> obstacles;
  ContactSpec contact;
  std::vector<ProbeSpec> probes;
  OutputSpec output;
  BoxedJson tests;            // expectations that the scene carries for itself
  BoxedOrderedJson resolved;  // the fully defaulted JSON, keys in the order of the spec table
};

}  // namespace limber
