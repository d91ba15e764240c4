// Penalty springs on contact rows (contact_rows.hpp): a row that is closed at the end of a step pushes with K
// times its depth then, and friction is a spring of alpha K that slips at mu N, as for obstacles
// (penalty.hpp). Linear in the displacements of a step: which rows are closed is found by solving again.
#pragma once

#include <limber/contact/contact_rows.hpp>

namespace limber {

struct RowSpring {
  ContactRow row;
  double stiffness = 0, elastic = 0;  // K, and about what the body resists there [N/m]
  double spring = 0;                  // tangential [N/m]
  Vec3 stretch = Vec3::Zero();        // of that spring at the start of the step [m]
  Vec3 slide = Vec3::Zero();          // friction on a node that slides fast [N]
  bool known = false;                 // it was there in the last step
  bool active = true;

  // -dF/dx on the node; `presses`: with the normal part [N/m].
  Mat3 matrix(bool presses = true) const;
  // On the node, after it has moved by `d` against what it touches [N]; two-sided along the normal.
  Vec3 force(const Vec3& d) const;
  // Energy then: of the normal part where it is closed, and of friction [J].
  double energy(const Vec3& d) const;

  // Whether it sticks or slides, by where the tangential spring would be if the node went on at u for h.
  void begin_friction(double alpha, double h, const Vec3& u);
  // The stretch after the step. Coulomb: the spring carries no more than mu K depth.
  Vec3 kept_stretch(double alpha, const Vec3& d) const;
  // What the springs hold then, friction after it has slipped [J].
  double stored(double alpha, const Vec3& d) const;
};

// d without its part along n.
Vec3 across(const Vec3& n, const Vec3& d);
// Velocity of the node against the face or the obstacle [m/s].
Vec3 relative(const ContactRow& row, const VecX& v);
// f += p on the node, -w_k p on the corners of the face.
void add_to_nodes(const ContactRow& row, const Vec3& p, VecX& f);

}  // namespace limber
