// Where the links are and how the joint velocities move them: phi = J_mr v, and the time derivative of J_mr.
// J is never formed for stepping; products with J and J^T walk the tree and cost O(links).
#pragma once

#include <limber/rigid/mechanism.hpp>

namespace limber::rigid {

// Up to six columns of a link's J that belong to its own joint.
using Columns = Eigen::Matrix<double, 6, Eigen::Dynamic, Eigen::ColMajor, 6, 6>;

struct LinkMotion {
  Pose pose;         // of the link's frame in the world
  Vec3 com;          // centre of mass in the world [m]
  Vec3 arm;          // com - com of the parent (or the origin) [m]
  Vec3 origin;       // of the child's joint frame [m]
  Mat3 joint_axes;   // of the joint's frame at q = 0, carried by the parent
  Mat3 I;            // about the centre of mass, world axes [kg m^2]
  Vec6 phi;          // (omega; v) [rad/s, m/s]
  Vec6 bias;         // dJ/dt v: the acceleration that remains when dv/dt = 0
  Columns S, S_dot;  // phi = X phi_parent + S v_joint
};

struct Motion {
  std::vector<LinkMotion> links;
};

// Fills `motion` for the position q and velocity v.
void update_motion(const Mechanism& mechanism, const VecX& q, const VecX& v, Motion& motion);

// The child's frame in the joint's frame at position q.
Pose joint_pose(const Joint& joint, const VecX& q);

// Carries a twist from the parent's centre of mass to the child's (X), and a wrench back (X^T).
inline Vec6 to_child(const Vec3& arm, const Vec6& phi) {
  Vec6 y = phi;
  y.tail<3>() += phi.head<3>().cross(arm);
  return y;
}
inline Vec6 to_parent(const Vec3& arm, const Vec6& wrench) {
  Vec6 y = wrench;
  y.head<3>() += arm.cross(wrench.tail<3>());
  return y;
}

// y = J x (6 numbers per link) and x = J^T y.
void multiply_J(const Mechanism& mechanism, const Motion& motion, const VecX& x, VecX& y);
void multiply_Jt(const Mechanism& mechanism, const Motion& motion, const VecX& y, VecX& x);

// The dense matrices, 6 links x velocities: for tests and small systems.
MatX dense_J(const Mechanism& mechanism, const Motion& motion);
MatX dense_J_dot(const Mechanism& mechanism, const Motion& motion);

// M y of one link, M = diag(I, m).
inline Vec6 mass_times(const Link& link, const LinkMotion& motion, const Vec6& y) {
  Vec6 z;
  z << motion.I * y.head<3>(), link.inertia.mass * y.tail<3>();
  return z;
}
inline Mat6 mass_matrix(const Link& link, const LinkMotion& motion) {
  Mat6 M = Mat6::Zero();
  M.topLeftCorner<3, 3>() = motion.I;
  M.bottomRightCorner<3, 3>().diagonal().setConstant(link.inertia.mass);
  return M;
}

double kinetic_energy(const Mechanism& mechanism, const Motion& motion);  // [J]
double gravity_energy(const Mechanism& mechanism, const Motion& motion,
                      const Vec3& gravity);                               // zero at the origin
Vec3 momentum(const Mechanism& mechanism, const Motion& motion);          // [kg m/s]
Vec3 angular_momentum(const Mechanism& mechanism, const Motion& motion);  // about the origin

// What the limits of a joint bound, and how it follows the joint's velocity: dx/dt = rate . v. The numbers of
// q; of a spherical joint the angle by which its axis leans, and the twist about the axis (swing and twist).
struct LimitedValue {
  double x = 0;
  Vec3 rate = Vec3::Zero();
};
std::vector<LimitedValue> limited_values(const Joint& joint, const VecX& q);

// The spring's torque of a joint: -stiffness (q - rest), quaternions through their logarithm.
void joint_spring_force(const Joint& joint, const VecX& q, Eigen::Ref<VecX> f);
double joint_spring_energy(const Joint& joint, const VecX& q);

}  // namespace limber::rigid
