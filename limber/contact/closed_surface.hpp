// A closed triangle surface that answers: which point of it is nearest, and is a point inside?
#pragma once

#include <limber/mesh/box_tree.hpp>
#include <limber/mesh/mesh.hpp>

#include <string>
#include <vector>

namespace limber {

// The point of a surface nearest to some x. `n` is the gradient of the signed distance: from the surface to x
// outside, from x to the surface inside, and the surface's own normal on it.
struct SurfacePoint {
  Vec3 x = Vec3::Zero();
  Vec3 n = Vec3::UnitZ();  // unit, outward
  double distance = 0;     // [m]; negative inside
};

// A tree of boxes over the triangles. The sign of the distance comes from angle-weighted normals of the
// nearest face, edge or corner (Baerentzen and Aanaes 2005), which is exact for every closed, consistently
// turned surface without self-intersections, however sharp.
class ClosedSurface {
 public:
  // Throws Error(kInput), its message beginning with `where`, when the surface is open, has an edge with more
  // than two triangles or neighbours that turn opposite ways. A surface that is inside out is turned.
  explicit ClosedSurface(TriMesh mesh, const std::string& where = "mesh");

  SurfacePoint closest(const Vec3& x) const;

  const Box& box() const { return tree_.box(); }
  const TriMesh& mesh() const { return mesh_; }

 private:
  void find_normals();

  TriMesh mesh_;
  std::vector<Vec3> face_normal_, corner_normal_;
  std::vector<std::array<Vec3, 3>> edge_normal_;  // of the edges (0,1), (1,2), (2,0) of each triangle
  BoxTree tree_;
};

}  // namespace limber
