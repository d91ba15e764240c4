// Dynamic modes: what the quasistatic nodes would do by themselves while dynamic and held nodes stand still,
//   K_QQ phi = lambda M phi        (the fixed-interface modes of R. R. Craig and M. C. C. Bampton, 1968),
// of the current shape, in every step. The lowest of them get coordinates of their own.
//
// A step has a factor of K and the modes of the last step. One sweep of subspace iteration with the former
// from the latter (as many solves as there are vectors) follows the modes as the body deforms; Lanczos finds
// them where there are none to start from.
#pragma once

#include <limber/core/types.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace limber {

// How many modes a piece gets: `count`, or those below a frequency, at most `count`.
struct ModeChoice {
  Index count = 0;
  double below = 0;  // [Hz]; 0: no matter
};

// Further vectors that help the last modes to converge.
inline constexpr Index kSpareModes = 2;

// Modes of one piece of n nodes.
struct PieceModes {
  Index available = 0;  // these may be dynamic, and
  Index count = 0;      // the lowest of them are; further columns help the last ones to converge
  MatX shapes;          // 3n columns, M-orthonormal, zero where nodes are dynamic or held [1/sqrt(kg)]
  MatX pull;            // K_QQ times the first `count` of them
  VecX values;          // lambda = (2 pi f)^2, ascending [1/s^2]
  // How far the dynamic ones have moved since the sweep before: greatest |K phi - lambda M phi| over
  // lambda |M phi|, both over sqrt(M).
  double error = 0;
  int sweeps = 0;  // that it took to follow

  auto dynamic() const { return shapes.leftCols(count); }
};

// B <- K_QQ^-1 B_Q, zero elsewhere.
using QuasistaticSolve = std::function<void(MatX& B)>;

// `active`: 3n, 1 where a degree of freedom is in Q. All modes that are found are dynamic. `start`: what they
// may look like, columns of 3n; may have none.
PieceModes lowest_modes(const VecX& mass, const std::vector<std::uint8_t>& active,
                        const QuasistaticSolve& solve, const ModeChoice& choice, MatX start);

// How many vectors a step sweeps: the dynamic ones and the spare ones, or all, asleep or not.
Eigen::Index swept_vectors(const PieceModes& modes, bool all);
// Follows `modes` to the present K: one sweep, and further ones while the modes have moved far. `Y` are the
// solutions K_QQ^-1 `loads` of the first sweep, loads = M shapes of the vectors that are swept; the others
// stay as they are. `orthonormal`: all of them have been swept together before. False: the vectors no longer
// span a space of their number, and the modes should be made anew.
bool follow_modes(const VecX& mass, const QuasistaticSolve& solve, const Eigen::Ref<const MatX>& loads,
                  const Eigen::Ref<const MatX>& Y, bool orthonormal, PieceModes& modes);

// out <- diag(mass) A
void weighted(const VecX& mass, const Eigen::Ref<const MatX>& A, MatX& out);

// [Hz]
double frequency(double value);

}  // namespace limber
