// A closed triangle surface that answers: which point of it is nearest, and is a point inside?
#pragma once

#include <limber/mesh/geometry.hpp>
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

  const Box& box() const { return nodes_.front().box; }
  const TriMesh& mesh() const { return mesh_; }

 private:
  struct Node {
    Box box;
    Index begin = 0, end = 0;  // of order_, in a leaf
    Index right = -1;          // the second child; the first follows its parent. -1: a leaf
  };

  void find_normals();
  Index build(Index begin, Index end, std::vector<Vec3>& centers);

  TriMesh mesh_;
  std::vector<Vec3> face_normal_, corner_normal_;
  std::vector<std::array<Vec3, 3>> edge_normal_;  // of the edges (0,1), (1,2), (2,0) of each triangle
  std::vector<Node> nodes_;
  std::vector<Index> order_;  // triangles, leaf by leaf
};

}  // namespace limber
