#include <limber/mesh/round_cones.hpp>

#include <algorithm>
#include <cmath>

namespace limber {

double depth(const RoundCone& cone, const Vec3& x) {
  const Vec3 axis = cone.b - cone.a;
  const double length = axis.squaredNorm();
  const double t = length > 0 ? std::clamp((x - cone.a).dot(axis) / length, 0.0, 1.0) : 0.0;
  return cone.ra + t * (cone.rb - cone.ra) - (x - cone.a - t * axis).norm();
}

double depth(const RoundConeBody& body, const Vec3& x) {
  double d = -1e300;
  for (const RoundCone& cone : body.cones) {
    const double other = depth(cone, x);
    if (body.blend > 0 && std::abs(d - other) < body.blend) {  // a smooth maximum
      const double s = (body.blend - std::abs(d - other)) / body.blend;
      d = std::max(d, other) + 0.25 * s * s * body.blend;
    } else {
      d = std::max(d, other);
    }
  }
  return d;
}

Box bounding_box(const RoundConeBody& body) {
  Box box;
  for (const RoundCone& c : body.cones) {
    const double r = std::max(c.ra, c.rb) + body.blend;
    for (const Vec3& p : {c.a, c.b}) {
      box.add(p - Vec3::Constant(r));
      box.add(p + Vec3::Constant(r));
    }
  }
  return box;
}

TetMesh mesh_body(const RoundConeBody& body, double spacing) {
  StuffOptions options;
  options.spacing = spacing;
  std::vector<int> number;
  for (const auto& [name, cone] : body.regions) {
    const auto found = std::find(options.regions.begin(), options.regions.end(), name);
    number.push_back(static_cast<int>(found - options.regions.begin()));
    if (found == options.regions.end()) options.regions.push_back(name);
  }
  options.label = [&](const Vec3& x) {
    for (std::size_t k = body.regions.size(); k-- > 0;)
      if (depth(body.regions[k].second, x) > 0) return number[k];
    return -1;
  };
  return stuff_isosurface([&](const Vec3& x) { return depth(body, x); }, bounding_box(body), options);
}

double spacing_for(const RoundConeBody& body, double tets) {
  double spacing = bounding_box(body).size().maxCoeff() / 24;
  for (int k = 0; k < 6; ++k) {
    const double count = static_cast<double>(mesh_body(body, spacing).tets.size());
    if (std::abs(count / tets - 1) < 0.01) break;
    spacing *= std::cbrt(count / tets);
  }
  return spacing;
}

}  // namespace limber
