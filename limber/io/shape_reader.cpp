// Bodies of round cones (.shape): not a mesh but how to make one, so that a mesh of half a million elements
// is a file of some lines. One statement a line, # begins a comment:
//   tets 531565                                about how many elements; or: spacing 0.01 [m]
//   blend 0.05                                 radius over which cones flow into each other [m]
//   cone ax ay az  bx by bz  ra rb             from a to b with radii ra and rb [m]; the body is the union
//   region bone  ax ay az  bx by bz  ra rb     elements there belong to the set "bone"; later ones win
// The mesh is kept in the cache on disk.
#include <limber/io/shape_reader.hpp>

#include <limber/core/cache.hpp>
#include <limber/mesh/round_cones.hpp>

#include <fmt/format.h>

namespace limber::io {
namespace {

constexpr std::size_t kMostCones = 10000;
constexpr double kMostTets = 2e7;

double positive(Cursor& in, const char* what) {
  const double value = in.number(what);
  if (!(value > 0)) in.fail(fmt::format("{}: found {:g}, expected a positive number", what, value));
  return value;
}

RoundCone read_cone(Cursor& in) {
  RoundCone c;
  c.a = in.point("end of a cone");
  c.b = in.point("end of a cone");
  c.ra = positive(in, "radius");
  c.rb = positive(in, "radius");
  return c;
}

}  // namespace

RawMesh read_shape(const std::string& name, std::string_view data) {
  Cursor in(name, data);
  in.comments('#');
  RoundConeBody body;
  double tets = 0, spacing = 0;
  while (in.skip_space()) {
    const std::string_view word = in.token();
    if (word == "tets")
      tets = positive(in, "number of tets");
    else if (word == "spacing")
      spacing = positive(in, "spacing");
    else if (word == "blend")
      body.blend = positive(in, "blend");
    else if (word == "cone")
      body.cones.push_back(read_cone(in));
    else if (word == "region") {
      std::string region(in.token("name of a region"));
      body.regions.emplace_back(std::move(region), read_cone(in));
    } else
      in.fail(fmt::format("found \"{}\", expected tets, spacing, blend, cone or region", word));
    if (body.cones.size() + body.regions.size() > kMostCones)
      in.fail(fmt::format("more than {} cones and regions", kMostCones));
  }
  if (body.cones.empty()) in.fail("found no cone: the body is empty");
  if ((tets > 0) == (spacing > 0)) in.fail("expected either tets or spacing, once");
  if (tets > kMostTets) in.fail(fmt::format("found {:g} tets, expected at most {:g}", tets, kMostTets));

  RawMesh raw;
  raw.format = "round cones";
  InputHash hash;
  hash.number(1).bytes(data.data(), data.size());
  CachedMatrices stored;
  if (load_cached(cache_folder(), "shape", hash.value(), stored) && stored.count("nodes") &&
      stored.count("tets")) {
    const MatX &x = stored["nodes"], &t = stored["tets"];
    for (Eigen::Index i = 0; i < x.cols(); ++i) raw.nodes.emplace_back(x.col(i));
    for (Eigen::Index e = 0; e < t.cols(); ++e)
      raw.tets.push_back({static_cast<Index>(t(0, e)), static_cast<Index>(t(1, e)),
                          static_cast<Index>(t(2, e)), static_cast<Index>(t(3, e))});
    for (const auto& [key, set] : stored) {
      if (!key.starts_with("set:") && !key.starts_with("node:")) continue;
      std::vector<Index>& to = key[0] == 's' ? raw.tet_groups[key.substr(4)] : raw.node_sets[key.substr(5)];
      for (Eigen::Index k = 0; k < set.rows(); ++k) to.push_back(static_cast<Index>(set(k, 0)));
    }
    return raw;
  }
  TetMesh mesh = mesh_body(body, spacing > 0 ? spacing : spacing_for(body, tets));
  const auto column = [](const std::vector<Index>& set) {
    MatX m(static_cast<Eigen::Index>(set.size()), 1);
    for (Eigen::Index k = 0; k < m.rows(); ++k) m(k, 0) = set[static_cast<std::size_t>(k)];
    return m;
  };
  MatX x(3, static_cast<Eigen::Index>(mesh.nodes.size())), t(4, static_cast<Eigen::Index>(mesh.tets.size()));
  for (Eigen::Index i = 0; i < x.cols(); ++i) x.col(i) = mesh.nodes[static_cast<std::size_t>(i)];
  for (Eigen::Index e = 0; e < t.cols(); ++e)
    for (int a = 0; a < 4; ++a) t(a, e) = mesh.tets[static_cast<std::size_t>(e)][static_cast<std::size_t>(a)];
  stored = {{"nodes", x}, {"tets", t}};
  for (const auto& [region, set] : mesh.element_sets) stored["set:" + region] = column(set);
  for (const auto& [key, set] : mesh.node_sets) stored["node:" + key] = column(set);
  store_cached(cache_folder(), "shape", hash.value(), stored);
  raw.nodes = std::move(mesh.nodes);
  raw.tets = std::move(mesh.tets);
  raw.tet_groups = std::move(mesh.element_sets);
  raw.node_sets = std::move(mesh.node_sets);
  return raw;
}

}  // namespace limber::io
