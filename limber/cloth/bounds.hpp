// The step's quadratic program (2.12): least of 1/2 y^T A y - b^T y where some coordinates are held and
// others have a lower bound, with dry friction on coordinates beside them. Contacts are bounds on single
// coordinates because every vertex has a basis of its own, xdot = B y: of a vertex on an edge, y are the
// components of xdot along the two face normals and along the edge. So a primal-dual active set only takes
// rows out of the matrix by values: one analysis per topology, one factorisation per change of the set.
#pragma once

#include <limber/linalg/cholesky.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace limber::cloth {

enum class Bound : std::uint8_t {
  kFree,
  kHeld,   // y = value
  kLower,  // y >= value
  kRange,  // |y - value| <= range
};

// Dry friction: the reactions of the coordinates `slide` stay in a disc whose radius is the limit; where they
// would leave it, the coordinates move against them. Limit: the sum of weight times reaction of `push` (0 if
// negative). `at`: their values where nothing slides.
struct FrictionDisc {
  std::array<Index, 2> slide{-1, -1};
  std::array<double, 2> at{0, 0};
  std::array<Index, 3> push{-1, -1, -1};
  std::array<double, 3> weight{0, 0, 0};
  Vec2 start = Vec2::Zero();  // its forces to start from
};

// A bound on a combination of up to three vertices, n . sum w_k xdot_k >= value: a stiff spring in the matrix
// while it pushes.
struct BoundRow {
  std::array<Index, 3> block{-1, -1, -1};
  std::array<double, 3> weight{0, 0, 0};
  Vec3 n = Vec3::UnitZ();
  double value = 0;              // [m/s]
  double friction = 0;           // mu
  Vec3 velocity = Vec3::Zero();  // of what it touches [m/s]
};

struct BoundProblem {
  BlockMatrix A;
  VecX b;
  std::vector<Mat3> basis;           // of each block; empty: none has one
  std::vector<std::uint8_t> turned;  // whether a block's basis is not the identity
  std::vector<Bound> bound;          // of each coordinate
  VecX value, range;
  VecX guess;  // y as it may be, or empty: friction starts from it
  std::vector<FrictionDisc> friction;
  std::vector<BoundRow> rows;

  void resize(Index blocks);
};

constexpr std::int8_t kSticks = 2;  // of an active set: held by friction, not by a bound

struct BoundSolution {
  VecX y;         // coordinates
  VecX reaction;  // A y - b without rows: what holds them; of bounds not negative
  std::vector<std::int8_t>
      active;  // of each coordinate: 1 at its bound or the upper end, -1 at the lower end, kSticks
  std::vector<double> row_reaction;  // of each row
  std::vector<Vec2> friction;        // forces of each disc
  std::map<std::string, int> fallbacks;
  bool ok = true;
  std::string why;
  int iterations = 0, factorizations = 0;
};

// Turns A and b into the vertices' bases: B^T A B, B^T b.
void turn_to_basis(BoundProblem& problem);
// Back to xdot, and forth.
VecX from_basis(const BoundProblem& problem, const VecX& y);
VecX to_basis(const BoundProblem& problem, const VecX& q);

// Keeps the analysis of a pattern between calls. `active`: to start from, or empty.
class BoundSolver {
 public:
  explicit BoundSolver(CholeskyOptions options) : cholesky_(std::move(options)) {}
  BoundSolution solve(const BoundProblem& problem, const std::vector<std::int8_t>& active);
  long analyses() const { return analyses_; }

 private:
  Cholesky cholesky_;
  std::shared_ptr<const BlockPattern> analyzed_;
  long analyses_ = 0;
};

}  // namespace limber::cloth
