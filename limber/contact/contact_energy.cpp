#include <limber/contact/contact_energy.hpp>

#include <limber/contact/ramp.hpp>
#include <limber/core/parallel.hpp>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

constexpr std::ptrdiff_t kNodesPerTask = 128;  // nodes per piece of work
constexpr double kRounding = 1e-9;             // of a distance, as a share of the way that nodes can go

Mat3 tangent(const Vec3& n) { return Mat3::Identity() - n * n.transpose(); }

}  // namespace

void ContactEnergy::pose(const VecX& x0, double t0, const VecX& guess, double t, const VecX& c, double g) {
  candidates_.clear();
  placement_.clear();
  touching_ = false;
  g_ = g;
  if (model_.empty()) return;
  std::vector<Placement> before;
  for (const Obstacle& o : model_.obstacles) {
    before.push_back(placement_at(o, t0));
    placement_.push_back(placement_at(o, t));
  }
  const auto n = static_cast<std::ptrdiff_t>(model_.nodes.size());
  seen_.resize(model_.nodes.size() * model_.obstacles.size());
  std::vector<std::vector<Candidate>> found(
      static_cast<std::size_t>((n + kNodesPerTask - 1) / kNodesPerTask));
  parallel_ranges(n, kNodesPerTask, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    auto& out = found[static_cast<std::size_t>(begin / kNodesPerTask)];
    for (std::ptrdiff_t k = begin; k < end; ++k) {
      const Index i = model_.nodes[k];
      const Vec3 x = node(x0, i);
      for (std::size_t o = 0; o < model_.obstacles.size(); ++o) {
        Seen& seen = seen_[static_cast<std::size_t>(k) * model_.obstacles.size() + o];
        const double step = 2 * (node(guess, i) - x).norm();
        if (model_.obstacles[o].motion.empty() && seen.distance - (x - seen.x).norm() > step + margin_)
          continue;
        const SurfacePoint now = closest_point(model_.obstacles[o], before[o], x);
        seen = {x, now.distance};
        const Vec3 local = before[o].to_local(now.x);
        const Vec3 travel = placement_[o].to_world(local) - now.x;  // of the obstacle's point
        // A node may end elsewhere than expected.
        const double reach = step + travel.norm() + margin_;
        if (now.distance > reach) continue;
        Candidate a;
        a.node = i;
        a.obstacle = static_cast<Index>(o);
        a.stiffness = model_.stiffness[k];
        a.mu = model_.obstacles[o].friction;
        a.limit = a.mu * a.stiffness * -std::min(0.0, now.distance);
        a.n = now.n;
        a.origin = Vec3(node(c, i)) + (t > t0 ? g / (t - t0) : 0.0) * travel;
        a.start = damping_ > 0
                      ? std::min(0.0, closest_point(model_.obstacles[o], placement_[o], a.origin).distance)
                      : std::min(0.0, now.distance);
        a.expected = node(guess, i);
        a.clearance = std::max(
            0.0, closest_point(model_.obstacles[o], placement_[o], a.expected).distance - kRounding * reach);
        out.push_back(a);
      }
    }
  });
  for (const auto& part : found) candidates_.insert(candidates_.end(), part.begin(), part.end());
  touching_ = std::any_of(candidates_.begin(), candidates_.end(),
                          [](const Candidate& a) { return a.start < 0 || a.clearance == 0; });
}

bool ContactEnergy::touching(const VecX& x) const {
  return std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& a) {
    const auto o = static_cast<std::size_t>(a.obstacle);
    return a.limit > 0 || (!a.clear(node(x, a.node)) &&
                           closest_point(model_.obstacles[o], placement_[o], node(x, a.node)).distance < 0);
  });
}

ContactEnergy::Revision ContactEnergy::revise_friction(const VecX& x) {
  Revision out;
  const double slip = g_ * slip_speed_;
  for (Candidate& a : candidates_) {
    if (!(a.mu > 0)) continue;
    const Vec3 xi = node(x, a.node);
    if (a.limit == 0 && a.clear(xi)) continue;
    const auto o = static_cast<std::size_t>(a.obstacle);
    const SurfacePoint at = closest_point(model_.obstacles[o], placement_[o], xi);
    const double normal =
        -a.stiffness * (std::min(0.0, at.distance) + damping_ / g_ * ramp(at.distance - a.start, slip).first);
    const double limit = a.mu * normal;
    out.change += std::abs(limit - a.limit);
    out.sum += limit;
    if (a.limit == 0) a.n = at.n;
    a.limit = limit;
  }
  return out;
}

Vec3 ContactEnergy::force_at(const Candidate& a, const Vec3& xi, double& energy) const {
  const auto o = static_cast<std::size_t>(a.obstacle);
  const double slip = g_ * slip_speed_;
  const SurfacePoint at = closest_point(model_.obstacles[o], placement_[o], xi);
  const double gap = std::min(0.0, at.distance), damping = damping_ * a.stiffness / g_;
  const Ramp deeper = ramp(at.distance - a.start, slip);
  energy += 0.5 * a.stiffness * gap * gap + damping * deeper.value;
  Vec3 force = -(a.stiffness * gap + damping * deeper.first) * at.n;
  if (a.limit > 0) {
    const Vec3 u = tangent(a.n) * (xi - a.origin);
    const Ramp s = slide(u.norm(), slip);
    energy += a.limit * s.value;
    force -= a.limit * s.first * u;
  }
  return force;
}

double ContactEnergy::add_force(const VecX& x, VecX& f) const {
  double energy = 0;
  for (const Candidate& a : candidates_) {
    const Vec3 xi = node(x, a.node);
    if (a.limit == 0 && a.clear(xi)) continue;
    node(f, a.node) += force_at(a, xi, energy);
  }
  return energy;
}

void ContactEnergy::list_forces(const VecX& x, std::vector<ContactForce>& out) const {
  double energy = 0;
  for (const Candidate& a : candidates_) {
    const Vec3 xi = node(x, a.node);
    if (a.limit == 0 && a.clear(xi)) continue;
    const Vec3 force = force_at(a, xi, energy);
    if (!force.isZero(0)) out.push_back({a.node, a.obstacle, force});
  }
}

void ContactEnergy::add_stiffness(const VecX& x, BlockMatrix& A) const {
  const double slip = g_ * slip_speed_;
  for (const Candidate& a : candidates_) {
    const auto o = static_cast<std::size_t>(a.obstacle);
    const Vec3 xi = node(x, a.node);
    if (a.limit == 0 && a.clear(xi)) continue;
    const SurfacePoint at = closest_point(model_.obstacles[o], placement_[o], xi);
    auto D = A.block(A.pattern->col_begin[a.node]);
    double normal = at.distance < 0 ? a.stiffness : 0.0;
    normal += damping_ * a.stiffness / g_ * ramp(at.distance - a.start, slip).second;
    D += normal * at.n * at.n.transpose();
    if (a.limit == 0) continue;
    const Mat3 P = tangent(a.n);
    const Vec3 u = P * (xi - a.origin);
    const double length = u.norm();
    const Ramp s = slide(length, slip);
    D += a.limit * s.first * P;
    if (length > 0) D += a.limit * (s.second - s.first) / (length * length) * u * u.transpose();
  }
}

}  // namespace limber
