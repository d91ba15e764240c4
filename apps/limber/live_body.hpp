// What pages see of a simulation that runs live, and what hands can take hold of.
#pragma once

#include <limber/contact/obstacle.hpp>
#include <limber/sim/simulation.hpp>

#include <nlohmann/json_fwd.hpp>

#include <span>
#include <string>
#include <vector>

namespace limber {

class LiveBody {
 public:
  explicit LiveBody(const Simulation& simulation);

  // Manifest and blocks of a page's run of one frame, as JSON, with the number of the model.
  std::string shape(const Simulation& simulation, std::uint64_t model) const;
  // Length of the text (32 bits, little-endian), `head` with obstacles in it as text, padded to four bytes,
  // then the positions of the nodes that are seen (float32), in ascending order of the nodes.
  std::string frame(const Simulation& simulation, nlohmann::json head) const;
  // Of mass, of nodes of the first topology [m].
  Vec3 center(const Simulation& simulation, std::span<const Index> nodes) const;

 private:
  void positions(const Simulation& simulation, float* out) const;

  std::vector<Index> nodes_;  // of the surface, and those that move a carried one, ascending
  std::vector<Obstacle> obstacles_;
  // Of a reduced method, whose other nodes need not be moved to be seen.
  Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> basis_;
  std::vector<float> rest_;
};

// What a hand grips: nodes that are near in the rest shape, of one piece.
struct LivePatch {
  std::string body;
  std::vector<Index> nodes, ids;  // of the model, and as the scene counts them: in the body, before any cut
  // Of a spring that every method can take at the start of a step: half of what an elastic half-space shows
  // under a hand of this size, about young times radius; damped as its own nodes on it need it.
  double stiffness = 0, damping = 0;  // [N/m], [N s/m]
};
LivePatch patch_around(const Model& model, Index node);
Vec3 patch_center(const Model& model, const VecX& x, std::span<const Index> nodes);

// A body (as scenes have them) that falls on what is below a point, or beside it: of the softest material
// that is there, `size` times as long as the scene. Shapes: "ball", "box", "ring".
nlohmann::json dropped_body(const Simulation& simulation, const std::string& shape, double size,
                            const Vec3* above, const std::string& name);

}  // namespace limber
