// The loop that Staggered Projections (Kaufman et al. 2008; Algorithm 3.1 of the dissertation) and Bilateral
// Staggered Projections (Algorithm 3.2) share: contact with friction held, then friction with contact held,
// until the contact force stops changing.
#pragma once

#include <limber/core/types.hpp>

namespace limber::qp {

struct StaggeredOptions {
  int max_iterations = 100;
  // On the squared relative change |df|^2 / |f|^2 of the contact force in the inverse-mass norm. The paper
  // writes an absolute norm; a relative one does not depend on the units of the scene.
  double tolerance = 1e-3;
};

struct StaggeredReport {
  bool converged = false;
  int iterations = 0;  // contact solves
  double change = 0;   // the last |df|^2 / |f|^2
};

// `contact()` returns the contact force with the present friction; `friction()` updates the friction from the
// present contact force and returns false when there is none to add; `norm2(f)` is f^T M^-1 f. The last call
// is to contact(), so that its velocity belongs to the final friction force.
template <class Contact, class Friction, class Norm2>
StaggeredReport staggered_projections(const StaggeredOptions& options, Contact&& contact, Friction&& friction,
                                      Norm2&& norm2) {
  StaggeredReport report;
  VecX before;
  for (;;) {
    const VecX& f = contact();
    ++report.iterations;
    if (before.size() == 0) before = VecX::Zero(f.size());
    const double size = norm2(f);
    const double change = norm2(f - before);
    report.change = size > 0 ? change / size : 0;
    if (report.change < options.tolerance || size == 0) {
      report.converged = true;
      return report;
    }
    if (report.iterations >= options.max_iterations) return report;
    before = f;
    if (!friction()) {
      report.converged = true;
      return report;
    }
  }
}

}  // namespace limber::qp
