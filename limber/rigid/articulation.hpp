// A mechanism ready to step: the assembled initial position, contact points on the links, and the nodes of
// soft bodies that hang on links.
#pragma once

#include <limber/contact/obstacle.hpp>
#include <limber/rigid/drawing.hpp>
#include <limber/rigid/inner_contacts.hpp>

namespace limber::rigid {

// Where a link can touch an obstacle: a ball of `radius` around x.
struct ContactPoint {
  Index link = 0;
  Vec3 x = Vec3::Zero();  // in the link's frame [m]
  double radius = 0;      // [m]
};

// A node of a soft body that moves with a link.
struct Attachment {
  Index node = 0;
  Index link = 0;
  Vec3 x = Vec3::Zero();  // in the link's frame [m]
};

struct Articulation {
  Mechanism mechanism;
  VecX q, v;  // initial, loops closed
  std::vector<InnerSurface> surfaces;
  std::vector<ContactPoint> points;
  std::vector<Attachment> attachments;  // filled in by the model, which knows the nodes
  std::vector<std::string> notices;     // what was changed or left out on the way (URDF)
};

// The mechanism of a drawing, its joints at their initial positions and its loops closed. Throws
// Error(kInput) with everything that is wrong.
Articulation make_articulation(Drawing drawing);

// Contacts of the step from t to t + h: points that are inside an obstacle or could reach it.
std::vector<Contact> find_contacts(const Articulation& articulation, const std::vector<Obstacle>& obstacles,
                                   const Motion& motion, double t, double h);

}  // namespace limber::rigid
