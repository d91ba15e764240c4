// Penalty forces of contacts, with Coulomb friction that remembers where a node took hold.
//
// A node at x that touches at x_s with normal n and holds on to the surface at a (on the surface, at first
// where the node came down) feels (ConJac paper, BUNNY, after McAdams et al. 2011; our sign, pushing out)
//   f = -K (n nT (x - x_s) + alpha P (x - a)),   P = I - n nT,
// which for a = x_s is the paper's -K ((1 - alpha) n nT + alpha I)(x - x_s). The tangential part is a spring
// that slips when it would exceed mu times the normal force: a then follows the node (an elastic, perfectly
// plastic bristle). So a resting body rests: friction is a force that balances, not a drag that lets it
// creep.
#pragma once

#include <limber/contact/detect.hpp>
#include <limber/linalg/block_matrix.hpp>

#include <span>
#include <vector>

namespace limber {

// Where a node holds on to an obstacle, in the obstacle's frame. Lists are ordered by node, then obstacle.
struct Anchor {
  Index node = -1, obstacle = -1;
  Vec3 point = Vec3::Zero();  // [m]
};
const Anchor* find_anchor(std::span<const Anchor> anchors, Index node, Index obstacle);

// How a contact resists sliding: not at all, as a spring, or at the limit of friction.
enum class Grip { kNone, kStick, kSlide };

// A contact's law for one step, linear in the position of its node.
struct ContactLaw {
  Contact contact;
  Vec3 anchor = Vec3::Zero();  // in the world, at the end of the step [m]
  Grip grip = Grip::kNone;
  double spring = 0;  // tangential stiffness between node and anchor [N/m]: alpha K, or less when it slides
  Vec3 slide = Vec3::Zero();  // force on a node that slides fast [N]
  bool active = true;         // whether it is part of the system

  // n . (x - x_s): negative inside [m].
  double gap(const Vec3& x) const { return contact.n.dot(x - contact.x_s); }
  double normal_force(const Vec3& x) const { return std::max(0.0, -contact.stiffness * gap(x)); }  // [N]
  // Force on the node at x [N] and its stiffness -df/dx [N/m]. The normal part is two-sided: a node that has
  // not arrived yet is drawn to the surface, which makes it arrive at the end of the step and no further.
  // Contacts that would still pull then are dropped (ContactStep::revise).
  Vec3 force(const Vec3& x) const;
  Mat3 stiffness() const;
  double potential(const Vec3& x) const;  // of that force [J]
};

// The law of a contact for a node that starts at x and is expected to move by `step`. It sticks when the
// spring at the expected place is below the friction mu N that the normal force N = `normal` allows. A node
// that slides is pulled by a spring so weak that it has mu N at the expected place: that force cannot throw
// the node back, as a constant one can. A node that is too fast to be turned in this step feels mu N itself.
ContactLaw contact_law(const Contact& contact, double alpha, const Vec3& anchor, const Vec3& x,
                       const Vec3& step, double normal);

// Energy of the contacts at time t [J]: K/2 depth^2, and what the tangential springs hold.
double contact_energy(const ContactModel& model, std::span<const Anchor> anchors, const VecX& x, double t);
// The same with touching() of these nodes known.
double contact_energy(const ContactModel& model, std::span<const Anchor> anchors, const VecX& x, double t,
                      std::span<const Contact> touching);

// The default K of a node is this times E l, l the square root of its share of the surface: ten times what a
// cube of the material of that size resists. Under its own weight rho g L a body then sinks in by (rho g L /
// E) l / 10, far below a hundredth of its size as long as it does not collapse.
inline constexpr double kDefaultStiffness = 10;

}  // namespace limber
