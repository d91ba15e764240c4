// A surface to look at: polygons with texture coordinates, normals and materials, as modelling programs write
// them (OBJ with .mtl and images). Nothing is asked of it but good numbers: it may be open, thin, in parts,
// or cross itself.
#pragma once

#include <limber/core/types.hpp>
#include <limber/mesh/mesh.hpp>

#include <string>
#include <vector>

namespace limber {

struct SurfaceMaterial {
  std::string name;
  Vec3 color = Vec3::Constant(0.8);  // sRGB, 0 to 1 (Kd)
  std::string image_name;            // of its texture, without folders; empty: none
  std::string image;                 // the file's bytes
};

struct TexturedSurface {
  std::vector<Vec3> points;  // in the order of the file [m]
  std::vector<Vec2> uv;      // texture coordinates, (0, 0) at the lower left
  // Face f has the corners face_begin[f] to face_begin[f + 1].
  std::vector<Index> face_begin{0};
  std::vector<Index> corner_point;  // of every corner
  std::vector<Index> corner_uv;     // -1: none
  std::vector<Index>
      corner_normal;  // number of the file's normal, -1: none. Corners of a point that have the same one
                      // are smooth together; the normals themselves follow from the shape.
  std::vector<Index> face_material;  // -1: none
  std::vector<SurfaceMaterial> materials;

  Index faces() const { return static_cast<Index>(face_begin.size()) - 1; }
};

// Triangles of the faces (cut_polygon()), as numbers of corners: of a face with n corners n - 2, face by
// face.
std::vector<Tri> corner_triangles(const TexturedSurface& surface);

// "image/png" or "image/jpeg", by the first bytes; empty: neither.
std::string image_type(const std::string& bytes);

// OBJ with all that is above; PLY, STL, OFF as triangles, PLY with the texture coordinates of its vertices.
// Throws Error(kInput) that names the file and line, and Error(kIo). A .mtl file or image that is missing,
// damaged, or no PNG or JPEG, gives a notice and plain colour.
TexturedSurface read_textured_surface(const std::string& path, std::vector<std::string>* notices = nullptr);
// OBJ in memory; .mtl files and images are looked for in `folder`.
TexturedSurface parse_textured_obj(const std::string& name, std::string_view data, const std::string& folder,
                                   std::vector<std::string>* notices = nullptr);

}  // namespace limber
