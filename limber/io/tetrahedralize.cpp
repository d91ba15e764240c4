#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/io/tetrahedralize.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/remesh.hpp>
#include <limber/mesh/smooth.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

extern char** environ;

namespace limber {
namespace {

// A folder that is gone when this is.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "limber-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: cannot create a folder: {}", pattern, std::strerror(errno)));
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Runs a program, its output into `log`; the exit status, or -1 when it could not be started.
int run(const std::vector<std::string>& command, const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& s : command) argv.push_back(const_cast<char*>(s.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return -1;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string last_lines(const std::string& text, int lines) {
  std::size_t at = text.size();
  while (at > 0 && lines >= 0)
    if (text[--at] == '\n') --lines;
  return text.substr(at > 0 ? at + 1 : 0);
}

std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& l : lines) text += (text.empty() ? "" : "; ") + l;
  return text;
}

}  // namespace

TetMesh run_tetgen(const TriMesh& surface, double ratio, double angle) {
  const TemporaryFolder folder;
  std::string text = fmt::format("{} 3 0 0\n", surface.nodes.size());
  auto to = std::back_inserter(text);
  for (std::size_t i = 0; i < surface.nodes.size(); ++i)
    fmt::format_to(to, "{} {} {} {}\n", i, surface.nodes[i][0], surface.nodes[i][1], surface.nodes[i][2]);
  fmt::format_to(to, "{} 0\n", surface.triangles.size());
  for (const Tri& t : surface.triangles) fmt::format_to(to, "3 {} {} {}\n", t[0], t[1], t[2]);
  text += "0\n0\n";  // no holes, no regions
  write_file_atomic(folder.file("in.smesh"), text);

  // p: fill a surface; q: quality; Y: keep the surface's own triangles; Q: quiet.
  const std::string switches = fmt::format("-pq{:.3f}/{:.3f}YQ", ratio, angle);
  const int status = run({"tetgen", switches, folder.file("in.smesh")}, folder.file("log"));
  if (status == -1 || status == 127)
    throw Error(ErrorKind::kIo, "making tets needs the program tetgen: apt install tetgen");
  std::error_code none;
  if (status != 0 || !std::filesystem::exists(folder.file("in.1.ele"), none))
    throw Error(ErrorKind::kInput, fmt::format("tetgen {} failed with status {}; it said:\n{}", switches,
                                               status, last_lines(read_file(folder.file("log")), 8)));
  for (const char* part : {"in.1.face", "in.1.edge"}) std::filesystem::remove(folder.file(part), none);
  MeshFile file = read_mesh(folder.file("in.1.node"));
  TetMesh mesh = std::move(file.tets());
  mesh.node_sets.clear();
  mesh.element_sets.clear();
  return mesh;
}

TetMesh tetrahedralize(const TriMesh& input, const TetrahedralizeOptions& options,
                       std::vector<std::string>* notices) {
  const auto say = [&](const std::string& line) {
    if (options.progress) options.progress(line);
  };
  const auto note = [&](const std::string& line) {
    if (notices) notices->push_back(line);
  };
  if (options.vertices < 10)
    throw Error(ErrorKind::kUsage, fmt::format("{} vertices wanted, expected at least 10", options.vertices));
  TriMesh surface = input;
  for (const std::string& s : clean_surface(surface)) note(s);
  if (surface.triangles.empty()) throw Error(ErrorKind::kInput, "the surface has no triangles with area");
  for (const std::string& s : orient_surface(surface)) note(s);

  // About one node in five is inside when bodies are as thin as scanned creatures are; the search corrects
  // this.
  const auto first_guess = [&](const TriMesh& s) {
    return std::sqrt(1.25 * surface_area(s) / (0.866 * options.vertices));
  };
  double edge = first_guess(surface);
  if (options.wrap) {
    const TriMesh original = std::move(surface);
    say(fmt::format("wrapping {} triangles at a spacing of {:.3g} m", original.triangles.size(), edge / 2));
    surface = wrap_surface(original, edge / 2, options.thin);
    // Parts inside others count in the area of the input only; thin ones get a second side, and are as thick
    // as the spacing says.
    const double better = first_guess(surface);
    if (better < 0.9 * edge || (options.thin && better > 1.1 * edge)) {
      say(fmt::format("wrapping again at {:.3g} m", better / 2));
      surface = wrap_surface(original, better / 2, options.thin);
    }
    edge = better;
    const int dropped = drop_small_parts(surface, 0.01);
    if (dropped > 0)
      note(fmt::format("dropped {} separate parts smaller than a hundredth of the largest", dropped));
  } else {
    say(fmt::format("checking {} triangles", surface.triangles.size()));
    const std::vector<std::string> defects = surface_defects(surface);
    if (!defects.empty())
      throw Error(
          ErrorKind::kInput,
          join(defects) + "; mend the surface, or let --wrap rebuild it without its holes and crossings");
  }
  const double volume = enclosed_volume(surface);

  TetMesh best;
  double best_miss = std::numeric_limits<double>::infinity();
  double power = 2.2;  // nodes ~ edge^-power: 2 for shells, 3 for solid blocks
  double last_edge = 0, last_nodes = 0;
  for (int attempt = 0; attempt < 8 && best_miss > 0.02; ++attempt) {
    RemeshOptions remesh;
    remesh.edge = edge;
    remesh.feature_angle = options.feature_angle;
    const TriMesh fine = remesh_surface(surface, remesh);
    const std::vector<std::string> defects = surface_defects(fine);
    if (!defects.empty())
      throw Error(
          ErrorKind::kInput,
          fmt::format(
              "the surface remeshed to edges of {:.3g} m is not fit for tets: {}; it has parts thinner "
              "than that: ask for more vertices{}",
              edge, join(defects), options.wrap ? "" : " or use --wrap"));
    TetMesh mesh = run_tetgen(fine, options.ratio, options.angle);
    const double nodes = static_cast<double>(mesh.nodes.size());
    say(fmt::format("edge {:.4g} m: {} surface nodes, {} nodes, {} tets", edge, fine.nodes.size(),
                    mesh.nodes.size(), mesh.tets.size()));
    const double miss = std::abs(nodes / options.vertices - 1);
    if (miss < best_miss) {
      best_miss = miss;
      best = std::move(mesh);
    }
    if (last_nodes > 0 && std::abs(edge / last_edge - 1) > 1e-3)
      power = std::clamp(-std::log(nodes / last_nodes) / std::log(edge / last_edge), 1.5, 3.5);
    last_edge = edge;
    last_nodes = nodes;
    edge *= std::clamp(std::pow(nodes / options.vertices, 1 / power), 0.5, 2.0);
  }
  if (best_miss > 0.02)
    note(fmt::format("has {} nodes; {} were wanted, but the number jumps there", best.nodes.size(),
                     options.vertices));
  double filled = 0;
  for (const Tet& t : best.tets) filled += tet_volume(best.nodes, t);
  if (std::abs(filled / volume - 1) > 0.03)
    note(fmt::format("the volume changed by {:+.1f} % on the way to this resolution",
                     100 * (filled / volume - 1)));
  smooth_nodes(best);
  return best;
}

}  // namespace limber
