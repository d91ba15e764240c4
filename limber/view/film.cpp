#include <limber/core/error.hpp>
#include <limber/view/film.hpp>
#include <limber/view/process.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace limber::view {

void write_film(const ReplayReader& reader, const PictureOptions& picture, const FilmOptions& film,
                const std::filesystem::path& path) {
  const std::string ffmpeg = find_program("ffmpeg");
  if (ffmpeg.empty())
    throw Error(
        ErrorKind::kIo,
        "ffmpeg is needed for films and was not found on PATH; install it (Debian: apt-get install ffmpeg), "
        "or render single frames to .png");
  if (!(film.fps > 0) || !(film.speed > 0))
    throw Error(ErrorKind::kUsage,
                fmt::format("--fps {} and --speed {} must be positive", film.fps, film.speed));
  PictureOptions options = picture;
  options.width -= options.width % 2;  // H.264 wants even sizes
  options.height -= options.height % 2;
  Painter painter(reader, options);

  const Index count = reader.frame_count();
  const Index first = std::clamp(film.first, 0, count - 1),
              last = film.last < 0 ? count - 1 : std::clamp(film.last, first, count - 1);
  // The frame nearest to each moment of the film.
  std::vector<Index> frames;
  const double begin = reader.frame_time(first), end = reader.frame_time(last);
  Index at = first;
  for (Index k = 0;; ++k) {
    const double t = begin + film.speed * k / film.fps;
    if (t > end + 0.5 * film.speed / film.fps && k > 0) break;
    while (at < last && std::abs(reader.frame_time(at + 1) - t) <= std::abs(reader.frame_time(at) - t)) ++at;
    frames.push_back(at);
  }

  std::vector<std::string> command{ffmpeg,      "-y",
                                   "-loglevel", "error",
                                   "-f",        "rawvideo",
                                   "-pix_fmt",  "rgb24",
                                   "-s",        fmt::format("{}x{}", options.width, options.height),
                                   "-r",        fmt::format("{}", film.fps),
                                   "-i",        "-"};
  if (path.extension() == ".gif")
    for (const char* a :
         {"-vf", "split[a][b];[a]palettegen=stats_mode=diff[p];[b][p]paletteuse=dither=sierra2_4a"})
      command.emplace_back(a);
  else
    for (const char* a : {"-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "18", "-preset", "medium",
                          "-movflags", "+faststart"})
      command.emplace_back(a);
  // A path that begins with "-" would be read as an option.
  command.push_back("file:" + path.string());

  PipedProgram program(command);
  Image image;
  Index painted = -1;
  bool reading = true;
  for (std::size_t k = 0; k < frames.size() && reading; ++k) {
    if (frames[k] != painted) image = painter.paint(painted = frames[k]);
    reading = program.write(image.rgb);
    if (film.progress) film.progress(static_cast<Index>(k + 1), static_cast<Index>(frames.size()));
  }
  std::string messages;
  const int code = program.finish(messages);
  if (code != 0 || !reading)
    throw Error(ErrorKind::kIo,
                fmt::format("{}: ffmpeg failed (exit code {}): {}", path.string(), code, messages));
}

}  // namespace limber::view
