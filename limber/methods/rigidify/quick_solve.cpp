#include <limber/methods/rigidify/quick_solve.hpp>

#include <limber/core/error.hpp>
#include <limber/fem/laplacian.hpp>
#include <limber/linalg/dense.hpp>
#include <limber/material/lame.hpp>
#include <limber/mesh/geometry.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace limber::rigidify {
namespace {

constexpr double kProbe = 1e-6;  // edges: how far nodes are moved to see what forces do

}  // namespace

QuickSolve::QuickSolve(const Model& model, const Connectivity& mesh, std::span<const Index> order)
    : model_(model),
      mesh_(mesh),
      objects_(mesh.object_elements.size()),
      own_number_(at(model.nodes()), -1),
      edge_of_node_(at(model.nodes()), 0.0) {
  for (std::size_t e = 0; e < mesh.nodes.size(); ++e)
    for (int a = 0; a < corners(mesh.nodes[e]); ++a)
      for (int b = 0; b < a; ++b) {
        const Index i = mesh.nodes[e][static_cast<std::size_t>(a)],
                    j = mesh.nodes[e][static_cast<std::size_t>(b)];
        const double length = (model.mesh.rest[at(i)] - model.mesh.rest[at(j)]).norm();
        for (const Index k : {i, j})
          if (edge_of_node_[at(k)] == 0 || length < edge_of_node_[at(k)]) edge_of_node_[at(k)] = length;
      }
  std::vector<std::vector<Index>> of_object(objects_.size());  // nodes, in the order of elimination
  for (const Index i : order) of_object[at(model.piece_of_node[at(i)])].push_back(i);
  for (std::size_t k = 0; k < objects_.size(); ++k) {
    Object& o = objects_[k];
    if (mesh.object_elements[k].empty()) continue;
    o.plan = fem::make_plan(*model.elements, mesh.object_elements[k]);
    for (std::size_t n = 0; n < o.plan.nodes.size(); ++n) {
      own_number_[at(o.plan.nodes[n])] = static_cast<Index>(n);
      o.edge += edge_of_node_[at(o.plan.nodes[n])] / static_cast<double>(o.plan.nodes.size());
    }
    for (Index& i : of_object[k]) i = own_number_[at(i)];
    o.P = std::make_unique<ScalarCholesky>(model.scene->ordering);
    o.P->analyze_in_order(*fem::pattern(*o.plan.elements), of_object[k]);
  }
}

void QuickSolve::begin(const StepInput& in, std::span<const std::uint8_t> hold) {
  in_ = &in;
  hold_ = hold;
  for (Object& o : objects_) o.ready = false;
}

// All of it follows from the mesh, the time step and the held nodes: it is made anew after a restart.
QuickSolve::Object& QuickSolve::prepared(Index object) {
  Object& o = objects_[at(object)];
  if (std::exchange(o.ready, true)) return o;
  const StepInput& in = *in_;
  std::vector<std::uint8_t> own;
  for (const Index i : o.plan.nodes) own.push_back(hold_[at(i)]);
  if (o.factored && own == o.hold && o.h == in.h) return o;
  o.hold = std::move(own);
  o.h = in.h;
  o.diagonal.assign(o.plan.nodes.size(), 0.0);
  const double m = 1 + in.h * model_.scene->damping_mass,
               k = in.h * in.h + in.h * model_.scene->damping_stiffness;
  const std::shared_ptr<const BlockPattern> pattern = fem::pattern(*o.plan.elements);
  ScalarMatrix P(pattern);
  const std::vector<double>& volume = fem::rest_volume(*model_.elements);
  for (std::size_t n = 0; n < o.plan.nodes.size(); ++n)
    P.values[at(pattern->col_begin[n])] += m * model_.mass[3 * o.plan.nodes[n]];
  for (const Index e : mesh_.object_elements[at(object)]) {
    const Tet& t = mesh_.nodes[at(e)];
    const ElementMaterial& material = model_.mesh.material[at(e)];
    const material::Lame lame = material::lame(material.young, material.poisson);
    const double weight = k * volume[at(e)] * (2 * lame.mu + lame.lambda + material.fibre_stiffness);
    const Eigen::Matrix<double, 3, 4> g = fem::shape_gradients(model_.mesh.rest, t);
    for (int a = 0; a < corners(t); ++a)
      for (int b = 0; b < corners(t); ++b) {
        const Index i = own_number_[at(t[static_cast<std::size_t>(a)])],
                    j = own_number_[at(t[static_cast<std::size_t>(b)])];
        if (i < j || (o.hold[at(i)] != 0 && i != j) || (o.hold[at(j)] != 0 && i != j)) continue;
        P.values[at(pattern->find(i, j))] += weight * g.col(a).dot(g.col(b));
      }
  }
  const FactorStatus status = o.P->factor(P);
  if (!status.ok)
    throw Error(
        ErrorKind::kSimulation,
        fmt::format("the preconditioner of the prediction is not positive definite: pivot {:.3g} at node {}",
                    status.pivot, o.plan.nodes[at(status.node)]));
  o.factored = true;
  return o;
}

// r - m M Γ φ with Γᵀ (m M) Γ φ = Γᵀ r, Γ the rigid motions in which held nodes stand still.
VecX QuickSolve::without_rigid_motion(const Object& o, const VecX& x, VecX r, double m) const {
  std::vector<Vec3> points;  // held ones, up to three that are apart
  Vec3 center = Vec3::Zero();
  double mass = 0;
  for (const Index i : o.plan.nodes) {
    center += model_.mass[3 * i] * node(x, i);
    mass += model_.mass[3 * i];
    if (hold_[at(i)] != 0 && points.size() < 3) points.push_back(node(x, i));
  }
  const bool plane = mesh_.plane_node[at(o.plan.nodes.front())] != 0;
  if (points.size() > (plane ? 1 : 2)) return r;
  center /= mass;
  Eigen::Matrix<double, 6, Eigen::Dynamic> modes(6, 0);  // velocity of `origin`, angular velocity
  const auto add_mode = [&](const Vec3& v, const Vec3& w) {
    modes.conservativeResize(6, modes.cols() + 1);
    modes.col(modes.cols() - 1) << v, w;
  };
  const Vec3 origin = points.empty() ? center : points[0];
  if (points.empty())
    for (int k = 0; k < (plane ? 2 : 3); ++k) add_mode(Vec3::Unit(k), Vec3::Zero());
  if (points.size() == 2) {
    add_mode(Vec3::Zero(), (points[1] - points[0]).normalized());
  } else {
    for (int k = plane ? 2 : 0; k < 3; ++k) add_mode(Vec3::Zero(), Vec3::Unit(k));
  }
  // Sums of m, m r and m r rᵀ, and of the load's force and moment.
  Vec3 first = Vec3::Zero(), force = Vec3::Zero(), moment = Vec3::Zero();
  double xx = 0, yy = 0, zz = 0, xy = 0, xz = 0, yz = 0;
  const auto n = static_cast<Index>(o.plan.nodes.size());
  for (Index k = 0; k < n; ++k) {
    const Index i = o.plan.nodes[at(k)];
    const Vec3 arm = node(x, i) - origin, rk = node(r, k);
    const double w = m * model_.mass[3 * i];
    first += w * arm;
    xx += w * arm[0] * arm[0];
    yy += w * arm[1] * arm[1];
    zz += w * arm[2] * arm[2];
    xy += w * arm[0] * arm[1];
    xz += w * arm[0] * arm[2];
    yz += w * arm[1] * arm[2];
    force += rk;
    moment += cross(arm, rk);
  }
  Mat3 C, J;
  C << 0, -first[2], first[1], first[2], 0, -first[0], -first[1], first[0], 0;  // [sum of m r]x
  J << yy + zz, -xy, -xz, -xy, xx + zz, -yz, -xz, -yz, xx + yy;
  Eigen::Matrix<double, 6, 6> gram;
  gram << m * mass * Mat3::Identity(), -C, C, J;
  Eigen::Matrix<double, 6, 1> load;
  load << force, moment;
  const MatX small = modes.transpose() * gram * modes;
  const DenseCholesky<Eigen::Dynamic> cholesky(small);
  if (!cholesky.ok())
    return r;  // all nodes on a line: nothing is taken out, and more becomes elastic than must
  const VecX amount = cholesky.solve(VecX(modes.transpose() * load));
  const Eigen::Matrix<double, 6, 1> motion = modes * amount;
  for (Index k = 0; k < n; ++k) {
    const Index i = o.plan.nodes[at(k)];
    node(r, k) -= m * model_.mass[3 * i] * (motion.head<3>() + cross(motion.tail<3>(), node(x, i) - origin));
  }
  return r;
}

const std::vector<double>& QuickSolve::predict(Index object, const VecX& x, const VecX& v,
                                               const VecX& impulse, const VecX& drag, const VecX& driven,
                                               bool swing) {
  const Object& o = prepared(object);
  const StepInput& in = *in_;
  const auto n = static_cast<Index>(o.plan.nodes.size());
  const VecX own_x = o.plan.gather(x);
  fem::assemble_force(*o.plan.elements, own_x, in.activation, now_);
  const double damping = model_.scene->damping_mass, m = 1 + in.h * damping,
               k = in.h * in.h + in.h * model_.scene->damping_stiffness;
  VecX r = in.h * now_.f;
  for (Index a = 0; a < n; ++a) {
    const Index i = o.plan.nodes[at(a)];
    node(r, a) += node(impulse, i) - node(drag, i) - in.h * damping * model_.mass[3 * i] * node(v, i);
  }
  if (driven.size() > 0)  // seen from the script's motion
    for (Index a = 0; a < n; ++a)
      node(r, a) -= m * model_.mass[3 * o.plan.nodes[at(a)]] * node(driven, o.plan.nodes[at(a)]);
  const auto clear_held = [&](VecX& y) {
    for (Index a = 0; a < n; ++a)
      for (int c = 0; c < 3; ++c)
        if (in.fixed[3 * at(o.plan.nodes[at(a)]) + static_cast<std::size_t>(c)]) y[3 * a + c] = 0;
  };
  clear_held(r);
  r = without_rigid_motion(o, x, std::move(r), m);
  clear_held(r);

  MatX columns(n, 3);
  for (Index a = 0; a < n; ++a) columns.row(a) = node(r, a).transpose();
  o.P->solve(columns);
  VecX p(r.size());
  for (Index a = 0; a < n; ++a) node(p, a) = columns.row(a).transpose();
  clear_held(p);

  double pMp = 0;
  for (Index a = 0; a < n; ++a) pMp += model_.mass[3 * o.plan.nodes[at(a)]] * node(p, a).squaredNorm();
  const double largest = p.lpNorm<Eigen::Infinity>();
  double scale = 0;
  if (largest > 0) {
    const double probe = kProbe * o.edge / largest;
    fem::assemble_force(*o.plan.elements, own_x + probe * p, in.activation, then_);
    const double pKp = std::max(0.0, p.dot(now_.f - then_.f) / probe);
    scale = r.dot(p) / (m * pMp + k * pKp);
    const double b = model_.scene->damping_stiffness, w = std::sqrt(pKp / pMp);
    if (swing && w > 0) scale *= std::max(1.0, (1 + k * w * w) / (in.h * w * (1 + b * w)));
  }
  p *= scale;
  fem::strain_rates(*o.plan.elements, own_x, p, rate_);
  return rate_;
}

double QuickSolve::compliance(Index i) {
  Object& o = prepared(model_.piece_of_node[at(i)]);
  const auto own = static_cast<std::size_t>(own_number_[at(i)]);
  if (o.diagonal[own] == 0) {
    MatX unit = MatX::Zero(static_cast<Eigen::Index>(o.plan.nodes.size()), 1);
    unit(own_number_[at(i)], 0) = 1;
    o.P->solve(unit);
    o.diagonal[own] = unit(own_number_[at(i)], 0);
  }
  return o.diagonal[own];
}

}  // namespace limber::rigidify
