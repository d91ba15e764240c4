#include <limber/methods/mixed/sqp.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace limber::mixed {
namespace {

constexpr double kSqpDecrease = 1e-4;
constexpr double kEnergyRounding = 1e-13;   // of the energies that are compared
constexpr double kElasticRounding = 4e-16;  // of terms like mu I_c that cancel in them

void zero_fixed(const std::vector<std::uint8_t>* fixed, VecX& v) {
  if (!fixed) return;
  for (Eigen::Index k = 0; k < v.size(); ++k)
    if ((*fixed)[static_cast<std::size_t>(k)]) v[k] = 0;
}

// Rows and columns of fixed unknowns become those of the identity, times something of the matrix's size.
void eliminate_fixed(const std::vector<std::uint8_t>* fixed, BlockMatrix& A) {
  if (!fixed) return;
  const BlockPattern& p = *A.pattern;
  double mean = 0;
  for (Index j = 0; j < p.n; ++j) mean += A.block(p.col_begin[at(j)]).trace() / (3.0 * p.n);
  const auto held = [&](Index i, int axis) {
    return (*fixed)[3 * at(i) + static_cast<std::size_t>(axis)] != 0;
  };
  for (Index j = 0; j < p.n; ++j)
    for (Index b = p.col_begin[at(j)]; b < p.col_begin[at(j) + 1]; ++b) {
      const Index i = p.row[at(b)];
      auto block = A.block(b);
      for (int c = 0; c < 3; ++c)
        for (int r = 0; r < 3; ++r)
          if (held(i, r) || held(j, c)) block(r, c) = i == j && r == c ? mean : 0;
    }
}

}  // namespace

Sqp::Sqp(const DeformationMap& map, std::vector<Point> points, std::string ordering)
    : map_(map), points_(std::move(points)), cholesky_({"native", std::move(ordering)}), A_(map.pattern()) {
  cholesky_.analyze(*map.pattern());
}

void Sqp::gradients(const VecX& u) {
  map_.gradients(u, F_);
  for (std::size_t c = 0; c < F_.size(); c += 9) {
    F_[c] += 1;
    F_[c + 4] += 1;
    F_[c + 8] += 1;
  }
}

void Sqp::start(SqpState& state) {
  gradients(state.u);
  points_.start(F_, state.Z, state.Lambda);
}

double Sqp::elastic(const VecX& u, VecX* gradient) {
  gradients(u);
  if (!gradient) return points_.energy(F_, {}, 0, 1);
  const double energy = points_.stress(F_, 1, P_);
  map_.add_transposed(P_, *gradient);
  return energy;
}

Index Sqp::inverted(const VecX& u) {
  gradients(u);
  return points_.inverted(F_);
}

// A = H_u + K from H_, rhs = -f_u - sum of J^T P_.
void Sqp::fill(const StepProblem& problem, const VecX& u) {
  A_.values = problem.Hu->values;
  map_.add_congruence(H_, A_);
  VecX g = fu_;
  map_.add_transposed(P_, g);
  if (problem.potential) problem.potential->add(u, g, A_);
  rhs_ = -g;
  zero_fixed(problem.fixed, rhs_);
  eliminate_fixed(problem.fixed, A_);
}

// Hessians, gradients, the matrix and its factor, for plain FEM with the exact derivative where it is
// positive definite. False: not even the safe matrix has a factor.
bool Sqp::factor(const StepProblem& problem, const SqpOptions& options, const SqpState& state, bool geometric,
                 SqpResult& result, PhaseClock& clock) {
  for (const bool exact : {true, false}) {
    if (options.mixed && exact && !geometric) continue;
    {
      auto phase = clock.phase("points");
      if (options.mixed) {
        points_.linearize(F_, state.Z, state.Lambda, exact, problem.scale, P_, H_);
      } else {
        points_.stress(F_, problem.scale, P_);
        points_.stiffness(F_, !exact, problem.scale, H_);
      }
    }
    {
      auto phase = clock.phase("assemble");
      fill(problem, state.u);
    }
    auto phase = clock.phase("factor");
    result.flops += map_.congruence_flops() + cholesky_.stats().flops;
    if (cholesky_.factor(A_).ok) return true;
    if (exact) ++result.fallbacks[options.mixed ? "twist_dropped" : "projected_hessian"];
  }
  return false;
}

SqpResult Sqp::solve(const StepProblem& problem, const SqpOptions& options, SqpState& state,
                     PhaseClock& clock, const std::function<void(const VecX&)>& watch) {
  SqpResult result;
  for (int k = 1; k <= options.iterations; ++k) {
    result.iterations = k;
    {
      auto phase = clock.phase("points");
      gradients(state.u);
      if (k == 1) result.inverted = points_.inverted(F_);
    }
    multiply(*problem.Hu, state.u - problem.anchor, fu_);
    fu_ += problem.gradient;
    bool geometric = options.mixed && options.twist_from > 0 && k >= options.twist_from;
    double slope = 0, strain = 0, potential0 = problem.potential ? problem.potential->energy(state.u) : 0;
    double points0 = 0;
    for (;;) {
      if (!factor(problem, options, state, geometric, result, clock)) {
        result.ok = false;
        result.why = "the matrix of the reduced system is not positive definite";
        return result;
      }
      {  // Eq. 6
        auto phase = clock.phase("solve");
        du_ = rhs_;
        cholesky_.solve(du_);
        zero_fixed(problem.fixed, du_);
      }
      if (!du_.allFinite()) {
        result.ok = false;
        result.why = "the step of the reduced system is not finite";
        return result;
      }
      auto phase = clock.phase("local");
      map_.gradients(du_, dF_);
      if (options.mixed) {  // Eqs. 7 and 8
        double contact = 0;
        if (problem.potential) contact = -rhs_.dot(du_) - fu_.dot(du_);
        for (std::size_t i = 0; problem.potential && i < P_.size(); ++i) contact -= P_[i] * dF_[i];
        slope = fu_.dot(du_) + contact + points_.update(dF_, problem.scale, dZ_, next_, strain);
      } else {
        slope = -rhs_.dot(du_);
      }
      if (!(slope > 0) || !geometric) break;
      geometric = false;  // a direction that does not go down is the signed term's fault
      ++result.fallbacks["twist_dropped"];
    }

    auto phase = clock.phase("line search");
    multiply(*problem.Hu, du_, Hdu_);
    const double linear = fu_.dot(du_), curve = 0.5 * du_.dot(Hdu_);
    const auto points_energy = [&](double alpha) {
      return options.mixed ? points_.lagrangian(F_, dF_, state.Z, dZ_, next_, alpha, problem.scale)
                           : points_.energy(F_, dF_, alpha, problem.scale);
    };
    points0 = points_energy(0);
    double alpha = 1;
    bool down = false;
    for (int halving = 0; halving <= options.halvings; ++halving, alpha *= 0.5) {
      const double points1 = points_energy(alpha);
      double change = alpha * linear + alpha * alpha * curve + (points1 - points0);
      double rounding = kEnergyRounding * (std::abs(points0) + std::abs(points1) + std::abs(alpha * linear)) +
                        kElasticRounding * problem.scale * points_.elastic_scale();
      if (problem.potential) {
        const double potential1 = problem.potential->energy(state.u + alpha * du_);
        change += potential1 - potential0;
        rounding += kEnergyRounding * (potential0 + potential1);
      }
      if (change <= kSqpDecrease * alpha * std::min(slope, 0.0) + rounding) {
        down = true;
        break;
      }
    }
    result.decrement = std::sqrt(std::max(0.0, -slope));
    result.decrements.push_back(result.decrement);
    if (!down) {
      ++result.fallbacks["line_search_failed"];
      if (watch) watch(state.u);
      break;
    }
    if (alpha < 1) ++result.fallbacks["short_step"];
    state.u += alpha * du_;
    if (options.mixed) {
      for (std::size_t i = 0; i < dZ_.size(); ++i) state.Z[i] += alpha * dZ_[i];
      state.Lambda = next_;
    }
    if (watch) watch(state.u);
    result.change = std::sqrt(std::max(0.0, 2 * curve) / problem.inertia);
    if (options.mixed)
      result.change = std::max(result.change, options.size * std::sqrt(strain / points_.volume()));
    if (alpha == 1 && result.change <= options.tolerance) {
      result.converged = true;
      break;
    }
  }
  return result;
}

Sqp::Linear Sqp::linear_step(const StepProblem& problem, const SqpState& state, bool geometric) {
  Linear out;
  gradients(state.u);
  multiply(*problem.Hu, state.u - problem.anchor, fu_);
  fu_ += problem.gradient;
  points_.linearize(F_, state.Z, state.Lambda, geometric, problem.scale, P_, H_);
  fill(problem, state.u);
  out.A = A_;
  out.rhs = rhs_;
  out.du = rhs_;
  if (!cholesky_.factor(A_).ok) return out;
  cholesky_.solve(out.du);
  map_.gradients(out.du, dF_);
  double strain = 0;
  points_.update(dF_, problem.scale, out.dZ, out.Lambda, strain);
  return out;
}

}  // namespace limber::mixed
