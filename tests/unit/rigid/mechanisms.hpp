// Small mechanisms that several tests use.
#pragma once

#include <limber/rigid/dynamics.hpp>

#include <random>

namespace limber::rigid::testing {

inline Link box_link(const std::string& name, const Vec3& size, const Vec3& com, double density = 1) {
  Link l;
  l.name = name;
  l.inertia = box_inertia(size, density);
  l.inertia.com = com;
  Shape s;
  s.size = size;
  s.pose.p = com;
  l.shapes.push_back(s);
  return l;
}

inline Joint joint(const std::string& child, JointType type, const std::string& parent, const Vec3& where,
                   const Vec3& axis) {
  Joint j;
  j.name = "j_" + child;
  j.type = type;
  j.parent = parent;
  j.child = child;
  j.frame.p = where;
  j.axis = axis;
  return j;
}

inline VecX numbers(std::initializer_list<double> x) {
  VecX v(static_cast<Eigen::Index>(x.size()));
  Eigen::Index i = 0;
  for (const double a : x) v[i++] = a;
  return v;
}

// Every joint type, two branches, tilted frames and skew inertias.
inline Mechanism zoo() {
  std::vector<Link> links;
  std::vector<Joint> joints;
  const std::vector<std::pair<JointType, std::string>> plan{
      {JointType::kFree, "world"},   {JointType::kRevolute, "l0"},  {JointType::kUniversal, "l1"},
      {JointType::kSpherical, "l0"}, {JointType::kPrismatic, "l3"}, {JointType::kPlanar, "l3"},
      {JointType::kFixed, "l5"},     {JointType::kSpherical, "l6"}, {JointType::kRevolute, "world"},
  };
  std::mt19937 rng(5);
  std::uniform_real_distribution<double> u(-1, 1);
  const auto random = [&] { return Vec3(u(rng), u(rng), u(rng)); };
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const std::string name = "l" + std::to_string(i);
    Link l = box_link(name, Vec3(0.5, 0.2, 0.3) + 0.1 * random(), 0.3 * random(), 100);
    const Mat3 R = exp_rotation(random());
    l.inertia.I = R * l.inertia.I * R.transpose();
    links.push_back(l);
    Joint j = joint(name, plan[i].first, plan[i].second, random(), random().normalized());
    j.frame.R = exp_rotation(random());
    j.axis2 = j.axis.cross(random()).normalized();
    joints.push_back(j);
  }
  return make_mechanism(links, joints);
}

// A position and velocity with no zeros in it.
inline void random_state(const Mechanism& m, unsigned seed, VecX& q, VecX& v) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<double> u(-1, 1);
  q = initial_positions(m);
  VecX d(m.velocities);
  for (auto& x : d) x = u(rng);
  integrate(m, d, 1.0, q);
  v.resize(m.velocities);
  for (auto& x : v) x = u(rng);
}

}  // namespace limber::rigid::testing
