// Where bodies meet each other and themselves: surface nodes against the tetrahedra and the faces of every
// connected piece, found with one tree of boxes for each piece (the pieces move about, their parts much
// less).
#pragma once

#include <limber/fem/elements.hpp>
#include <limber/mesh/box_tree.hpp>

#include <span>
#include <vector>

namespace limber {

class BodySurfaces {
 public:
  explicit BodySurfaces(const fem::ElementInput& mesh);

  // A surface node inside a piece, in a tetrahedron that it is no corner of. It is assigned the face nearest
  // to its place in the undeformed piece (McAdams et al. 2011).
  struct Inside {
    Index site = -1, piece = -1;  // index into sites(); number of the piece
    Index face = -1;
  };
  // Ordered by site and piece, as all lists are.
  std::vector<Inside> inside(const VecX& x);

  // A surface node that comes near a piece while nodes move from x0 to x1 along straight lines.
  struct Near {
    Index site = -1, piece = -1;
    Index entered = -1;  // the face that it goes in through first
    // The face that is nearest at x1; for a node that was inside at x0, of those that look the same way as
    // the face it was assigned then. -1: none within the margin.
    Index nearest = -1;
    bool opposite = false;  // it leaves by a face that looks away from the one it entered by
  };
  // Pieces with one of these nodes are not looked at for contacts with themselves, from now on: they do not
  // deform, and have none.
  void leave_alone(const std::vector<Index>& nodes);
  // Pairs of pieces with one of these nodes each are not looked at, from now on: their contacts are known.
  void skip_pairs_among(const std::vector<Index>& nodes);
  std::vector<Near> sweep(const VecX& x0, const VecX& x1, double margin, const std::vector<Inside>& inside0);

  const std::vector<Index>& sites() const { return sites_; }           // nodes
  const std::vector<double>& site_area() const { return site_area_; }  // their shares of the surface [m^2]
  const std::vector<Tri>& faces() const { return faces_; }
  Index piece_of_site(Index site) const { return piece_of_node_[sites_[site]]; }
  double edge() const { return edge_; }  // mean size of a face [m]
  // Whether a face of its own piece is far enough from node v for the two to meet other than by bending.
  bool far_at_rest(Index v, const Tri& face) const;
  // Whether node i of the surface is a corner of a face that is far from node v at rest.
  bool apart_at_rest(Index v, Index i) const;
  // Whether a way over so many edges of the surface, or less, leads from node i to node j.
  bool joined(Index i, Index j, int edges) const;
  // Faces that have a corner in common with this one.
  std::vector<Index> around(Index face) const;

 private:
  // Holds the normals of some faces: those within an angle of an axis.
  struct Cone {
    Vec3 axis = Vec3::Zero();
    double cosine = -1, sine = 0;  // of that angle; all directions at first
  };
  static Cone around(const Cone& a, const Cone& b);
  struct Piece {
    Index face_begin = 0, face_end = 0, tet_begin = 0, tet_end = 0;
    BoxTree faces, tets, rest_faces;  // fitted to a motion, to one position (where they are asked), and never
    std::vector<Cone> cones;          // of the nodes of `faces`, at the end of the motion
    std::vector<Index> nodes, sites;  // its nodes, and those on its surface
    Box box;
    std::vector<Index> others;  // pieces whose boxes overlap, itself among them unless it is left alone
    bool alone = false;         // it has no contacts with itself
    bool left_out = false;      // nor is it looked at with another such piece
    bool asked = false;         // it is among the others of one
  };
  void fit_tets(const VecX& x);
  void fit_faces(const VecX& x0, const VecX& x1, double margin);
  void find_others(double distance);
  void fit_cones(Piece& piece, const VecX& x);
  Index rest_face(const Vec3& X, const Piece& piece) const;
  struct Candidate {
    Index tet = -1;
    Box box;
  };
  void find_tets(const Piece& piece, const Box& box, const VecX& x, std::vector<Index>& near,
                 std::vector<Candidate>& found) const;
  Index holds_node(Index v, const Vec3& p, const Piece& piece, const VecX& x,
                   std::span<const Candidate> tets) const;
  Near sweep_one(Index site, Index piece, const VecX& x0, const VecX& x1, double margin, Index face0,
                 const Box& box, std::vector<Index>& near) const;

  std::vector<Vec3> rest_;
  std::vector<Tet> tets_;                         // piece by piece
  std::vector<Tri> faces_;                        // piece by piece
  std::vector<Index> face_begin_, face_of_node_;  // of every node: the faces that it is a corner of
  std::vector<Index> sites_;
  std::vector<double> site_area_;
  std::vector<Index> piece_of_node_;
  std::vector<Piece> pieces_;
  std::vector<double> own_reach_;  // of every node [m]: all faces around it are far from what is farther off
  double edge_ = 0;
  std::vector<Box> face_box_;
  // Work for one thread: some nodes of a piece's tree of tetrahedra, and some sites of a piece that are near
  // each other.
  struct Stretch {
    Index piece = -1, begin = 0, end = 0;
  };
  std::vector<Stretch> tree_stretches_, clusters_;
  std::vector<Index> clustered_;  // sites, cluster by cluster
  std::vector<Vec3> normal_;      // of nodes at the end of a sweep, not of unit length
};

}  // namespace limber
