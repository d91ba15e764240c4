// A reduced method's functions as the page holds them. The page gets them once, and for each frame the
// coordinates: its vertex shader makes the positions. Functions are rounded as coarsely as the motion allows:
// one that hardly moves anything needs few bits.
#pragma once

#include <limber/io/replay.hpp>

#include <span>
#include <vector>

namespace limber::view {

class PageSkin {
 public:
  // Of these nodes, of which the first `surface` are on the surface; `parent` as for encode_frames().
  // `reach`: the largest coordinate of each function in the run; `quantum`: how exact positions are wanted
  // [m].
  PageSkin(const ReplayTopology& topology, std::span<const Index> nodes, std::size_t surface,
           std::span<const Index> parent, std::span<const float> reach, double quantum);

  // For the page: value = step * integer; the integers function by function, relative to the parent, zigzag.
  const std::vector<float>& steps() const { return steps_; }
  const std::vector<std::uint32_t>& words() const { return words_; }

  // Positions that the page makes of these coordinates are no farther than this from those of the recording,
  // in each coordinate [m].
  double error(std::span<const float> coordinates) const;
  // Makes the box large enough for the surface.
  void grow(std::span<const float> coordinates, Vec3& low, Vec3& high) const;

 private:
  using Rows = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Rows rest_, basis_;                 // of the surface
  std::vector<float> steps_, error_;  // of each function
  std::vector<std::uint32_t> words_;
};

// Largest coordinates of a topology's frames, one number per function. Of a run that is still going they may
// grow: then no function is taken to move the body by less than a twentieth of `extent` [m].
std::vector<float> coordinate_reach(const ReplayReader& reader, Index topology, const ReplayTopology& t,
                                    double extent);

}  // namespace limber::view
