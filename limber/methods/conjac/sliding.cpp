#include <limber/methods/conjac/sliding.hpp>

#include <limber/linalg/dense.hpp>
#include <limber/methods/conjac/rigid_motion.hpp>

#include <algorithm>
#include <utility>

namespace limber {
namespace {

constexpr double kSlidingWay = 4;      // slips
constexpr double kPromptDrift = 1e-2;  // of the size of the scene

bool any_slides(std::span<const std::uint8_t> slides) {
  return std::find(slides.begin(), slides.end(), 1) != slides.end();
}

}  // namespace

// The velocities of quasistatic nodes would not tell, because they leave out what stabilisation moves them
// by.
std::vector<std::uint8_t> find_sliding(const Model& model, const StepInput& in, const StepStart& start,
                                       std::span<const std::uint8_t> held, ContactStep& contact) {
  std::vector<std::uint8_t> slides(model.pieces.size(), 0);
  if (contact.laws().empty() || contact.model().alpha == 0) return slides;
  const VecX rigid = rigid_velocity(model, start.x, start.v, held);
  struct Sum {
    double way = 0, friction = 0, stiffness = 0, count = 0;
  };
  std::vector<Sum> sums(model.pieces.size());
  for (const ContactLaw& law : contact.laws()) {
    const Contact& c = law.contact;
    Sum& sum = sums[model.piece_of_node[c.node]];
    const Vec3 v = node(rigid, c.node) - c.velocity;
    sum.way += in.h * (v - c.n.dot(v) * c.n).norm();
    sum.friction += c.friction;
    sum.stiffness += c.stiffness;
    ++sum.count;
  }
  std::vector<std::uint8_t> which(static_cast<std::size_t>(model.nodes()), 0);
  Vec3 center;
  for (std::size_t p = 0; p < sums.size(); ++p) {
    const Sum& sum = sums[p];
    const Piece& piece = model.pieces[p];
    if (sum.friction == 0 || free_rigid_motions(model, piece, start.x, held, center).cols() == 0) continue;
    const double slip =
        sum.friction / sum.count * piece.mass * in.gravity.norm() / (contact.model().alpha * sum.stiffness);
    if (sum.way / sum.count <= kSlidingWay * slip) continue;
    slides[p] = 1;
    for (const Index i : piece.nodes) which[static_cast<std::size_t>(i)] = 1;
  }
  if (any_slides(slides)) contact.slide(std::move(which), rigid);
  return slides;
}

void settle_sliding(const Model& model, std::span<const std::uint8_t> slides,
                    std::span<const std::uint8_t> held, const VecX& force, Condensation& condensation,
                    Linearisation& at, PhaseClock& clock) {
  at.moving.resize(0);
  if (!any_slides(slides)) return;
  VecX acceleration(condensation.unknowns);
  for (const CondensedPiece& piece : condensation.pieces()) {
    const Eigen::Index n = piece.J.cols() - piece.twists;  // links that are touched go on as they do
    acceleration.segment(piece.begin, n) =
        DenseCholesky<Eigen::Dynamic>(piece.M_r.topLeftCorner(n, n)).solve(piece.f_r.head(n));
    acceleration.segment(piece.begin + n, piece.twists).setZero();
  }
  const VecX inertia = model.mass.cwiseProduct(VecX(condensation.extend(acceleration)));
  at.moving = force;
  for (Index i = 0; i < model.nodes(); ++i)
    if (slides[static_cast<std::size_t>(model.piece_of_node[i])]) node(at.moving, i) = node(inertia, i);
  at.correction = force;
  relieve_inertia(model, at.x, at.v, held, at.moving, at.correction);
  auto phase = clock.phase("solve");
  condensation.solve_quasistatic(at.correction);
}

void take_share(const Model& model, std::span<const std::uint8_t> slides, double gamma, VecX& correction) {
  std::vector<double> drift(model.pieces.size(), 0);
  for (Index i = 0; i < model.nodes(); ++i) {
    double& most = drift[model.piece_of_node[i]];
    most = std::max(most, node(correction, i).cwiseAbs().maxCoeff());
  }
  for (Index i = 0; i < model.nodes(); ++i) {
    const auto p = static_cast<std::size_t>(model.piece_of_node[i]);
    if (slides.empty() || !slides[p] || drift[p] >= kPromptDrift * model.size) node(correction, i) *= gamma;
  }
}

}  // namespace limber
