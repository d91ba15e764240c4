#include <limber/contact/body_springs.hpp>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

struct SpringNodes {
  std::array<Index, 4> node;
  std::array<double, 4> weight;
};

SpringNodes nodes_of(const ContactRow& row) {
  return {{row.node, row.face[0], row.face[1], row.face[2]},
          {1, -row.weight[0], -row.weight[1], -row.weight[2]}};
}

bool before_by_id(const RowSpring& a, const RowSpring& b) { return a.row.id < b.row.id; }

}  // namespace

std::string BodySpringMemory::misfit(Index nodes) const {
  if (stretch.size() != 3 * ids.size())
    return "\"body_contact_stretch\" has " + std::to_string(stretch.size()) + " numbers, expected " +
           std::to_string(3 * ids.size());
  if (!std::all_of(stretch.begin(), stretch.end(), [](double s) { return std::isfinite(s); }))
    return "\"body_contact_stretch\" has a number that is not finite";
  const auto is_node = [&](std::int64_t i) { return i >= 0 && i < nodes; };
  if (!std::is_sorted(ids.begin(), ids.end()) ||
      !std::all_of(ids.begin(), ids.end(), [&](std::int64_t id) { return is_node(id >> 32); }))
    return "\"body_contact_ids\" are not ids of contacts, ascending";
  if (coupled.size() % 4 != 0 || !std::all_of(coupled.begin(), coupled.end(), is_node))
    return "\"body_contact_coupled\" is not a list of nodes, four for each contact";
  return {};
}

BodySprings::BodySprings(const fem::ElementInput& mesh, const BodyContactOptions& options, double alpha,
                         double size)
    : contact_(mesh, options), alpha_(alpha), tolerance_(1e-7 * size) {}

void BodySprings::append(std::span<const BodyContact::Pair> pairs, std::vector<RowSpring>& springs) const {
  for (const BodyContact::Pair& pair : pairs)
    for (const ContactRow& row : contact_.rows({&pair, 1}, x_)) {
      RowSpring spring;
      spring.row = row;
      spring.stiffness = pair.stiffness;
      spring.elastic = 0.25 * pair.stiffness;
      springs.push_back(spring);
    }
}

void BodySprings::recall(RowSpring& spring) const {
  const auto id = static_cast<std::int64_t>(spring.row.id);
  const auto it = std::lower_bound(memory_->ids.begin(), memory_->ids.end(), id);
  spring.known = it != memory_->ids.end() && *it == id;
  if (spring.known) {
    const auto k = 3 * static_cast<std::size_t>(it - memory_->ids.begin());
    spring.stretch =
        across(spring.row.n, {memory_->stretch[k], memory_->stretch[k + 1], memory_->stretch[k + 2]});
  }
  spring.begin_friction(alpha_, h_, relative(spring.row, v_));
}

void BodySprings::begin(const BodySpringMemory& memory, const VecX& x, const VecX& v, const VecX& expected,
                        double h) {
  memory_ = &memory;
  x_ = x;
  v_ = v;
  expected_ = expected;
  h_ = h;
  revisions_ = 0;
  looked_again_ = false;
  springs_.clear();
  contact_.pose(x, x + h * expected, x, h);
  append(contact_.pairs(), springs_);
  std::sort(springs_.begin(), springs_.end(), before_by_id);
  for (RowSpring& spring : springs_) {
    recall(spring);
    spring.active = spring.row.gap + h * spring.row.n.dot(relative(spring.row, expected)) < tolerance_;
  }
}

Index BodySprings::active() const {
  return static_cast<Index>(
      std::count_if(springs_.begin(), springs_.end(), [](const RowSpring& s) { return s.active; }));
}

bool BodySprings::closes() const {
  return std::any_of(springs_.begin(), springs_.end(),
                     [&](const RowSpring& s) { return s.active && s.row.gap > tolerance_; });
}

void BodySprings::add_force(const VecX& d, VecX& f, VecX& closing) const {
  for (const RowSpring& spring : springs_) {
    if (!spring.active) continue;
    const Vec3 way = moved(spring, d);
    const bool open = spring.row.gap + spring.row.n.dot(way) > 0;
    add_to_nodes(spring.row, spring.force(way), open ? closing : f);
  }
}

double BodySprings::potential(const VecX& d) const {
  double sum = 0;
  for (const RowSpring& spring : springs_) {
    if (!spring.active) continue;
    const Vec3 way = moved(spring, d);
    const double open = std::max(0.0, spring.row.gap + spring.row.n.dot(way));
    sum += spring.energy(way) + 0.5 * spring.stiffness * open * open;
  }
  return sum;
}

double BodySprings::energy(const VecX& d) const {
  double sum = 0;
  for (const RowSpring& spring : springs_)
    if (spring.active) sum += spring.stored(alpha_, moved(spring, d));
  return sum;
}

void BodySprings::add_stiffness(std::span<const std::uint8_t> fixed, BlockMatrix& K) const {
  for (const RowSpring& spring : springs_) {
    if (!spring.active) continue;
    const SpringNodes at = nodes_of(spring.row);
    const Mat3 S = spring.matrix();
    for (std::size_t i = 0; i < 4; ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        if (at.node[i] < at.node[j]) continue;  // the lower triangle
        Mat3 block = at.weight[i] * at.weight[j] * S;
        for (int k = 0; k < 3; ++k) {
          if (fixed[3 * static_cast<std::size_t>(at.node[i]) + static_cast<std::size_t>(k)])
            block.row(k).setZero();
          if (fixed[3 * static_cast<std::size_t>(at.node[j]) + static_cast<std::size_t>(k)])
            block.col(k).setZero();
        }
        K.block(K.pattern->find(at.node[i], at.node[j])) += block;
      }
  }
}

void BodySprings::add_drag(double factor, const VecX& v, VecX& rate) const {
  for (const RowSpring& spring : springs_)
    if (spring.active) add_to_nodes(spring.row, factor * (spring.matrix() * relative(spring.row, v)), rate);
}

bool BodySprings::revise(const VecX& x1) {
  if (revisions_ == kRevisions) return false;
  const VecX d = x1 - x_;
  bool changed = false;
  for (RowSpring& spring : springs_) {
    const double gap = spring.row.gap + spring.row.n.dot(moved(spring, d));
    if (spring.active && gap > tolerance_ && revisions_ < kFreeRevisions) {
      spring.active = false;
      changed = true;
    } else if (!spring.active && gap < -tolerance_) {
      spring.active = true;
      changed = true;
    }
  }
  // Where nodes, and faces, have come to where they were expected, all pairs that press are known.
  std::vector<RowSpring> found;
  if (4 * (d - h_ * expected_).lpNorm<Eigen::Infinity>() > contact_.margin()) {
    looked_again_ = true;
    if (contact_.revise(x1)) append(contact_.pairs(), found);
  }
  std::vector<RowSpring> fresh;
  for (RowSpring& spring : found) {
    if (std::binary_search(springs_.begin(), springs_.end(), spring, before_by_id)) continue;
    if (spring.row.gap + spring.row.n.dot(moved(spring, d)) > -tolerance_) continue;
    recall(spring);
    fresh.push_back(spring);
  }
  springs_.insert(springs_.end(), fresh.begin(), fresh.end());
  std::sort(springs_.begin(), springs_.end(), before_by_id);
  if (!changed && fresh.empty()) return false;
  ++revisions_;
  return true;
}

bool BodySprings::cover(std::vector<std::int64_t>& coupled) const {
  using Nodes = std::array<std::int64_t, 4>;
  std::vector<Nodes> known, now;
  for (std::size_t k = 0; k < coupled.size(); k += 4)
    known.push_back({coupled[k], coupled[k + 1], coupled[k + 2], coupled[k + 3]});
  for (const RowSpring& spring : springs_) {
    const SpringNodes at = nodes_of(spring.row);
    now.push_back({at.node[0], at.node[1], at.node[2], at.node[3]});
  }
  if (std::all_of(now.begin(), now.end(),
                  [&](const Nodes& nodes) { return std::binary_search(known.begin(), known.end(), nodes); }))
    return false;
  if (known.size() <= kSpare * now.size()) now.insert(now.end(), known.begin(), known.end());
  std::sort(now.begin(), now.end());
  now.erase(std::unique(now.begin(), now.end()), now.end());
  coupled.clear();
  for (const Nodes& nodes : now) coupled.insert(coupled.end(), nodes.begin(), nodes.end());
  return true;
}

BodySprings::Summary BodySprings::finish(const VecX& x1, BodySpringMemory& memory) const {
  Summary out;
  BodySpringMemory kept;
  const VecX d = x1 - x_;
  for (const RowSpring& spring : springs_) {
    const Vec3 way = moved(spring, d);
    const double depth = -(spring.row.gap + spring.row.n.dot(way));
    if (!(depth > 0)) continue;
    const Vec3 stretch = spring.kept_stretch(alpha_, way);
    kept.ids.push_back(static_cast<std::int64_t>(spring.row.id));
    kept.stretch.insert(kept.stretch.end(), stretch.data(), stretch.data() + 3);
    ++out.pressing;
    out.depth = std::max(out.depth, depth);
  }
  out.tunnelled = looked_again_ && !contact_.tunnelled().empty();
  memory.ids = std::move(kept.ids);
  memory.stretch = std::move(kept.stretch);
  return out;
}

}  // namespace limber
