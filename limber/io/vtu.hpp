// VTK XML unstructured grids (.vtu) and collections (.pvd), the frames that ParaView, VTK and meshio read.
// Arrays are inline base64, which all of them understand (meshio does not read raw appended data).
#pragma once

#include <limber/mesh/mesh.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace limber {

// One array: `components` (1, 3 or 9) numbers per node or cell, item-major. The caller keeps the numbers
// alive.
struct VtuArray {
  std::string name;
  int components = 1;
  std::variant<std::span<const double>, std::span<const float>, std::span<const Index>,
               std::span<const std::uint8_t>>
      values;
};

struct VtuGrid {
  std::span<const double> points;                           // 3n, node-major [m]
  std::span<const Tet> cells;                               // -1 in last place: a triangle
  std::vector<VtuArray> point_data, cell_data, field_data;  // field_data: any length, e.g. the time
};

struct VtuOptions {
  bool compress = false;  // zlib; about half the size, several times slower to write
  bool single = false;    // doubles are stored as 32-bit floats
};

// Atomic: the file is complete or not there. Throws Error(kUsage) when an array has the wrong length,
// Error(kIo) when the file cannot be written.
void write_vtu(const std::string& path, const VtuGrid& grid, const VtuOptions& options = {});

// Whole meshes; node and element sets become 0/1 arrays called "set:<name>", which the reader turns back into
// sets.
void write_vtu(const std::string& path, const TetMesh& mesh, const VtuOptions& options = {});
void write_vtu(const std::string& path, const TriMesh& mesh, const VtuOptions& options = {});

// A time series: (time [s], file relative to the .pvd).
void write_pvd(const std::string& path, std::span<const std::pair<double, std::string>> frames);

// Base64 (RFC 4648, padded), appended to `out`; shared with the reader's tests.
void append_base64(std::string& out, std::span<const std::uint8_t> bytes);

}  // namespace limber
