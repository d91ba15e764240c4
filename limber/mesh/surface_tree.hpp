// A box tree over the triangles of a surface: nearest points, winding numbers, intersections.
#pragma once

#include <limber/mesh/box_tree.hpp>

#include <functional>
#include <span>
#include <vector>

namespace limber {

class SurfaceTree {
 public:
  // Keeps references: the points and triangles must outlive the tree and stay as they are.
  SurfaceTree(std::span<const Vec3> points, std::span<const Tri> triangles);

  struct Nearest {
    Vec3 point = Vec3::Zero();
    Index triangle = -1;
    double distance = std::numeric_limits<double>::infinity();  // [m]
  };
  Nearest nearest(const Vec3& p) const;

  // The generalised winding number (Jacobson et al. 2013): 1 inside, 0 outside a closed outward surface, and
  // a smooth blend across holes. Far clusters count as one dipole (Barill et al. 2018); good to a few
  // hundredths.
  double winding(const Vec3& p) const;

  // Calls visit(triangle) for all triangles whose boxes meet `box`.
  void overlapping(const Box& box, const std::function<void(Index)>& visit) const;

  // Pairs of triangles that intersect other than along what they share, ascending; at most `most` of them.
  std::vector<std::array<Index, 2>> self_intersections(std::size_t most) const;

 private:
  // Of a node of the tree, for winding numbers.
  struct Cluster {
    Vec3 dipole = Vec3::Zero();  // sum of area normals
    Vec3 center = Vec3::Zero();  // area-weighted
    double radius = 0;           // of everything in it, from center
  };
  Cluster cluster(const BoxTree::Node& node, std::span<const Vec3> centroids) const;

  std::span<const Vec3> points_;
  std::span<const Tri> triangles_;
  BoxTree tree_;
  std::vector<Cluster> clusters_;  // of the nodes of tree_
};

// The point of a triangle that is nearest to p.
Vec3 nearest_on_triangle(const Vec3& p, const Vec3& a, const Vec3& b, const Vec3& c);
// Whether two triangles intersect; corners and edges that they share by index do not count.
bool triangles_intersect(std::span<const Vec3> x, const Tri& s, const Tri& t);

}  // namespace limber
