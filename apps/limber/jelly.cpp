// `limber jelly`: from a surface to a soft body that carries it, in one command.
#include "commands.hpp"
#include "numbers.hpp"

#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/io/tetrahedralize.hpp>
#include <limber/io/textured_surface.hpp>
#include <limber/mesh/geometry.hpp>
#include <limber/mesh/remesh.hpp>
#include <limber/mesh/stuff.hpp>
#include <limber/view/export.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace limber {
namespace {

namespace fs = std::filesystem;

struct JellyOptions {
  std::string surface, folder, up = "y";
  Index vertices = 3000;
  double size = 0.3, stiffness = 15, drop = 0.3, seconds = 2.5;
  bool view = false, quiet = false;
};

constexpr double kEarthGravity = 9.81;    // [m/s^2]
constexpr double kJellyStep = 1.0 / 240;  // [s]; every fourth one is a frame

// Tets around the surface: with TetGen, or by stuffing a lattice where that is not installed.
TetMesh wrap_in_tets(const TriMesh& surface, const JellyOptions& o, std::vector<std::string>& notices) {
  TetrahedralizeOptions options;
  options.vertices = o.vertices;
  options.wrap = options.thin = true;
  if (!o.quiet) options.progress = [](const std::string& line) { fmt::print(stderr, "limber: {}\n", line); };
  try {
    return tetrahedralize(surface, options, &notices);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kIo) throw;
    notices.push_back(fmt::format("{}; a lattice is stuffed instead", e.what()));
  }
  // About two nodes for a cube of the lattice; sheets have a layer or two of them.
  const double spacing = std::max(std::cbrt(2 * bounding_box(surface.nodes).size().prod() / o.vertices),
                                  std::sqrt(2 * surface_area(surface) / o.vertices));
  const TriMesh wrapped = wrap_surface(surface, 0.5 * spacing, true);
  StuffOptions stuff;
  stuff.spacing = spacing;
  return stuff_isosurface(surface_depth(wrapped), bounding_box(wrapped.nodes), stuff);
}

int jelly(const JellyOptions& o) {
  std::vector<std::string> notices;
  const TexturedSurface shown = read_textured_surface(o.surface, &notices);
  TriMesh surface;
  surface.nodes = shown.points;
  for (const Tri& t : corner_triangles(shown)) {
    Tri points;
    for (std::size_t c = 0; c < 3; ++c) points[c] = shown.corner_point[at(t[c])];
    surface.triangles.push_back(points);
  }
  const Box box = bounding_box(surface.nodes);
  const double length = box.size().maxCoeff();
  if (!(length > 0))
    throw Error(ErrorKind::kInput, fmt::format("{}: all its points are at one place", o.surface));
  // Before anything is wrapped: what has an inside is decided by which way the triangles face.
  for (const std::string& n : clean_surface(surface)) notices.push_back(n);
  for (const std::string& n : orient_surface(surface)) notices.push_back(n);
  TetMesh mesh;
  try {
    mesh = wrap_in_tets(surface, o, notices);
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("{}: {}", o.surface, e.what()));
  }
  const std::string name = fs::path(o.surface).stem().string();
  const fs::path folder = o.folder.empty() ? fs::path("jelly") / name : fs::path(o.folder);
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  write_msh((folder / (name + ".msh")).string(), mesh);

  // Lengths stay those of the file, so that what is exported fits what it came from: gravity is measured in
  // them, and the body is as stiff as it must be to sag by about a 1/stiffness of its size.
  const int axis = o.up == "z" ? 2 : 1;
  const double g = kEarthGravity * length / o.size, density = 1000;
  Vec3 gravity = Vec3::Zero(), floor = 0.5 * (box.lo + box.hi), normal = Vec3::Zero();
  gravity[axis] = -g;
  normal[axis] = 1;
  const double low = std::min(box.lo[axis], bounding_box(mesh.nodes).lo[axis]);
  floor[axis] = low - o.drop * length;
  const auto list = [](const Vec3& v) { return nlohmann::ordered_json{v.x(), v.y(), v.z()}; };
  fs::path from = fs::relative(fs::absolute(o.surface), fs::absolute(folder), error);
  if (error || from.empty()) from = fs::absolute(o.surface);
  nlohmann::ordered_json scene{
      {"limber", 1},
      {"description", fmt::format("{} as a jelly that falls on a floor, made by limber jelly.",
                                  fs::path(o.surface).filename().string())},
      {"time", {{"step", kJellyStep}, {"end", o.seconds}}},
      {"gravity", list(gravity)},
      {"method", {{"type", "conjac"}}},
      {"bodies",
       nlohmann::ordered_json::array(
           {{{"name", "jelly"},
             {"mesh", name + ".msh"},
             {"embed", from.string()},
             {"material",
              {{"young", o.stiffness * density * g * length}, {"poisson", 0.45}, {"density", density}}}}})},
      {"obstacles",
       nlohmann::ordered_json::array(
           {{{"name", "floor"}, {"shape", "plane"}, {"point", list(floor)}, {"normal", list(normal)}}})},
      {"contact", {{"friction", 0.6}}},
      {"output", {{"every", 4}, {"fields", {"displacement", "velocity", "energy_density"}}}}};
  const fs::path file = folder / (name + ".json");
  write_file_atomic(file.string(), scene.dump(1) + "\n");
  for (const std::string& n : notices) fmt::print(stderr, "limber: {}\n", n);
  if (const int code = run_scene(file.string(), (folder / "run").string(), o.view, o.quiet); code != 0)
    return code;

  view::ExportOptions glb;
  glb.format = "glb";
  const fs::path target = folder / (name + ".glb");
  view::export_run(ReplayReader(folder / "run" / "replay.lmr"), glb, target);
  fmt::print("{}\n{}\n{}\n", (folder / "run" / "index.html").string(), target.string(), file.string());
  return 0;
}

}  // namespace

void add_jelly_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command =
      app.add_subcommand("jelly", "Make a surface a soft body and let it fall: page, glTF, scene");
  auto o = std::make_shared<JellyOptions>();
  command->add_option("surface", o->surface, "Surface, also open or thin: .obj with textures, .ply .stl .off")
      ->required();
  command->add_option("-o,--output", o->folder, "Folder for mesh, scene, run and glTF; default: jelly/NAME");
  command->add_option("--vertices", o->vertices, "Wanted number of nodes of the tets")
      ->capture_default_str()
      ->check(CLI::Range(50, 1000000));
  command->add_option("--size", o->size, "How long its longest side is meant to be [m]; it is not scaled")
      ->capture_default_str()
      ->check(more_than_zero());
  command
      ->add_option("--stiffness", o->stiffness,
                   "Young's modulus over what the weight presses: 5 slumps, 15 wobbles, 100 is firm")
      ->capture_default_str()
      ->check(more_than_zero());
  command->add_option("--drop", o->drop, "Height of the fall, of its longest side")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 10.0));
  command->add_option("--seconds", o->seconds, "How long [s]")
      ->capture_default_str()
      ->check(more_than_zero());
  command->add_option("--up", o->up, "Which way is up: y or z")
      ->capture_default_str()
      ->check(CLI::IsMember({"y", "z"}));
  command->add_flag("--view", o->view, "Follow the run in the browser");
  command->add_flag("-q,--quiet", o->quiet, "No progress");
  command->callback([&action, o] { action = [o] { return jelly(*o); }; });
}

}  // namespace limber
