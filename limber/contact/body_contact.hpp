// Contact between bodies, and of a body with itself, as an energy of the nodes' positions.
//
// A pair is a surface node and a face of a piece that it has gone through, or is about to. Its energy is that
// of contact_energy.hpp, with the distance from the plane of the face as gap,
//   gap(x) = n . (x_v - x_a),   n the face's normal,
// whose gradient is n at the node and -b_i n at the corners of the face, b the barycentric coordinates of the
// node's projection. So forces add up to zero and have no moment. With G_i the gradient of b_i in the plane
// of the face, m = sum of G_i (n . dx_i) (minus the change of n) and s = dx_v - sum of b_i dx_i,
//   d2 gap = -2 m . s - gap |m|^2.
// Left out, Newton's method would creep: a soft body's own stiffness is no greater than force over face size.
//
// A node has one pair with each piece, and its face stays the same while a stage is solved: so the energy is
// as smooth as that of obstacles, and Newton's method does not cycle over the edges of a surface. Faces are
// chosen where nodes are expected, and looked at once more where they have come to (revise).
//
// Where nodes slide by several faces in a stage that does not do: the plane of a face is not the surface
// beyond it, b leaves [0, 1], and the node turns the little face with a long lever. With `nearest` the gap is
// the signed distance from the nearest face, edge or node of the surface, found from face to face in every
// evaluation. This energy is continuous, and where it is not smooth (in the middle of a body) nodes are
// pushed away from there. A node's own neighbourhood is no surface that it can meet. Where the nearest point
// comes to it (skin that crumples), the energy fades over one face, times a share that is 1 at corners of
// faces that the node can meet and 0 at the others: were it just left out from there on, or kept with the
// plane of the last face, the energy would jump, and no line search goes down over a jump.
#pragma once

#include <limber/contact/body_surfaces.hpp>
#include <limber/contact/contact_energy.hpp>
#include <limber/contact/contact_rows.hpp>
#include <limber/linalg/block_matrix.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace limber {

struct BodyContactOptions {
  double stiffness = 0;  // K [N/m]; 0: from the material, as for obstacles
  double friction = 0.3;
  double damping = 0;        // [s]
  double slip_speed = 5e-3;  // [m/s]
  // The gap is the signed distance from the surface around the pair's face, wherever the node slides to,
  // instead of that from the plane of the face.
  bool nearest = false;
};

class BodyContact {
 public:
  BodyContact(const fem::ElementInput& mesh, const BodyContactOptions& options);

  struct Pair {
    Index site = -1, piece = -1, face = -1;      // of BodySurfaces
    std::array<Index, 4> nodes{-1, -1, -1, -1};  // the node, and the corners of the face
    double stiffness = 0;                        // K [N/m]
    double start = 0;                            // min(0, gap_c), as in ContactEnergy [m]
    double limit = 0;                            // mu N [N]
    Vec3 n = Vec3::Zero();                       // of friction
    std::array<double, 4> weight{};              // of friction: 1, -b
    Vec3 origin = Vec3::Zero();                  // sum of weight times c [m]
    bool counts = true;                          // has an energy; see weigh
    bool near_at_rest = false;                   // its face was, when it was found
    std::array<Index, 4> grip{-1, -1, -1, -1};   // of friction: the node, and the corners it rubs on
  };
  // The pairs of nodes that are inside a body at x, ordered by node.
  std::vector<Pair> detect(const VecX& x);

  // As of BodySurfaces.
  void leave_alone(const std::vector<Index>& nodes) { surfaces_.leave_alone(nodes); }
  void skip_pairs_among(const std::vector<Index>& nodes);
  // The pair of a node (a site of BodySurfaces) with a face, both known from pairs().
  Pair known_pair(Index site, Index piece, Index face) const { return make_pair(site, piece, face); }
  const BodySurfaces& surfaces() const { return surfaces_; }
  // The stage that starts at x0 and is expected to end near `guess`; c and g as in ContactEnergy.
  void pose(const VecX& x0, const VecX& guess, const VecX& c, double g);
  // Adds pairs that are missing at x and gives other faces to nodes that have come round an edge; false: all
  // is well.
  bool revise(const VecX& x);
  // With `nearest`: faces may be looked for only where all corners have may[i] != 0; empty: everywhere, as
  // after pose().
  void set_reach(std::vector<std::uint8_t> may) { may_ = std::move(may); }
  // With `nearest`: has every pair remember the face that it presses on at x, so that looking for it is short
  // from here on; how many have another one now. The energy at x stays the same; pairs that have faded to
  // nothing there have none elsewhere either, until weigh() or pose().
  int follow(const VecX& x);
  // With `nearest`: takes their energy from pairs that fade at x, until weigh() or pose(); how many. Where
  // two places of the surface are equally near to a node, its share may jump from one's to the other's.
  int drop_fading(const VecX& x);
  // As in ContactEnergy.
  ContactEnergy::Revision revise_friction(const VecX& x);
  // Multiplies the energy of every pair by weight(pair), until the next pose() or call of this; 0: it has
  // none.
  template <class Weight>
  void weigh(Weight&& weight) {
    for (Pair& pair : pairs_) {
      const double w = weight(pair), stiffness = K_[at(pair.site)] * (w > 0 ? w : 1.0);
      pair.counts = w > 0;
      pair.limit *= stiffness / pair.stiffness;
      pair.stiffness = stiffness;
    }
  }
  // Nodes that have gone through a body, seen by the last revise().
  const std::vector<Index>& tunnelled() const { return tunnelled_; }

  // Pairs, those of detect() or pairs(), as rows on velocities with nodes at x. Weights are the coordinates
  // of the node's projection, and leave [0, 1] where that is beyond an edge. Faces without area give no row.
  std::vector<ContactRow> rows(std::span<const Pair> pairs, const VecX& x) const;

  double add_force(const VecX& x, VecX& f) const;
  // `exact`: the second derivative of the energy; otherwise every pair's is made positive semi-definite.
  // Where A's pattern lacks a block of a pair, the node and the face are left uncoupled. `place`: where A has
  // each node, -1: nowhere; empty: all in their places.
  void add_stiffness(const VecX& x, bool exact, BlockMatrix& A, std::span<const Index> place = {}) const;
  // Whether the pair, and whether any, has a stiffness at x.
  bool presses(const Pair& pair, const VecX& x) const;
  bool touching(const VecX& x) const;

  const std::vector<Pair>& pairs() const { return pairs_; }
  // How near to a face a node must come, where it is expected, to have a pair in any case [m].
  double margin() const { return margin_; }
  // Pairs that press at x, and how deep [m].
  struct Summary {
    Index active = 0;
    double depth = 0;
  };
  Summary summary(const VecX& x) const;

 private:
  // Where a pair is at x: gap, and its gradient w_i n at node i.
  struct Gap {
    double value = 0;  // [m]
    Vec3 n = Vec3::Zero();
    std::array<double, 4> w{};
    std::array<Index, 4> nodes{-1, -1, -1, -1};
    Index face = -1;
    int corners = 3;  // of the face that hold the nearest point: less than three on an edge, or at a node
    Vec3 along = Vec3::Zero();  // direction of that edge
    // Times the energy, and its gradient [1/m]; slope is zero where share is 1 all around.
    double share = 1;
    std::array<Vec3, 4> slope{Vec3::Zero(), Vec3::Zero(), Vec3::Zero(), Vec3::Zero()};
  };
  static Gap plane_gap(const std::array<Index, 4>& nodes, const VecX& x);
  Gap gap(const Pair& pair, const VecX& x) const;
  Gap distance(const Pair& pair, const VecX& x) const;
  Pair make_pair(Index site, Index piece, Index face) const;
  Pair start(Pair pair, bool inside) const;
  bool reachable(const Pair& pair, Index face) const;
  bool can_meet(const Pair& pair, Index node) const;
  void fade(const Pair& pair, const VecX& x, Gap& at) const;
  void rub(const Gap& at, Pair& pair) const;
  double normal_force(const Pair& pair, double gap) const;

  BodyContactOptions options_;
  BodySurfaces surfaces_;
  std::vector<double> K_;  // of sites [N/m]
  double margin_ = 0;      // [m]
  std::vector<Pair> pairs_;
  std::vector<Index> tunnelled_;
  std::vector<BodySurfaces::Inside> inside0_;  // at x0_
  std::vector<BodySurfaces::Inside> inside1_;  // at x1_, where revise() looked last
  std::vector<Index> left_out_;
  std::vector<std::uint8_t> may_;
  VecX x0_, x1_, c_;
  double g_ = 0;
};

}  // namespace limber
