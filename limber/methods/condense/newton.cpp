// The solver of a step's hybrid energy (Algorithm 1 of the paper, with a line search and with the exact
// second derivative wherever that is positive definite), in four ways:
//
//   direct   a factor of the bordered matrix in every Newton iteration
//   pcg      conjugate gradients on that matrix, preconditioned by a factor that is kept
//   jacobi   conjugate gradients with the blocks of the diagonal, as the paper has it
//   l-bfgs   the kept factor instead of the matrix, corrected by L-BFGS; a new one where that looks cheaper
//
// A kept factor serves as long as the region stays, over steps. Nodes that touch something are eliminated
// last, so that the stiffness of their contacts is always the present one (change_contacts). It turns with
// the skeleton: with R of its own pose and R' of this one, K' is taken for Q K Q^T, Q = R' R^T node by node;
// coordinates of the subspace are in the turning frames already. "Cheaper" is judged by operation and
// iteration counts, never by a clock, so that a run is the same bits however busy the machine is.
#include <limber/linalg/lbfgs.hpp>
#include <limber/linalg/line_search.hpp>
#include <limber/linalg/pcg.hpp>
#include <limber/methods/condense/hybrid_system.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace limber::condense {
namespace {

constexpr double kShortestHybridStep = 1e-10;
constexpr double kLongestHybridStep = 1024;
constexpr double kStillSteep = 0.5;  // share of the slope that is left where a step goes on
constexpr double kLooseEnd =
    1e2;                   // where nothing leads down any more: times the tolerance that is good enough
constexpr int kPairs = 8;  // of L-BFGS
constexpr double kCheapFactor = 2;         // evaluations that the factor of a small region costs, at most
constexpr double kLeastHybridRate = 0.05;  // of log |r| per iteration that a new factor is trusted with
// Shares of the elements' projection that a matrix gets until it is positive definite. A part will often do,
// and where a body snaps all of it is much too stiff.
constexpr double kProjected[] = {0, 0.3, 1};
constexpr double kHybridPcgTolerance = 1e-2;
constexpr int kHybridPcgLimit = 200;
constexpr double kJacobiTolerance = 0.05;  // where an iteration is cheap and there are many
constexpr int kJacobiLimit = 1000;

const char* name_of_failure(double projected) {
  return projected == 0 ? "projected_matrix" : projected < 1 ? "fully_projected_matrix" : "singular_matrix";
}

bool same_factor(const RegionFactor& a, const RegionFactor& b) {
  return a.x.size() == b.x.size() && a.x == b.x && a.t == b.t && a.projected == b.projected &&
         a.contact_block == b.contact_block && a.contact_value == b.contact_value &&
         a.contact_reduced == b.contact_reduced;
}

}  // namespace

struct HybridSystem::Run {
  RegionFactor& record;
  PhaseClock& clock;
  Point now;
  NewtonReport report;
  double target = 0;      // [N]
  bool fresh = false;     // the factor was made in this solve
  bool distrust = false;  // the exact matrix gave a direction that leads nowhere

  bool converged() const { return now.norm <= target; }
  VecX gradient() const {
    VecX g(now.rf.size() + now.rs.size());
    g << now.rf, now.rs;
    return g;
  }
};

// Measured on one core (docs/methods/condense.md): an element, a factor and a solve as in `implicit`; a
// column of the border is half a solve, of several at once.
void HybridSystem::set_costs() {
  const double nodes = full_nodes(), elements = active_elements() + points();
  double r = 0;  // columns that the region's border has
  if (!all_full())
    r = options_.bone_domains ? BasisRows(subspace_.basis, {}, edge_nodes_).used_columns()
                              : static_cast<double>(subspace_.columns());
  cost_ = {};
  cost_.assemble =
      0.18e-6 * elements + 2e-9 * r * r * points() + 10e-9 * r * static_cast<double>(border_.size());
  cost_.force = 0.05e-6 * elements;
  if (full_nodes() > 0) {
    const CholeskyStats& stats = solver_.stats();
    cost_.exact_factor = stats.flops / 45e9 + (5.5e-9 + 0.5e-9 * r) * stats.nnz;
    cost_.factor = stats.flops / 85e9 + (3.5e-9 + 0.3e-9 * r) * stats.nnz;
    cost_.solve = 0.9e-9 * stats.nnz + tail_cost(solver_.tail_nodes());
  }
  cost_.multiply = 9e-9 * static_cast<double>(pattern_->blocks()) + 1e-9 * 6 * nodes * r;
  cost_.vectors = 80e-9 * 3 * nodes;
}

// Of another factor of the tail alone.
double HybridSystem::tail_cost(Index nodes) {
  const double rows = 3.0 * nodes;
  return rows * rows * rows / 3 / 45e9;
}

bool HybridSystem::small_region() const {
  return cost_.assemble + cost_.exact_factor < kCheapFactor * (cost_.solve + cost_.force + cost_.vectors);
}

// Goes to `other` if the energy is lower there.
void HybridSystem::begin_at(Run& run, const HybridStart& other) {
  auto phase = run.clock.phase("force");
  const VecX xf = xf_, q = q_;
  place(other.xf, other.q);
  evaluate(trial_);
  ++run.report.evaluations;
  step_cost_ += cost_.force;
  if (!trial_.finite || trial_.energy >= run.now.energy) return place(xf, q);
  std::swap(run.now, trial_);
  if (!pair_nodes_.empty()) run.report.refound += bodies_->follow(x_);
}

NewtonReport HybridSystem::solve(RegionFactor& record, PhaseClock& clock, const SolveLimits& limits,
                                 const HybridStart* other) {
  Run run{record, clock, {}, {}, 0, false, false};
  NewtonReport& report = run.report;
  {
    auto phase = clock.phase("force");
    evaluate(run.now);
    ++report.evaluations;
    step_cost_ += cost_.force;
  }
  report.first_residual = report.residual = run.now.norm;
  if (!run.now.finite) {
    report.why = fmt::format("element {} gave a force that is not finite", run.now.first_bad);
    return report;
  }
  run.target = std::max({options_.relative * run.now.norm, options_.absolute, run.now.rounding});
  if (other && !run.converged()) begin_at(run, *other);
  fresh_ = made_from_.t == step_.t && made_from_.x.size() > 0;
  End end = End::kConverged;
  if (!run.converged()) {
    const bool direct = full_nodes() == 0 || options_.solver == RegionSolver::kDirect ||
                        (options_.solver == RegionSolver::kAuto && small_region());
    if (direct || options_.solver == RegionSolver::kPcg || options_.solver == RegionSolver::kJacobi) {
      end = newton(run, limits.newton > 0 ? limits.newton : options_.max_iterations);
    } else {
      end = lbfgs(run);
      while (end == End::kNoDescent && run.now.norm > kLooseEnd * run.target && drop_fading(run))
        end = lbfgs(run);
      // Where contacts come and go, one factor after the other may be of little use: Newton's method itself.
      const int limit = limits.newton < 0 ? options_.max_iterations : limits.newton;
      if (limit > 0 &&
          (end == End::kLimit || (end == End::kNoDescent && run.now.norm > kLooseEnd * run.target))) {
        ++report.fallbacks["newton"];
        run.distrust = false;
        end = newton(run, limit);
      }
    }
  }
  report.residual = run.now.norm;
  report.elastic = run.now.elastic;
  report.inverted = run.now.inverted;
  report.converged = end == End::kConverged;
  const auto place = [&] {
    if (run.now.rf.size() == 0) return std::string("in the subspace");
    Index worst = 0;
    for (Index k = 1; k < full_nodes(); ++k)
      if (node(run.now.rf, k).norm() > node(run.now.rf, worst).norm()) worst = k;
    const Vec3 x = node(xf_, worst);
    return fmt::format("greatest at node {} at ({:.4g}, {:.4g}, {:.4g})", full_nodes_[at(worst)], x.x(),
                       x.y(), x.z());
  };
  switch (end) {
    case End::kConverged:
      break;
    case End::kLimit:
      report.why =
          fmt::format("not converged after {} iterations{}: the residual is {:.3g} N, was {:.3g} N, {}",
                      report.iterations, all_full() ? " with all nodes in full space" : "", run.now.norm,
                      report.first_residual, place());
      break;
    case End::kNoDescent:
      report.converged = run.now.norm <= kLooseEnd * run.target;
      if (report.converged)
        ++report.fallbacks["flat_energy"];
      else
        report.why = fmt::format("no way down{}; the residual is {:.3g} N, {}",
                                 all_full() ? " with all nodes in full space" : "", run.now.norm, place());
      break;
    case End::kBroken:
      report.why = fmt::format("the matrix is not positive definite ({})",
                               solver_.status().node < 0
                                   ? std::string("in the subspace")
                                   : fmt::format("at node {}", full_nodes_[at(solver_.status().node)]));
      break;
  }
  return report;
}

// Where no way leads down, contacts of crumpled skin may be in it: the energy of those that fade jumps where
// two places of the surface are equally near. It goes on without them.
bool HybridSystem::drop_fading(Run& run) {
  const int dropped = pair_nodes_.empty() ? 0 : bodies_->drop_fading(x_);
  if (dropped == 0) return false;
  run.report.fallbacks["faded_contact"] += dropped;
  list_pairs();
  run.distrust = false;
  evaluate(run.now);
  ++run.report.evaluations;
  step_cost_ += cost_.force;
  return true;
}

// Moves the unknowns along d until the energy has fallen enough.
bool HybridSystem::search_along(Run& run, const VecX& d) {
  auto phase = run.clock.phase("force");
  const Eigen::Index nf = xf_.size();
  const VecX xf = xf_, q = q_;
  const auto line = [&](const Point& p) {
    return LinePoint{p.energy, p.finite ? p.rf.dot(d.head(nf)) + p.rs.dot(d.tail(q.size())) : 0.0, p.scale,
                     p.finite};
  };
  const double length = line_search(line(run.now), kShortestHybridStep, [&](double tried) {
    place(xf + tried * d.head(nf), q.size() > 0 ? VecX(q + tried * d.tail(q.size())) : q);
    evaluate(trial_);
    ++run.report.evaluations;
    step_cost_ += cost_.force;
    return line(trial_);
  });
  if (length == 0) {
    place(xf, q);
    return false;
  }
  const double slope = line(run.now).slope;
  std::swap(run.now, trial_);
  // Where the matrix is much too stiff (projected, as on the way from a saddle), the energy goes on falling
  // beyond its step: farther, as long as that lasts.
  for (double reached = length; reached >= 1 && reached < kLongestHybridStep; reached *= 2) {
    const LinePoint here = line(run.now);
    if (!(here.slope < kStillSteep * slope)) break;
    place(xf + 2 * reached * d.head(nf), q.size() > 0 ? VecX(q + 2 * reached * d.tail(q.size())) : q);
    evaluate(trial_);
    ++run.report.evaluations;
    step_cost_ += cost_.force;
    if (!(trial_.finite && trial_.energy < here.energy)) {
      place(xf + reached * d.head(nf), q.size() > 0 ? VecX(q + reached * d.tail(q.size())) : q);
      break;
    }
    std::swap(run.now, trial_);
  }
  if (!pair_nodes_.empty()) run.report.refound += bodies_->follow(x_);
  return true;
}

HybridSystem::End HybridSystem::newton(Run& run, int limit) {
  const bool jacobi = options_.solver == RegionSolver::kJacobi && full_nodes() > 0;
  const bool pcg = options_.solver == RegionSolver::kPcg && full_nodes() > 0;
  if (pcg && !keep_factor(run)) return End::kBroken;
  VecX d;
  for (int i = 0; !run.converged(); ++i, ++run.report.iterations) {
    if (i == limit) return End::kLimit;
    const bool found = jacobi ? jacobi_direction(run, d)
                       : pcg  ? pcg_direction(run, d)
                              : direct_direction(run, d);
    if (!found) return End::kBroken;
    if (search_along(run, d))
      run.distrust = false;
    else if (std::exchange(run.distrust, true))
      return End::kNoDescent;
  }
  return End::kConverged;
}

bool HybridSystem::direct_direction(Run& run, VecX& d) {
  // The factor is this iteration's and nobody else's.
  run.record.forget();
  made_from_ = {};
  couple_present(run);
  for (const double projected : kProjected) {
    if (run.distrust && projected < 1) continue;
    {
      auto phase = run.clock.phase("assemble");
      assemble(projected);
    }
    {
      auto phase = run.clock.phase("factor");
      ++run.report.factorizations;
      changed_.clear();
      if (!solver_.factor(matrix_.K, matrix_.C, matrix_.D)) {
        ++run.report.fallbacks[name_of_failure(projected)];
        continue;
      }
    }
    auto phase = run.clock.phase("solve");
    VecX df, dq;
    solver_.solve(-run.now.rf, -run.now.rs, df, dq);
    d.resize(df.size() + dq.size());
    d << df, dq;
    if (run.now.rf.dot(df) + run.now.rs.dot(dq) < 0) return true;
  }
  return false;
}

// The bordered matrix times a vector. Only nodes at the border of the region have rows of C.
Product HybridSystem::matrix_product() const {
  std::vector<Index> nodes;
  if (q_.size() > 0)
    for (const Coupling& c : border_) nodes.push_back(c.i);
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  MatX C(3 * static_cast<Eigen::Index>(nodes.size()), q_.size());
  for (std::size_t k = 0; k < nodes.size(); ++k)
    C.middleRows<3>(3 * static_cast<Eigen::Index>(k)) = matrix_.C.middleRows<3>(3 * nodes[k]);
  return [this, nodes = std::move(nodes), C = std::move(C), head = VecX(), y = VecX()](const VecX& p,
                                                                                       VecX& out) mutable {
    const Eigen::Index nf = xf_.size(), r = q_.size();
    head = p.head(nf);
    multiply(matrix_.K, head, y);
    out.resize(p.size());
    out.head(nf) = y;
    if (r == 0) return;
    const VecX pulled = C * p.tail(r);
    for (std::size_t k = 0; k < nodes.size(); ++k) node(out, nodes[k]) += node(pulled, static_cast<Index>(k));
    out.tail(r).noalias() = C.transpose() * gathered(head, nodes) + matrix_.D * p.tail(r);
  };
}

// As the paper solves it: each node with its own block, the subspace with its own matrix. No factor, and none
// to keep: cheaper where inertia makes few iterations do, and where a shape snaps and factors do not last.
bool HybridSystem::jacobi_direction(Run& run, VecX& d) {
  const VecX b = -run.gradient();
  const Eigen::Index nf = xf_.size(), r = q_.size();
  couple_present(run);
  for (const double projected : kProjected) {
    if (run.distrust && projected < 1) continue;
    {
      auto phase = run.clock.phase("assemble");
      assemble(projected);
      step_cost_ += cost_.assemble;
    }
    auto phase = run.clock.phase("solve");
    const BlockJacobi blocks(matrix_.K);
    DenseCholesky<Eigen::Dynamic> subspace;
    if (r == 0 || subspace.factor(matrix_.D)) {
      const PcgResult result = pcg(
          matrix_product(), b,
          [&](VecX& z) {
            VecX f = z.head(nf);
            blocks(f);
            z.head(nf) = f;
            if (r > 0) z.tail(r) = subspace.solve(VecX(z.tail(r)));
          },
          kJacobiTolerance, kJacobiLimit, d);
      run.report.pcg += result.iterations;
      step_cost_ += result.iterations * (cost_.multiply + cost_.vectors);
      if (result.converged) return true;
    }
    ++run.report.fallbacks[name_of_failure(projected)];
  }
  return d.size() == b.size() && b.dot(d) > 0;
}

// Conjugate gradients notice where the matrix is not positive definite.
bool HybridSystem::pcg_direction(Run& run, VecX& d) {
  const VecX b = -run.gradient();
  for (const bool renewed : {false, true}) {
    for (const double projected : kProjected) {
      if (run.distrust && projected < 1) continue;
      {
        auto phase = run.clock.phase("assemble");
        assemble(projected);
        step_cost_ += cost_.assemble;
      }
      auto phase = run.clock.phase("solve");
      change_contacts(run.report);
      const PcgResult result = pcg(
          matrix_product(), b, [&](VecX& z) { precondition(z); }, kHybridPcgTolerance, kHybridPcgLimit, d);
      run.report.pcg += result.iterations;
      step_cost_ += result.iterations * (cost_.solve + cost_.multiply);
      if (result.converged) return true;
      if (projected < 1) ++run.report.fallbacks[name_of_failure(projected)];
    }
    if (renewed) break;
    ++run.report.fallbacks["renewed_factor"];
    if (!make_factor(run)) return false;
  }
  return run.gradient().dot(d) < 0;
}

HybridSystem::End HybridSystem::lbfgs(Run& run) {
  if (!keep_factor(run)) return End::kBroken;
  VecX d;
  Lbfgs pairs(kPairs);
  ResidualProgress progress(run.now.norm);
  const double iteration = cost_.solve + cost_.force + cost_.vectors;
  const double price = cost_.assemble + cost_.factor;
  // What a new factor brought, from when it was made until it was given up or no longer needed.
  const auto learn = [&] {
    if (run.fresh && progress.steps() > 0)
      run.record.fresh_rate =
          std::max(kLeastHybridRate, 0.5 * (run.record.fresh_rate + progress.mean_rate()));
  };
  for (int i = 0; !run.converged(); ++i) {
    if (run.report.iterations == options_.max_iterations) return End::kLimit;
    bool renew = false;
    if (progress.steps() >= 2) {
      // Go on with this factor, or pay for a new one and converge at the rate that new ones had.
      const double stay = progress.remaining(run.target) * iteration;
      const double left = std::log(run.now.norm / run.target);
      const double with_new = price + left / run.record.fresh_rate * iteration;
      // Where |r| goes up and down, or where this factor was new itself, rates promise nothing: then a factor
      // must have been worked with for as long as one costs.
      const bool predictable = progress.steady() && !run.fresh;
      renew = with_new < stay && (predictable || progress.steps() * iteration >= price);
    }
    const VecX before = run.gradient();
    if (!renew) {
      {
        auto phase = run.clock.phase("solve");
        change_contacts(run.report);
        d = -before;
        pairs.apply(d, [&](VecX& z) { precondition(z); });
      }
      ++run.report.iterations;
      step_cost_ += cost_.solve + cost_.vectors;
      const VecX xf = xf_, q = q_;
      if (search_along(run, d)) {
        VecX s(d.size());
        s << xf_ - xf, q_ - q;
        pairs.add(std::move(s), run.gradient() - before);
        progress.add(run.now.norm);
        run.distrust = false;
        continue;
      }
      if (run.fresh && progress.steps() == 0 && std::exchange(run.distrust, true)) return End::kNoDescent;
    }
    ++run.report.fallbacks["renewed_factor"];
    learn();
    if (!make_factor(run)) return End::kBroken;
    pairs.clear();
    progress = ResidualProgress(run.now.norm);
  }
  learn();
  return End::kConverged;
}

// Of a record from a file, too.
bool HybridSystem::fits_pattern(const RegionFactor& record) const {
  return std::all_of(record.contact_block.begin(), record.contact_block.end(),
                     [&](std::int64_t b) { return b >= 0 && b < pattern_->blocks(); });
}

// Sees to a factor that the solve can begin with: the kept one, as long as a step with it costs less than the
// mean over its life so far, or a new one.
bool HybridSystem::keep_factor(Run& run) {
  const RegionFactor& record = run.record;
  const bool usable =
      record.x.size() == x_.size() && record.inertia == step_.inertia && record.stiffness == stiffness_ &&
      record.activation == step_.activation &&
      (record.steps < 1 || record.last_cost * static_cast<double>(record.steps) <= record.cost);
  return usable ? recall(run) : make_factor(run);
}

// Sees to it that the factor is what the record describes: it is not after a restart. That is not counted: it
// was when it was made.
bool HybridSystem::recall(Run& run) {
  const RegionFactor& record = run.record;
  if (same_factor(made_from_, record)) return true;
  SkinnedBody skin;
  pose_at_(record.t, record.joints, skin);
  const BasisRows Wb = q_.size() > 0 ? turned_rows(subspace_, skin, edge_nodes_) : BasisRows(),
                  Wp = points_ ? turned_rows(subspace_, skin, point_nodes_) : BasisRows();
  assemble_elastic(record.x, Wb, Wp, record.stiffness, record.inertia, record.activation, record.projected);
  add_contact_blocks(record.contact_block, record.contact_value);
  if (!record.contact_reduced.empty() &&
      matrix_.D.size() == static_cast<Eigen::Index>(record.contact_reduced.size()))
    matrix_.D += Eigen::Map<const MatX>(record.contact_reduced.data(), matrix_.D.rows(), matrix_.D.cols());
  made_from_ = {};
  changed_.clear();
  if (!solver_.factor_coarsely(matrix_.K, matrix_.C, matrix_.D)) return false;
  factor_R_.clear();
  for (const Index i : full_nodes_) factor_R_.push_back(skin.R[at(i)]);
  made_from_ = record;
  fresh_ = record.t == step_.t;
  return true;
}

void HybridSystem::couple_present(Run& run) {
  auto phase = run.clock.phase("region");
  if (cover_present()) ++run.report.fallbacks["recoupled"];
}

bool HybridSystem::make_factor(Run& run) {
  RegionFactor& record = run.record;
  cost_before_ = step_cost_;
  record.forget();
  made_from_ = {};
  couple_present(run);
  for (const double projected : kProjected) {
    if (run.distrust && projected < 1) continue;
    {
      auto phase = run.clock.phase("assemble");
      assemble(projected);
    }
    find_tail();
    auto phase = run.clock.phase("factor");
    ++run.report.factorizations;
    step_cost_ += cost_.assemble + cost_.factor;
    changed_.clear();
    const bool positive = solver_.factor_coarsely(matrix_.K, matrix_.C, matrix_.D);
    if (!solver_.in_single()) ++run.report.fallbacks["double_precision"];
    if (!positive) {
      ++run.report.fallbacks[name_of_failure(projected)];
      continue;
    }
    record.x = x_;
    record.t = step_.t;
    record.joints = step_.joints;
    record.inertia = step_.inertia;
    record.stiffness = stiffness_;
    record.activation = step_.activation;
    record.projected = projected;
    record.contact_block = contact_block_;
    record.contact_value = contact_value_;
    record.contact_reduced.assign(contact_reduced_.data(), contact_reduced_.data() + contact_reduced_.size());
    made_from_ = record;
    factor_R_.clear();
    for (const Index i : full_nodes_) factor_R_.push_back(step_.skin->R[at(i)]);
    run.fresh = fresh_ = true;
    return true;
  }
  return false;
}

void HybridSystem::end_step(RegionFactor& record) const {
  if (record.x.size() == 0) return;
  // Only what this factor is to blame for: not what came before it in the step in which it was made.
  record.steps += 1;
  record.cost += step_cost_ - cost_before_;
  record.last_cost = step_cost_ - cost_before_;
}

void HybridSystem::precondition(VecX& z) const {
  const Eigen::Index nf = xf_.size();
  VecX f = z.head(nf), u, q;
  const auto turn = [&](VecX& v, bool back) {
    if (fresh_) return;
    for (std::size_t k = 0; k < full_nodes_.size(); ++k) {
      const Mat3& now = step_.skin->R[at(full_nodes_[k])];
      auto own = node(v, static_cast<Index>(k));
      if (back)
        own = factor_R_[k] * (now.transpose() * own).eval();
      else
        own = now * (factor_R_[k].transpose() * own).eval();
    }
  };
  turn(f, true);
  solver_.solve(f, z.tail(q_.size()), u, q);
  turn(u, false);
  z << u, q;
}

}  // namespace limber::condense
