// Newton's method on the hybrid energy (Algorithm 1 of the paper, with a line search and with the exact
// second derivative wherever that is positive definite).
#include <limber/linalg/line_search.hpp>
#include <limber/methods/condense/hybrid_system.hpp>

#include <fmt/format.h>

namespace limber::condense {
namespace {

constexpr double kShortestHybridStep = 1e-10;
constexpr double kLooseEnd =
    1e2;  // where nothing leads down any more: times the tolerance that is good enough

}  // namespace

NewtonReport HybridSystem::solve(PhaseClock& clock) {
  NewtonReport report;
  Point now, next;
  {
    auto phase = clock.phase("force");
    evaluate(now);
    ++report.evaluations;
  }
  report.first_residual = report.residual = now.norm;
  if (!now.finite) {
    report.why = fmt::format("element {} gave a force that is not finite", now.first_bad);
    return report;
  }
  const double tolerance = std::max(options_.relative * now.norm, options_.absolute);
  VecX df, dq;
  for (;; ++report.iterations) {
    report.residual = now.norm;
    report.elastic = now.elastic;
    report.inverted = now.inverted;
    if (now.norm <= std::max(tolerance, now.rounding)) {
      report.converged = true;
      return report;
    }
    if (report.iterations == options_.max_iterations) {
      report.why = fmt::format("not converged after {} iterations: the residual is {:.3g} N, was {:.3g} N",
                               report.iterations, now.norm, report.first_residual);
      return report;
    }
    bool down = false;
    for (const fem::Projection projection : {fem::Projection::kNone, fem::Projection::kPsd}) {
      {
        auto phase = clock.phase("assemble");
        assemble(projection);
      }
      {
        auto phase = clock.phase("factor");
        ++report.factorizations;
        if (!solver_.factor(matrix_.K, matrix_.C, matrix_.D)) {
          ++report.fallbacks[projection == fem::Projection::kNone ? "projected_matrix" : "singular_matrix"];
          continue;
        }
      }
      auto phase = clock.phase("solve");
      solver_.solve(-now.rf, -now.rs, df, dq);
      down = now.rf.dot(df) + now.rs.dot(dq) < 0;
      if (down) break;
    }
    if (!down) {
      report.why = fmt::format("the matrix is not positive definite ({})",
                               solver_.status().node < 0
                                   ? std::string("in the subspace")
                                   : fmt::format("at node {}", full_nodes_[at(solver_.status().node)]));
      return report;
    }
    auto phase = clock.phase("force");
    const VecX xf = xf_, q = q_;
    const auto line = [&](const Point& p) {
      return LinePoint{p.energy, p.finite ? p.rf.dot(df) + p.rs.dot(dq) : 0.0, p.scale, p.finite};
    };
    const double length = line_search(line(now), kShortestHybridStep, [&](double tried) {
      place(xf + tried * df, q.size() > 0 ? VecX(q + tried * dq) : q);
      evaluate(next);
      ++report.evaluations;
      return line(next);
    });
    if (length == 0) {
      place(xf, q);
      report.converged = now.norm <= kLooseEnd * std::max(tolerance, now.rounding);
      if (report.converged)
        ++report.fallbacks["flat_energy"];
      else
        report.why = fmt::format("no way down; the residual is {:.3g} N", now.norm);
      return report;
    }
    std::swap(now, next);
  }
}

}  // namespace limber::condense
