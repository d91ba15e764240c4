// Films of a recording, through ffmpeg.
#pragma once

#include <limber/view/picture.hpp>

#include <filesystem>
#include <functional>

namespace limber::view {

struct FilmOptions {
  double fps = 30;             // pictures per second of film
  double speed = 1;            // seconds of the run per second of film
  Index first = 0, last = -1;  // frames of the recording; -1: the last one
  std::function<void(Index done, Index total)> progress;
};

// Writes .mp4 (H.264) or .gif, by the ending. Throws Error(kIo) with ffmpeg's own words when it is missing or
// fails.
void write_film(const ReplayReader& reader, const PictureOptions& picture, const FilmOptions& film,
                const std::filesystem::path& path);

}  // namespace limber::view
