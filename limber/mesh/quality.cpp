#include <limber/mesh/geometry.hpp>
#include <limber/mesh/quality.hpp>

#include <numbers>

namespace limber {
namespace {

template <std::size_t N>
void add_element(std::span<const Vec3> x, const std::array<Index, N>& t, Index index, QualitySummary& s,
                 double& edges) {
  const double q = radius_ratio(x, t);
  if (s.worst < 0 || q < s.least) {
    s.least = q;
    s.worst = index;
  }
  s.mean += q;
  ++s.histogram[std::clamp(static_cast<int>(q * 10), 0, 9)];
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t j = i + 1; j < N; ++j) {
      const double length = (x[t[i]] - x[t[j]]).norm();
      s.edge_least = edges == 0 ? length : std::min(s.edge_least, length);
      s.edge_most = std::max(s.edge_most, length);
      s.edge_mean += length;
      ++edges;
    }
  ++s.elements;
}

void finish(QualitySummary& s, double edges) {
  if (s.elements == 0) return;
  s.mean /= s.elements;
  s.edge_mean /= edges;
}

}  // namespace

double radius_ratio(std::span<const Vec3> x, const Tet& t) {
  const Vec3 a = x[t[1]] - x[t[0]], b = x[t[2]] - x[t[0]], c = x[t[3]] - x[t[0]];
  const Vec3 bc = cross(b, c), ca = cross(c, a), ab = cross(a, b);
  const double det = a.dot(bc);  // 6 V
  const double area2 = bc.norm() + ca.norm() + ab.norm() + (ab + bc + ca).norm();
  const double R2det =
      (a.squaredNorm() * bc + b.squaredNorm() * ca + c.squaredNorm() * ab).norm();  // 2 det R
  if (!(R2det > 0) || !(area2 > 0)) return 0;
  // r = 3 V / area = det / area2, R = R2det / (2 det)
  return 3 * (det / area2) * (2 * std::abs(det) / R2det);
}

double radius_ratio(std::span<const Vec3> x, const Tri& t) {
  const double a = (x[t[1]] - x[t[2]]).norm(), b = (x[t[2]] - x[t[0]]).norm(), c = (x[t[0]] - x[t[1]]).norm();
  const double area = triangle_normal(x, t).norm() / 2;
  const double denominator = a * b * c * (a + b + c);
  return denominator > 0 ? 16 * area * area / denominator : 0;  // r = 2A/(a+b+c), R = abc/(4A)
}

double least_dihedral_angle(std::span<const Vec3> x, const Tet& t) {
  // Outward normals of the faces opposite to each node.
  const Vec3 &p0 = x[t[0]], &p1 = x[t[1]], &p2 = x[t[2]], &p3 = x[t[3]];
  const std::array<Vec3, 4> n{cross(p2 - p1, p3 - p1), cross(p3 - p0, p2 - p0), cross(p1 - p0, p3 - p0),
                              cross(p2 - p0, p1 - p0)};
  double least = std::numbers::pi;
  for (int i = 0; i < 4; ++i)
    for (int j = i + 1; j < 4; ++j) {
      const double c = -n[i].dot(n[j]), s = cross(n[i], n[j]).norm();
      least = std::min(least, std::atan2(s, c));
    }
  return least * 180 / std::numbers::pi;
}

QualitySummary summarize_quality(const TetMesh& mesh) {
  QualitySummary s;
  s.least_angle = mesh.tets.empty() ? 0 : 180;
  double edges = 0;
  for (std::size_t e = 0; e < mesh.tets.size(); ++e) {
    add_element(mesh.nodes, mesh.tets[e], static_cast<Index>(e), s, edges);
    s.volume += tet_volume(mesh.nodes, mesh.tets[e]);
    s.least_angle = std::min(s.least_angle, least_dihedral_angle(mesh.nodes, mesh.tets[e]));
  }
  finish(s, edges);
  return s;
}

QualitySummary summarize_quality(const TriMesh& mesh) {
  QualitySummary s;
  double edges = 0;
  for (std::size_t e = 0; e < mesh.triangles.size(); ++e) {
    add_element(mesh.nodes, mesh.triangles[e], static_cast<Index>(e), s, edges);
    s.volume += triangle_normal(mesh.nodes, mesh.triangles[e]).norm() / 2;
  }
  finish(s, edges);
  return s;
}

}  // namespace limber
