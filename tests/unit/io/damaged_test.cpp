// Readers against files that are wrong.
#include "fixtures.hpp"

#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/mesh/check.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <random>

namespace limber {
namespace {

using test::fixture;
using test::fixtures;

// The message of the Error(kInput) that reading throws; empty when it does not throw.
std::string complaint(const std::string& name, std::string_view data, std::string_view second = {}) {
  try {
    parse_mesh(name, data, second);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return e.what();
  }
  return "";
}

struct Case {
  const char* name;
  std::string data;
  const char*
      message;  // must be in what() and is all of it but for the file's name when it starts with ':' or ','
  std::string second = {};
};

void expect_explained(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const std::string what = complaint(c.name, c.data, c.second);
    EXPECT_NE(what.find(c.message), std::string::npos) << "expected: " << c.message << "\nit says:  " << what;
  }
}

const std::string kMsh = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n";
const std::string kMsh2 = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n";
const std::string kNodes2 = "$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n$EndNodes\n";
const std::string kNodes4 = "$Nodes\n1 4 1 4\n3 1 0 4\n1\n2\n3\n4\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n$EndNodes\n";
const std::string kVtk = "# vtk DataFile Version 3.0\nt\nASCII\nDATASET UNSTRUCTURED_GRID\n";
const std::string kVtkPoints = "POINTS 4 float\n0 0 0 1 0 0 0 1 0 0 0 1\n";

std::string vtu(const std::string& points, const std::string& cells, const std::string& head = "") {
  return "<VTKFile type=\"UnstructuredGrid\" " + head +
         "><UnstructuredGrid><Piece NumberOfPoints=\"4\" NumberOfCells=\"1\"><Points><DataArray "
         "type=\"Float64\" "
         "NumberOfComponents=\"3\" format=\"ascii\">" +
         points + "</DataArray></Points><Cells>" + cells + "</Cells></Piece></UnstructuredGrid></VTKFile>";
}
std::string cells(const std::string& connectivity, const std::string& offsets, const std::string& types) {
  const auto array = [](const char* name, const std::string& text) {
    return std::string("<DataArray type=\"Int32\" Name=\"") + name + "\" format=\"ascii\">" + text +
           "</DataArray>";
  };
  return array("connectivity", connectivity) + array("offsets", offsets) + array("types", types);
}
const std::string kPoints = "0 0 0 1 0 0 0 1 0 0 0 1";

std::string ply(const std::string& body, const char* vertices = "3", const char* faces = "1") {
  return std::string("ply\nformat ascii 1.0\nelement vertex ") + vertices +
         "\nproperty float x\nproperty float y\nproperty float z\nelement face " + faces +
         "\nproperty list uchar int vertex_indices\nend_header\n" + body;
}

std::string binary_stl(std::uint32_t announced, std::size_t triangles, float x = 1) {
  std::string s(80, ' ');
  s.append(reinterpret_cast<const char*>(&announced), 4);
  for (std::size_t t = 0; t < triangles; ++t) {
    const float v[12] = {0, 0, 1, 0, 0, 0, x, 0, 0, 0, 1, 0};
    s.append(reinterpret_cast<const char*>(v), sizeof v);
    s.append(2, '\0');
  }
  return s;
}

TEST(Damaged, Msh) {
  expect_explained(
      {Case{"a.msh", "", "a.msh:1: found the end of the file, expected \"$MeshFormat\""},
       Case{"a.msh", "solid x", "expected \"$MeshFormat\""},
       Case{"a.msh", "$MeshFormat\n3 0 8\n$EndMeshFormat\n",
            "a.msh:2: found MSH version \"3\", expected 2.2 or 4.1"},
       Case{"a.msh", std::string("$MeshFormat\n4.1 1 8\n\7\0\0\0\n", 25),
            "byte 20: found 7, expected the number 1"},
       Case{"a.msh", kMsh, "no section $Nodes"},
       Case{"a.msh", kMsh + kNodes4, "no tets and no triangles"},
       Case{"a.msh", kMsh2 + "$Nodes\n1\n1 0 0 nan\n",
            "a.msh:6: found \"nan\" as a node coordinate, expected a finite"},
       Case{"a.msh", kMsh2 + "$Nodes\n1\n1 0 0 1e999\n", "expected a finite number"},
       Case{"a.msh", kMsh2 + "$Nodes\n1\n1 0 0 x\n", "expected a number"},
       Case{"a.msh", kMsh2 + "$Nodes\n999999999999\n1 0 0 0\n",
            "a.msh:5: found 999999999999 as the number of nodes"},
       Case{"a.msh", kMsh2 + "$Nodes\n2000000000\n1 0 0 0\n", "only 9 bytes are left"},
       Case{"a.msh", kMsh2 + "$Nodes\n-3\n1 0 0 0\n", "found -3 as the number of nodes, expected at least 0"},
       Case{"a.msh", kMsh2 + "$Nodes\n1\n1 0 0 0\n2 0 0 0\n$EndNodes\n",
            "found \"2\", expected \"$EndNodes\""},
       Case{"a.msh", kMsh2 + "$Nodes\n2\n1 0 0 0\n1 0 0 1\n$EndNodes\n", "two nodes have the tag 1"},
       Case{"a.msh", kMsh2 + kNodes2 + "$Elements\n1\n1 4 0 1 2 3 5\n$EndElements\n", "names node 5"},
       Case{"a.msh", kMsh2 + kNodes2 + "$Elements\n1\n1 5 0 1 2 3 4 1 2 3 4\n$EndElements\n", "hexahedra"},
       Case{"a.msh", kMsh2 + kNodes2 + "$Elements\n1\n1 999 0 1 2 3 4\n$EndElements\n", "element type 999"},
       Case{"a.msh", kMsh2 + kNodes2 + "$Elements\n1\n1 4 0 1 2 3\n$EndElements\n", "found \"$EndElements\""},
       Case{"a.msh", kMsh2 + "$Elements\n1\n1 4 0 1 2 3 4\n$EndElements\n", "before $Nodes"},
       Case{"a.msh", kMsh2 + kNodes2 + "$Elements\n1\n1 4 0 1 2 3 3\n$EndElements\n", "without volume"},
       Case{"a.msh", kMsh2 + kNodes2 + "$Elements\n2\n1 4 0 1 2 3 4\n2 4 0 2 3 4 1\n$EndElements\n",
            "same nodes"},
       Case{"a.msh", kMsh + "$Nodes\n1 5 1 4\n3 1 0 4\n1 2 3 4\n0 0 0 1 0 0 0 1 0 0 0 1\n$EndNodes\n",
            "found 4 nodes in the blocks, expected 5"},
       Case{"a.msh", kMsh + "$Nodes\n1 4 1 4\n7 1 1 4\n1 2 3 4\n0 0 0 1 0 0 0 1 0 0 0 1\n$EndNodes\n",
            "dimension of a node block"},
       Case{"a.msh", kMsh + kNodes4 + "$Elements\n1 9 1 9\n3 1 4 1\n1 1 2 3 4\n$EndElements\n",
            "found 1 elements in the blocks, expected 9"},
       Case{"a.msh", kMsh + kNodes4 + "$Elements\n1 1 1 1\n3 1 4 99999\n1 1 2 3 4\n$EndElements\n", "99999"},
       Case{"a.msh", kMsh + "$Entities\n0 0 0 1\n1 0 0 0 1 1 1 5000000 1 0\n$EndEntities\n", "5000000"},
       Case{"a.msh", kMsh + "$PhysicalNames\n1\n3 1 left\n$EndPhysicalNames\n",
            "a.msh:6: found \"left\", expected a name"},
       Case{"a.msh", kMsh + "$Other\n1 2 3\n", "section $Other has no $EndOther"},
       Case{"a.msh", kMsh + "1 2 3\n", "found \"1\", expected a section"},
       Case{"a.msh", kMsh + kNodes4 + "$NodeData\n1\n\"u\"\n1\n0\n3\n0\n77\n4\n$EndNodeData\n",
            "number of components"}});
}

TEST(Damaged, Vtk) {
  expect_explained(
      {Case{"a.vtk", "", "expected \"# vtk DataFile Version\""},
       Case{"a.vtk", "# vtk DataFile Version 3.0\nt\nASCII\nDATASET STRUCTURED_POINTS\n",
            "STRUCTURED_POINTS"},
       Case{"a.vtk", "# vtk DataFile Version 3.0\nt\nXML\n", "expected ASCII or BINARY"},
       Case{"a.vtk", kVtk + "POINTS 4 float\n0 0 0 1 0 0 0 1 0 0 0 nan\n", "not finite"},
       Case{"a.vtk", kVtk + "POINTS 4 complex\n0 0 0 1 0 0 0 1 0 0 0 1\n", "found type \"complex\""},
       Case{"a.vtk", kVtk + "POINTS 2000000000 float\n0 0 0\n", "2000000000"},
       Case{"a.vtk", kVtk + kVtkPoints + "CELLS 1 5\n4 0 1 2 4\nCELL_TYPES 1\n10\n",
            "names node 4, expected 0 to 3"},
       Case{"a.vtk", kVtk + kVtkPoints + "CELLS 1 5\n9 0 1 2 3\nCELL_TYPES 1\n10\n", "has 9 nodes"},
       Case{"a.vtk", kVtk + kVtkPoints + "CELLS 1 5\n4 0 1 2 3\nCELL_TYPES 1\n12\n", "hexahedra"},
       Case{"a.vtk", kVtk + kVtkPoints + "CELLS 1 4\n3 0 1 2\nCELL_TYPES 1\n10\n", "has 3 nodes, expected 4"},
       Case{"a.vtk", kVtk + kVtkPoints + "CELLS 1 5\n4 0 1 2 3\nCELL_TYPES 2\n10 10\n",
            "2 cell types for 1 cells"},
       Case{"a.vtk", kVtk + kVtkPoints + "CELLS 1 5\n4 0 1 2 3\n", "0 cell types"},
       Case{"a.vtk",
            kVtk + kVtkPoints + "CELLS 2 4\nOFFSETS vtktypeint64\n0 9\nCONNECTIVITY vtktypeint64\n0 1 2 3\n",
            "found 9 as offset 1"},
       Case{"a.vtk", kVtk + kVtkPoints + "SCALARS a float\nLOOKUP_TABLE default\n1\n", "before POINT_DATA"},
       Case{"a.vtk", kVtk + kVtkPoints + "POINT_DATA 9\n", "expected 4"},
       Case{"a.vtu", "", "expected an XML file"}, Case{"a.vtu", "<a>", "expected <VTKFile>"},
       Case{"a.vtu", "<VTKFile type=\"PolyData\"/>", "expected UnstructuredGrid"},
       Case{"a.vtu", "<VTKFile type=\"UnstructuredGrid\" compressor=\"vtkLZ4DataCompressor\"/>",
            "vtkLZ4DataCompressor"},
       Case{"a.vtu", "<VTKFile type=\"UnstructuredGrid\"", "ends inside an XML tag"},
       Case{"a.vtu", "<VTKFile type=\"UnstructuredGrid\"></VTKFile>", "no <Piece>"},
       Case{"a.vtu", vtu("0 0 0 1 0 0 0 1 0 0 0 nan", cells("0 1 2 3", "4", "10")),
            "node 3 has a coordinate"},
       Case{"a.vtu", vtu("0 0 0 1 0 0 0 1 0 0 0.5", cells("0 1 2 3", "4", "10")),
            "has 11 numbers, expected 12"},
       Case{"a.vtu", vtu(kPoints + " 7", cells("0 1 2 3", "4", "10")), "more than the expected 12"},
       Case{"a.vtu", vtu(kPoints, cells("0 1 2 4", "4", "10")), "cell 0 names node 4"},
       Case{"a.vtu", vtu(kPoints, cells("0 1 2 3", "400000", "10")), "400000"},
       Case{"a.vtu", vtu(kPoints, cells("0 1 2 3", "4", "5")), "cell 0 has 4 nodes, expected 3"},
       Case{"a.vtu", vtu(kPoints, cells("0 1 2 3", "4", "42")), "VTK type 42"},
       Case{"a.vtu",
            vtu(kPoints, "<DataArray type=\"Int32\" Name=\"offsets\" format=\"ascii\">4</DataArray>"),
            "no array"},
       Case{"a.vtu",
            vtu(kPoints, "<DataArray type=\"Float32\" Name=\"offsets\" format=\"ascii\">4</DataArray>"),
            "expected integers"},
       Case{"a.vtu",
            vtu(kPoints, "<DataArray type=\"Int32\" Name=\"offsets\" format=\"binary\">AAAA</DataArray>"),
            "shorter than its header"},
       Case{"a.vtu",
            vtu(kPoints, "<DataArray type=\"Int32\" Name=\"offsets\" format=\"binary\">BA!A</DataArray>"),
            "in base64 data"},
       Case{"a.vtu",
            vtu(kPoints,
                "<DataArray type=\"Int32\" Name=\"offsets\" format=\"appended\" offset=\"99\"></DataArray>"),
            "offset 99"},
       // 0xffffffff blocks, and a block that would decompress to a terabyte.
       Case{"a.vtu",
            vtu(kPoints,
                "<DataArray type=\"Int32\" Name=\"offsets\" format=\"binary\">/////wQAAAAAAAAA</DataArray>",
                "compressor=\"vtkZLibDataCompressor\""),
            "impossible"}});
}

TEST(Damaged, Surfaces) {
  expect_explained(
      {Case{"a.obj", "v 0 0\n", "expected"},
       Case{"a.obj", "v 0 0 inf\n", "a.obj:1: found \"inf\""},
       Case{"a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 4\n", "a.obj:4: found vertex 4, but there are only 3"},
       Case{"a.obj", "v 0 0 0\nf 0 1 1\n", "numbers start at 1"},
       Case{"a.obj", "v 0 0 0\nf -2 1 1\n", "numbers start at 1"},
       Case{"a.obj", "v 0 0 0\nf 1 1\n", "a face with 2 vertices"},
       Case{"a.obj", "v 0 0 0\nf 1 1 x\n", "whole number"},
       Case{"a.obj", "# nothing\n", "no tets and no triangles"},
       Case{"a.ply", ply("0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n"), "found 3 as a vertex of face 0, expected 0 to 2"},
       Case{"a.ply", ply("0 0 0\n1 0 0\n0 1 0\n3 0 1 1.5\n"), "found 1.5"},
       Case{"a.ply", ply("0 0 0\n1 0 0\n0 1 0\n3 0 1 -1\n"), "found -1"},
       Case{"a.ply", ply("0 0 0\n1 0 0\n0 1 nan\n3 0 1 2\n"), "finite"},
       Case{"a.ply", ply("0 0 0\n1 0 0\n0 1 0\n3 0 1\n"), "the file ends here"},
       Case{"a.ply", ply("0 0 0\n1 0 0\n0 1 0\n999999999 0 1 2\n"), "999999999"},
       Case{"a.ply", ply("0 0 0\n", "4000000000"), "4000000000"},
       Case{"a.ply", ply("0 0 0\n", "-1"), "-1"},
       Case{"a.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n0\n",
            "x, y and z"},
       Case{"a.ply", "ply\nformat ascii 1.0\nelement vertex 1\nproperty quad x\nend_header\n0\n", "\"quad\""},
       Case{"a.ply", "ply\nelement vertex 1\nproperty float x\nend_header\n0\n", "no format"},
       Case{"a.ply", "ply\nformat ascii 1.0\nproperty float x\n", "before the first element"},
       Case{"a.ply", "plum\n", "expected \"ply\""},
       Case{"a.stl", binary_stl(2, 1),
            "byte 80: found 2 as the number of triangles, but only 50 bytes are left"},
       Case{"a.stl", binary_stl(0xffffffff, 1), "4294967295"},
       Case{"a.stl", binary_stl(1, 2), "50 bytes follow"},
       Case{"a.stl", binary_stl(1, 1, std::numeric_limits<float>::quiet_NaN()), "found nan"},
       Case{"a.stl", "solid x\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nendloop\n",
            "found \"endloop\", expected \"vertex\""},
       Case{"a.stl", "solid x\n", "expected \"facet\" or \"endsolid\""},
       Case{"a.stl", "sol", "the STL header"},
       Case{"a.off", "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n", "a.off:6: found 3 as a vertex of a face"},
       Case{"a.off", "OFF\n300000000 1 0\n0 0 0\n", "300000000"},
       Case{"a.off", "OFG\n", "expected \"OFF\""},
       Case{"a.off", "OFF BINARY\n", "binary OFF"},
       Case{"a.off", "OFF\n3 2 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n", "the file ends here"}});
}

TEST(Damaged, Volumes) {
  expect_explained(
      {Case{"a.mesh", "MeshVersionFormatted 2\nVertices\n1\n0 0 0 0\n", "before Dimension"},
       Case{"a.mesh", "MeshVersionFormatted 2\nDimension 3\nVertices\n99\n0 0 0 0\n", "found 99"},
       Case{"a.mesh", "MeshVersionFormatted 2\nDimension 3\nVertices\n1\n0 0 nan 0\n", "finite"},
       Case{"a.mesh", "MeshVersionFormatted 2\nDimension 3\nVertices\n1\n0 0 0 0\nTetrahedra\n1\n1 1 1 2 0\n",
            "a.mesh:8: found 2 as a node of an element, expected 1"},
       Case{"a.mesh", "MeshVersionFormatted 2\nDimension 3\nVertices\n1\n0 0 0 0\n0 0 1 0\n",
            "a.mesh:6: found \"0\""},
       Case{"a.mesh", "MeshVersionFormatted 2\nDimension 3\nHexahedra\n1\n1 1 1 1 1 1 1 1 0\n", "Hexahedra"},
       Case{"a.mesh", std::string("\1\0\0\0\3\0\0\0", 8), "meshb"},
       Case{"a.node", "1 2 0 0\n", "found 2 as the dimension"},
       Case{"a.node", "2 3 0 0\n0 0 0 0\n2 0 0 1\n", "found 2 as the index of a point, expected 1"},
       Case{"a.node", "1 3 0 0\n5 0 0 0\n", "expected 0 or 1"},
       Case{"a.node", "1 3 0 0\n1 0 0 0\n", "a.ele:2: found 2 as a node", "1 4 0\n1 1 1 1 2\n"},
       Case{"a.node", "1 3 0 0\n1 0 0 0\n", "expected 4 or 10", "1 8 0\n"},
       Case{"a.node", "1 3 0 0\n1 0 0 0\n", "the file ends here", ""},
       Case{"a.node", "900000000 3 0 0\n", "900000000"}, Case{"a.node", "1 3 0 0\n1 0 0 inf\n", "finite"},
       Case{"a.tobj", "v 0 0 0\nt 0 0 0 1\n", "a.tobj:2: found 1"},
       Case{"a.tobj", "x\n", "expected \"v\" or \"t\""}, Case{"a.xyz", "", "no mesh format known"},
       Case{"a", "", "no mesh format known"}});
}

// Every fixture cut off at any byte: refused, or (when only the end of the last section is missing) a sound
// mesh.
TEST(Damaged, CutOffAnywhere) {
  std::size_t read = 0, refused = 0;
  for (const std::string& name : fixtures()) {
    const std::string data = read_file(fixture(name));
    const bool tetgen = name.ends_with(".node") || name.ends_with(".ele") || name.ends_with(".face");
    if (name.ends_with(".ele") || name.ends_with(".face")) continue;
    const std::string ele = tetgen ? read_file(fixture(name.substr(0, name.size() - 4) + "ele")) : "";
    for (std::size_t n = 0; n < data.size(); ++n) {
      // A copy of exactly this size, so that the address sanitizer sees a read past its end.
      const std::vector<char> part(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(n));
      try {
        const MeshFile file = parse_mesh(name, {part.data(), part.size()}, ele);
        ++read;
        if (file.has_tets())
          EXPECT_TRUE(check_mesh(file.tets()).usable());
        else
          EXPECT_TRUE(check_mesh(file.triangles(), guess_role(file.triangles())).usable());
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kInput);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 20 * read);
}

// Fixtures with random changes, the same every time: bytes, numbers, pieces cut out and doubled.
TEST(Damaged, Mutated) {
  std::mt19937 random(20240229);
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(random() % std::max<std::size_t>(1, n));
  };
  static const char* const kTokens[] = {
      "-1", "0", "99999999",  "4294967295",   "nan", "1e308", "18446744073709551615", "\xff\xff\xff\xff",
      "\n", " ", "$EndNodes", "</DataArray>", "=",   "\""};
  std::size_t read = 0, refused = 0;
  for (const std::string& name : fixtures()) {
    if (name.ends_with(".ele") || name.ends_with(".face")) continue;
    const std::string original = read_file(fixture(name));
    const std::string ele =
        name.ends_with(".node") ? read_file(fixture(name.substr(0, name.size() - 4) + "ele")) : "";
    for (int round = 0; round < 200; ++round) {
      std::string data = original, second = ele;
      for (std::size_t change = 0; change <= below(4); ++change) {
        std::string& target = !second.empty() && below(2) == 0 ? second : data;
        const std::size_t at = below(target.size());
        switch (below(5)) {
          case 0:
            target[at] = static_cast<char>(random());
            break;
          case 1:
            target[at] = static_cast<char>(target[at] ^ (1 << below(8)));
            break;
          case 2:
            target.erase(at, 1 + below(20));
            break;
          case 3:
            target.insert(at, target.substr(below(target.size()), 1 + below(20)));
            break;
          default:
            target.replace(at, below(6), kTokens[below(std::size(kTokens))]);
        }
        if (target.empty()) target = " ";
      }
      try {
        const MeshFile file = parse_mesh(name, data, second);
        ++read;
        if (file.has_tets())
          EXPECT_TRUE(check_mesh(file.tets()).usable());
        else
          EXPECT_TRUE(check_mesh(file.triangles(), guess_role(file.triangles())).usable());
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kInput);
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 100u);  // or the changes are too rough to reach the inner parts
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace limber
