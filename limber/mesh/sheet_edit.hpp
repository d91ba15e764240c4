// Local operations on a sheet: split an edge or a face, flip an edge, collapse an edge.
#pragma once

#include <limber/mesh/sheet.hpp>

#include <functional>

namespace limber {

// A sheet and where its vertices come from.
struct SheetChange {
  Sheet sheet;
  std::vector<Index> origin;  // the vertex of the sheet before, or -1 if new
  Index splits = 0, flips = 0, collapses = 0;
};

// Says what a new vertex `fresh` in the middle of a preserved edge ab is: sets its feature, parameter and, if
// it likes, x.
using PlaceOnFeature = std::function<void(Sheet& sheet, Index a, Index b, Index fresh)>;

// A sheet under operations. Vertices and triangles keep their numbers until `finish`; what is removed is
// marked. Nothing here depends on anything but the sheet and the order of calls.
//
// Kept by every operation: the material area (to rounding), counter-clockwise triangles, the topology,
// preserved edges (which may be split), tagged vertices. Vertices never move. A new vertex takes x and X by
// its weights; so does it v, of the material (v_k - F V_k with the triangle's own F), with V = 0. Where a
// preserved edge between two EOL vertices is split the new vertex is EOL too, with v and V interpolated.
class SheetEditor {
 public:
  explicit SheetEditor(Sheet sheet);

  const Sheet& sheet() const { return s_; }
  Sheet& data() { return s_; }  // for x, v, V, feature, parameter, age of vertices: not X, not triangles
  const std::vector<Index>& around(Index v) const { return around_[v]; }  // triangles at a vertex
  bool alive(Index v) const { return !dead_vertex_[v]; }
  bool alive_face(Index t) const { return !dead_[t]; }
  Index vertices() const { return s_.vertices(); }
  Index faces() const { return s_.faces(); }

  // Triangles at edge ab: first the one that has a before b, then the other; -1 where there is none.
  std::array<Index, 2> sides(Index a, Index b) const;
  Index opposite(Index t, Index a, Index b) const;  // the third vertex
  bool is_edge(Index a, Index b) const;
  bool on_border(Index v) const { return border_[v]; }
  bool border_edge(Index a, Index b) const;
  // A border vertex where the border turns in the material.
  bool border_corner(Index v) const;
  bool preserved(Index a, Index b) const;
  const std::vector<Index>& partners(Index v) const {
    return kept_[v];
  }  // at the other end of preserved edges
  void preserve(Index a, Index b);
  void release(Index a, Index b);
  void neighbours(Index v, std::vector<Index>& out) const;  // ascending
  double material_length(Index a, Index b) const { return (s_.X[a] - s_.X[b]).norm(); }

  // Called for every split of a preserved edge between EOL vertices. Without it, ends on one feature give
  // their mean, and edges between different features are not split.
  PlaceOnFeature place_on_feature;

  bool can_split(Index a, Index b) const;
  Index split_edge(Index a, Index b, double s);                     // at (1-s) a + s b; the new vertex
  Index split_face(Index t, const std::array<double, 3>& weights);  // all weights positive
  bool can_flip(Index a, Index b) const;
  void flip(Index a, Index b);  // can_flip
  // Removes a into b. EOL vertices and those on preserved edges are removed along preserved edges only, and
  // only with `conformal` (otherwise just from the middle of a straight line of preserved edges without
  // features).
  bool can_collapse(Index a, Index b, bool conformal = false) const;
  void collapse(Index a, Index b);  // can_collapse

  // The triangles that a collapse of a into b would leave changed: use(triangle with b in the place of a).
  template <class Use>
  void after_collapse(Index a, Index b, const Use& use) const {
    for (const Index i : around_[a]) {
      Tri t = s_.triangles[i];
      if (t[0] == b || t[1] == b || t[2] == b) continue;
      for (Index& v : t)
        if (v == a) v = b;
      use(t);
    }
  }

  SheetChange finish() &&;

 private:
  Index new_vertex(const std::array<Index, 3>& from, const std::array<double, 3>& weights);
  void replace_around(Index v, Index from, Index to);

  Sheet s_;
  std::vector<std::vector<Index>> around_, kept_;
  std::vector<char> border_, dead_vertex_, dead_;
  Index old_vertices_ = 0;
  Index splits_ = 0, flips_ = 0, collapses_ = 0;
};

// 12 sqrt(3) area / perimeter^2 in the material: 1 for an equilateral triangle, 0 without area.
double material_aspect(const Sheet& s, const Tri& t);

// A change after another, as one.
SheetChange then(const SheetChange& first, SheetChange second);

}  // namespace limber
