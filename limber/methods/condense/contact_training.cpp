#include <limber/methods/condense/contact_training.hpp>

#include <limber/contact/body_contact.hpp>
#include <limber/reduction/seeded_numbers.hpp>

#include <algorithm>
#include <map>
#include <set>

namespace limber::condense {
namespace {

constexpr double kContactNoise = 0.3;       // times that of cubature: far from equilibrium all may touch
constexpr double kContactTolerance = 0.01;  // of the contact forces
constexpr Index kContactPoints = 4;         // for each column, at most

// W_i^T f
void add_reduced(const Subspace& subspace, const SkinnedBody& skin, Index i, const Vec3& f, VecX& out) {
  const Vec3 local = skin.R[at(i)].transpose() * f;
  for (const Basis::Place& p : subspace.basis.places(i)) {
    const Domain& d = subspace.basis.domains()[at(p.domain)];
    out.segment(d.first, d.columns()) +=
        d.U.middleRows<3>(3 * static_cast<Eigen::Index>(p.row)).transpose() * local;
  }
}

}  // namespace

void train_contacts(const Model& model, const BoneSkinning& skinning, std::span<const TrainingPose> poses,
                    const CondenseOptions& o, Subspace& out) {
  out.contact_weights.assign(at(model.nodes()), 0.0);
  BodyContact bodies(model.mesh, {model.scene->contact.stiffness, 0, 0, o.slip_speed});
  SeededNumbers numbers(o.seed + 31);
  const Eigen::Index r = out.columns();
  std::map<Index, std::vector<std::pair<Eigen::Index, VecX>>> forces;  // of nodes: in which samples
  std::set<std::pair<Index, Index>> touched;
  Eigen::Index samples = 0;
  SkinnedBody skin;
  for (std::size_t p = 0; p < poses.size(); ++p) {
    skinning.pose(poses[p].bones, skin);
    for (Index s = 0; s < o.samples; ++s) {
      VecX q = out.q.col(static_cast<Eigen::Index>(p)), x;
      if (s > 0)
        for (Eigen::Index k = 0; k < r; ++k)
          q[k] += kContactNoise * o.noise * out.spread[k] * numbers.normal();
      subspace_positions(out, skin, q, x);
      const std::vector<BodyContact::Pair> pairs = bodies.detect(x);
      bool any = false;
      for (const BodyContact::Pair& pair : pairs)
        for (const ContactRow& row : bodies.rows(std::span(&pair, 1), x)) {
          if (!(row.gap < 0)) continue;
          any = true;
          const Vec3 f = -pair.stiffness * row.gap * row.n;
          VecX g = VecX::Zero(r);
          add_reduced(out, skin, row.node, f, g);
          for (std::size_t k = 0; k < 3; ++k) add_reduced(out, skin, row.face[k], -row.weight[k] * f, g);
          auto& list = forces[row.node];
          if (!list.empty() && list.back().first == samples)
            list.back().second += g;
          else
            list.emplace_back(samples, g);
          for (const Index corner : row.face) {
            touched.emplace(row.node, out.heaviest[at(corner)]);
            touched.emplace(corner, out.heaviest[at(row.node)]);
          }
        }
      samples += any;
    }
  }
  if (samples == 0) return;
  // Each sample by its own length.
  VecX target = VecX::Zero(samples * r);
  for (const auto& entry : forces)
    for (const auto& force : entry.second) target.segment(force.first * r, r) += force.second;
  VecX scale = VecX::Ones(samples);
  for (Eigen::Index s = 0; s < samples; ++s)
    if (const double length = target.segment(s * r, r).norm(); length > 0) {
      scale[s] = 1 / length;
      target.segment(s * r, r) /= length;
    }
  if (target.isZero(0)) return;
  std::vector<Index> nodes;
  for (const auto& entry : forces) nodes.push_back(entry.first);
  TrainingOptions training;
  training.points = std::min<Index>(static_cast<Index>(nodes.size()), kContactPoints * out.columns());
  training.candidates = static_cast<Index>(nodes.size());
  training.tolerance = kContactTolerance;
  training.seed = o.seed;
  training.replace = true;
  const TrainedCubature trained = train_cubature(
      static_cast<Index>(nodes.size()),
      [&](Index k, Eigen::Ref<VecX> f) {
        f.setZero();
        for (const auto& force : forces.at(nodes[at(k)]))
          f.segment(force.first * r, r) = scale[force.first] * force.second;
      },
      target, training);
  for (std::size_t c = 0; c < trained.cubature.elements.size(); ++c)
    out.contact_weights[at(nodes[at(trained.cubature.elements[c])])] = trained.cubature.weights[c];
  // Neighbours of what has touched: another pose touches a little further.
  const BlockPattern& pattern = *model.pattern;
  std::set<std::pair<Index, Index>> wider = touched;
  for (const auto& [i, bone] : touched) {
    for (Index k = pattern.rows.begin[at(i)]; k < pattern.rows.begin[at(i) + 1]; ++k)
      wider.emplace(pattern.rows.col[at(k)], bone);
    for (Index b = pattern.col_begin[at(i)]; b < pattern.col_begin[at(i) + 1]; ++b)
      wider.emplace(pattern.row[at(b)], bone);
  }
  out.touched.assign(wider.begin(), wider.end());
}

}  // namespace limber::condense
