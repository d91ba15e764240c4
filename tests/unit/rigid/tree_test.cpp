#include "mechanisms.hpp"

#include <limber/core/error.hpp>

#include <gtest/gtest.h>
#include <Eigen/Cholesky>

#include <numbers>

namespace limber::rigid {
namespace {

using namespace testing;

// Link velocities by finite differences of the poses, which know nothing of J.
VecX velocity_by_differences(const Mechanism& m, const VecX& q, const VecX& v, double h) {
  const VecX zero = VecX::Zero(m.velocities);
  VecX q0 = q, q1 = q;
  integrate(m, v, -h, q0);
  integrate(m, v, h, q1);
  Motion a, b;
  update_motion(m, q0, zero, a);
  update_motion(m, q1, zero, b);
  VecX phi(6 * m.size());
  for (Index i = 0; i < m.size(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const Quat turn(Mat3(b.links[k].pose.R * a.links[k].pose.R.transpose()));
    phi.segment<3>(6 * i) = log_quat(turn) / (2 * h);
    phi.segment<3>(6 * i + 3) = (b.links[k].com - a.links[k].com) / (2 * h);
  }
  return phi;
}

TEST(Tree, JacobianIsTheDerivativeOfThePoses) {
  const Mechanism m = zoo();
  for (unsigned seed = 0; seed < 5; ++seed) {
    VecX q, v, Jv;
    random_state(m, seed, q, v);
    Motion motion;
    update_motion(m, q, v, motion);
    multiply_J(m, motion, v, Jv);
    EXPECT_LT((Jv - velocity_by_differences(m, q, v, 1e-5)).cwiseAbs().maxCoeff(), 1e-8);
    EXPECT_LT((Jv - dense_J(m, motion) * v).cwiseAbs().maxCoeff(), 1e-13);
    for (Index i = 0; i < m.size(); ++i)
      EXPECT_LT((Jv.segment<6>(6 * i) - motion.links[static_cast<std::size_t>(i)].phi).norm(), 1e-13);
  }
}

TEST(Tree, JacobianRateIsTheDerivativeOfTheJacobian) {
  const Mechanism m = zoo();
  VecX q, v;
  random_state(m, 3, q, v);
  Motion motion, a, b;
  update_motion(m, q, v, motion);
  const double h = 1e-5;
  VecX q0 = q, q1 = q;
  integrate(m, v, -h, q0);
  integrate(m, v, h, q1);
  update_motion(m, q0, v, a);
  update_motion(m, q1, v, b);
  const MatX numeric = (dense_J(m, b) - dense_J(m, a)) / (2 * h);
  const MatX J_dot = dense_J_dot(m, motion);
  EXPECT_LT((J_dot - numeric).cwiseAbs().maxCoeff(), 1e-8);
  for (Index i = 0; i < m.size(); ++i)
    EXPECT_LT(((J_dot * v).segment<6>(6 * i) - motion.links[static_cast<std::size_t>(i)].bias).norm(), 1e-12);
}

TEST(Tree, TransposedProductIsTheAdjoint) {
  const Mechanism m = zoo();
  VecX q, v, Jv, Jty;
  random_state(m, 1, q, v);
  Motion motion;
  update_motion(m, q, v, motion);
  const VecX y = VecX::LinSpaced(6 * m.size(), -1, 2);
  multiply_J(m, motion, v, Jv);
  multiply_Jt(m, motion, y, Jty);
  EXPECT_NEAR(Jv.dot(y), v.dot(Jty), 1e-10);
}

TEST(Tree, RecursiveSolveIsTheDenseSolve) {
  const Mechanism m = zoo();
  VecX q, v;
  random_state(m, 2, q, v);
  Motion motion;
  update_motion(m, q, v, motion);
  std::vector<Mat6> A;
  MatX full = MatX::Zero(6 * m.size(), 6 * m.size());
  for (Index i = 0; i < m.size(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    Mat6 extra = Mat6::Random();
    A.push_back(mass_matrix(m.links[k], motion.links[k]) + extra * extra.transpose());
    full.block<6, 6>(6 * i, 6 * i) = A.back();
  }
  const VecX R = VecX::LinSpaced(m.velocities, 0, 3);
  const MatX J = dense_J(m, motion);
  const MatX H = J.transpose() * full * J + MatX(R.asDiagonal());
  const VecX b = VecX::LinSpaced(m.velocities, -2, 1);
  VecX x = b;
  TreeSolver tree;
  tree.factor(m, motion, A, R);
  tree.solve(m, motion, x);
  EXPECT_LT((x - H.llt().solve(b)).norm(), 1e-10 * x.norm());
}

TEST(Tree, SpringsBetweenLinksAreSolvedTheSameByPcgAndDensely) {
  // A chain long enough for conjugate gradients, with springs that skip links.
  std::vector<Link> links;
  std::vector<Joint> joints;
  std::vector<Spring> springs;
  const int n = 80;
  for (int i = 0; i < n; ++i) {
    const std::string name = "l" + std::to_string(i);
    links.push_back(box_link(name, Vec3(1, 0.2, 0.2), Vec3(0.5, 0, 0), 1000));
    joints.push_back(joint(name, JointType::kRevolute, i ? "l" + std::to_string(i - 1) : "world",
                           Vec3(i ? 1 : 0, 0, 0), i % 2 ? Vec3::UnitY() : Vec3::UnitZ()));
    if (i >= 3) {
      Spring s;
      s.name = "s" + std::to_string(i);
      s.link_a = "l" + std::to_string(i - 3);
      s.link_b = name;
      s.point_b = Vec3(0.5, 0.1, 0);
      s.stiffness = 1e5;
      s.damping = 10;
      s.rest_length = 2;
      springs.push_back(s);
    }
  }
  const Mechanism m = make_mechanism(links, joints, {}, springs);
  VecX q, v;
  random_state(m, 2, q, v);
  Motion motion;
  update_motion(m, q, v, motion);
  System system;
  assemble_system(m, motion, q, 0, 0.01, Vec3(0, -9.81, 0), system);
  SystemSolver solver;
  solver.factor(m, motion, system);
  MatX H(m.velocities, m.velocities);
  VecX y;
  for (Index c = 0; c < m.velocities; ++c) {
    solver.multiply(VecX::Unit(m.velocities, c), y);
    H.col(c) = y;
  }
  EXPECT_LT((H - H.transpose()).cwiseAbs().maxCoeff(), 1e-9 * H.cwiseAbs().maxCoeff());
  const VecX b = reduced_impulse(m, motion, system, 0.01);
  VecX x = b;
  solver.solve(x);
  EXPECT_GT(solver.iterations(), 0);
  EXPECT_LT(solver.iterations(), m.velocities);
  EXPECT_LT((x - H.llt().solve(b)).norm(), 1e-8 * x.norm());
}

// The acceleration must satisfy Newton and Euler on every link with reactions that do no work on the joints:
// J^T (M (J a + bias) + gyro - gravity) = 0. And power in equals the rate of energy.
TEST(Tree, AccelerationBalancesEnergy) {
  const Mechanism m = zoo();
  const Vec3 g(0.3, -9.81, 1);
  VecX q, v;
  random_state(m, 9, q, v);
  const VecX a = acceleration(m, q, v, 0, g);
  const auto energy = [&](double h) {
    VecX qh = q;
    integrate(m, v + 0.5 * h * a, h, qh);  // second order in h
    Motion motion;
    update_motion(m, qh, v + h * a, motion);
    return measure_energy(m, motion, qh, g).total();
  };
  const double h = 1e-4;
  EXPECT_NEAR((energy(h) - energy(-h)) / (2 * h), 0, 1e-4 * energy(0));
}

TEST(Inertia, MeshOfABoxIsTheBox) {
  TriMesh mesh;
  const Vec3 size(1, 2, 3);
  for (int k = 0; k < 8; ++k)
    mesh.nodes.push_back(
        Vec3((k & 1) ? 0.5 : -0.5, (k & 2) ? 0.5 : -0.5, (k & 4) ? 0.5 : -0.5).cwiseProduct(size) +
        Vec3(7, -3, 2));
  const int quads[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4},
                           {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
  for (const auto& f : quads) {
    mesh.triangles.push_back({f[0], f[1], f[2]});
    mesh.triangles.push_back({f[0], f[2], f[3]});
  }
  const Inertia a = mesh_inertia(mesh, 10), b = box_inertia(size, 10);
  EXPECT_NEAR(a.mass, b.mass, 1e-10);
  EXPECT_LT((a.com - Vec3(7, -3, 2)).norm(), 1e-12);
  EXPECT_LT((a.I - b.I).norm(), 1e-9 * b.I.norm());
  std::swap(mesh.triangles[0][0], mesh.triangles[0][1]);
  EXPECT_THROW(mesh_inertia(mesh, 10), Error);
}

TEST(Inertia, RoundSolids) {
  // Monte Carlo knows none of the formulas.
  const double r = 0.3, l = 0.8, top = 0.5 * l + r;
  double inside = 0, xx = 0, zz = 0, cylinder = 0, cxx = 0;
  const int n = 60;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      for (int k = 0; k < 2 * n; ++k) {
        const double x = r * (2 * (i + 0.5) / n - 1), y = r * (2 * (j + 0.5) / n - 1),
                     z = top * ((k + 0.5) / n - 1);
        if (x * x + y * y > r * r) continue;
        const double over = std::max(0.0, std::abs(z) - 0.5 * l);
        if (over == 0) ++cylinder, cxx += y * y + z * z;
        if (x * x + y * y + over * over > r * r) continue;
        ++inside;
        xx += y * y + z * z;
        zz += x * x + y * y;
      }
  const double cell = 8 * r * r * top / (2.0 * n * n * n);
  const Inertia capsule = capsule_inertia(r, l, 1000), tube = cylinder_inertia(r, l, 1000);
  EXPECT_NEAR(capsule.mass, 1000 * cell * inside, 0.01 * capsule.mass);
  EXPECT_NEAR(capsule.I(0, 0), 1000 * cell * xx, 0.01 * capsule.I(0, 0));
  EXPECT_NEAR(capsule.I(2, 2), 1000 * cell * zz, 0.01 * capsule.I(2, 2));
  EXPECT_NEAR(tube.I(0, 0), 1000 * cell * cxx, 0.02 * tube.I(0, 0));
  EXPECT_NEAR(sphere_inertia(r, 1000).mass, 1000 * 4.0 / 3 * std::numbers::pi * r * r * r, 1e-9);
}

TEST(Inertia, CombiningIsTheWholeSolid) {
  const Inertia whole = box_inertia(Vec3(2, 1, 1), 5);
  const Inertia half = box_inertia(Vec3(1, 1, 1), 5);
  const Inertia both =
      combined(moved(half, {Mat3::Identity(), Vec3(-0.5, 0, 0)}),
               moved(half, {exp_rotation(Vec3(std::numbers::pi / 2, 0, 0)), Vec3(0.5, 0, 0)}));
  EXPECT_NEAR(both.mass, whole.mass, 1e-12);
  EXPECT_LT((both.I - whole.I).norm(), 1e-12);
}

// ---- mechanisms that cannot be
// ------------------------------------------------------------------------------

std::string fault(std::vector<Link> links, std::vector<Joint> joints, std::vector<Loop> loops = {}) {
  try {
    make_mechanism(std::move(links), std::move(joints), std::move(loops));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInput);
    return e.what();
  }
  return "";
}

TEST(Mechanism, BadOnesAreRefusedByName) {
  const Link a = box_link("arm", Vec3::Ones(), Vec3::Zero()),
             b = box_link("hand", Vec3::Ones(), Vec3::Zero());
  const Joint ja = joint("arm", JointType::kRevolute, "world", Vec3::Zero(), Vec3::UnitZ());
  const Joint jb = joint("hand", JointType::kRevolute, "arm", Vec3::Zero(), Vec3::UnitZ());
  EXPECT_EQ(fault({a, b}, {jb, ja}), "");  // any order

  Link massless = b;
  massless.inertia.mass = 0;
  EXPECT_NE(fault({a, massless}, {ja, jb}).find("link \"hand\": the mass is 0 kg"), std::string::npos);

  Joint cycle = ja;
  cycle.parent = "hand";
  const std::string text = fault({a, b}, {cycle, jb});
  EXPECT_NE(text.find("cycle"), std::string::npos);
  EXPECT_NE(text.find("\"j_arm\""), std::string::npos);
  EXPECT_NE(text.find("\"j_hand\""), std::string::npos);

  Joint lost = jb;
  lost.parent = "amr";
  EXPECT_NE(fault({a, b}, {ja, lost}).find("joint \"j_hand\": its parent \"amr\" is neither"),
            std::string::npos);
  EXPECT_NE(fault({a, b}, {ja}).find("link \"hand\" hangs by no joint"), std::string::npos);

  Joint second = jb;
  second.name = "second";
  EXPECT_NE(fault({a, b}, {ja, jb, second}).find("the child of two joints, \"j_hand\" and \"second\""),
            std::string::npos);

  Joint limited = jb;
  limited.lower = numbers({0.5});
  EXPECT_NE(fault({a, b}, {ja, limited}).find("outside its limits"), std::string::npos);

  Joint rubbing = jb;
  rubbing.friction.mu = 0.5;
  EXPECT_NE(fault({a, b}, {ja, rubbing}).find("radius and height"), std::string::npos);

  Loop loop;
  loop.name = "ring";
  loop.link_a = loop.link_b = "hand";
  EXPECT_NE(fault({a, b}, {ja, jb}, {loop}).find("loop \"ring\": both its ends"), std::string::npos);

  Joint ball = jb;
  ball.type = JointType::kSpherical;
  ball.motor.kind = MotorKind::kSpeed;
  ball.motor.value.points = {{0, 1}};
  EXPECT_NE(fault({a, b}, {ja, ball}).find("a motor needs a joint with one degree"), std::string::npos);
}

}  // namespace
}  // namespace limber::rigid
