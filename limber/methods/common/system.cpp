#include <limber/methods/common/system.hpp>

#include <limber/core/parallel.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace limber {

VecX external_force(const Model& model, const StepInput& in) {
  VecX f = in.force;
  for (Index i = 0; i < model.nodes(); ++i) node(f, i) += model.mass[3 * i] * in.gravity;
  return f;
}

void scale_and_add_mass(BlockMatrix& K, double scale, const VecX& mass) {
  const BlockPattern& p = *K.pattern;
  parallel_for(p.n, 256, [&](std::ptrdiff_t j) {
    const Index begin = p.col_begin[j], end = p.col_begin[j + 1];
    Eigen::Map<VecX>(K.values.data() + 9 * static_cast<std::ptrdiff_t>(begin), 9 * (end - begin)) *= scale;
    for (int k = 0; k < 3; ++k)
      K.block(begin)(k, k) += mass[3 * j + k];  // the diagonal block comes first in its column
  });
}

void restore_fixed(const StepInput& in, VecX& v) {
  for (Eigen::Index d = 0; d < v.size(); ++d)
    if (in.fixed[static_cast<std::size_t>(d)]) v[d] = in.fixed_velocity[d];
}

Index free_dofs(const StepInput& in) {
  return static_cast<Index>(std::count(in.fixed.begin(), in.fixed.end(), std::uint8_t{0}));
}

void report_energy(const Model& model, const State& state, double elastic, StepReport& report) {
  double kinetic = 0, gravity = 0;
  for (Index i = 0; i < model.nodes(); ++i) {
    const double m = model.mass[3 * i];
    kinetic += 0.5 * m * node(state.v, i).squaredNorm();
    gravity -= m * model.scene->gravity.dot(node(state.x, i));
  }
  report.energy = {{"kinetic", kinetic}, {"elastic", elastic}, {"gravity", gravity}};
}

StepReport& fail(StepReport& report, const std::string& why) {
  report.status = StepStatus::kFailed;
  report.why = why;
  return report;
}

std::string not_finite(const fem::Assembled& assembled) {
  return fmt::format("element {} gave a force or stiffness that is not finite", assembled.first_bad);
}

std::string bad_pivot(const FactorStatus& status) {
  return fmt::format("the system matrix is not positive definite: pivot {:.3g} at node {}", status.pivot,
                     status.node);
}

std::string wrong_size(const char* name, std::ptrdiff_t found, std::ptrdiff_t expected) {
  return fmt::format("\"{}\" has {} numbers, expected {}", name, found, expected);
}

}  // namespace limber
