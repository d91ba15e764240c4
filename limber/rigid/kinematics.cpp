#include <limber/rigid/kinematics.hpp>

#include <numbers>

namespace limber::rigid {
namespace {

// The joint's own motion, in the axes of its frame F: the child's frame is (R, p) in F, it turns with
// Sw v and its origin moves with Sp v. Only the universal joint has columns that turn within F.
struct JointMotion {
  Mat3 R = Mat3::Identity();
  Vec3 p = Vec3::Zero();
  int n = 0;
  Eigen::Matrix<double, 3, 6> Sw = Eigen::Matrix<double, 3, 6>::Zero();
  Eigen::Matrix<double, 3, 6> Sp = Eigen::Matrix<double, 3, 6>::Zero();
  Eigen::Matrix<double, 3, 6> Sw_dot = Eigen::Matrix<double, 3, 6>::Zero();
};

Mat3 about(const Vec3& axis, double angle) { return exp_rotation(angle * axis); }

Mat3 quaternion_at(const VecX& q, Index i) {
  return Quat(q[i], q[i + 1], q[i + 2], q[i + 3]).toRotationMatrix();
}

JointMotion joint_motion(const Joint& j, const VecX& q, const VecX& v) {
  JointMotion s;
  s.n = velocity_numbers(j.type);
  switch (j.type) {
    case JointType::kFixed:
      break;
    case JointType::kRevolute:
      s.R = about(j.axis, q[j.q_begin]);
      s.Sw.col(0) = j.axis;
      break;
    case JointType::kPrismatic:
      s.p = q[j.q_begin] * j.axis;
      s.Sp.col(0) = j.axis;
      break;
    case JointType::kUniversal: {
      const Mat3 R1 = about(j.axis, q[j.q_begin]);
      s.R = R1 * about(j.axis2, q[j.q_begin + 1]);
      s.Sw.col(0) = j.axis;
      s.Sw.col(1) = R1 * j.axis2;
      s.Sw_dot.col(1) = v[j.v_begin] * j.axis.cross(s.Sw.col(1));
      break;
    }
    case JointType::kSpherical:
      s.R = quaternion_at(q, j.q_begin);
      s.Sw.leftCols<3>().setIdentity();
      break;
    case JointType::kPlanar: {
      Vec3 t1, t2;
      tangents(j.axis, t1, t2);
      s.R = about(j.axis, q[j.q_begin + 2]);
      s.p = q[j.q_begin] * t1 + q[j.q_begin + 1] * t2;
      s.Sp.col(0) = t1;
      s.Sp.col(1) = t2;
      s.Sw.col(2) = j.axis;
      break;
    }
    case JointType::kFree:
      s.p = q.segment<3>(j.q_begin);
      s.R = quaternion_at(q, j.q_begin + 3);
      s.Sp.leftCols<3>().setIdentity();
      s.Sw.rightCols<3>().setIdentity();
      break;
  }
  return s;
}

}  // namespace

void update_motion(const Mechanism& m, const VecX& q, const VecX& v, Motion& motion) {
  motion.links.resize(m.links.size());
  static const Pose kWorldPose{};
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    LinkMotion& l = motion.links[at(i)];
    const LinkMotion* parent = j.parent_link >= 0 ? &motion.links[at(j.parent_link)] : nullptr;
    const JointMotion s = joint_motion(j, q, v);
    const Pose F = (parent ? parent->pose : kWorldPose) * j.frame;
    l.joint_axes = F.R;
    l.pose = F * Pose{s.R, s.p};
    l.origin = l.pose.p;
    l.com = l.pose * m.links[at(i)].inertia.com;
    l.I = l.pose.R * m.links[at(i)].inertia.I * l.pose.R.transpose();
    const Vec3 parent_com = parent ? parent->com : Vec3(Vec3::Zero());
    const Vec6 parent_phi = parent ? parent->phi : Vec6(Vec6::Zero());
    const Vec6 parent_bias = parent ? parent->bias : Vec6(Vec6::Zero());
    const Vec3 w0 = parent_phi.head<3>();
    l.arm = l.com - parent_com;

    const Vec3 lever = l.com - l.origin;
    l.S.resize(6, s.n);
    l.S_dot.resize(6, s.n);
    l.phi = to_child(l.arm, parent_phi);
    for (int c = 0; c < s.n; ++c) {
      const Vec3 w = F.R * s.Sw.col(c), p = F.R * s.Sp.col(c);
      l.S.col(c) << w, p + w.cross(lever);
    }
    const auto vj = v.segment(j.v_begin, s.n);
    l.phi += l.S * vj;
    // lever turns with the child.
    const Vec3 lever_dot = l.phi.head<3>().cross(lever);
    for (int c = 0; c < s.n; ++c) {
      const Vec3 w = l.S.col(c).head<3>();
      const Vec3 p = F.R * s.Sp.col(c);
      const Vec3 w_dot = w0.cross(w) + F.R * s.Sw_dot.col(c);
      l.S_dot.col(c) << w_dot, w0.cross(p) + w_dot.cross(lever) + w.cross(lever_dot);
    }
    l.bias = to_child(l.arm, parent_bias);
    l.bias.tail<3>() += w0.cross(l.phi.tail<3>() - parent_phi.tail<3>());
    l.bias += l.S_dot * vj;
  }
}

Pose joint_pose(const Joint& j, const VecX& q) {
  const JointMotion s = joint_motion(j, q, VecX::Zero(j.v_begin + velocity_numbers(j.type)));
  return {s.R, s.p};
}

void multiply_J(const Mechanism& m, const Motion& motion, const VecX& x, VecX& y) {
  y.resize(6 * m.size());
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    const LinkMotion& l = motion.links[at(i)];
    Vec6 phi = l.S * x.segment(j.v_begin, l.S.cols());
    if (j.parent_link >= 0) phi += to_child(l.arm, y.segment<6>(6 * j.parent_link));
    y.segment<6>(6 * i) = phi;
  }
}

void multiply_Jt(const Mechanism& m, const Motion& motion, const VecX& y, VecX& x) {
  x.resize(m.velocities);
  VecX sum = y;
  for (Index i = m.size() - 1; i >= 0; --i) {
    const Joint& j = m.joints[at(i)];
    const LinkMotion& l = motion.links[at(i)];
    const Vec6 w = sum.segment<6>(6 * i);
    x.segment(j.v_begin, l.S.cols()) = l.S.transpose() * w;
    if (j.parent_link >= 0) sum.segment<6>(6 * j.parent_link) += to_parent(l.arm, w);
  }
}

MatX dense_J(const Mechanism& m, const Motion& motion) {
  MatX J = MatX::Zero(6 * m.size(), m.velocities);
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    const LinkMotion& l = motion.links[at(i)];
    if (j.parent_link >= 0)
      for (Index c = 0; c < m.velocities; ++c)
        J.col(c).segment<6>(6 * i) = to_child(l.arm, J.col(c).segment<6>(6 * j.parent_link));
    J.block(6 * i, j.v_begin, 6, l.S.cols()) += l.S;
  }
  return J;
}

MatX dense_J_dot(const Mechanism& m, const Motion& motion) {
  const MatX J = dense_J(m, motion);
  MatX D = MatX::Zero(6 * m.size(), m.velocities);
  for (Index i = 0; i < m.size(); ++i) {
    const Joint& j = m.joints[at(i)];
    const LinkMotion& l = motion.links[at(i)];
    if (j.parent_link >= 0) {
      const Vec3 arm_dot = l.phi.tail<3>() - motion.links[at(j.parent_link)].phi.tail<3>();
      for (Index c = 0; c < m.velocities; ++c) {
        D.col(c).segment<6>(6 * i) = to_child(l.arm, D.col(c).segment<6>(6 * j.parent_link));
        const Vec3 w = J.col(c).segment<3>(6 * j.parent_link);
        D.col(c).segment<3>(6 * i + 3) += w.cross(arm_dot);
      }
    }
    D.block(6 * i, j.v_begin, 6, l.S_dot.cols()) += l.S_dot;
  }
  return D;
}

std::vector<LimitedValue> limited_values(const Joint& j, const VecX& q) {
  std::vector<LimitedValue> values;
  if (j.type != JointType::kSpherical) {
    for (int k = 0; k < velocity_numbers(j.type); ++k) values.push_back({q[j.q_begin + k], Vec3::Unit(k)});
    return values;
  }
  const auto quaternion = q.segment<4>(j.q_begin);
  const Vec3 turned = quaternion_at(q, j.q_begin) * j.axis;
  const Vec3 across = j.axis.cross(turned);
  const double s = across.norm(), c = j.axis.dot(turned);
  LimitedValue swing{std::atan2(s, c), Vec3::Zero()};
  if (s > 1e-12) swing.rate = across / s;
  values.push_back(swing);
  // q = swing * twist; atan2 of the part of q along the axis. Near an axis turned over the twist is
  // undefined.
  LimitedValue twist{2 * std::atan2(j.axis.dot(quaternion.tail<3>()), quaternion[0]), Vec3::Zero()};
  twist.x = std::remainder(twist.x, 2 * std::numbers::pi);
  if (1 + c > 1e-9) twist.rate = (j.axis + turned) / (1 + c);
  values.push_back(twist);
  return values;
}

double kinetic_energy(const Mechanism& m, const Motion& motion) {
  double e = 0;
  for (std::size_t i = 0; i < m.links.size(); ++i)
    e += 0.5 * motion.links[i].phi.dot(mass_times(m.links[i], motion.links[i], motion.links[i].phi));
  return e;
}

double gravity_energy(const Mechanism& m, const Motion& motion, const Vec3& gravity) {
  double e = 0;
  for (std::size_t i = 0; i < m.links.size(); ++i)
    e -= m.links[i].inertia.mass * gravity.dot(motion.links[i].com);
  return e;
}

Vec3 momentum(const Mechanism& m, const Motion& motion) {
  Vec3 p = Vec3::Zero();
  for (std::size_t i = 0; i < m.links.size(); ++i)
    p += m.links[i].inertia.mass * motion.links[i].phi.tail<3>();
  return p;
}

Vec3 angular_momentum(const Mechanism& m, const Motion& motion) {
  Vec3 p = Vec3::Zero();
  for (std::size_t i = 0; i < m.links.size(); ++i) {
    const LinkMotion& l = motion.links[i];
    p += l.I * l.phi.head<3>() + m.links[i].inertia.mass * l.com.cross(l.phi.tail<3>());
  }
  return p;
}

namespace {

// The displacement from rest, in velocity numbers.
VecX from_rest(const Joint& j, const VecX& q) {
  const auto turned = [&](Index now, Index rest) {
    const Quat a(q[now], q[now + 1], q[now + 2], q[now + 3]);
    const Quat b(j.rest[rest], j.rest[rest + 1], j.rest[rest + 2], j.rest[rest + 3]);
    return log_quat(a * b.conjugate());
  };
  VecX d(velocity_numbers(j.type));
  switch (j.type) {
    case JointType::kSpherical:
      d = turned(j.q_begin, 0);
      break;
    case JointType::kFree:
      d << q.segment<3>(j.q_begin) - j.rest.head<3>(), turned(j.q_begin + 3, 3);
      break;
    default:
      d = q.segment(j.q_begin, d.size()) - j.rest;
  }
  return d;
}

}  // namespace

void joint_spring_force(const Joint& j, const VecX& q, Eigen::Ref<VecX> f) {
  if (j.stiffness != 0) f -= j.stiffness * from_rest(j, q);
}

double joint_spring_energy(const Joint& j, const VecX& q) {
  return j.stiffness == 0 ? 0.0 : 0.5 * j.stiffness * from_rest(j, q).squaredNorm();
}

}  // namespace limber::rigid
