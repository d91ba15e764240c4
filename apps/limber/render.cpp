#include "commands.hpp"
#include "numbers.hpp"

#include <limber/core/error.hpp>
#include <limber/view/film.hpp>
#include <limber/view/page.hpp>
#include <limber/view/picture.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <memory>

namespace limber {
namespace {

namespace fs = std::filesystem;

struct RenderOptions {
  std::string folder, output, frame = "last", size = "1280x720", look = "light", range, beside;
  view::PictureOptions picture;
  view::FilmOptions film;
};

// "12", "last", "50%", "0.5s" -> a frame.
Index parse_frame(const ReplayReader& reader, const std::string& text) {
  const Index last = reader.frame_count() - 1;
  if (text == "last") return last;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  if (error == std::errc() && unit == "%" && value >= 0 && value <= 100)
    return static_cast<Index>(std::lround(value / 100 * last));
  if (error == std::errc() && unit == "s") {
    Index best = 0;
    for (Index i = 1; i <= last; ++i)
      if (std::abs(reader.frame_time(i) - value) < std::abs(reader.frame_time(best) - value)) best = i;
    return best;
  }
  if (error != std::errc() || !unit.empty() || value != std::floor(value) || value < 0 || value > last)
    throw Error(
        ErrorKind::kUsage,
        fmt::format(
            "--frame {}: expected a frame from 0 to {}, \"last\", a share like 50% or a time like 0.5s", text,
            last));
  return static_cast<Index>(value);
}

std::pair<int, int> parse_size(const std::string& text) {
  int w = 0, h = 0;
  const char *begin = text.data(), *end = begin + text.size();
  const auto first = std::from_chars(begin, end, w);
  if (first.ec == std::errc() && first.ptr < end && *first.ptr == 'x') {
    const auto second = std::from_chars(first.ptr + 1, end, h);
    if (second.ec == std::errc() && second.ptr == end && w > 0 && h > 0) return {w, h};
  }
  throw Error(ErrorKind::kUsage,
              fmt::format("--size {}: expected WIDTHxHEIGHT in pixels, as in 1280x720", text));
}

int render(RenderOptions o) {
  const ReplayReader reader(view::find_recording(o.folder));
  if (reader.frame_count() == 0)
    throw Error(ErrorKind::kInput, fmt::format("{}: no frames were recorded", o.folder));
  std::tie(o.picture.width, o.picture.height) = parse_size(o.size);
  o.picture.dark = o.look == "dark";
  if (!o.range.empty()) {
    double low = 0, high = 0;
    if (std::sscanf(o.range.c_str(), "%lf,%lf", &low, &high) != 2 || !(high > low))
      throw Error(ErrorKind::kUsage, fmt::format("--range {}: expected LOW,HIGH", o.range));
    o.picture.range = {low, high};
  }
  if (!o.beside.empty()) o.picture.beside = view::extent(ReplayReader(view::find_recording(o.beside)));
  const fs::path out(o.output);
  const std::string ending = out.extension().string();
  if (ending == ".png") {
    const Index frame = parse_frame(reader, o.frame);
    view::write_png(out, view::Painter(reader, o.picture).paint(frame));
    fmt::print("{}: frame {} of {}, t = {:.3f} s\n", o.output, frame, reader.frame_count() - 1,
               reader.frame_time(frame));
    return 0;
  }
  if (ending != ".mp4" && ending != ".gif")
    throw Error(ErrorKind::kUsage, fmt::format("{}: pictures end in .png, films in .mp4 or .gif", o.output));
  o.picture.samples = std::min(o.picture.samples, 2);  // a film is forgiving, and long
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (terminal)
    o.film.progress = [](Index done, Index total) {
      fmt::print(stderr, "\rpicture {}/{}{}", done, total, done == total ? "\n" : "");
    };
  view::write_film(reader, o.picture, o.film, out);
  fmt::print("{}: {:.1f} MB\n", o.output, static_cast<double>(fs::file_size(out)) / 1e6);
  return 0;
}

}  // namespace

void add_render_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("render", "Draw a picture or film of a run, without a display");
  auto o = std::make_shared<RenderOptions>();
  command->add_option("folder", o->folder, "Output folder of a run, or its replay.lmr")->required();
  command->add_option("-o,--output", o->output, "out.png, out.mp4 or out.gif (films need ffmpeg)")
      ->required();
  command->add_option("--frame", o->frame, "Picture: a frame, \"last\", a share (50%) or a time (0.5s)")
      ->capture_default_str();
  command->add_option("--size", o->size, "WIDTHxHEIGHT [pixels]")->capture_default_str();
  command->add_option("--color", o->picture.color, "Field to colour by, or \"plain\"")->capture_default_str();
  command->add_option("--range", o->range, "LOW,HIGH of the colours (default: of the whole run)");
  command->add_option("--look", o->look, "light or dark")
      ->check(CLI::IsMember({"light", "dark"}))
      ->capture_default_str();
  command
      ->add_option("--camera", o->picture.camera,
                   "three-quarter, front, side, top, or AZIMUTH,ELEVATION[,ZOOM] [degrees]")
      ->capture_default_str();
  command->add_option("--clip", o->picture.clip, "Cut away what lies beyond, e.g. x:0.5");
  command->add_flag("--follow", o->picture.follow,
                    "The camera frames the body as it is, not all that it will do");
  command->add_option("--beside", o->beside,
                      "Another run: the camera frames what both do, for pictures side by side");
  command->add_option("--title", o->picture.title, "Text in the upper left corner");
  command->add_flag("--edges", o->picture.edges, "Draw the edges of the elements");
  command->add_flag("!--no-contours", o->picture.contours, "No lines of equal value");
  command->add_flag("!--no-marks", o->picture.marks, "No dynamic nodes and pins");
  command->add_flag("!--no-obstacles", o->picture.obstacles, "No obstacles");
  command->add_flag("!--no-floor", o->picture.floor, "No floor where the scene has none");
  command->add_flag("!--no-legend", o->picture.legend, "No colour bar and time");
  command->add_option("--samples", o->picture.samples, "Samples per pixel and direction")
      ->check(whole_number(1, 6))
      ->capture_default_str();
  command->add_option("--fps", o->film.fps, "Film: pictures per second")->capture_default_str();
  command->add_option("--speed", o->film.speed, "Film: seconds of the run per second")->capture_default_str();
  command->callback([&action, o] { action = [o] { return render(*o); }; });
}

}  // namespace limber
