// Contact between bodies, and of a body with itself, in one linear step: the pairs of body_contact.hpp as
// springs (row_springs.hpp). As with obstacles (contact_step.hpp) rows are chosen for the end of the step.
//
// Use: begin(); add force and stiffness to the system, solve, revise(x1) and again while that says so;
// finish().
#pragma once

#include <limber/contact/body_contact.hpp>
#include <limber/contact/row_springs.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace limber {

// What is kept from step to step.
struct BodySpringMemory {
  std::vector<std::int64_t> ids;      // of rows that press, ascending
  std::vector<double> stretch;        // of their friction, three numbers each [m]
  std::vector<std::int64_t> coupled;  // nodes of pairs that the pattern of the matrix knows, four each

  std::string misfit(Index nodes) const;  // what is wrong with one from a file; empty: nothing
};

class BodySprings {
 public:
  // alpha: tangential over normal stiffness. size: of the scene [m].
  BodySprings(const fem::ElementInput& mesh, const BodyContactOptions& options, double alpha, double size);

  // Nodes are at x and move at v; `expected`: velocities that pairs are looked for with.
  void begin(const BodySpringMemory& memory, const VecX& x, const VecX& v, const VecX& expected, double h);
  std::span<const RowSpring> springs() const { return springs_; }
  Index active() const;
  // An active spring is open at the start of the step.
  bool closes() const;

  // Forces of the active springs when nodes have moved by d. Those that are open then, and so pull, go to
  // `closing`.
  void add_force(const VecX& d, VecX& f, VecX& closing) const;
  void add_force(const VecX& d, VecX& f) const { add_force(d, f, f); }
  // Potential of that force; and what active springs hold, friction after it has slipped. What presses and
  // is not active holds nothing: revise() comes first [J].
  double potential(const VecX& d) const;
  double energy(const VecX& d) const;
  // Adds the stiffness of active springs to K, except for held degrees of freedom (`fixed`, 3n). K's pattern
  // must know all pairs.
  void add_stiffness(std::span<const std::uint8_t> fixed, BlockMatrix& K) const;
  // Adds factor times the stiffness of active springs times v [N/s].
  void add_drag(double factor, const VecX& v, VecX& rate) const;

  // Compares with where nodes have come to: true when rows were dropped or added.
  bool revise(const VecX& x1);
  bool settled() const { return revisions_ < kRevisions; }

  // Nodes of all pairs, open ones too: so the pattern does not change when they close. Those of `coupled`
  // stay, as bodies come back to the same few faces, unless they have become the greater part. True:
  // `coupled` has changed.
  bool cover(std::vector<std::int64_t>& coupled) const;

  // Ends the step: nodes are at x1.
  struct Summary {
    Index pressing = 0;
    double depth = 0;  // [m]
    bool tunnelled = false;
  };
  Summary finish(const VecX& x1, BodySpringMemory& memory) const;

 private:
  static constexpr int kFreeRevisions = 3, kRevisions = 6;
  static constexpr std::size_t kSpare = 4;  // old pairs for each one of now
  Vec3 moved(const RowSpring& spring, const VecX& d) const { return relative(spring.row, d); }
  void append(std::span<const BodyContact::Pair> pairs, std::vector<RowSpring>& springs) const;
  void recall(RowSpring& spring) const;

  BodyContact contact_;
  double alpha_ = 0, tolerance_ = 0;
  const BodySpringMemory* memory_ = nullptr;
  VecX x_, v_, expected_;
  double h_ = 0;
  int revisions_ = 0;
  bool looked_again_ = false;
  std::vector<RowSpring> springs_;  // by id
};

}  // namespace limber
