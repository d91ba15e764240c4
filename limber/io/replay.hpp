// The recording of a run, replay.lmr: what the page, the comparison, pictures and exports are made from.
//
// The file only grows. It is a sequence of chunks, each with its length and checksums, so that a file that
// ends in the middle of a chunk (a crash, a full disk, a run that is still going) is noticed and everything
// before it stays readable. Arrays are float32 or bytes, byte-shuffled and deflated.
//
//   create -> add_topology -> { add_row (every step) ... add_frame (every recorded step) ... } -> finish
//
// A cut or a remeshing calls add_topology again: later frames belong to the new topology.
#pragma once

#include <limber/core/build_info.hpp>
#include <limber/core/types.hpp>
#include <limber/io/textured_surface.hpp>
#include <limber/mesh/mesh.hpp>

#include <limber/io/boxed_json.hpp>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace limber {

// Numbers per node or per element. Names that the viewer knows: node "velocity" (3 components, m/s),
// "dynamic" and "pinned" (0 or 1), "candidate" (constant, 1 where the method may make the node dynamic);
// element "energy_density" (J/m^3), "young" (Pa), "region" (index into ReplayTopology::regions), "fibre"
// (3 components, unit vector in the rest shape, zero where there is none). Every other name is shown as the
// method's own field; element fields named "..._id" are categories (small integers), drawn without smoothing.
struct ReplayField {
  std::string name;
  std::string unit;  // "m/s"; empty: a pure number
  int components = 1;
  std::vector<float> values;  // components * count, node- or element-major
};

// A named piece of the model: elements [element_begin, element_end), and the nodes that they use.
struct ReplayBody {
  std::string name;
  Index element_begin = 0, element_end = 0;
};

// An obstacle's shape in its own frame; where it is comes with every frame. Only the members that its shape
// uses are set.
struct ReplayObstacle {
  std::string name;
  std::string shape;  // "plane" (point, normal), "sphere" (point, radius), "capsule" (point, end, radius),
                      // "box" (point = centre, size = edge lengths), "mesh" (nodes, triangles)
  Vec3 point = Vec3::Zero(), end = Vec3::Zero(), normal = Vec3::UnitY(), size = Vec3::Ones();
  double radius = 0;  // [m]
  std::vector<Vec3> nodes;
  std::vector<Tri> triangles;
};

// x_world = scale * R * x_obstacle + translation; R as a unit quaternion (x, y, z, w).
struct ReplayPose {
  std::array<float, 3> translation{0, 0, 0};  // [m]
  std::array<float, 4> rotation{0, 0, 0, 1};
  float scale = 1;
};

struct ReplayHeader {
  std::string scene;        // name
  std::string description;  // one or two sentences
  std::string method;
  std::string version = limber::version();
  double h = 0;                 // time step [s]
  double end = 0;               // planned end of the run [s]
  Vec3 gravity = Vec3::Zero();  // [m/s^2]; the viewer's "up" points against it
  BoxedJson parameters;         // the method's parameters, name -> value
  BoxedJson facts;              // anything else that the page should list, name -> value
  std::vector<ReplayObstacle> obstacles;
};

// A surface that the elements of a body carry: its points are weighted sums of the nodes of one element each.
struct ReplaySurface {
  std::string body;
  TexturedSurface surface;     // points in the rest shape
  std::vector<Index> element;  // of every point
  std::vector<float> weight;   // four for every point
};

// What is constant between two topology changes.
struct ReplayTopology {
  std::int64_t step = 0;      // the step from which it holds
  std::vector<float> rest;    // rest positions, 3n [m]
  std::vector<Tet> elements;  // a plane-strain triangle has -1 in the last entry
  std::vector<Tri> surface;  // counter-clockwise seen from outside; for plane bodies the triangles themselves
  std::vector<Index> surface_element;  // the element behind each surface triangle
  std::vector<ReplayBody> bodies;
  std::vector<std::string> regions;         // names of the values of the element field "region"
  std::vector<ReplayField> node_fields;     // constants: "candidate", ...
  std::vector<ReplayField> element_fields;  // constants: "young", "region", "fibre", ...
  // Of a reduced method: the functions that displacements are sums of, one row a node; empty: there are none.
  std::vector<float> basis;
  Index functions = 0;
  std::vector<ReplaySurface> surfaces;  // shown in place of their bodies
  std::vector<double> exact_rest;       // of a lossless recording: rest as the simulation has it, 3n [m]

  Index node_count() const { return static_cast<Index>(rest.size() / 3); }
  Index element_count() const { return static_cast<Index>(elements.size()); }
};

// Where the points of a carried surface are in a frame, three numbers each [m].
std::vector<float> carried_points(const ReplaySurface& surface, const ReplayTopology& topology,
                                  const std::vector<float>& x);

struct ReplayFrame {
  double t = 0;           // [s]
  std::int64_t step = 0;  // steps done
  Index topology = 0;     // set by the writer: index of the topology that the frame belongs to
  std::vector<float> x;   // positions, 3n [m]
  // x = rest + basis coordinates, three numbers for each function: written instead of x where they are given.
  // Velocities likewise [m/s]; they may be left out. Readers have x and the node field "velocity" in any
  // case.
  std::vector<float> coordinates, velocity_coordinates;
  std::vector<ReplayField> node_fields;
  std::vector<ReplayField> element_fields;
  std::vector<ReplayPose> obstacles;  // one per obstacle of the header
  // Of a lossless recording: positions and velocities of all nodes as the simulation had them, 3n each [m],
  // [m/s]. Readers hand them out by exact().
  std::vector<double> exact_x, exact_v;
};

// The numbers of one step, as in steps.csv. A name is "group/name"; the page draws one plot per group:
// "energy/kinetic" [J], "phase/assemble" [ms], "liveliness/mean" [1/s]. Names without a group ("dofs",
// "contacts", "iterations", "residual") get a plot each.
struct ReplayRow {
  std::int64_t step = 0;
  double t = 0;  // [s]
  std::vector<std::pair<std::string, double>> values;
};

// A motion that a method can name, a mode of vibration for instance: three numbers a node, the longest vector
// has length 1.
struct ReplayShape {
  std::string name;
  std::vector<float> values;
};

class ReplayWriter {
 public:
  // Starts a new recording; an existing file is replaced. `level` is the deflate level, 0 stores.
  static ReplayWriter create(const std::filesystem::path& path, const ReplayHeader& header, int level = 1);
  // Opens an existing recording and drops everything that belongs to steps after `step`, to topologies beyond
  // the first `topologies` (State::epoch + 1), or to a damaged tail.
  static ReplayWriter resume(const std::filesystem::path& path, std::int64_t step, Index topologies,
                             int level = 1);

  void add_topology(const ReplayTopology& topology);
  void add_row(const ReplayRow& row);  // kept in memory until the next frame or flush
  void add_frame(const ReplayFrame& frame);
  void add_shapes(std::int64_t step, const std::vector<ReplayShape>& shapes);  // of the last topology
  void flush();  // writes the rows that wait; call it with every checkpoint
  // Marks the recording as complete. `summary` (wall time, ms per step, ...) is listed on the page. Without
  // it the page says that the run is still going or was interrupted.
  void finish(const nlohmann::json& summary);

  Index topologies() const { return topologies_; }  // written so far, counting those kept by resume
  Index frames() const { return frames_; }

 private:
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  ReplayWriter() = default;
  void write_chunk(std::uint32_t tag, const std::string& payload);
  void open(const char* mode);

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
  int level_ = 1;
  Index topologies_ = 0, frames_ = 0;
  Index nodes_ = 0, elements_ = 0, functions_ = 0;  // of the current topology
  std::size_t obstacles_ = 0;
  std::vector<ReplayRow> rows_;  // not yet written
};

// Reads a recording, also one that is still being written or is damaged: frames that cannot be read are left
// out and damage() says so. Throws Error(kIo) when the file cannot be opened or its header is unreadable.
class ReplayReader {
 public:
  explicit ReplayReader(const std::filesystem::path& path);

  // Looks for chunks that were written since; true when there is something new.
  bool refresh();

  const ReplayHeader& header() const { return header_; }
  Index topology_count() const { return static_cast<Index>(topology_chunks_.size()); }
  Index frame_count() const { return static_cast<Index>(frame_chunks_.size()); }
  ReplayTopology topology(Index i) const;
  // `positions` false: of a frame with coordinates, neither x nor velocities are made of them.
  ReplayFrame frame(Index i, bool positions = true) const;
  // Positions and velocities of frame i to the last bit; empty where the recording is not lossless.
  struct Exact {
    std::vector<double> x, v;
  };
  Exact exact(Index i) const;
  // Of frame i, without reading it whole.
  double frame_time(Index i) const { return frame_chunks_[static_cast<std::size_t>(i)].t; }
  std::int64_t frame_step(Index i) const { return frame_chunks_[static_cast<std::size_t>(i)].step; }
  Index frame_topology(Index i) const { return frame_chunks_[static_cast<std::size_t>(i)].topology; }
  const std::vector<ReplayRow>& rows() const { return rows_; }
  std::vector<ReplayShape> shapes(Index topology) const;  // the first ones that were recorded for it

  bool finished() const { return finished_; }
  const nlohmann::json& summary() const { return *summary_; }
  // Empty, or what is wrong with the file and how much of it was read, for a person.
  std::string damage() const;

 private:
  struct Chunk {
    std::uint64_t offset = 0, length = 0;  // of the payload; length 0: damaged
    std::uint32_t tag = 0;
    double t = 0;
    std::int64_t step = 0;
    Index topology = 0;
    Index nodes = 0, elements = 0;  // of a topology
  };
  friend class ReplayWriter;
  void add(Chunk chunk, const std::string& payload);
  std::string payload(const Chunk& chunk) const;
  std::shared_ptr<const ReplayTopology> basis_of(Index topology) const;

  std::filesystem::path path_;
  std::uint64_t good_end_ = 0;  // everything before it was read
  std::string tail_;            // what is wrong after good_end_
  Index skipped_ = 0;           // damaged chunks that were stepped over
  ReplayHeader header_;
  std::vector<Chunk> chunks_;  // all readable ones, in file order
  std::vector<Chunk> topology_chunks_, frame_chunks_;
  std::vector<Chunk> shape_chunks_;
  std::vector<Chunk> exact_chunks_;  // ascending in `step`; not every frame needs one
  std::vector<ReplayRow> rows_;
  bool finished_ = false;
  BoxedJson summary_;
  // Rest and basis of the topology that was last asked for; frames are read by several threads.
  struct KeptBasis {
    std::mutex mutex;
    Index topology = -1;
    std::shared_ptr<const ReplayTopology> value;
  };
  std::unique_ptr<KeptBasis> kept_ = std::make_unique<KeptBasis>();
};

}  // namespace limber
