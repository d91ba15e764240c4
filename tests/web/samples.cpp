// Recordings, pages and exports for the browser tests, and what must be found in them.
//   view_samples FOLDER            writes everything
//   view_samples --live FOLDER     serves FOLDER/live and records into it slowly; prints the address
#include <limber/cloth/insert.hpp>
#include <limber/core/error.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/view/compare.hpp>
#include <limber/view/export.hpp>
#include <limber/view/image.hpp>
#include <limber/view/page.hpp>
#include <limber/view/picture.hpp>
#include <limber/view/server.hpp>

#include "synthetic.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <thread>

using namespace limber;
namespace fs = std::filesystem;

namespace {

// Positions of some nodes in some frames, straight from the recording.
nlohmann::json truth(const fs::path& recording) {
  const ReplayReader r(recording);
  nlohmann::json out{{"frames", r.frame_count()}, {"samples", nlohmann::json::array()}};
  for (Index f : {0, 1, r.frame_count() / 2 - 1, r.frame_count() / 2, r.frame_count() - 1}) {
    const ReplayFrame frame = r.frame(f);
    const auto n = static_cast<Index>(frame.x.size() / 3);
    for (Index i : {0, 1, n / 3, n / 2, n - 1}) {
      const auto k = 3 * static_cast<std::size_t>(i);
      out["samples"].push_back(
          {{"frame", f}, {"node", i}, {"x", {frame.x[k], frame.x[k + 1], frame.x[k + 2]}}});
    }
  }
  return out;
}

std::string slurp(const fs::path& p) {
  std::ifstream in(p, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void spill(const fs::path& p, const std::string& s) { std::ofstream(p, std::ios::binary) << s; }

void make_run(const fs::path& folder, const test::BarOptions& o) {
  fs::create_directories(folder);
  test::write_bar(folder / "replay.lmr", o);
  view::write_page(folder / "replay.lmr", folder / "index.html");
  spill(folder / "truth.json", truth(folder / "replay.lmr").dump());
}

// A cloth that is drawn over the edge of a box, remeshed in every frame: its material runs along the top and
// then down.
void write_cloth(const fs::path& path) {
  constexpr double edge = 0.55;
  Obstacle box;
  box.shape = ObstacleShape::kBox;
  box.half_size = {0.5, 1, 1};  // higher than the cloth will hang
  box.start.origin = {edge - 0.5, 0.5, -1};
  const std::vector<Obstacle> obstacles{box};
  const FeatureSet features = find_features(obstacles);
  Sheet s = sheet_from_mesh(make_rectangle({1, 1}, {9, 9}), "cloth");
  AdaptOptions adapt;
  adapt.size_min = 0.03;
  adapt.size_max = 0.06;
  InsertOptions insert;
  insert.size = adapt.size_min;
  ReplayHeader header;
  header.scene = "sliding cloth";
  header.method = "formula";
  header.gravity = {0, 0, -9.81};
  ReplayObstacle shown;
  shown.shape = "box";
  shown.point = box.start.origin;
  shown.size = 2 * box.half_size;
  header.obstacles = {shown};
  ReplayWriter w = ReplayWriter::create(path, header);
  for (Index i = 0; i < 40; ++i) {
    for (Index part = 0; part < 8; ++part) {  // never further than the triangles are high
      const double shift = 0.01 * (i + part / 7.0 - 1) * (i > 0);
      for (Index v = 0; v < s.vertices(); ++v) {
        if (s.eol(v)) s.X[v][0] = edge - shift;
        const double run = s.X[v][0] + shift - edge;
        s.x[v] = run <= 0 || i == 0 ? Vec3(edge + run, s.X[v][1], 0) : Vec3(edge, s.X[v][1], -run);
      }
      const auto contacts = detect_features(features, obstacles, s, 0, 0.005, {});
      s = insert_and_adapt(s, features, obstacles, 0, contacts, insert, adapt).change.sheet;
    }
    check_sheet(s, "cloth sample");
    ReplayTopology t;
    t.step = i;
    ReplayFrame f;
    f.t = 0.02 * i;
    f.step = i;
    ReplayField u{"material_u", "m", 1, {}}, v{"material_v", "m", 1, {}}, eol{"eol", "", 1, {}};
    for (Index k = 0; k < s.vertices(); ++k) {
      for (int d = 0; d < 3; ++d) {
        t.rest.push_back(d < 2 ? static_cast<float>(s.X[k][d]) : 0.0f);
        f.x.push_back(static_cast<float>(s.x[k][d]));
      }
      u.values.push_back(static_cast<float>(s.X[k][0]));
      v.values.push_back(static_cast<float>(s.X[k][1]));
      const bool line = s.eol(k) && features[s.feature[k]].line();
      eol.values.push_back(static_cast<float>(line ? s.feature[k] + 1 : s.eol(k) ? -s.feature[k] - 1 : 0));
    }
    for (const Tri& tri : s.triangles) {
      t.surface_element.push_back(static_cast<Index>(t.elements.size()));
      t.elements.push_back({tri[0], tri[1], tri[2], -1});
      t.surface.push_back(tri);
    }
    t.element_fields.push_back({"cloth", "", 1, std::vector<float>(t.elements.size(), 1)});
    t.bodies = {{"cloth", 0, s.faces()}};
    f.node_fields = {u, v, eol};
    f.obstacles.resize(1);
    w.add_topology(t);
    w.add_frame(f);
  }
  w.finish(nullptr);
}

void write_all(const fs::path& root) {
  fs::remove_all(root);
  test::BarOptions bar;
  bar.frames = 60;
  make_run(root / "bar", bar);

  test::BarOptions cut = bar;
  cut.cut = true;
  cut.frames = 30;
  make_run(root / "cut", cut);

  test::BarOptions other = bar;
  other.amplitude = 0.42;
  make_run(root / "other", other);

  // A reduced run, and the same motion recorded by positions.
  test::BarOptions reduced = bar;
  reduced.functions = 24;
  reduced.frames = 40;
  make_run(root / "reduced", reduced);
  reduced.positions = true;
  make_run(root / "positions", reduced);

  // The same page without the inside, and one that must leave out frames and precision.
  fs::create_directories(root / "small");
  test::BarOptions rough = bar;
  rough.noise = 0.01;  // cannot be compressed
  rough.frames = 140;
  rough.obstacle = false;
  test::write_bar(root / "small" / "replay.lmr", rough);
  view::PageOptions little;
  little.max_bytes = 1.0e6;
  const view::PageReport small =
      view::write_page(root / "small" / "replay.lmr", root / "small" / "index.html", little);
  spill(root / "small" / "truth.json", truth(root / "small" / "replay.lmr").dump());
  std::printf("small: %zu bytes, %d frames, error %g\n", small.bytes, small.frames, small.error);

  // A run that ended before its first frame, with and without its body.
  fs::create_directories(root / "empty");
  ReplayHeader header;
  header.scene = "empty run";
  header.method = "conjac";
  {
    ReplayWriter w = ReplayWriter::create(root / "empty" / "replay.lmr", header);
    w.add_topology(test::bar_topology(bar, false));
  }
  view::write_page(root / "empty" / "replay.lmr", root / "empty" / "index.html");
  fs::create_directories(root / "nothing");
  { ReplayWriter::create(root / "nothing" / "replay.lmr", header); }
  view::write_page(root / "nothing" / "replay.lmr", root / "nothing" / "index.html");

  // A recording whose tail is lost, one that is not a recording, and a page with a damaged block.
  fs::create_directories(root / "truncated");
  const std::string whole = slurp(root / "bar" / "replay.lmr");
  spill(root / "truncated" / "replay.lmr", whole.substr(0, whole.size() / 2));
  view::write_page(root / "truncated" / "replay.lmr", root / "truncated" / "index.html");
  fs::create_directories(root / "garbage");
  spill(root / "garbage" / "replay.lmr", "this is <b>not</b> a recording </script>");
  view::write_page(root / "garbage" / "replay.lmr", root / "garbage" / "index.html");
  fs::create_directories(root / "damaged");
  std::string html = slurp(root / "bar" / "index.html");
  const std::size_t block = html.find("id=\"limber-ag32\"");
  if (block == std::string::npos) throw Error(ErrorKind::kIo, "the sample page has no second group");
  html[block + 400] = html[block + 400] == 'A' ? 'B' : 'A';
  spill(root / "damaged" / "index.html", html);
  html = slurp(root / "bar" / "index.html");
  spill(root / "damaged" / "topology.html", html.erase(html.find("id=\"limber-ae0\"") + 100, 50));
  html = slurp(root / "bar" / "index.html");
  spill(root / "damaged" / "manifest.html", html.erase(html.find("\"mode\":\"run\"") - 3, 5));

  fs::create_directories(root / "cloth");
  write_cloth(root / "cloth" / "replay.lmr");
  view::write_page(root / "cloth" / "replay.lmr", root / "cloth" / "index.html");
  spill(root / "cloth" / "truth.json", truth(root / "cloth" / "replay.lmr").dump());

  // Names that would break out of the page if they were not escaped.
  fs::create_directories(root / "escape");
  ReplayHeader nasty;
  nasty.scene = "</script><script>window.broken = 1</script><!--";
  nasty.description = "/*MANIFEST*/ <!--BLOCKS--> \xff";
  nasty.method = "<img src=x onerror='window.broken = 2'>";
  *nasty.facts = {{"<b>bold</b>", "</title>"}};
  {
    ReplayWriter w = ReplayWriter::create(root / "escape" / "replay.lmr", nasty);
    w.add_topology(test::bar_topology(bar, false));
    ReplayFrame f;
    f.x = test::bar_topology(bar, false).rest;
    w.add_frame(f);
    w.finish(nullptr);
  }
  view::write_page(root / "escape" / "replay.lmr", root / "escape" / "index.html");

  const ReplayReader a(root / "bar" / "replay.lmr"), b(root / "other" / "replay.lmr"),
      c(root / "cut" / "replay.lmr");
  const std::vector<std::string> labels{"reference", "bent more"};
  const view::Comparison result = view::compare_runs({&a, &b}, labels);
  view::write_compare_page({&a, &b}, labels, result, root / "compare.html");
  spill(root / "compare.json",
        nlohmann::json{{"t", result.distance[1].t}, {"max", result.distance[1].max}}.dump());

  view::PictureOptions picture;
  picture.width = 320;
  picture.height = 200;
  view::write_png(root / "picture.png", view::Painter(a, picture).paint(20));
  const ReplayReader cloth(root / "cloth" / "replay.lmr");
  picture.color = "plain";
  view::write_png(root / "cloth.png", view::Painter(cloth, picture).paint(30));

  for (const char* format : {"obj", "ply", "vtu", "npz", "glb"}) {
    view::ExportOptions o;
    o.format = format;
    const bool file = o.format == "npz" || o.format == "glb";
    view::export_run(a, o, root / "export" / (file ? "bar." + o.format : o.format));
    view::export_run(c, o, root / "export" / (file ? "cut." + o.format : o.format + "_cut"));
    if (!file) view::export_run(cloth, o, root / "export" / (o.format + "_cloth"));
    o.compress = true;
    o.every = 7;
    o.fields = {"velocity", "energy_density"};
    view::export_run(a, o, root / "export" / (file ? "few." + o.format : o.format + "_few"));
  }
}

// Records a run slowly, as a simulation would, while a page follows it.
int live(const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  const view::LiveServer server(folder);
  std::printf("%s\n", server.address().c_str());
  std::fflush(stdout);
  const test::BarOptions o;
  const ReplayTopology topology = test::bar_topology(o, false);
  ReplayHeader header;
  header.scene = "live run";
  header.method = "formula";
  std::this_thread::sleep_for(std::chrono::seconds(1));  // a page may be there before the recording
  ReplayWriter w = ReplayWriter::create(folder / "replay.lmr", header);
  w.add_topology(topology);
  char word[16] = {};
  for (Index i = 0; std::fgets(word, sizeof word, stdin); ++i) {  // one frame per line of input; "end" ends
    if (std::strncmp(word, "end", 3) == 0) w.finish({{"wall time [s]", 1.0}});
    if (std::strncmp(word, "end", 3) == 0) continue;
    ReplayFrame f;
    f.t = 0.02 * i;
    f.step = i;
    f.x = test::bar_positions(topology, o, f.t, false);
    w.add_row({i, f.t, {{"energy/kinetic", 1.0 + i}, {"energy/elastic", 2.0}}});
    w.add_frame(f);
    std::printf("%d %.9g\n", i, double(f.x[f.x.size() - 2]));
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::strcmp(argv[1], "--live") == 0) return live(argv[2]);
    if (argc != 2) return 1;
    write_all(argv[1]);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "view_samples: %s\n", e.what());
    return 1;
  }
}
