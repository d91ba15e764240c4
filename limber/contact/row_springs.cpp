#include <limber/contact/row_springs.hpp>

#include <algorithm>

namespace limber {

Vec3 across(const Vec3& n, const Vec3& d) { return d - n.dot(d) * n; }

Vec3 relative(const ContactRow& row, const VecX& v) {
  Vec3 u = node(v, row.node);
  if (row.face[0] < 0) return u - row.velocity;
  for (std::size_t k = 0; k < 3; ++k) u -= row.weight[k] * node(v, row.face[k]);
  return u;
}

void add_to_nodes(const ContactRow& row, const Vec3& p, VecX& f) {
  node(f, row.node) += p;
  if (row.face[0] < 0) return;
  for (std::size_t k = 0; k < 3; ++k) node(f, row.face[k]) -= row.weight[k] * p;
}

Mat3 RowSpring::matrix(bool presses) const {
  return ((presses ? stiffness : 0.0) - spring) * row.n * row.n.transpose() + spring * Mat3::Identity();
}

Vec3 RowSpring::force(const Vec3& d) const {
  return -stiffness * (row.gap + row.n.dot(d)) * row.n - spring * (stretch + across(row.n, d)) + slide;
}

double RowSpring::energy(const Vec3& d) const {
  const double depth = std::max(0.0, -(row.gap + row.n.dot(d)));
  const Vec3 stretched = stretch + across(row.n, d);
  return 0.5 * stiffness * depth * depth + 0.5 * spring * stretched.squaredNorm() - slide.dot(stretched);
}

void RowSpring::begin_friction(double alpha, double h, const Vec3& u) {
  const double stick = alpha * stiffness;
  if (row.friction == 0 || stick == 0) return;
  const double limit = row.friction * stiffness * std::max(0.0, -row.gap);
  const Vec3 expected = stretch + h * across(row.n, u);
  const double length = expected.norm();
  if (stick * length <= limit)
    spring = stick;
  else if (length * elastic > 4 * limit + elastic * limit / stick)
    slide = -limit / length * expected;
  else
    spring = limit / length;
}

Vec3 RowSpring::kept_stretch(double alpha, const Vec3& d) const {
  Vec3 keep = across(row.n, stretch + d);
  const double stick = alpha * stiffness, depth = -(row.gap + row.n.dot(d));
  const double limit = stick > 0 && depth > 0 ? row.friction * stiffness * depth / stick : 0.0,
               length = keep.norm();
  if (length > limit) keep *= limit / length;
  return keep;
}

double RowSpring::stored(double alpha, const Vec3& d) const {
  const double depth = std::max(0.0, -(row.gap + row.n.dot(d)));
  return 0.5 * stiffness * (depth * depth + alpha * kept_stretch(alpha, d).squaredNorm());
}

}  // namespace limber
