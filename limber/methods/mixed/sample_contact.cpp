#include <limber/methods/mixed/sample_contact.hpp>

#include <algorithm>
#include <limits>

namespace limber::mixed {
namespace {

using Rows3 = Eigen::Matrix<double, 3, Eigen::Dynamic>;
constexpr double kFrictionChange = 0.01;  // of the sum of all normal forces: as in `implicit`

bool has_changed(const ContactEnergy::Revision& r) { return r.change > kFrictionChange * r.sum; }

// Nodes by farthest-point sampling, from the first one on.
std::vector<std::size_t> spread_samples(const ContactModel& all, const VecX& rest, Index count) {
  std::vector<std::size_t> out;
  if (all.nodes.empty()) return out;
  if (static_cast<std::size_t>(count) >= all.nodes.size()) {
    for (std::size_t k = 0; k < all.nodes.size(); ++k) out.push_back(k);
    return out;
  }
  std::vector<double> distance(all.nodes.size(), std::numeric_limits<double>::infinity());
  std::size_t next = 0;
  for (Index c = 0; c < count; ++c) {
    out.push_back(next);
    std::size_t farthest = 0;
    for (std::size_t k = 0; k < all.nodes.size(); ++k) {
      distance[k] =
          std::min(distance[k], (node(rest, all.nodes[k]) - node(rest, all.nodes[out.back()])).squaredNorm());
      if (distance[k] > distance[farthest]) farthest = k;
    }
    next = farthest;
  }
  return out;
}

std::shared_ptr<const BlockPattern> diagonal_pattern(Index n) {
  std::vector<Index> begin, row;
  for (Index i = 0; i <= n; ++i) begin.push_back(i);
  for (Index i = 0; i < n; ++i) row.push_back(i);
  return std::make_shared<const BlockPattern>(make_block_pattern(std::move(begin), std::move(row)));
}

ContactModel model_of(const ContactModel& all, const std::vector<std::size_t>& chosen) {
  ContactModel out;
  out.obstacles = all.obstacles;
  out.alpha = all.alpha;
  out.rule = all.rule;
  const double share =
      static_cast<double>(all.nodes.size()) / static_cast<double>(std::max<std::size_t>(1, chosen.size()));
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    out.nodes.push_back(static_cast<Index>(k));
    out.stiffness.push_back(share * all.stiffness[chosen[k]]);
    out.elastic.push_back(share * all.elastic[chosen[k]]);
  }
  return out;
}

}  // namespace

SampleContact::SampleContact(const ReducedBody& body, const ContactModel& all, Index samples, double damping,
                             double slip_speed, double margin)
    : body_(body), contact_(model_, damping, slip_speed, margin) {
  if (all.empty()) return;
  const std::vector<std::size_t> chosen = spread_samples(all, body.rest, samples);
  model_ = model_of(all, chosen);
  for (const std::size_t k : chosen) nodes_.push_back(all.nodes[k]);
  rows_ = body.rows(nodes_);
  rest_.resize(3 * static_cast<Eigen::Index>(nodes_.size()));
  for (std::size_t k = 0; k < nodes_.size(); ++k)
    node(rest_, static_cast<Index>(k)) = node(body.rest, nodes_[k]);
  blocks_ = BlockMatrix(diagonal_pattern(static_cast<Index>(nodes_.size())));
}

VecX SampleContact::positions(const VecX& unknowns) const {
  VecX x = rest_;
  const VecX u = body_.wide(unknowns);
  const Eigen::Map<const Rows3> U(u.data(), 3, rows_.cols());
  Eigen::Map<Rows3>(x.data(), 3, rows_.rows()) += U * rows_.transpose();
  return x;
}

void SampleContact::pose(const VecX& u0, double t0, const VecX& guess, double t, const VecX& c, double g) {
  contact_.pose(positions(u0), t0, positions(guess), t, positions(c), g);
}

double SampleContact::energy(const VecX& u) const {
  VecX unused = VecX::Zero(rest_.size());
  return contact_.add_force(positions(u), unused);
}

void SampleContact::add(const VecX& u, VecX& g, BlockMatrix& A) const {
  const VecX x = positions(u);
  if (!body_.linear) return add_wide(x, g, A);
  VecX wide = VecX::Zero(3 * rows_.cols());
  BlockMatrix H(dense_pattern(static_cast<Index>(rows_.cols())));
  add_wide(x, wide, H);
  g += body_.narrow(wide);
  body_.add_narrow(H, A);
}

void SampleContact::add_wide(const VecX& x, VecX& g, BlockMatrix& A) const {
  VecX f = VecX::Zero(x.size());
  contact_.add_force(x, f);
  std::fill(blocks_.values.begin(), blocks_.values.end(), 0.0);
  contact_.add_stiffness(x, blocks_);
  const Eigen::Index p = rows_.cols();
  Eigen::Map<Rows3> G(g.data(), 3, p);
  for (Index k = 0; k < samples(); ++k) {
    const Mat3 D = blocks_.block(k);
    if (node(f, k).isZero() && D.isZero()) continue;
    const auto phi = rows_.row(k);
    G -= node(f, k) * phi;
    for (Eigen::Index b = 0; b < p; ++b)
      for (Eigen::Index a = b; a < p; ++a)
        A.block(A.pattern->col_begin[static_cast<std::size_t>(b)] + static_cast<Index>(a - b)) +=
            phi[a] * phi[b] * D;
  }
}

bool SampleContact::revise(const VecX& u) { return has_changed(contact_.revise_friction(positions(u))); }

std::vector<ContactForce> SampleContact::forces(const VecX& u) const {
  std::vector<ContactForce> out;
  if (empty()) return out;
  contact_.list_forces(positions(u), out);
  for (ContactForce& f : out) f.node = nodes_[at(f.node)];
  return out;
}

Index SampleContact::touching(const VecX& u, double t) const {
  if (empty()) return 0;
  return static_cast<Index>(limber::touching(model_, positions(u), t).size());
}

double NodalContact::energy(const VecX& u) const {
  VecX unused = VecX::Zero(u.size());
  return contact_.add_force(u + rest_, unused);
}

void NodalContact::add(const VecX& u, VecX& g, BlockMatrix& A) const {
  const VecX x = u + rest_;
  VecX f = VecX::Zero(u.size());
  contact_.add_force(x, f);
  g -= f;
  contact_.add_stiffness(x, A);
}

bool NodalContact::revise(const VecX& u) { return has_changed(contact_.revise_friction(u + rest_)); }

std::vector<ContactForce> NodalContact::forces(const VecX& u) const {
  std::vector<ContactForce> out;
  contact_.list_forces(u + rest_, out);
  return out;
}

}  // namespace limber::mixed
