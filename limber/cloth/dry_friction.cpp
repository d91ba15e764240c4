#include <limber/cloth/dry_friction.hpp>

#include <algorithm>
#include <cmath>

namespace limber::cloth {
namespace {

// Spring of what sticks over the entries of the matrix: it creeps by limit/(this times inertia), which for
// cloth that its own weight presses is mu g h/1e6, a hundredth of a micrometre per second.
constexpr double kStickStiffness = 1e6;
constexpr double kSmallLimit = 1e-3;  // over the mean limit: forces below are not looked at

}  // namespace

DryFriction::DryFriction(const BoundProblem& problem, const std::vector<double>& diagonal,
                         const std::vector<std::int8_t>& start, const std::vector<std::uint8_t>& pressed)
    : problem_(problem) {
  for (const FrictionDisc& f : problem.friction) {
    Contact c;
    c.diagonal = 0;
    bool held = true;
    for (const Index d : f.slide) {
      if (d < 0) continue;
      const auto D = problem.A.block(problem.A.pattern->col_begin[at(d / 3)]);
      c.diagonal = std::max(c.diagonal, D(d % 3, d % 3));
      held = held && (start.empty() || start[at(d)] != 0);
    }
    const double push = f.start.norm();
    if (!pressed[contacts_.size()]) {
      c.mode = Mode::kOff;
    } else if (held || !(push > 0)) {
      stick(c, kStickStiffness * c.diagonal);
    } else {
      c.limit = push;
      // As fast as before, if that is known.
      Vec3 s = Vec3::Zero();
      for (std::size_t k = 0; k < 2; ++k)
        if (f.slide[k] >= 0 && problem.guess.size() > 0)
          s[static_cast<int>(k)] = problem.guess[f.slide[k]] - f.at[k];
      const Vec3 t = Vec3(-f.start[0], -f.start[1], 0) / push;
      slide(c, t, std::max(s.norm(), push / std::max(c.diagonal, 1e-300)));
    }
    contacts_.push_back(c);
  }
  for (const BoundRow& row : problem.rows) {
    Contact c;
    c.diagonal = 0;
    for (const Index i : row.block)
      if (i >= 0) c.diagonal = std::max(c.diagonal, diagonal[at(i)]);
    contacts_.push_back(c);
  }
}

// Of a disc the two coordinates, of a row the velocity of its point in space, along its plane.
Vec3 DryFriction::slip(std::size_t k, const VecX& y, bool relative) const {
  Vec3 s = Vec3::Zero();
  if (k < problem_.friction.size()) {
    const FrictionDisc& f = problem_.friction[k];
    for (std::size_t a = 0; a < 2; ++a)
      if (f.slide[a] >= 0) s[static_cast<int>(a)] = y[f.slide[a]] - (relative ? f.at[a] : 0.0);
    return s;
  }
  const BoundRow& row = problem_.rows[k - problem_.friction.size()];
  if (relative) s = -row.velocity;
  for (std::size_t a = 0; a < 3; ++a)
    if (row.block[a] >= 0)
      s += row.weight[a] * (problem_.basis[at(row.block[a])] * Vec3(node(y, row.block[a])));
  return s - row.n.dot(s) * row.n;
}

void DryFriction::stick(Contact& c, double stiffness) {
  c.mode = Mode::kStick;
  c.stiffness = stiffness;
  c.direction.setZero();
  c.against.setZero();
  c.push.setZero();
}

void DryFriction::slide(Contact& c, const Vec3& direction, double speed) {
  c.mode = Mode::kSlip;
  c.direction = c.against = direction;
  c.speed = speed;
  c.push = -c.limit * direction;
  c.stiffness = std::min(c.limit / std::max(speed, 1e-300), kStickStiffness * c.diagonal);
}

// The force is push - stiffness (1 - (t u^T + u t^T)/2) slip, with t the direction of the slip and u that of
// the force against it, which is the same in the end (Chan, Golub and Mulet 1999); t = 0 where it sticks.
Mat3 DryFriction::stiffness_of(const Contact& c) {
  return c.stiffness * (Mat3::Identity() -
                        0.5 * (c.direction * c.against.transpose() + c.against * c.direction.transpose()));
}

void DryFriction::add_stiffness(BlockMatrix& A) const {
  for (std::size_t k = 0; k < contacts_.size(); ++k) {
    const Contact& c = contacts_[k];
    if (c.mode == Mode::kOff || c.stiffness == 0) continue;
    Mat3 S = stiffness_of(c);
    if (k < problem_.friction.size()) {
      const auto& slide = problem_.friction[k].slide;
      for (std::size_t a = 0; a < 2; ++a)
        for (std::size_t b = 0; b < 2; ++b)
          if (slide[a] >= 0 && slide[b] >= 0 && slide[a] / 3 >= slide[b] / 3)
            A.block(A.pattern->find(slide[a] / 3, slide[b] / 3))(slide[a] % 3, slide[b] % 3) +=
                S(static_cast<int>(a), static_cast<int>(b));
      continue;
    }
    const BoundRow& row = problem_.rows[k - problem_.friction.size()];
    const Mat3 P = Mat3::Identity() - row.n * row.n.transpose();
    S = P * S * P;
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j) {
        if (row.block[i] < 0 || row.block[j] < 0 || row.block[i] < row.block[j]) continue;
        A.block(A.pattern->find(row.block[i], row.block[j])) += row.weight[i] * row.weight[j] *
                                                                problem_.basis[at(row.block[i])].transpose() *
                                                                S * problem_.basis[at(row.block[j])];
      }
  }
}

void DryFriction::add_forces(VecX& rhs) const {
  for (std::size_t k = 0; k < contacts_.size(); ++k) {
    const Contact& c = contacts_[k];
    if (c.mode == Mode::kOff) continue;
    // What of the slip is known: the velocity of what it touches.
    const Mat3 S = stiffness_of(c);
    if (k < problem_.friction.size()) {
      const FrictionDisc& f = problem_.friction[k];
      Vec3 known = Vec3::Zero();
      for (std::size_t a = 0; a < 2; ++a)
        if (f.slide[a] >= 0) known[static_cast<int>(a)] = f.at[a];
      const Vec3 force = c.push + S * known;
      for (std::size_t a = 0; a < 2; ++a)
        if (f.slide[a] >= 0) rhs[f.slide[a]] += force[static_cast<int>(a)];
      continue;
    }
    const BoundRow& row = problem_.rows[k - problem_.friction.size()];
    const Vec3 known = row.velocity - row.n.dot(row.velocity) * row.n;
    Vec3 force = c.push + S * known;
    force -= row.n.dot(force) * row.n;
    for (std::size_t a = 0; a < 3; ++a)
      if (row.block[a] >= 0)
        node(rhs, row.block[a]) += row.weight[a] * (problem_.basis[at(row.block[a])].transpose() * force);
  }
}

DryFriction::Look DryFriction::look(const VecX& y, double share) {
  Look out;
  double sum = 0, count = 0;
  for (const Contact& c : contacts_)
    if (c.target > 0) sum += c.target, count += 1;
  scale_ = count > 0 ? sum / count : 0;
  for (std::size_t k = 0; k < contacts_.size(); ++k) {
    Contact& c = contacts_[k];
    const Vec3 s = slip(k, y);
    c.force = c.mode == Mode::kOff ? Vec3(Vec3::Zero()) : Vec3(c.push - stiffness_of(c) * s);
    if (frozen_) continue;
    const Judged judged = judge(c, s, share);
    out.unsettled += !judged.settled;
    out.stiffness = out.stiffness || judged.stiffness;
  }
  return out;
}

DryFriction::Judged DryFriction::judge(Contact& c, const Vec3& s, double share) const {
  const bool pressed = c.target >= 0;
  if (!pressed && c.mode == Mode::kOff) return {};
  if (share == 1) relax(c);
  if (!pressed && c.limit <= kSmallLimit * scale_) {
    c.mode = Mode::kOff;
    return {c.force.norm() <= kSmallLimit * scale_, true};
  }
  return speed_ > 0 ? judge_rounded(c, s, share) : judge_sharp(c, s);
}

// The limit goes to what presses, and more slowly where it has gone back and forth: what presses depends on
// friction too, and may even end with it.
void DryFriction::relax(Contact& c) {
  const double change = std::max(0.0, c.target) - c.limit;
  c.pace = change * c.change < 0 ? std::max(0.05, 0.5 * c.pace) : std::min(1.0, 1.4 * c.pace);
  c.change = change;
  c.limit += c.pace * change;
}

DryFriction::Judged DryFriction::judge_sharp(Contact& c, const Vec3& s) const {
  const double most = std::max(0.0, c.target), allowed = tolerance_ * most + kSmallLimit * scale_;
  const double force = c.force.norm(), speed = s.norm();
  if (c.mode == Mode::kOff) {  // something has begun to press
    stick(c, kStickStiffness * c.diagonal);
    return {false, true};
  }
  if (c.mode == Mode::kStick) {
    if (force <= most + allowed) return {};
    // As fast as the excess alone would make it.
    slide(c, -c.force / force, (force - most) / c.diagonal);
    return {false, true};
  }
  // Friction acts against the slip. Where it drives instead, it was enough to hold.
  if (speed == 0 || s.dot(c.direction) <= 0) {
    if (force <= kSmallLimit * scale_ && most <= kSmallLimit * scale_) return {};
    stick(c, kStickStiffness * c.diagonal);
    return {false, true};
  }
  const Vec3 t = s / speed, was = c.direction;
  const double before = c.stiffness;
  const bool fits = (c.force + most * t).norm() <= allowed;
  slide(c, t, speed);
  return {fits, !fits && (std::abs(c.stiffness - before) > 0.05 * before || (t - was).norm() > 0.02)};
}

DryFriction::Judged DryFriction::judge_rounded(Contact& c, const Vec3& s, double share) const {
  const double most = std::max(0.0, c.target), allowed = tolerance_ * most + kSmallLimit * scale_;
  const double speed = s.norm();
  const double off =
      speed <= speed_ ? c.force.norm() - most : (c.force + most / std::max(speed, speed_) * s).norm();
  // The direction of the force follows its own linearisation, not that of the slip.
  Vec3 next = s / std::max(c.mode == Mode::kOff ? speed : c.speed, speed_);
  if (c.mode == Mode::kSlip)
    next -= c.direction.dot(s - c.speed * c.direction) / std::max(c.speed, speed_) * c.against;
  c.against += share * (next - c.against);
  if (c.against.norm() > 1) c.against.normalize();
  linearise_rounded(c, s);
  return {off <= allowed, true};
}

void DryFriction::linearise_rounded(Contact& c, const Vec3& s) const {
  c.speed = s.norm();
  c.mode = c.speed <= speed_ ? Mode::kStick : Mode::kSlip;
  c.stiffness = c.limit / std::max(c.speed, speed_);
  c.direction = c.mode == Mode::kStick ? Vec3(Vec3::Zero()) : Vec3(s / c.speed);
  c.push = stiffness_of(c) * s - c.limit * c.direction;
  if (c.mode == Mode::kStick) c.push.setZero();
}

void DryFriction::round(double speed, double tolerance, const VecX& y) {
  speed_ = speed;
  tolerance_ = tolerance;
  if (frozen_) return;
  for (std::size_t k = 0; k < contacts_.size(); ++k) {
    Contact& c = contacts_[k];
    if (c.mode == Mode::kOff) continue;
    c.against = c.limit > 0 ? Vec3(-c.force / c.limit) : Vec3(Vec3::Zero());
    if (c.against.norm() > 1) c.against.normalize();
    linearise_rounded(c, slip(k, y));
  }
}

void DryFriction::freeze(const VecX& y) {
  frozen_ = true;
  for (std::size_t k = 0; k < contacts_.size(); ++k) {
    Contact& c = contacts_[k];
    if (c.mode == Mode::kOff) continue;
    const Vec3 s = slip(k, y);
    const double speed = std::max({s.norm(), speed_, 1e-300});
    c.mode = Mode::kSlip;
    c.push = c.force = -c.limit / speed * s;
    c.stiffness = 0;
    c.direction.setZero();
    c.against.setZero();
  }
}

double DryFriction::slope(const VecX& y, const VecX& d, double at_s) const {
  double sum = 0;
  for (std::size_t k = 0; k < contacts_.size(); ++k) {
    const Contact& c = contacts_[k];
    if (c.mode == Mode::kOff) continue;
    const Vec3 ds = slip(k, d, false), s = slip(k, y) + at_s * ds;
    if (frozen_) {
      sum -= c.push.dot(ds);
      continue;
    }
    sum += c.limit * s.dot(ds) / std::max(s.norm(), speed_);
  }
  return sum;
}

std::vector<Vec2> DryFriction::disc_forces() const {
  std::vector<Vec2> out;
  for (std::size_t k = 0; k < problem_.friction.size(); ++k) out.push_back(contacts_[k].force.head<2>());
  return out;
}

}  // namespace limber::cloth
