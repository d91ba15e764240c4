#include <limber/contact/body_contact.hpp>
#include <limber/contact/contact_rows.hpp>
#include <limber/linalg/velocity_map.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/mesh/geometry.hpp>
#include <limber/qp/friction_pgs.hpp>

#include "shapes.hpp"

#include <Eigen/Cholesky>
#include <Eigen/LU>

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace limber {
namespace {

constexpr double kStep = 0.01;  // [s]
constexpr double kBaumgarte = 0.2;
constexpr double kCompliance = 0.05;  // gamma [1/kg]

Obstacle floor_plane(double friction) {
  Obstacle o;
  o.shape = ObstacleShape::kPlane;
  o.friction = friction;
  return o;
}

// Boxes that are rigid bodies, one velocity map, and contact by rows and Gauss-Seidel.
struct Boxes {
  fem::ElementInput mesh;
  std::vector<std::vector<Index>> bodies;
  VecX x, v, mass;
  std::vector<ContactImpulse> kept;
  std::vector<ContactRow> rows;
  VecX impulse;
  int sweeps = 0;
  double creep = 2e-3;  // delta [1/kg]

  void add(const Vec3& size, const Vec3& corner, double weight) {
    const TetMesh box = make_box(size, {2, 2, 2});
    Box hull = bounding_box(box.nodes);
    std::vector<Index> own;
    const auto first = static_cast<Index>(mesh.rest.size());
    for (const Vec3& p : box.nodes) {
      own.push_back(static_cast<Index>(mesh.rest.size()));
      mesh.rest.push_back(p - hull.lo + corner);
    }
    for (Tet t : box.tets) {
      for (Index& i : t) i += first;
      mesh.elements.push_back(t);
      mesh.material.emplace_back();
    }
    bodies.push_back(own);
    const auto before = x.size(), n = static_cast<Eigen::Index>(mesh.rest.size());
    x.conservativeResize(3 * n);
    v = VecX::Zero(3 * n);
    mass.conservativeResize(3 * n);
    for (Eigen::Index i = before; i < 3 * n; ++i) {
      x[i] = mesh.rest[static_cast<std::size_t>(i / 3)][i % 3];
      mass[i] = weight / static_cast<double>(own.size());
    }
  }

  void step(const ContactModel& floor, BodyContact* between, const Vec3& gravity, bool warm = true) {
    const auto n = static_cast<Index>(mesh.rest.size());
    VelocityMap G(n);
    for (const auto& body : bodies) {
      Vec3 c = Vec3::Zero();
      for (const Index i : body) c += node(x, i) / static_cast<double>(body.size());
      G.add_rigid_body(body, x, c);
    }
    const MatX D = G.dense();
    const Eigen::LLT<MatX> A(D.transpose() * mass.asDiagonal() * D);
    VecX p = mass.cwiseProduct(v);
    for (Index i = 0; i < n; ++i) node(p, i) += kStep * mass[3 * i] * gravity;
    const auto solve = [&](Eigen::Ref<MatX> B) { B = D * A.solve(D.transpose() * B); };
    MatX free = p;
    solve(free);
    rows = contact_rows(touching(floor, x, 0), 0);
    if (between) {
      const std::vector<BodyContact::Pair> pairs = between->detect(x);
      const std::vector<ContactRow> more = between->rows(pairs, x);
      rows.insert(rows.end(), more.begin(), more.end());
    }
    qp::FrictionProblem q;
    const auto m = static_cast<Eigen::Index>(rows.size());
    q.W = contact_mobility(rows, n, solve);
    q.u = relative_velocity(rows, free.col(0));
    q.target.resize(m);
    q.friction.resize(m);
    q.compliance = VecX::Constant(m, kCompliance);
    q.tangent_compliance = VecX::Constant(m, creep);
    for (Eigen::Index c = 0; c < m; ++c) {
      q.target[c] = qp::contact_target(rows[static_cast<std::size_t>(c)].gap, kStep, kBaumgarte);
      q.friction[c] = rows[static_cast<std::size_t>(c)].friction;
    }
    impulse = warm ? warm_start(rows, kept) : VecX();
    const qp::FrictionPgsReport report = qp::solve_friction_pgs(q, impulse, {20000, 1e-8});
    EXPECT_TRUE(report.converged) << report.residual;
    sweeps = report.sweeps;
    kept = keep_impulses(rows, impulse);
    add_impulses(rows, impulse, p);
    MatX moved = p;
    solve(moved);
    v = moved.col(0);
    x += kStep * v;
  }
};

TEST(ContactRows, ImpulsesAreAdjointToVelocitiesAndHaveNoMoment) {
  std::srand(5);
  Boxes b;
  b.add({1, 1, 1}, {0, 0, 0}, 1);
  b.add({0.6, 0.6, 0.6}, {0.173, 0.231, 0.96}, 1);  // no node on a face between tetrahedra
  BodyContact between(b.mesh, {});
  const std::vector<BodyContact::Pair> pairs = between.detect(b.x);
  const std::vector<ContactRow> rows = between.rows(pairs, b.x);
  ASSERT_GE(rows.size(), 4u);
  const auto m = 3 * static_cast<Eigen::Index>(rows.size());
  const VecX p = VecX::Random(m), v = VecX::Random(b.x.size());
  VecX f = VecX::Zero(b.x.size());
  add_impulses(rows, p, f);
  EXPECT_NEAR(f.dot(v), p.dot(relative_velocity(rows, v)), 1e-13 * p.norm() * v.norm());
  std::set<std::uint64_t> ids;
  for (std::size_t c = 0; c < rows.size(); ++c) {
    const ContactRow& row = rows[c];
    EXPECT_NEAR(row.weight[0] + row.weight[1] + row.weight[2], 1, 1e-14);
    EXPECT_NEAR(row.gap, -0.04, 1e-12);
    Mat3 frame;
    frame << row.n, row.t1, row.t2;
    EXPECT_LT((frame.transpose() * frame - Mat3::Identity()).norm(), 1e-14);
    EXPECT_NEAR(frame.determinant(), 1, 1e-14);
    EXPECT_TRUE(ids.insert(row.id).second);
    // Along the normal: no resultant, and no moment about any point.
    VecX q = VecX::Zero(m), g = VecX::Zero(b.x.size());
    q[3 * static_cast<Eigen::Index>(c)] = 1;
    add_impulses(rows, q, g);
    Vec3 sum = Vec3::Zero(), moment = Vec3::Zero();
    for (Index i = 0; i < static_cast<Index>(b.mesh.rest.size()); ++i) {
      sum += node(g, i);
      moment += cross(node(b.x, i), node(g, i));
    }
    EXPECT_LT(sum.norm(), 1e-13);
    EXPECT_LT(moment.norm(), 1e-13);
  }
}

TEST(ContactRows, OfAMovingObstacleMeasureTheRelativeVelocityAndTheGapAtTheStart) {
  Obstacle o = floor_plane(0.3);
  o.motion = {{0, Vec3::Zero(), Vec3::Zero(), 1}, {1, {0, 0, 2}, Vec3::Zero(), 1}};
  o.interpolation = "linear";
  const ContactModel model = test::free_nodes({o}, 1);
  const VecX x = Vec3(0, 0, 0.01), v = Vec3(0.5, 0, 1);
  const std::vector<Contact> found = detect(model, x, v, 0.1, 0);
  ASSERT_EQ(found.size(), 1u);
  const std::vector<ContactRow> rows = contact_rows(found, 0.1);
  EXPECT_NEAR(rows[0].gap, 0.01, 1e-12);
  EXPECT_EQ(rows[0].friction, 0.3);
  EXPECT_NEAR(relative_velocity(rows, v)[0], -1, 1e-12);  // the floor comes up at 2, the node leaves at 1
  EXPECT_EQ(rows[0].id, obstacle_contact_id(0, 0));
  EXPECT_NE(rows[0].id, body_contact_id(0, 0));
  EXPECT_NE(obstacle_contact_id(1, 2), obstacle_contact_id(2, 1));
}

TEST(ContactRows, KeptImpulsesFindTheirContactAgainWhateverItsTangents) {
  std::vector<ContactRow> rows(3);
  rows[0].id = 7;
  rows[1].id = 3;
  rows[2].id = 9;
  rows[1].n = Vec3(1, 2, 2) / 3;
  for (ContactRow& r : rows) set_tangents(r);
  const VecX p = (VecX(9) << 1, 2, 3, 4, 5, 6, 7, 8, 9).finished();
  const std::vector<ContactImpulse> kept = keep_impulses(rows, p);
  std::swap(rows[0], rows[1]);
  rows[2].id = 10;  // a new one
  std::swap(rows[0].t1, rows[0].t2);
  const VecX q = warm_start(rows, kept);
  EXPECT_LT((q - (VecX(9) << 4, 6, 5, 1, 2, 3, 0, 0, 0).finished()).norm(), 1e-14);
}

// A block on a slope of angle a: it rests for tan a < mu, else it slides with g (sin a - mu cos a).
TEST(ContactRows, BlockOnAnIncline) {
  const double mu = 0.5, g = 9.81;
  for (const double slope : {0.4, 0.7}) {
    const double angle = std::atan(slope);
    Boxes b;
    b.add({1, 1, 0.5}, {0, 0, -1e-5}, 3);
    const ContactModel floor = test::free_nodes({floor_plane(mu)}, static_cast<Index>(b.mesh.rest.size()));
    const Vec3 gravity(g * std::sin(angle), 0, -g * std::cos(angle));
    for (int k = 0; k < 20; ++k) b.step(floor, nullptr, gravity);
    const double before = b.v[0];
    for (int k = 0; k < 20; ++k) b.step(floor, nullptr, gravity);
    if (slope < mu) {
      // At rest but for the creep that was asked for: a quarter of the load on every corner.
      EXPECT_NEAR(b.v[0], b.creep * kStep * 3 * gravity[0] / 4, 1e-6);
      EXPECT_LT(b.v[0], 1e-3);
      EXPECT_LT(std::abs(b.v[2]), 1e-5);
    } else {
      const double a = (b.v[0] - before) / (20 * kStep), exact = g * (std::sin(angle) - mu * std::cos(angle));
      EXPECT_NEAR(a, exact, 1e-3 * exact);
    }
  }
}

// Three boxes on each other: every contact carries what is above it, and is as deep as its spring says.
TEST(ContactRows, StackRests) {
  Boxes b;
  b.add({1, 1, 1}, {0, 0, -1e-4}, 2);
  b.add({0.8, 0.8, 0.8}, {0.133, 0.112, 1 - 3e-4}, 1);
  b.add({0.6, 0.6, 0.6}, {0.241, 0.227, 1.8 - 5e-4}, 1);
  const ContactModel floor = test::free_nodes({floor_plane(0.5)}, static_cast<Index>(b.mesh.rest.size()));
  BodyContactOptions options;
  options.friction = 0.5;
  BodyContact between(b.mesh, options);
  const Vec3 gravity(0, 0, -9.81);
  for (int k = 0; k < 120; ++k) b.step(floor, &between, gravity);
  EXPECT_LT(b.v.cwiseAbs().maxCoeff(), 1e-6);
  double on_floor = 0, between_boxes = 0;
  for (std::size_t c = 0; c < b.rows.size(); ++c) {
    const double p = b.impulse[3 * static_cast<Eigen::Index>(c)];
    (b.rows[c].face[0] < 0 ? on_floor : between_boxes) += p;
    if (p > 1e-6) {
      EXPECT_NEAR(-b.rows[c].gap, kCompliance * kStep * p / kBaumgarte, 2e-7) << c;
    }
  }
  EXPECT_NEAR(on_floor, 4 * 9.81 * kStep, 1e-6);
  EXPECT_NEAR(between_boxes, (2 + 1) * 9.81 * kStep, 1e-6);
  const int warm = b.sweeps;
  b.step(floor, &between, gravity, false);
  EXPECT_LT(3 * warm, b.sweeps);
}

}  // namespace
}  // namespace limber
