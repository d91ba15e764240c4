// Contact between bodies, and of a body with itself, as an energy of the nodes' positions.
//
// A surface node inside a tetrahedron that it is no corner of has gone through a surface: through the face
// nearest to its place in the undeformed body (McAdams et al. 2011). For each such pair of a node and a face
// the energy is that of contact_energy.hpp, with the distance from the plane of the face as gap,
//   gap(x) = n . (x_v - x_a),   n the face's normal,
// whose gradient is n at the node and -b_i n at the corners of the face, b the barycentric coordinates of the
// node's projection. So forces add up to zero and have no moment. gap's second derivative is left out of the
// stiffness.
#pragma once

#include <limber/fem/elements.hpp>
#include <limber/linalg/block_matrix.hpp>
#include <limber/mesh/geometry.hpp>

#include <array>
#include <cstdint>
#include <vector>

namespace limber {

// A tree of boxes over things that move: built once, fitted again when they have moved.
class BoxTree {
 public:
  void build(const std::vector<Box>& boxes);
  void fit(const std::vector<Box>& boxes);
  // Things whose leaf of the tree is within `distance` of p along every axis, in a fixed order.
  void find(const Vec3& p, double distance, std::vector<Index>& out) const;

 private:
  struct Node {
    Box box;
    Index begin = 0, end = 0;  // of order_
    Index right = -1;          // the second child; the first follows its parent. -1: a leaf
  };
  Index split(const std::vector<Vec3>& center, Index begin, Index end);
  std::vector<Node> nodes_;
  std::vector<Index> order_;
};

struct BodyContactOptions {
  double stiffness = 0;  // K [N/m]; 0: from the material, as for obstacles
  double friction = 0.3;
  double damping = 0;        // [s]
  double slip_speed = 5e-3;  // [m/s]
};

class BodyContact {
 public:
  BodyContact(const fem::ElementInput& mesh, const BodyContactOptions& options);

  // A node and the face that it went through.
  struct Pair {
    std::array<Index, 4> nodes{-1, -1, -1, -1};  // the node, and the corners of the face
    double stiffness = 0;                        // K [N/m]
    double start = 0;                            // min(0, gap) at the start of the step [m]
    double limit = 0;                            // mu N [N]
    Vec3 n = Vec3::Zero();                       // of friction
    std::array<double, 4> weight{};              // of friction: 1, -b
    Vec3 origin = Vec3::Zero();                  // sum of weight times c [m]
  };
  // The pairs of nodes at x, ordered by node.
  std::vector<Pair> detect(const VecX& x);

  // The stage that starts at x0 and is expected to end near `guess`; c and g as in ContactEnergy. Pairs are
  // those of x0 and of the guess.
  void pose(const VecX& x0, const VecX& guess, const VecX& c, double g);
  // Adds the pairs of x that are missing; false: none is.
  bool revise(const VecX& x);

  double add_force(const VecX& x, VecX& f) const;
  // The stiffness, in two parts: the 3x3 diagonal blocks, and y += the rest times p. Entries of `fixed`
  // degrees of freedom are left out.
  void add_diagonal(const VecX& x, BlockMatrix& A) const;
  void multiply_rest(const VecX& x, const VecX& p, const std::vector<std::uint8_t>& fixed, VecX& y) const;

  const std::vector<Pair>& pairs() const { return pairs_; }

 private:
  // Where a pair is at x: gap, and its gradient w_i n at node i.
  struct Gap {
    double value = 0;  // [m]
    Vec3 n = Vec3::Zero();
    std::array<double, 4> w{};
  };
  static Gap gap(const Pair& pair, const VecX& x);
  // The stiffness of a pair at x couples nodes i and j by w_i w_j N + v_i v_j T.
  struct Stiffness {
    std::array<double, 4> w{}, v{};
    Mat3 N = Mat3::Zero(), T = Mat3::Zero();
  };
  Stiffness stiffness(const Pair& pair, const VecX& x) const;
  void start(Pair& pair, const VecX& x0, const VecX& c) const;
  bool add_missing(const std::vector<Pair>& found);
  // The face of the piece of `tet` that is nearest to the place X of the undeformed body.
  Index nearest_face(const Vec3& X, Index tet) const;

  BodyContactOptions options_;
  std::vector<Vec3> rest_;
  std::vector<Tet> tets_;
  std::vector<Tri> faces_;
  std::vector<Index> surface_;    // nodes
  std::vector<double> K_;         // of surface_ [N/m]
  std::vector<Index> piece_;      // of every node: the least node that it is connected with
  double edge_ = 0;               // mean size of a face [m]
  BoxTree tet_tree_, face_tree_;  // tets where they are, faces at rest
  std::vector<Pair> pairs_;
  VecX x0_, c_;
  double g_ = 0;
};

}  // namespace limber
