#include <limber/methods/cloth/options.hpp>

#include <limber/methods/cloth/cloth.hpp>
#include <limber/methods/cloth/memory.hpp>

#include <nlohmann/json.hpp>

namespace limber {
namespace {

// clang-format off
constexpr Entry kClothEntries[] = {
    {.path = "/method[cloth]/wind", .type = Type::kNumbers, .unit = "m/s", .fallback = "[0, 0, 0]", .text = "Velocity of the air, which presses on cloth as on plates; with air_density 0 there is none."},
    {.path = "/method[cloth]/air_density", .type = Type::kNumber, .unit = "kg/m^3", .fallback = "0", .range = ranges::at_least(0), .text = "Density of the air, 1.2 about; it brakes cloth in still air too. 0: no air."},
    {.path = "/method[cloth]/recovery", .type = Type::kNumber, .unit = "m/s", .fallback = "1", .range = ranges::above(0), .text = "Fastest that a vertex inside an obstacle is pushed out."},
    {.path = "/method[cloth]/offset", .type = Type::kNumber, .unit = "m", .fallback = "0", .range = ranges::at_least(0), .text = "How far vertices stay from the faces of obstacles: half the thickness of thick cloth, or what keeps round obstacles from showing through."},
    {.path = "/method[cloth]/reach", .type = Type::kNumber, .unit = "m", .fallback = "1e-3", .range = ranges::above(0), .text = "Vertices that come this near to an obstacle in a step, or nearer, are bounded by it."},
};
// clang-format on

}  // namespace

cloth::ClothOptions cloth::ClothOptions::read(const nlohmann::json& o) {
  ClothOptions out;
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
             .summary = "cloth: membrane and bending, contact as bounds on velocities",
             .entries = kClothEntries,
             .can = {.obstacles = true, .plane = false, .cloth = true, .bending = true, .cuts = false}},
    .make = make_cloth,
    .memory = [] { return MethodMemory::of(cloth::ClothMemory{}, 0); }};

}  // namespace limber
