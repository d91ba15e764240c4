// Cloth between the model and a sheet: material coordinates, the memory, and what remeshing makes of both.
#pragma once

#include <limber/cloth/system.hpp>
#include <limber/methods/cloth/memory.hpp>
#include <limber/methods/cloth/options.hpp>
#include <limber/sim/model.hpp>

#include <map>
#include <optional>
#include <string>

namespace limber::cloth {

// How the plane rest shape of a body lies in space: rest = origin + X a + Y b.
struct Chart {
  Vec3 origin = Vec3::Zero(), a = Vec3::UnitX(), b = Vec3::UnitY();

  Vec2 material(const Vec3& rest) const { return {a.dot(rest - origin), b.dot(rest - origin)}; }
  Vec3 rest(const Vec2& X) const { return origin + X[0] * a + X[1] * b; }
};
// Of every body; empty where a body is curved at rest.
std::vector<std::optional<Chart>> find_charts(const Model& model);

// The sheet of a state. Without charts it has no material coordinates.
Sheet sheet_of(const Model& model, const State& state, const std::vector<std::optional<Chart>>& charts);
void store(const Sheet& sheet, ClothMemory& memory);

// Detection, preprocessing and remeshing before a step (lines 2 and 3 of Alg. 2.1), with velocities.
struct Prepared {
  Sheet sheet;
  std::vector<Index> origin;       // the vertex before, or -1
  std::vector<std::uint8_t> side;  // as in the memory
  bool same = true;                // vertices and triangles are those of before
  std::map<std::string, int> fallbacks;
  double detect_seconds = 0, remesh_seconds = 0;
};
// Lines of obstacles that are shorter than `size`, and corners where only such lines meet: no edge of a mesh
// with edges of that size can follow them.
std::vector<std::uint8_t> short_features(const FeatureSet& features, std::span<const Obstacle> obstacles,
                                         double size);
// `body` is that of `before`, `of_patch` the fabric of each body; contacts with features that are `too_short`
// make no vertices.
Prepared prepare(std::span<const Obstacle> obstacles, const State& state, double h, const Sheet& before,
                 const std::vector<std::uint8_t>& side, const ClothBody& body,
                 const std::vector<Fabric>& of_patch, const FeatureSet& features,
                 const std::vector<std::uint8_t>& too_short, const ClothOptions& options);

// The change of topology that it amounts to, with positions, velocities and memory.
TopologyChange change_of(const Model& model, const Prepared& prepared,
                         const std::vector<std::optional<Chart>>& charts, ClothMemory memory);

// What EOL vertices lie on, at the end of the step.
// `side` tells on which side of the cloth a wire is; may be empty.
std::vector<EolVertex> eol_vertices(const Sheet& sheet, const std::vector<std::uint8_t>& side,
                                    const FeatureSet& features, std::span<const Obstacle> obstacles, double t,
                                    double h);

}  // namespace limber::cloth
