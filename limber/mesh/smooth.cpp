#include <limber/mesh/geometry.hpp>
#include <limber/mesh/quality.hpp>
#include <limber/mesh/smooth.hpp>
#include <limber/mesh/surface.hpp>

namespace limber {

void smooth_nodes(TetMesh& mesh, int rounds, double enough, double bad) {
  std::vector<Vec3>& x = mesh.nodes;
  const std::vector<Vec3> start = x;
  std::vector<std::uint8_t> boundary(x.size(), 0);
  for (const Tri& t : boundary_surface(mesh.tets).triangles)
    for (const Index v : t) boundary[v] = 1;
  std::vector<std::vector<Index>> around(x.size());
  for (std::size_t e = 0; e < mesh.tets.size(); ++e)
    for (const Index v : mesh.tets[e]) around[v].push_back(static_cast<Index>(e));

  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (around[i].empty()) continue;
      const auto worst = [&] {
        double q = 1;
        for (const Index e : around[i]) q = std::min(q, radius_ratio(x, mesh.tets[e]));
        return q;
      };
      double best = worst();
      if (best >= (boundary[i] ? bad : enough)) continue;
      Vec3 middle = Vec3::Zero();
      double reach = 0, count = 0;
      for (const Index e : around[i])
        for (const Index v : mesh.tets[e])
          if (v != static_cast<Index>(i)) {
            middle += x[v];
            reach += (x[v] - x[i]).norm();
            ++count;
          }
      const auto attempt = [&](const Vec3& p) {
        if (boundary[i] && (p - start[i]).norm() > 0.1 * reach / count) return false;
        const Vec3 old = x[i];
        x[i] = p;
        const double q = worst();
        if (q > best)
          best = q;
        else
          x[i] = old;
        return x[i] != old;
      };
      if (!boundary[i]) attempt(middle / count);
      // A pattern search: along the axes, with steps that shrink when none of them helps.
      for (double step = (boundary[i] ? 0.05 : 0.2) * reach / count; step > 0.005 * reach / count;) {
        bool moved = false;
        for (int a = 0; a < 3; ++a)
          for (const double s : {step, -step}) moved = attempt(x[i] + s * Vec3::Unit(a)) || moved;
        if (!moved) step /= 2;
      }
    }
}

}  // namespace limber
