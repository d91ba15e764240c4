#include <limber/methods/cloth/options.hpp>

#include <limber/methods/cloth/cloth.hpp>
#include <limber/methods/cloth/memory.hpp>

#include <nlohmann/json.hpp>

namespace limber {
namespace {

// clang-format off
constexpr Entry kClothEntries[] = {
    {.path = "/method[cloth]/eol", .type = Type::kBoolean, .fallback = "false", .text = "Vertices on sharp edges, corners, wires and nails let the material slide through (Eulerian-on-Lagrangian); the mesh is then conformal."},
    {.path = "/method[cloth]/mesh", .type = Type::kEnum, .fallback = "\"static\"", .values = "static adaptive conformal",
     .meanings = "the scene's mesh; the default\n"
                 "remeshed before every step where cloth bends, moves and is compressed\n"
                 "the same, with vertices and edges on the sharp features that it touches; always with eol",
     .text = "Which mesh the cloth has."},
    {.path = "/method[cloth]/normals", .type = Type::kEnum, .fallback = "\"averaged\"", .values = "averaged cone", .text = "Without eol, what holds cloth at a sharp edge: the mean of the faces' normals, or each of them (at vertices of a conformal mesh)."},
    {.path = "/method[cloth]/sharp", .type = Type::kBoolean, .fallback = "true", .text = "Edges and triangles of the cloth stop at edges and corners of obstacles, at wires and nails; false: its vertices alone touch faces."},
    {.path = "/method[cloth]/sharp_angle", .type = Type::kNumber, .unit = "degrees", .fallback = "30", .range = ranges::within(1, 179), .text = "Edges of obstacles whose faces turn by less are smooth."},
    {.path = "/method[cloth]/friction", .type = Type::kEnum, .fallback = "\"capstan\"", .values = "capstan filter", .text = "Friction of eol vertices: the limit of a rope on a capstan, or the paper's filter of velocities, which depends on the mesh."},
    {.path = "/method[cloth]/inertia_forces", .type = Type::kBoolean, .fallback = "true", .text = "Forces that follow from inertia that changes as cloth slides; the paper's step leaves them out."},
    {.path = "/method[cloth]/threshold", .type = Type::kNumber, .unit = "m", .fallback = "0.005", .range = ranges::above(0), .text = "How deep cloth may be in a sharp feature and still be found (twice, at points five times this)."},
    {.path = "/method[cloth]/size_min", .type = Type::kNumber, .unit = "m", .fallback = "0.02", .range = ranges::above(0), .text = "Remeshing: edges are not wanted shorter."},
    {.path = "/method[cloth]/size_max", .type = Type::kNumber, .unit = "m", .fallback = "0.2", .range = ranges::above(0), .text = "Remeshing: edges are not wanted longer."},
    {.path = "/method[cloth]/refine_angle", .type = Type::kNumber, .unit = "rad", .fallback = "0.3", .range = ranges::above(0), .text = "Remeshing: turn of the normal that an edge may span."},
    {.path = "/method[cloth]/refine_velocity", .type = Type::kNumber, .unit = "m/s", .fallback = "0.5", .range = ranges::above(0), .text = "Remeshing: difference of velocity that an edge may span."},
    {.path = "/method[cloth]/refine_compression", .type = Type::kNumber, .unit = "m", .fallback = "0.005", .range = ranges::above(0), .text = "Remeshing: an edge may have this length over the root of the compressive strain."},
    {.path = "/method[cloth]/aspect_min", .type = Type::kNumber, .fallback = "0.2", .range = ranges::inside(0, 1), .text = "Remeshing: how much longer triangles may be wanted in one direction than in the other, inverse."},
    {.path = "/method[cloth]/wind", .type = Type::kNumbers, .unit = "m/s", .fallback = "[0, 0, 0]", .text = "Velocity of the air, which presses on cloth as on plates; with air_density 0 there is none."},
    {.path = "/method[cloth]/air_density", .type = Type::kNumber, .unit = "kg/m^3", .fallback = "0", .range = ranges::at_least(0), .text = "Density of the air, 1.2 about; it brakes cloth in still air too. 0: no air."},
    {.path = "/method[cloth]/link_friction", .type = Type::kNumber, .fallback = "0", .range = ranges::at_least(0), .text = "Friction coefficient of cloth on the shapes of links."},
    {.path = "/method[cloth]/recovery", .type = Type::kNumber, .unit = "m/s", .fallback = "1", .range = ranges::above(0), .text = "Fastest that a vertex inside an obstacle is pushed out."},
    {.path = "/method[cloth]/offset", .type = Type::kNumber, .unit = "m", .fallback = "0", .range = ranges::at_least(0), .text = "How far vertices stay from the faces of obstacles: half the thickness of thick cloth, or what keeps round obstacles from showing through."},
    {.path = "/method[cloth]/reach", .type = Type::kNumber, .unit = "m", .fallback = "1e-3", .range = ranges::above(0), .text = "Vertices that come this near to an obstacle in a step, or nearer, are bounded by it."},
};
// clang-format on

void check_cloth(const Json& scene, const MethodSpec::Report& problem) {
  const Json& method = scene.at("method");
  if (method.value("size_min", 0.0) > method.value("size_max", 1.0))
    problem("/method/size_min", "found more than size_max, expected at most as much");
}

}  // namespace

cloth::ClothOptions cloth::ClothOptions::read(const nlohmann::json& o) {
  ClothOptions out;
  out.eol = o.at("eol");
  out.mesh = out.eol || o.at("mesh") == "conformal" ? ClothMesh::kConformal
             : o.at("mesh") == "adaptive"           ? ClothMesh::kAdaptive
                                                    : ClothMesh::kStatic;
  out.normals = o.at("normals") == "cone" ? SharpNormals::kCone : SharpNormals::kAveraged;
  out.sharp = o.at("sharp").get<bool>() || out.mesh == ClothMesh::kConformal;
  out.filter = o.at("friction") == "filter";
  out.inertia_forces = o.at("inertia_forces");
  out.sharp_angle = o.at("sharp_angle");
  out.link_friction = o.at("link_friction");
  out.detect.threshold = o.at("threshold");
  out.adapt.size_min = o.at("size_min");
  out.adapt.size_max = o.at("size_max");
  out.adapt.refine_angle = o.at("refine_angle");
  out.adapt.refine_velocity = o.at("refine_velocity");
  out.adapt.refine_compression = o.at("refine_compression");
  out.adapt.aspect_min = o.at("aspect_min");
  out.insert.size = out.adapt.size_min;
  const auto& wind = o.at("wind");
  out.wind.velocity = Vec3(wind[0], wind[1], wind[2]);
  out.wind.density = o.at("air_density");
  out.contact.recovery = o.at("recovery");
  out.contact.offset = o.at("offset");
  out.contact.reach = o.at("reach");
  return out;
}

constinit const Method cloth_method{
    .spec = {.name = "cloth",
             .summary =
                 "cloth: membrane and bending, contact as bounds on velocities, sliding over sharp edges",
             .entries = kClothEntries,
             .can = {.links = true,
                     .link_contact = true,
                     .obstacles = true,
                     .plane = false,
                     .cloth = true,
                     .bending = true,
                     .wires = true,
                     .cuts = false},
             .check = check_cloth},
    .make = make_cloth,
    .memory = [] { return MethodMemory::of(cloth::ClothMemory{}, 0); }};

}  // namespace limber
