// Pictures of a recording without a display.
#pragma once

#include <limber/io/replay.hpp>
#include <limber/view/fields.hpp>
#include <limber/view/image.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace limber::view {

struct PictureOptions {
  int width = 1280, height = 720;      // [pixels]
  std::string color = "displacement";  // id of a field, or "plain"
  bool dark = false;
  std::string camera = "three-quarter";  // "front", "side", "top", or "azimuth,elevation[,zoom]" [degrees]
  std::string clip;                      // "x:0.5": cut away what lies beyond half of the extent in x
  std::optional<std::pair<double, double>> range;  // of the colours; else from the whole run
  bool edges = false, contours = true, marks = true, obstacles = true, floor = true, legend = true;
  int samples = 3;      // per pixel and direction
  bool follow = false;  // the camera frames what is shown, not the box that the run stays in
  // A box that the picture has room for besides that of the run, so that pictures of several runs can stand
  // side by side [m].
  std::optional<std::pair<Vec3, Vec3>> beside;
  std::string title;  // in the upper left corner
};

// The box that a run stays in [m].
std::pair<Vec3, Vec3> extent(const ReplayReader& reader);

class Painter {
 public:
  // Looks through the recording for its extent and the range of the colours. Throws Error(kUsage) for a field
  // or camera that does not exist, Error(kInput) when there is no frame to draw.
  Painter(const ReplayReader& reader, const PictureOptions& options);
  ~Painter();

  Image paint(Index frame);

 private:
  struct Mesh;
  struct Stage;
  void find_extent();
  void find_range();
  void use_topology(Index index);
  double fitting_distance(const Eigen::Vector3f& from, double fov, const Eigen::Vector3f& low,
                          const Eigen::Vector3f& high) const;
  void add_legend(Image& image, const ReplayFrame& frame) const;

  const ReplayReader& reader_;
  PictureOptions options_;
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<Mesh> mesh_;  // of the topology that was drawn last
  double low_ = 0, high_ = 1, tick_ = 0;
  bool log_ = false;
};

// Round numbers in [low, high], about `count` of them.
std::vector<double> round_ticks(double low, double high, int count);

}  // namespace limber::view
