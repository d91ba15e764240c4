// A recording in other programs' formats.
#pragma once

#include <limber/io/replay.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace limber::view {

struct ExportOptions {
  std::string format;  // "obj", "ply", "vtu", "glb", "pc2", "mdd", "npz"
  // Names of recorded fields, or "displacement"; empty: all that the format can hold.
  std::vector<std::string> fields;
  std::string body;            // only this one; empty: all together
  bool each_body = false;      // one file (or sequence) per body
  Index first = 0, last = -1;  // frames; -1: the last one
  Index every = 1;
  bool compress = false;  // vtu and npz
  std::function<void(Index done, Index total)> progress;
};

// obj, ply: `target` is a folder that receives NAME_000012.obj; vtu: a folder with frames and run.pvd; glb,
// pc2, mdd, npz: a file. Of a body that carries a surface (ReplaySurface) obj, ply, glb, pc2 and mdd have
// that surface. Returns what was written, sequences as their first file. Throws Error(kUsage) for an unknown
// format, field or body.
std::vector<std::filesystem::path> export_run(const ReplayReader& reader, const ExportOptions& options,
                                              const std::filesystem::path& target);

// Which frames the options name.
std::vector<Index> chosen_frames(const ReplayReader& reader, const ExportOptions& options);

// The part of a topology that belongs to one body (or all): nodes and elements in use, and the topology with
// their numbers.
struct Part {
  std::vector<Index> nodes, elements;  // of the whole
  ReplayTopology topology;
};
Part part_of(const ReplayTopology& whole, const std::string& body, bool surface_only);

// glTF 2.0 with the motion as morph targets: the frames are written as combinations of a few shapes
// (principal components), as many as are needed to be within `tolerance` times the size of the body.
struct GlbOptions {
  double tolerance = 2e-4;
  int max_targets = 64;
};
void write_glb(const ReplayReader& reader, const ExportOptions& options, const std::filesystem::path& path,
               const GlbOptions& glb = {});

}  // namespace limber::view
