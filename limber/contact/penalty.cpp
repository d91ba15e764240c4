#include <limber/contact/penalty.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace limber {
namespace {

Vec3 tangential(const Vec3& n, const Vec3& d) { return d - n.dot(d) * n; }

}  // namespace

const Anchor* find_anchor(std::span<const Anchor> anchors, Index node, Index obstacle) {
  const auto key = std::make_tuple(node, obstacle);
  const auto at = std::lower_bound(anchors.begin(), anchors.end(), key, [](const Anchor& a, const auto& k) {
    return std::make_tuple(a.node, a.obstacle) < k;
  });
  const bool found = at != anchors.end() && at->node == node && at->obstacle == obstacle;
  return found ? &*at : nullptr;
}

Vec3 ContactLaw::force(const Vec3& x) const {
  return slide - contact.stiffness * gap(x) * contact.n - spring * tangential(contact.n, x - anchor);
}

Mat3 ContactLaw::stiffness() const {
  return (contact.stiffness - spring) * contact.n * contact.n.transpose() + spring * Mat3::Identity();
}

double ContactLaw::potential(const Vec3& x) const {
  return 0.5 * contact.stiffness * gap(x) * gap(x) +
         0.5 * spring * tangential(contact.n, x - anchor).squaredNorm() - slide.dot(x - anchor);
}

ContactLaw contact_law(const Contact& contact, double alpha, const Vec3& anchor, const Vec3& x,
                       const Vec3& step, double normal) {
  ContactLaw law;
  law.contact = contact;
  law.anchor = anchor;
  const double spring = alpha * contact.stiffness;
  if (contact.friction == 0 || spring == 0) return law;
  const double limit = contact.friction * normal;
  const Vec3 offset = tangential(contact.n, x + step - anchor);
  const double length = offset.norm();
  if (spring * length <= limit) {
    law.grip = Grip::kStick;
    law.spring = spring;
    return law;
  }
  law.grip = Grip::kSlide;
  // Without and with friction the node's place differs by up to limit / elastic; twice that each way is safe.
  if (length * contact.elastic > 4 * limit + contact.elastic * limit / spring)
    law.slide = -limit / length * offset;
  else
    law.spring = limit / length;
  return law;
}

double contact_energy(const ContactModel& model, std::span<const Anchor> anchors, const VecX& x, double t) {
  return contact_energy(model, anchors, x, t, touching(model, x, t));
}

double contact_energy(const ContactModel& model, std::span<const Anchor> anchors, const VecX& x, double t,
                      std::span<const Contact> touching) {
  double energy = 0;
  std::vector<Placement> at;
  for (const Contact& c : touching) {
    energy += 0.5 * c.stiffness * c.depth * c.depth;
    const Anchor* a = find_anchor(anchors, c.node, c.obstacle);
    const double spring = model.alpha * c.stiffness;
    if (a == nullptr || spring == 0) continue;
    if (at.empty())
      for (const Obstacle& o : model.obstacles) at.push_back(placement_at(o, t));
    const Vec3 hold = at[static_cast<std::size_t>(c.obstacle)].to_world(a->point);
    const double limit = c.friction * c.stiffness * c.depth / spring;  // the spring slips beyond this length
    const double length = std::min(limit, tangential(c.n, node(x, c.node) - hold).norm());
    energy += 0.5 * spring * length * length;
  }
  return energy;
}

}  // namespace limber
