// Surfaces that bodies carry, in other programs' formats: with the points, faces, texture coordinates and
// materials of the file that they came from.
#pragma once

#include <limber/view/export.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace limber::view {

// Those of the chosen body, or all.
std::vector<const ReplaySurface*> chosen_surfaces(const ReplayTopology& topology, const std::string& body);

// One frame: `file` names the .obj, whose materials are in STEM.mtl and images beside it
// (write_carried_materials). Materials and images of the same name get numbers.
void write_carried_obj(const std::filesystem::path& file, const std::string& materials,
                       const std::vector<const ReplaySurface*>& surfaces, const ReplayTopology& topology,
                       const std::vector<float>& x);
void write_carried_materials(const std::filesystem::path& folder, const std::string& name,
                             const std::vector<const ReplaySurface*>& surfaces,
                             const ReplayTopology& topology);
void write_carried_ply(const std::filesystem::path& file, const std::vector<const ReplaySurface*>& surfaces,
                       const ReplayTopology& topology, const ReplayFrame& frame);

// Point caches, which Blender's Mesh Cache modifier and other programs read: the points of all surfaces in
// the order of the .obj, frame after frame. "pc2" (little-endian) or "mdd" (big-endian, with times).
void write_point_cache(const ReplayReader& reader, const ExportOptions& options,
                       const std::filesystem::path& file);

}  // namespace limber::view
