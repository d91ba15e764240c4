// One recorded moment as arrays: what VTU, PLY and the recording are written from.
#pragma once

#include <limber/contact/obstacle.hpp>
#include <limber/io/replay.hpp>
#include <limber/sim/measured_fields.hpp>
#include <limber/sim/simulation.hpp>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace limber {

struct FrameFields {
  // Components per item and the numbers. Names are those of docs/run-folder.md.
  std::map<std::string, Field> node, element;
  VecX x;  // positions of everything that is shown: nodes, then the links' triangles [m]
  std::map<std::string, std::string> units;  // of the method's own
  std::set<std::string> constant;            // fields that the topology holds already
};

// The fields that the scene's output asks for, and those of the method. `input`: forces, held nodes and
// activation that go with the state; `measured`: of the same moment.
FrameFields frame_fields(const Simulation& simulation, const StepInput& input, MeasuredFields& measured);
FrameFields frame_fields(const Simulation& simulation, const StepInput& input);

ReplayHeader replay_header(const Simulation& simulation, const std::vector<Obstacle>& obstacles);
ReplayTopology replay_topology(const Simulation& simulation);  // constant until the next topology change
// Motions that the method names: "shape/NAME" among its node fields, three numbers a node.
std::vector<ReplayShape> replay_shapes(const Simulation& simulation);
ReplayFrame replay_frame(const Simulation& simulation, const FrameFields& fields,
                         const std::vector<Obstacle>& obstacles);
// Parts of a frame, for who needs no more: where obstacles and bones are, and FrameFields::x.
std::vector<ReplayPose> obstacle_poses(const Simulation& simulation, const std::vector<Obstacle>& obstacles);
VecX shown_positions(const Simulation& simulation);

// frames/NNNNNN.vtu and surface/BODY_NNNNNN.ply, of the bodies that the scene wants.
class FrameWriter {
 public:
  explicit FrameWriter(const Simulation& simulation);

  void write_vtu_frame(const std::filesystem::path& file, const FrameFields& fields) const;
  void write_surfaces(const std::filesystem::path& folder) const;

 private:
  const Simulation& simulation_;
  bool all_ = true;                      // every body is wanted
  std::vector<Index> nodes_, elements_;  // of the wanted bodies
  std::vector<Tet> cells_;               // their connectivity, in numbers of nodes_
  struct Surface {
    std::string body;
    std::vector<Index> nodes;
    std::vector<Tri> triangles;
  };
  std::vector<Surface> surfaces_;
};

}  // namespace limber
