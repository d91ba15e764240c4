#include <limber/contact/contact_step.hpp>

#include <limber/mesh/geometry.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace limber {
void ContactStep::begin(const ContactModel& model, std::span<const Anchor> anchors, const VecX& x,
                        const VecX& v, const Vec3& dv, double h, double t) {
  model_ = &model;
  slides_.clear();
  anchors_ = anchors;
  h_ = h;
  t_ = t;
  revisions_ = 0;
  renewed_ = false;
  laws_.clear();
  placement_.clear();
  if (model.empty()) return;
  x_ = x;
  v_ = v;
  Box box;
  for (const Index i : model.nodes) box.add(node(x, i));
  tolerance_ = 1e-7 * box.size().norm();
  for (const Obstacle& o : model.obstacles) placement_.push_back(placement_at(o, t + h));
  // Only a body that nothing carries gains dv: nodes that hang a little above the floor on which the body
  // rests would be taken for contacts and dropped again in every step.
  VecX expected = v;
  if (inside(x, t).empty())
    for (const Index i : model.nodes) node(expected, i) += dv;
  for (const Contact& c : found(expected)) laws_.push_back(law(c));
}

void ContactStep::leave_out_apart(std::vector<Contact>& contacts) const {
  if (apart_.empty()) return;
  const std::size_t obstacles = model_->obstacles.size();
  std::erase_if(contacts, [&](const Contact& c) {
    return apart_[static_cast<std::size_t>(c.node) * obstacles + static_cast<std::size_t>(c.obstacle)] != 0;
  });
}

std::vector<Contact> ContactStep::found(const VecX& v) const {
  std::vector<Contact> contacts = detect(*model_, x_, v, h_, t_);
  leave_out_apart(contacts);
  return contacts;
}

std::vector<Contact> ContactStep::inside(const VecX& x, double t) const {
  std::vector<Contact> contacts = touching(*model_, x, t);
  leave_out_apart(contacts);
  return contacts;
}

void ContactStep::follow_obstacles() {
  std::vector<Placement> start;
  const std::vector<Placement> before = placement_;
  for (std::size_t o = 0; o < placement_.size(); ++o) {
    start.push_back(placement_at(model_->obstacles[o], t_));
    placement_[o] = placement_at(model_->obstacles[o], t_ + h_);
  }
  for (ContactLaw& law : laws_) {
    Contact& c = law.contact;
    const auto o = static_cast<std::size_t>(c.obstacle);
    if (model_->obstacles[o].motion.empty()) continue;
    const Placement &from = before[o], &to = placement_[o];
    const Mat3 turn = to.R * from.R.transpose();
    c.x_s = to.to_world(c.local);
    c.n = turn * c.n;
    c.depth = c.n.dot(c.x_s - node(x_, c.node));
    c.velocity = (c.x_s - start[o].to_world(c.local)) / h_;
    law.anchor = to.to_world(from.to_local(law.anchor));
    law.slide = turn * law.slide;
  }
}

void ContactStep::slide(std::vector<std::uint8_t> which, const VecX& v) {
  slides_ = std::move(which);
  for (std::size_t i = 0; i < slides_.size(); ++i)
    if (slides_[i]) node(v_, static_cast<Index>(i)) = node(v, static_cast<Index>(i));
  for (ContactLaw& old : laws_)
    if (slides(old.contact)) old = law(old.contact);
}

ContactLaw ContactStep::law(const Contact& c) const {
  ContactLaw at_start;
  at_start.contact = c;
  return law(c, h_ * node(v_, c.node), at_start.normal_force(node(x_, c.node)));
}

ContactLaw ContactStep::law(const Contact& c, const Vec3& step, double normal) const {
  const Vec3 x = node(x_, c.node);
  if (model_->rule == FrictionRule::kFilter) {
    // The paper's: the closest point moves along with the node, so the spring has no tangential force at x,
    // only stiffness.
    ContactLaw law;
    law.contact = c;
    law.anchor = x;
    law.spring = model_->alpha * c.stiffness;
    law.grip = Grip::kStick;
    return law;
  }
  const Anchor* a = find_anchor(anchors_, c.node, c.obstacle);
  const Vec3 anchor = a ? placement_[static_cast<std::size_t>(c.obstacle)].to_world(a->point) : c.x_s;
  ContactLaw law = contact_law(c, model_->alpha, anchor, x, step, normal);
  // Where the step can be taken back friction is itself, and no spring: a spring in K would hold back all
  // that follows quasistatically.
  if (slides(c) && law.grip == Grip::kSlide && law.spring > 0) {
    const Vec3 d = x + step - anchor;
    law.slide = -law.spring * (d - c.n.dot(d) * c.n);
    law.spring = 0;
  }
  return law;
}

void ContactStep::add_force(const VecX& x, VecX& f) const {
  for (const ContactLaw& law : laws_)
    if (law.active) node(f, law.contact.node) += law.force(node(x, law.contact.node));
}

void ContactStep::add_force(const VecX& x, double remaining, VecX& f, VecX& closing) const {
  for (const ContactLaw& law : laws_) {
    if (!law.active) continue;
    // An obstacle that is behind by d meets the node as it would meet one that is ahead by d.
    const Vec3 xi = node(x, law.contact.node) + remaining * law.contact.velocity;
    node(law.gap(xi) > 0 ? closing : f, law.contact.node) += law.force(xi);
  }
}

void ContactStep::add_stiffness(double factor, BlockMatrix& K) const {
  for (const ContactLaw& law : laws_)
    if (law.active) K.block(K.pattern->col_begin[law.contact.node]) += factor * law.stiffness();
}

void ContactStep::add_drag(double factor, VecX& rate) const {
  for (const ContactLaw& law : laws_)
    if (law.active) node(rate, law.contact.node) += factor * (law.stiffness() * law.contact.velocity);
}

double ContactStep::potential(const VecX& x) const {
  double sum = 0;
  for (const ContactLaw& law : laws_)
    if (law.active) sum += law.potential(node(x, law.contact.node));
  return sum;
}

bool ContactStep::closes(const VecX& x) const {
  return std::any_of(laws_.begin(), laws_.end(), [&](const ContactLaw& law) {
    return law.active && law.gap(node(x, law.contact.node) + h_ * law.contact.velocity) > 0;
  });
}

bool ContactStep::moves() const {
  return std::any_of(laws_.begin(), laws_.end(),
                     [](const ContactLaw& law) { return law.active && !law.contact.velocity.isZero(0); });
}

bool ContactStep::revise(const VecX& x1) {
  if (model_->empty() || revisions_ == kRevisions) return false;
  bool changed = false;
  for (ContactLaw& law : laws_) {
    const double gap = law.gap(node(x1, law.contact.node));
    if (law.active && gap > tolerance_ && revisions_ < kFreeRevisions) {
      law.active = false;
      changed = true;
    } else if (!law.active && gap < -tolerance_) {
      law.active = true;
      changed = true;
    }
  }
  const VecX moved = (x1 - x_) / h_;
  std::vector<ContactLaw> fresh;
  auto known = laws_.begin();
  for (const Contact& c : found(moved)) {
    while (known != laws_.end() && before(known->contact, c)) ++known;
    if (known != laws_.end() && !before(c, known->contact)) continue;
    ContactLaw added = law(c);
    if (added.gap(node(x1, c.node)) < -tolerance_) fresh.push_back(added);
  }
  if (changed || !fresh.empty()) ++revisions_;
  if (fresh.empty()) return changed;
  laws_.insert(laws_.end(), fresh.begin(), fresh.end());
  std::sort(laws_.begin(), laws_.end(),
            [](const ContactLaw& a, const ContactLaw& b) { return before(a.contact, b.contact); });
  return true;
}

bool ContactStep::renew_friction(const VecX& x1) {
  if (model_->empty() || model_->rule == FrictionRule::kFilter || slides_.empty() || renewed_) return false;
  struct Grasp {
    Vec3 moved, offset;    // along the surface: in the step, and from the anchor [m]
    double normal, limit;  // [N]
    bool beyond;           // a spring holds the node by more than friction has, and could not stop it
    bool back;             // friction pushes the node back
  };
  const auto grasp = [&](const ContactLaw& law) {
    const Vec3 to = node(x1, law.contact.node), n = law.contact.n;
    const Vec3 moved = to - node(x_, law.contact.node) - h_ * law.contact.velocity, d = to - law.anchor;
    Grasp g{moved - n.dot(moved) * n, d - n.dot(d) * n, law.normal_force(to), 0, false, false};
    g.limit = law.contact.friction * g.normal;
    g.beyond = law.spring * g.offset.norm() > g.limit && g.moved.dot(g.offset) > 0;
    g.back = g.moved.dot(law.slide) > 0;
    return g;
  };
  double start = 0, end = 0, wrong = 0;  // [N]
  for (const ContactLaw& law : laws_) {
    if (!law.active || law.contact.friction == 0 || !slides(law.contact)) continue;
    const Grasp g = grasp(law);
    start += law.normal_force(node(x_, law.contact.node));
    end += g.normal;
    if (g.beyond) wrong += law.spring * g.offset.norm() / law.contact.friction - g.normal;
    if (g.back) wrong += g.normal;
  }
  if (std::abs(end - start) <= kSteadyNormal * end && wrong <= kWrongFriction * end) return false;
  renewed_ = true;
  for (ContactLaw& old : laws_) {
    if (!old.active || old.contact.friction == 0 || !slides(old.contact)) continue;
    const Grasp g = grasp(old);
    if (g.beyond && g.limit > 0) {
      old.grip = Grip::kSlide;
      old.spring = 0;
      old.slide = -g.limit / g.offset.norm() * g.offset;
    } else {
      old = law(old.contact, g.back ? Vec3(Vec3::Zero()) : g.moved, g.normal);
    }
  }
  return true;
}

std::vector<Anchor> ContactStep::finish(const VecX& x1) const {
  std::vector<Anchor> out;
  if (model_->empty() || model_->rule == FrictionRule::kFilter || model_->alpha == 0) return out;
  auto known = laws_.begin();
  for (const Contact& c : inside(x1, t_ + h_)) {
    if (c.friction == 0) continue;
    while (known != laws_.end() && before(known->contact, c)) ++known;
    const bool expected = known != laws_.end() && !before(c, known->contact);
    const Placement& at = placement_[static_cast<std::size_t>(c.obstacle)];
    // Coulomb: the spring carries no more than mu K depth, so it is no longer than this.
    const double limit = c.friction * c.depth / model_->alpha;
    const Vec3 offset = c.x_s - (expected ? known->anchor : c.x_s);
    const Vec3 slip = offset - c.n.dot(offset) * c.n;
    const double length = slip.norm();
    const Vec3 hold = length > limit ? Vec3(c.x_s - limit / length * slip) : Vec3(c.x_s - slip);
    out.push_back({c.node, c.obstacle, at.to_local(hold)});
  }
  return out;
}

std::vector<Contact> ContactStep::tunnelled(const VecX& x1) const {
  std::vector<Contact> out;
  if (model_->empty()) return out;
  const VecX moved = (x1 - x_) / h_;
  for (const Contact& c : found(moved)) {
    const auto o = static_cast<std::size_t>(c.obstacle);
    const Vec3 x = node(x1, c.node);
    if (c.n.dot(x - c.x_s) < -tolerance_ &&
        closest_point(model_->obstacles[o], placement_[o], x).distance > 0)
      out.push_back(c);
  }
  return out;
}

Index ContactStep::active() const {
  return static_cast<Index>(
      std::count_if(laws_.begin(), laws_.end(), [](const ContactLaw& law) { return law.active; }));
}

}  // namespace limber
