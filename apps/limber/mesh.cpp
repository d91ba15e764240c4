// `limber mesh`: look at, make and convert meshes.
#include "commands.hpp"
#include "numbers.hpp"

#include <limber/core/error.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/io/tetrahedralize.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/quality.hpp>
#include <limber/mesh/refine.hpp>
#include <limber/mesh/remesh.hpp>
#include <limber/mesh/sheet_surface.hpp>
#include <limber/mesh/stuff.hpp>
#include <limber/mesh/surface.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numbers>

namespace limber {
namespace {

struct MeshArguments {
  std::string input, output, shape;
  bool text = false, wrap = false, thin = false, stand = false, quiet = false;
  double fit = 0, scale = 1;
  int refine = 0;
  Index vertices = 5000;
  double feature_angle = 60, ratio = 1.4, angle = 10;
  std::vector<double> size{0.1, 0.1, 0.1};
  std::vector<Index> nodes{5, 5, 5};
  double radius = 0.05, tube_radius = 0.02, length = 0.1, edge = 0.01;
  double spacing = 0;
  double size_min = 0, size_max = 0, bend = 17, aspect = 0.2;
};

void print(const std::string& line) { std::fputs((line + "\n").c_str(), stdout); }

// Progress and notices go to stderr, so that stdout stays what was asked for.
void tell(const std::string& line) { std::fputs(("limber: " + line + "\n").c_str(), stderr); }

std::string format_point(const Vec3& p) { return fmt::format("({:.6g}, {:.6g}, {:.6g})", p[0], p[1], p[2]); }

// Scales, then stands the mesh on y = 0 with its middle over the origin.
void place(std::vector<Vec3>& nodes, const MeshArguments& a) {
  double factor = a.scale;
  if (a.fit > 0) factor *= a.fit / (a.scale * bounding_box(nodes).size().maxCoeff());
  for (Vec3& p : nodes) p *= factor;
  if (!a.stand) return;
  const Box box = bounding_box(nodes);
  const Vec3 foot((box.lo[0] + box.hi[0]) / 2, box.lo[1], (box.lo[2] + box.hi[2]) / 2);
  for (Vec3& p : nodes) p -= foot;
}

// To seven digits of the mesh's size: far below any mesher's accuracy, and text files become half as long.
void round_positions(std::vector<Vec3>& nodes) {
  const double longest = bounding_box(nodes).size().maxCoeff();
  const double per_metre = std::pow(10, 6 - std::floor(std::log10(longest)));
  for (Vec3& p : nodes)
    for (int a = 0; a < 3; ++a) p[a] = std::round(p[a] * per_metre) / per_metre;
}

void write(const MeshArguments& a, const MeshFile& file) {
  if (a.text && a.output.ends_with(".msh"))
    std::visit([&](const auto& mesh) { write_msh(a.output, mesh, Encoding::kText); }, file.mesh);
  else if (a.text && a.output.ends_with(".ply"))
    write_ply(a.output, file.has_tets() ? surface_mesh(file.tets()) : file.triangles(), Encoding::kText);
  else
    write_mesh(a.output, file);
}

std::string counts(const MeshFile& file) {
  return file.has_tets() ? fmt::format("{} nodes, {} tets", file.tets().nodes.size(), file.tets().tets.size())
                         : fmt::format("{} nodes, {} triangles", file.triangles().nodes.size(),
                                       file.triangles().triangles.size());
}

void print_sets(const char* what, const IndexSets& sets) {
  for (const auto& [name, set] : sets) print(fmt::format("{} \"{}\": {}", what, name, set.size()));
}

int info(const MeshArguments& a) {
  const MeshFile file = read_mesh(a.input, {false});
  print(fmt::format("{}: {}, {}", a.input, file.format, counts(file)));
  for (const std::string& n : file.notices) print("note: " + n);
  MeshReport report;
  QualitySummary q;
  std::visit(
      [&](const auto& mesh) {
        if constexpr (std::is_same_v<std::decay_t<decltype(mesh)>, TetMesh>)
          report = check_mesh(mesh);
        else
          report = check_mesh(mesh, guess_role(mesh));
        q = summarize_quality(mesh);
        print(fmt::format("box [m]: {} to {}, size {}", format_point(report.box.lo),
                          format_point(report.box.hi), format_point(report.box.size())));
        print_sets("node set", mesh.node_sets);
        print_sets("element set", mesh.element_sets);
        for (const auto& [name, f] : mesh.node_fields)
          print(fmt::format("node field \"{}\" x {}", name, f.components));
        for (const auto& [name, f] : mesh.element_fields)
          print(fmt::format("element field \"{}\" x {}", name, f.components));
      },
      file.mesh);
  const bool tets = file.has_tets();
  if (tets) {
    const BoundarySurface s = boundary_surface(file.tets().tets);
    print(fmt::format("surface: {} triangles; volume {:.6g} m^3; {} connected part{}", s.triangles.size(),
                      q.volume, report.components, report.components == 1 ? "" : "s"));
  } else {
    print(fmt::format("area {:.6g} m^2; {} connected part{}", q.volume, report.components,
                      report.components == 1 ? "" : "s"));
  }
  print(fmt::format("edges [m]: {:.4g} to {:.4g}, mean {:.4g}", q.edge_least, q.edge_most, q.edge_mean));
  print(fmt::format("radius ratio (1 is best): least {:.3f} (element {}), mean {:.3f}{}", q.least, q.worst,
                    q.mean,
                    tets ? fmt::format("; least angle between faces {:.1f} degrees", q.least_angle) : ""));
  const Index most = std::max(1, *std::max_element(q.histogram.begin(), q.histogram.end()));
  for (int b = 0; b < 10; ++b)
    print(fmt::format("  {:.1f}-{:.1f} {:8} {}", b / 10.0, (b + 1) / 10.0, q.histogram[b],
                      std::string(static_cast<std::size_t>(40.0 * q.histogram[b] / most), '#')));
  if (report.problems.empty()) print("no problems found");
  bool usable = true;
  for (const MeshProblem& p : report.problems) {
    // Shown as in the file, but not in the way of anybody: they are turned when the mesh is used.
    const bool mended = p.kind == MeshProblemKind::kInverted;
    usable = usable && (!p.fatal || mended);
    print(fmt::format("{}: {}{}", p.fatal && !mended ? "error" : "note", p.message,
                      mended ? "; turned when the mesh is used" : ""));
  }
  return usable ? 0 : static_cast<int>(ErrorKind::kInput);
}

int convert(const MeshArguments& a) {
  MeshFile file = read_mesh(a.input);
  for (const std::string& n : file.notices) tell(fmt::format("{}: {}", a.input, n));
  for (const std::string& n : file.remarks) tell(fmt::format("{}: {}", a.input, n));
  std::visit(
      [&](auto& mesh) {
        for (int k = 0; k < a.refine; ++k) mesh = refined(mesh);
        place(mesh.nodes, a);
      },
      file.mesh);
  write(a, file);
  print(fmt::format("{}: {}", a.output, counts(file)));
  return 0;
}

int surface(const MeshArguments& a) {
  MeshFile file;
  file.mesh = read_surface(a.input);
  write(a, file);
  print(fmt::format("{}: {}", a.output, counts(file)));
  return 0;
}

int remesh(const MeshArguments& a) {
  std::vector<std::string> notices;
  const TriMesh input = read_surface(a.input, &notices);
  for (const std::string& n : notices) tell(fmt::format("{}: {}", a.input, n));
  const double longest = bounding_box(input.nodes).size().maxCoeff();
  const double size_max = a.size_max > 0 ? a.size_max : std::max(longest / 10, a.size_min);
  const double size_min = a.size_min > 0 ? a.size_min : std::min(longest / 50, size_max);
  if (size_max < size_min)
    throw Error(ErrorKind::kUsage,
                fmt::format("--size-max {}: expected at least --size-min {}", size_max, size_min));
  MeshFile file;
  const SurfaceEdges edges = surface_edges(input.triangles);
  const bool open =
      std::any_of(edges.edges.begin(), edges.edges.end(), [](const auto& e) { return e.end - e.begin == 1; });
  std::string how;
  if (open) {
    SurfaceAdaptOptions o;
    o.adapt.size_min = size_min;
    o.adapt.size_max = size_max;
    o.adapt.refine_angle = a.bend * std::numbers::pi / 180;
    o.adapt.aspect_min = a.aspect;
    o.feature_angle = a.feature_angle;
    SurfaceAdaptReport r;
    file.mesh = adapted_surface(input, o, a.input, &r);
    how = fmt::format("; {} splits, {} flips, {} collapses", r.splits, r.flips, r.collapses);
  } else {
    for (const std::string& d : surface_defects(input))
      throw Error(ErrorKind::kInput, fmt::format("{}: {}", a.input, d));
    RemeshOptions o;
    o.edge = size_max;
    o.feature_angle = a.feature_angle;
    file.mesh = remesh_surface(input, o);
    how = "; it is closed: edges of one length, --size-max";
  }
  write(a, file);
  const QualitySummary q = summarize_quality(file.triangles());
  print(fmt::format("{}: {}{}; edges {:.4g} to {:.4g} m", a.output, counts(file), how, q.edge_least,
                    q.edge_most));
  return 0;
}

int generate(const MeshArguments& a) {
  const auto need = [&](const auto& list, std::size_t n, const char* option) {
    if (list.size() != n)
      throw Error(ErrorKind::kUsage,
                  fmt::format("--{} has {} numbers, expected {} for a {}", option, list.size(), n, a.shape));
  };
  MeshFile file;
  if (a.shape == "box" || a.shape == "bar") {
    need(a.size, 3, "size");
    need(a.nodes, 3, "nodes");
    file.mesh = make_box({a.size[0], a.size[1], a.size[2]}, {a.nodes[0], a.nodes[1], a.nodes[2]});
  } else if (a.shape == "sphere") {
    file.mesh = make_sphere(a.radius, a.edge);
  } else if (a.shape == "capsule") {
    file.mesh = make_capsule(a.radius, a.length, a.edge);
  } else if (a.shape == "cylinder") {
    file.mesh = make_cylinder(a.radius, a.length, a.edge);
  } else if (a.shape == "torus") {
    file.mesh = make_torus(a.radius, a.tube_radius, a.edge);
  } else {
    if (a.size.size() < 2 || a.nodes.size() < 2) need(a.size, 2, "size and --nodes");
    file.mesh = make_rectangle({a.size[0], a.size[1]}, {a.nodes[0], a.nodes[1]});
  }
  write(a, file);
  print(fmt::format("{}: {}", a.output, counts(file)));
  return 0;
}

int tet(const MeshArguments& a) {
  std::vector<std::string> notices;
  TriMesh input = read_surface(a.input, &notices);
  TetrahedralizeOptions options;
  options.vertices = a.vertices;
  options.wrap = a.wrap || a.thin;
  options.thin = a.thin;
  options.feature_angle = a.feature_angle;
  options.ratio = a.ratio;
  options.angle = a.angle;
  if (!a.quiet) options.progress = tell;
  place(input.nodes, a);
  MeshFile file;
  try {
    TetMesh mesh;
    if (a.spacing > 0) {
      for (const std::string& n : clean_surface(input)) notices.push_back(n);
      for (const std::string& n : orient_surface(input)) notices.push_back(n);
      if (input.triangles.empty()) throw Error(ErrorKind::kInput, "the surface has no triangles with area");
      StuffOptions stuff;
      stuff.spacing = a.spacing;
      mesh = stuff_isosurface(surface_depth(input), bounding_box(input.nodes), stuff);
    } else {
      mesh = tetrahedralize(input, options, &notices);
    }
    if (a.stand) {  // wrapping may have lifted it by a hair
      MeshArguments again;
      again.stand = true;
      place(mesh.nodes, again);
    }
    round_positions(mesh.nodes);
    file.mesh = std::move(mesh);
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("{}: {}", a.input, e.what()));
  }
  for (const std::string& n : notices) tell(fmt::format("{}: {}", a.input, n));
  write(a, file);
  const QualitySummary q = summarize_quality(file.tets());
  print(fmt::format("{}: {}; radius ratio at least {:.3f}, mean {:.3f}", a.output, counts(file), q.least,
                    q.mean));
  return 0;
}

}  // namespace

void add_mesh_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* mesh = app.add_subcommand("mesh", "Look at, make and convert meshes");
  mesh->require_subcommand(1);
  auto a = std::make_shared<MeshArguments>();
  const auto command = [&](const char* name, const char* help, int (*work)(const MeshArguments&)) {
    CLI::App* sub = mesh->add_subcommand(name, help);
    sub->callback([&action, a, work] { action = [a, work] { return work(*a); }; });
    return sub;
  };
  const auto output = [&](CLI::App* sub) {
    sub->add_option("-o,--output", a->output, "File to write; its ending chooses the format")->required();
    sub->add_flag("--ascii", a->text, "Write .msh and .ply as text");
  };
  const auto placing = [&](CLI::App* sub) {
    sub->add_option("--scale", a->scale, "Multiply all lengths")->check(more_than_zero());
    sub->add_option("--fit", a->fit, "Scale so that the longest side is this long [m]")
        ->check(more_than_zero());
    sub->add_flag("--stand", a->stand, "Put the lowest point at y = 0 and the middle over the origin");
  };

  CLI::App* sub = command("info", "Counts, size, sets, quality and problems of a mesh", info);
  sub->add_option("file", a->input, "Mesh file")->required();

  sub = command("convert", "Read one format, write another", convert);
  sub->add_option("input", a->input, "Mesh file")->required();
  sub->add_option("output", a->output, "File to write; its ending chooses the format")->required();
  sub->add_flag("--ascii", a->text, "Write .msh and .ply as text");
  sub->add_option("--refine", a->refine, "Cut every tet into eight, every triangle into four, N times")
      ->check(whole_number(0, 4));
  placing(sub);

  sub = command("surface", "The boundary triangles of a mesh", surface);
  sub->add_option("input", a->input, "Mesh file")->required();
  output(sub);

  sub = command("remesh", "New triangles for a surface: short where it bends, long where it is flat", remesh);
  sub->add_option("input", a->input,
                  "Surface with a border (one part, one border, or with texture coordinates)")
      ->required();
  output(sub);
  sub->add_option("--size-min", a->size_min,
                  "Shortest edge to aim for [m]; without it a 50th of the longest side")
      ->check(CLI::PositiveNumber);
  sub->add_option("--size-max", a->size_max, "Longest edge [m]; without it a tenth of the longest side")
      ->check(CLI::PositiveNumber);
  sub->add_option("--bend", a->bend, "Most turn of the surface along an edge [degrees]")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 90.0));
  sub->add_option("--aspect", a->aspect, "How much shorter edges may be across a bend than along it")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 0.99));
  sub->add_option("--feature-angle", a->feature_angle, "Keep edges sharper than this [degrees]; 180: none")
      ->capture_default_str();

  sub = command("generate", "Make a simple shape", generate);
  sub->add_option("shape", a->shape, "box, bar, sphere, capsule, cylinder, torus or rectangle")
      ->required()
      ->check(CLI::IsMember({"box", "bar", "sphere", "capsule", "cylinder", "torus", "rectangle"}));
  output(sub);
  sub->add_option("--size", a->size, "Edge lengths of a box or rectangle [m]")->expected(2, 3);
  sub->add_option("--nodes", a->nodes, "Nodes along each edge of a box or rectangle")->expected(2, 3);
  sub->add_option("--radius", a->radius, "Radius [m]; of a torus: axis to middle of the tube")
      ->capture_default_str();
  sub->add_option("--tube-radius", a->tube_radius, "Radius of the tube of a torus [m]")
      ->capture_default_str();
  sub->add_option("--length", a->length, "Length of a cylinder, or of the straight part of a capsule [m]")
      ->capture_default_str();
  sub->add_option("--edge", a->edge, "Wanted edge length of round shapes [m]")->capture_default_str();

  sub = command("tet", "Fill a closed surface with tets: --spacing, or the program tetgen", tet);
  sub->add_option("surface", a->input, "Surface: .ply .obj .stl .off ...")->required();
  output(sub);
  sub->add_option("--vertices", a->vertices, "Wanted number of nodes (tetgen)")->capture_default_str();
  sub->add_option("--spacing", a->spacing, "Lattice spacing [m]: isosurface stuffing instead of tetgen")
      ->check(CLI::PositiveNumber);
  sub->add_flag("--wrap", a->wrap,
                "Rebuild a closed surface first: for scans with holes, cracks and crossings");
  sub->add_flag(
      "--thin", a->thin,
      "The same, and sheets, which have no inside, become bodies as thick as the elements are long");
  placing(sub);
  sub->add_option("--feature-angle", a->feature_angle, "Keep edges sharper than this [degrees]; 180: none")
      ->capture_default_str();
  sub->add_option("--ratio", a->ratio, "Most circumradius over shortest edge of a tet")
      ->capture_default_str();
  sub->add_option("--angle", a->angle, "Least angle between faces aimed at [degrees]")->capture_default_str();
  sub->add_flag("-q,--quiet", a->quiet, "No progress");
}

}  // namespace limber
