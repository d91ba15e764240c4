#include <limber/contact/closed_surface.hpp>

#include <limber/core/error.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/surface.hpp>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

constexpr Index kLeafTriangles = 4;  // triangles

// Where on the triangle the nearest point lies.
enum class FacePart { kFace, kCorner0, kCorner1, kCorner2, kEdge01, kEdge12, kEdge20 };

// Walks the Voronoi regions of the triangle's corners, edges and face.
Vec3 closest_on_triangle(const Vec3& x, const Vec3& a, const Vec3& b, const Vec3& c, FacePart& feature) {
  const Vec3 ab = b - a, ac = c - a, ax = x - a;
  const double d1 = ab.dot(ax), d2 = ac.dot(ax);
  if (d1 <= 0 && d2 <= 0) return feature = FacePart::kCorner0, a;
  const Vec3 bx = x - b;
  const double d3 = ab.dot(bx), d4 = ac.dot(bx);
  if (d3 >= 0 && d4 <= d3) return feature = FacePart::kCorner1, b;
  const double vc = d1 * d4 - d3 * d2;
  if (vc <= 0 && d1 >= 0 && d3 <= 0) return feature = FacePart::kEdge01, a + d1 / (d1 - d3) * ab;
  const Vec3 cx = x - c;
  const double d5 = ab.dot(cx), d6 = ac.dot(cx);
  if (d6 >= 0 && d5 <= d6) return feature = FacePart::kCorner2, c;
  const double vb = d5 * d2 - d1 * d6;
  if (vb <= 0 && d2 >= 0 && d6 <= 0) return feature = FacePart::kEdge20, a + d2 / (d2 - d6) * ac;
  const double va = d3 * d6 - d5 * d4;
  if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0)
    return feature = FacePart::kEdge12, b + (d4 - d3) / ((d4 - d3) + (d5 - d6)) * (c - b);
  const double scale = 1 / (va + vb + vc);
  return feature = FacePart::kFace, a + vb * scale * ab + vc * scale * ac;
}

double angle_between(const Vec3& a, const Vec3& b) { return std::atan2(cross(a, b).norm(), a.dot(b)); }

}  // namespace

ClosedSurface::ClosedSurface(TriMesh mesh, const std::string& where) : mesh_(std::move(mesh)) {
  const MeshReport report = check_mesh(mesh_, TriRole::kSurface);
  for (const MeshProblem& p : report.problems)
    if (p.fatal || p.kind == MeshProblemKind::kOpenSurface || p.kind == MeshProblemKind::kOrientation ||
        p.kind == MeshProblemKind::kNonManifoldSurface)
      throw Error(ErrorKind::kInput,
                  where + ": an obstacle's surface must be closed, so that inside and outside are known: " +
                      p.message);
  double volume = 0;
  for (const Tri& t : mesh_.triangles)
    volume += mesh_.nodes[t[0]].dot(cross(mesh_.nodes[t[1]], mesh_.nodes[t[2]]));
  if (volume < 0)
    for (Tri& t : mesh_.triangles) std::swap(t[1], t[2]);
  find_normals();

  std::vector<Box> boxes;
  std::vector<Vec3> centers;
  for (const Tri& t : mesh_.triangles) {
    boxes.push_back(triangle_box(mesh_.nodes, t));
    centers.push_back((mesh_.nodes[t[0]] + mesh_.nodes[t[1]] + mesh_.nodes[t[2]]) / 3);
  }
  tree_.build(boxes, centers);
}

void ClosedSurface::find_normals() {
  const auto& x = mesh_.nodes;
  corner_normal_.assign(x.size(), Vec3::Zero());
  for (const Tri& t : mesh_.triangles) {
    face_normal_.push_back(triangle_normal(x, t).normalized());
    for (int k = 0; k < 3; ++k) {
      const Vec3 &a = x[t[k]], &b = x[t[(k + 1) % 3]], &c = x[t[(k + 2) % 3]];
      corner_normal_[t[k]] += angle_between(b - a, c - a) * face_normal_.back();
    }
  }
  edge_normal_.resize(mesh_.triangles.size());
  const SurfaceEdges edges = surface_edges(mesh_.triangles);
  for (const SurfaceEdges::Edge& e : edges.edges) {
    Vec3 sum = Vec3::Zero();
    for (Index k = e.begin; k < e.end; ++k) sum += face_normal_[edges.triangles[k]];
    for (Index k = e.begin; k < e.end; ++k) {
      const Index t = edges.triangles[k];
      for (int s = 0; s < 3; ++s) {
        const Index a = mesh_.triangles[t][s], b = mesh_.triangles[t][(s + 1) % 3];
        if (std::min(a, b) == e.nodes[0] && std::max(a, b) == e.nodes[1]) edge_normal_[t][s] = sum;
      }
    }
  }
}

SurfacePoint ClosedSurface::closest(const Vec3& x) const {
  double best = std::numeric_limits<double>::infinity();
  SurfacePoint out;
  Vec3 normal = Vec3::UnitZ();
  const std::span<const BoxTree::Node> nodes = tree_.nodes();
  // Nearer children are looked at first.
  std::array<std::pair<Index, double>, BoxTree::kStack> stack;
  std::size_t top = 0;
  stack[top++] = {0, squared_distance(nodes[0].box, x)};
  while (top > 0) {
    const auto [id, bound] = stack[--top];
    if (bound >= best) continue;
    const BoxTree::Node& node = nodes[at(id)];
    if (!node.leaf()) {
      std::pair<Index, double> a{id + 1, squared_distance(nodes[at(id + 1)].box, x)};
      std::pair<Index, double> b{node.right, squared_distance(nodes[at(node.right)].box, x)};
      if (a.second > b.second) std::swap(a, b);
      if (b.second < best) stack[top++] = b;
      if (a.second < best) stack[top++] = a;
      continue;
    }
    for (Index k = node.begin; k < node.end; ++k) {
      const Index t = tree_.order()[at(k)];
      const Tri& tri = mesh_.triangles[t];
      FacePart feature;
      const Vec3 p =
          closest_on_triangle(x, mesh_.nodes[tri[0]], mesh_.nodes[tri[1]], mesh_.nodes[tri[2]], feature);
      const double d2 = (x - p).squaredNorm();
      if (d2 >= best) continue;
      best = d2;
      out.x = p;
      switch (feature) {
        case FacePart::kFace:
          normal = face_normal_[t];
          break;
        case FacePart::kCorner0:
          normal = corner_normal_[tri[0]];
          break;
        case FacePart::kCorner1:
          normal = corner_normal_[tri[1]];
          break;
        case FacePart::kCorner2:
          normal = corner_normal_[tri[2]];
          break;
        case FacePart::kEdge01:
          normal = edge_normal_[t][0];
          break;
        case FacePart::kEdge12:
          normal = edge_normal_[t][1];
          break;
        case FacePart::kEdge20:
          normal = edge_normal_[t][2];
          break;
      }
    }
  }
  const double d = std::sqrt(best);
  const bool inside = normal.dot(x - out.x) < 0;
  out.distance = inside ? -d : d;
  // Within rounding of the surface the difference has no direction left.
  const double rounding = 1e-14 * (x.norm() + box().lo.norm() + box().hi.norm());
  out.n = d > rounding ? Vec3((x - out.x) / out.distance) : Vec3(normal.normalized());
  return out;
}

}  // namespace limber
