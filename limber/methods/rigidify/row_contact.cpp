#include <limber/methods/rigidify/row_contact.hpp>

#include <limber/methods/common/system.hpp>
#include <limber/qp/friction_pgs.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace limber::rigidify {
namespace {

constexpr double kStill = 0.125;       // margins of pairs: an object that has moved by less is where it was
constexpr double kTangentShare = 0.1;  // of PGS's compliance, for tangents

// The nodes of a row and how much each moves of its relative velocity.
template <class Visit>
void with_nodes(const ContactRow& row, Visit&& visit) {
  const std::array<Index, 4> nodes{row.node, row.face[0], row.face[1], row.face[2]};
  const std::array<double, 4> weights{1, -row.weight[0], -row.weight[1], -row.weight[2]};
  const std::size_t count = row.face[0] < 0 ? 1 : 4;
  visit(std::span<const Index>(nodes.data(), count), std::span<const double>(weights.data(), count));
}

Index node_of_id(std::int64_t id) { return static_cast<Index>(static_cast<std::uint64_t>(id) >> 32); }
Index obstacle_of_id(std::uint64_t id) { return static_cast<Index>(id & 0xffffffffu); }

}  // namespace

RowContact::RowContact(const Model& model, const RigidifyOptions& options)
    : model_(model), options_(options), tolerance_(1e-7 * model.size) {
  if (options.body_contact)
    bodies_.emplace(model.mesh, BodyContactOptions{model.scene->contact.stiffness,
                                                   model.scene->contact.friction, 0, 5e-3});
}

void RowContact::append(const std::vector<Contact>& contacts, std::vector<Law>& laws) const {
  const std::vector<ContactRow> rows = contact_rows(contacts, h_);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    Law law;
    law.row = rows[k];
    law.stiffness = contacts[k].stiffness;
    law.elastic = contacts[k].elastic;
    laws.push_back(law);
  }
}

void RowContact::append(std::span<const BodyContact::Pair> pairs, std::vector<Law>& laws) const {
  for (const BodyContact::Pair& pair : pairs)
    for (const ContactRow& row : bodies_->rows({&pair, 1}, x_)) {
      Law law;
      law.row = row;
      law.stiffness = pair.stiffness;
      law.elastic = 0.25 * pair.stiffness;
      laws.push_back(law);
    }
}

// Whether the row sticks or slides, by where its spring would be if nothing changed (as contact/penalty.hpp
// does).
void RowContact::begin_friction(Law& law, const VecX& v) const {
  const auto id = static_cast<std::int64_t>(law.row.id);
  const auto it = std::lower_bound(memory_->contact_ids.begin(), memory_->contact_ids.end(), id);
  law.known = it != memory_->contact_ids.end() && *it == id;
  if (law.known) {
    const auto k = static_cast<std::size_t>(it - memory_->contact_ids.begin());
    const Vec3 kept(memory_->contact_memory[3 * k], memory_->contact_memory[3 * k + 1],
                    memory_->contact_memory[3 * k + 2]);
    if (options_.pgs)
      law.kept = kept;
    else
      law.stretch = across(law.row.n, kept);
  }
  if (!options_.pgs) law.begin_friction(model_.scene->contact.alpha, h_, relative(law.row, v));
}

// Pairs where nodes are expected. Margins leave room: an object is still while it has moved by less than an
// eighth of what a node may be away from a face and have a pair.
void RowContact::look_for_pairs(RigidifyMemory& memory, const VecX& expected) {
  const double reach = kStill * bodies_->margin();
  const std::size_t objects = model_.pieces.size();
  if (memory.still.empty()) {
    memory.still.assign(objects, 0);
    memory.seen.setZero(x_.size());
  }
  std::vector<std::uint8_t> stays(objects, 0);
  std::vector<Index> known;  // a node of each that stays
  for (std::size_t o = 0; o < objects; ++o) {
    const std::vector<Index>& nodes = model_.pieces[o].nodes;
    double fastest = 0, farthest = 0;
    for (std::size_t k = 0; memory.alone[o] && k < nodes.size(); ++k) {
      fastest = std::max(fastest, node(expected, nodes[k]).squaredNorm());
      farthest = std::max(farthest, (node(x_, nodes[k]) - node(memory.seen, nodes[k])).squaredNorm());
    }
    const bool slow = memory.alone[o] && h_ * std::sqrt(fastest) < reach;
    stays[o] = slow && memory.still[o] && farthest < reach * reach;
    memory.still[o] = slow;
    if (stays[o])
      known.push_back(nodes.front());
    else if (slow)
      for (const Index i : nodes) node(memory.seen, i) = node(x_, i);
  }
  bodies_->skip_pairs_among(known);
  bodies_->pose(x_, x_ + h_ * expected, x_, h_);
  append(bodies_->pairs(), laws_);
  std::vector<std::int32_t> kept;
  const auto objects_of = [&](const BodyContact::Pair& pair) {
    return std::pair(at(model_.piece_of_node[at(pair.nodes[0])]),
                     at(model_.piece_of_node[at(pair.nodes[1])]));
  };
  for (std::size_t k = 0; k + 2 < memory.still_pairs.size(); k += 3) {
    const std::int32_t* p = memory.still_pairs.data() + k;
    const BodyContact::Pair pair = bodies_->known_pair(p[0], p[1], p[2]);
    const auto [a, b] = objects_of(pair);
    if (!stays[a] || !stays[b]) continue;
    append({&pair, 1}, laws_);
    kept.insert(kept.end(), p, p + 3);
  }
  for (const BodyContact::Pair& pair : bodies_->pairs()) {
    const auto [a, b] = objects_of(pair);
    if (a != b && memory.still[a] && memory.still[b])
      kept.insert(kept.end(), {pair.site, pair.piece, pair.face});
  }
  memory.still_pairs = std::move(kept);
}

std::string RowContact::misfit(const RigidifyMemory& memory) const {
  if (memory.still.empty()) return memory.still_pairs.empty() ? "" : "\"still_pairs\" without \"still\"";
  if (memory.still.size() != model_.pieces.size())
    return wrong_size("still", static_cast<std::ptrdiff_t>(memory.still.size()),
                      static_cast<std::ptrdiff_t>(model_.pieces.size()));
  if (memory.seen.size() != 3 * model_.nodes())
    return wrong_size("seen", memory.seen.size(), 3 * model_.nodes());
  if (!memory.seen.allFinite()) return "\"seen\" has a number that is not finite";
  const std::vector<std::int32_t>& list = memory.still_pairs;
  if (list.size() % 3 != 0 || (!list.empty() && !bodies_))
    return "\"still_pairs\" is not three numbers for each pair of two bodies";
  for (std::size_t k = 0; k < list.size(); k += 3) {
    const BodySurfaces& s = bodies_->surfaces();
    if (list[k] < 0 || at(list[k]) >= s.sites().size() || list[k + 1] < 0 || list[k + 2] < 0 ||
        at(list[k + 2]) >= s.faces().size())
      return fmt::format("\"still_pairs\" names site {}, piece {}, face {}, which do not exist", list[k],
                         list[k + 1], list[k + 2]);
  }
  return {};
}

void RowContact::begin(RigidifyMemory& memory, const VecX& x, const VecX& v, const StepInput& in) {
  laws_.clear();
  memory_ = &memory;
  revisions_ = 0;
  new_pairs_.clear();
  looked_again_ = false;
  if (!possible()) return;
  x_ = x;
  v_ = v;
  h_ = in.h;
  t_ = in.t;
  VecX expected = v;
  std::vector<std::uint8_t> touched(model_.pieces.size(), 0);
  for (const std::int64_t id : memory.contact_ids) touched[at(model_.piece_of_node[at(node_of_id(id))])] = 1;
  for (std::size_t o = 0; o < model_.pieces.size(); ++o)
    if (!touched[o])
      for (const Index i : model_.pieces[o].nodes) node(expected, i) += in.h * in.gravity;
  restore_fixed(in, expected);
  if (!model_.contact.empty()) append(detect(model_.contact, x, expected, in.h, in.t), laws_);
  if (bodies_) {
    expected_ = expected;
    look_for_pairs(memory, expected);
  }
  std::sort(laws_.begin(), laws_.end(), [](const Law& a, const Law& b) { return a.row.id < b.row.id; });
  for (Law& law : laws_) {
    begin_friction(law, v);
    law.active = law.row.gap + in.h * law.row.n.dot(relative(law.row, expected)) < tolerance_;
  }
}

void RowContact::leave_alone(const std::vector<std::uint8_t>& objects) {
  if (!bodies_) return;
  std::vector<Index> nodes;
  for (std::size_t o = 0; o < objects.size(); ++o)
    if (objects[o]) nodes.push_back(model_.pieces[o].nodes.front());
  bodies_->leave_alone(nodes);
}

std::vector<std::uint8_t> RowContact::objects_near_themselves() const {
  std::vector<std::uint8_t> out(model_.pieces.size(), 0);
  for (const Law& law : laws_)
    if (law.row.face[0] >= 0)
      if (const Index o = model_.piece_of_node[at(law.row.node)];
          o == model_.piece_of_node[at(law.row.face[0])])
        out[at(o)] = 1;
  return out;
}

std::vector<std::array<Index, 4>> RowContact::couplings() const {
  std::vector<std::array<Index, 4>> out;
  for (const Law& law : laws_)
    if (law.row.face[0] >= 0 && !options_.pgs)
      out.push_back({law.row.node, law.row.face[0], law.row.face[1], law.row.face[2]});
  return out;
}

std::vector<Index> RowContact::objects_with_new_contacts() const {
  std::vector<Index> out;
  for (const Law& law : laws_) {
    if (law.known || !law.active) continue;
    out.push_back(model_.piece_of_node[at(law.row.node)]);
    if (law.row.face[0] >= 0) out.push_back(model_.piece_of_node[at(law.row.face[0])]);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void RowContact::add_impulse(double h, double damping, const VecX& known, VecX& impulse) const {
  for (const Law& law : laws_) {
    if (!law.active) continue;
    Vec3 p = h * law.force(Vec3::Zero());
    // What moves without being an unknown: the obstacle, and driven nodes.
    if (known.size() > 0)
      p -= (h * h + h * damping) * (law.matrix() * relative(law.row, known));
    else if (law.row.face[0] < 0)
      p += (h * h + h * damping) * (law.matrix() * law.row.velocity);
    add_to_nodes(law.row, p, impulse);
  }
}

void RowContact::add_stiffness(double h, double damping, const VecX& x, std::span<const RigidPiece> pieces,
                               MixedSystem& system, const VecX* moved) const {
  const VecX v = moved ? VecX(*moved / h) : VecX();
  for (const Law& law : laws_) {
    const bool presses = moved ? law.row.gap + h * law.row.n.dot(relative(law.row, v)) < 0 : law.active;
    if (!presses && !(moved && law.spring > 0)) continue;
    with_nodes(law.row, [&](std::span<const Index> nodes, std::span<const double> weights) {
      system.add_spring(nodes, weights, (h * h + h * damping) * law.matrix(presses), x, pieces);
    });
  }
}

bool RowContact::change_springs(double h, double damping, const VecX& x, std::span<const RigidPiece> pieces,
                                MixedSystem& system) const {
  bool fits = true;
  for (const Law& law : revised_) {
    const double k = (law.active ? 1 : -1) * (h * h + h * damping);
    const auto change = [&](const Vec3& d, double stiffness) {
      with_nodes(law.row, [&](std::span<const Index> nodes, std::span<const double> weights) {
        fits = system.change_spring(nodes, weights, d, k * stiffness, x, pieces) && fits;
      });
    };
    change(law.row.n, law.stiffness);
    if (law.spring == 0) continue;
    change(law.row.t1, law.spring);
    change(law.row.t2, law.spring);
  }
  for (const Index i : new_pairs_) fits = fits && system.corrects(i);
  return fits;
}

bool RowContact::revise(const VecX& v1) {
  if (!possible() || revisions_ == kRevisions) return false;
  revised_.clear();
  for (Law& law : laws_) {
    const double gap = law.row.gap + h_ * law.row.n.dot(relative(law.row, v1));
    if (law.active && gap > tolerance_ && revisions_ < kFreeRevisions) {
      law.active = false;
      revised_.push_back(law);
    } else if (!law.active && gap < -tolerance_) {
      law.active = true;
      revised_.push_back(law);
    }
  }
  std::vector<Law> found, fresh;
  if (revisions_ == 0) {
    if (!model_.contact.empty()) append(detect(model_.contact, x_, v1, h_, t_), found);
    // Where nodes, and faces, have come to where they were expected, all pairs that press are known.
    if (bodies_ && 4 * h_ * (v1 - expected_).lpNorm<Eigen::Infinity>() > bodies_->margin()) {
      looked_again_ = true;
      if (bodies_->revise(x_ + h_ * v1)) append(bodies_->pairs(), found);
    }
  }
  for (Law& law : found) {
    const auto it = std::lower_bound(laws_.begin(), laws_.end(), law.row.id,
                                     [](const Law& a, std::uint64_t id) { return a.row.id < id; });
    if (it != laws_.end() && it->row.id == law.row.id) continue;
    if (law.row.gap + h_ * law.row.n.dot(relative(law.row, v1)) > -tolerance_) continue;
    begin_friction(law, v_);
    fresh.push_back(law);
    revised_.push_back(law);
    if (law.row.face[0] >= 0) new_pairs_.push_back(law.row.node);
  }
  if (revised_.empty()) return false;
  ++revisions_;
  laws_.insert(laws_.end(), fresh.begin(), fresh.end());
  std::sort(laws_.begin(), laws_.end(), [](const Law& a, const Law& b) { return a.row.id < b.row.id; });
  return true;
}

double RowContact::add_force(const VecX& d, VecX& f) const {
  double energy = 0;
  const VecX v = d / h_;
  for (const Law& law : laws_) {
    const Vec3 moved = h_ * relative(law.row, v);
    energy += law.energy(moved);
    const double depth = std::max(0.0, -(law.row.gap + law.row.n.dot(moved)));
    add_to_nodes(
        law.row,
        law.stiffness * depth * law.row.n - law.spring * (law.stretch + across(law.row.n, moved)) + law.slide,
        f);
  }
  return energy;
}

bool RowContact::solve_pgs(double h, const VecX& x, std::span<const RigidPiece> pieces,
                           const MixedSystem& system, const VecX& known, VecX& u, VecX& impulses) const {
  impulses.resize(0);
  if (laws_.empty()) return true;
  std::vector<ContactRow> rows;
  for (const Law& law : laws_) rows.push_back(law.row);
  const auto m = static_cast<Eigen::Index>(rows.size());
  const auto respond = [&](const VecX& p) {
    VecX b = system.reduce(p, x, pieces);
    for (Eigen::Index d = 0; d < b.size(); ++d)
      if (system.fixed()[static_cast<std::size_t>(d)]) b[d] = 0;
    return b;
  };
  qp::FrictionProblem problem;
  problem.W = contact_mobility(rows, model_.nodes(), [&](Eigen::Ref<MatX> B) {
    MatX U(3 * static_cast<Eigen::Index>(system.blocks()), B.cols());
    for (Eigen::Index k = 0; k < B.cols(); ++k) U.col(k) = respond(B.col(k));
    system.solve_many(U);
    for (Eigen::Index k = 0; k < B.cols(); ++k) B.col(k) = system.expand(U.col(k), x, pieces);
  });
  VecX free = system.expand(u, x, pieces);
  if (known.size() > 0) free += known;
  problem.u = relative_velocity(rows, free);
  problem.target.resize(m);
  problem.friction.resize(m);
  problem.compliance = VecX::Constant(m, options_.compliance);
  problem.tangent_compliance = VecX::Constant(m, kTangentShare * options_.compliance);
  std::vector<ContactImpulse> kept;
  for (Eigen::Index k = 0; k < m; ++k) {
    const Law& law = laws_[static_cast<std::size_t>(k)];
    problem.target[k] = qp::contact_target(law.row.gap, h, options_.baumgarte);
    problem.friction[k] = law.row.friction;
    kept.push_back({law.row.id, law.kept});
  }
  impulses = warm_start(rows, kept);
  qp::FrictionPgsOptions pgs;
  pgs.max_sweeps = options_.sweeps;
  pgs.tolerance = 1e-6;
  const bool converged = qp::solve_friction_pgs(problem, impulses, pgs).converged;
  VecX p = VecX::Zero(3 * static_cast<Eigen::Index>(model_.nodes()));
  add_impulses(rows, impulses, p);
  VecX change = respond(p);
  system.solve(change);
  u += change;
  return converged;
}

Vec3 RowContact::predict_row(const Law& law, double h, double damping, const VecX& v, double a) const {
  const Vec3 u = relative(law.row, v);
  const Vec3& n = law.row.n;
  const double un = n.dot(u);
  if (options_.pgs) {
    if (law.known) return law.kept;
    const double target = qp::contact_target(law.row.gap, h, options_.baumgarte);
    return std::max(0.0, target - un) / (a + options_.compliance) * n;
  }
  const double now = std::max(0.0, -law.row.gap), then = std::max(0.0, -(law.row.gap + h * un));
  if (now == 0 && then == 0) return Vec3::Zero();
  const double k = h * h + h * damping;
  const Vec3 normal = h * law.stiffness * (now + (then - now) / (1 + k * law.stiffness * a)) * n;
  const Vec3 tangential = h * (law.slide - law.spring * law.stretch) -
                          h * h * law.spring / (1 + k * law.spring * a) * across(n, u);
  return normal + tangential;
}

void RowContact::finish(double h, const VecX& v1, const VecX& impulses, RigidifyMemory& memory,
                        StepReport& report) const {
  memory.contact_ids.clear();
  memory.contact_memory.clear();
  if (!possible()) return;
  double deepest = 0;
  Index bodies = 0;
  for (std::size_t c = 0; c < laws_.size(); ++c) {
    const Law& law = laws_[c];
    const ContactRow& row = law.row;
    const Vec3 moved = h * relative(row, v1);
    const double depth = -(row.gap + row.n.dot(moved));
    Vec3 keep = Vec3::Zero();
    if (options_.pgs) {
      const auto k = 3 * static_cast<Eigen::Index>(c);
      keep = impulses[k] * row.n + impulses[k + 1] * row.t1 + impulses[k + 2] * row.t2;
      if (impulses[k] == 0) continue;
    } else {
      if (!(depth > 0)) continue;
      keep = law.kept_stretch(model_.scene->contact.alpha, moved);
    }
    memory.contact_ids.push_back(static_cast<std::int64_t>(row.id));
    memory.contact_memory.insert(memory.contact_memory.end(), keep.data(), keep.data() + 3);
    ++report.contacts;
    bodies += row.face[0] >= 0;
    deepest = std::max(deepest, depth);
  }
  report.extra["contact_depth"] = deepest;  // [m]
  if (bodies_) {
    report.extra["body_contacts"] = static_cast<double>(bodies);
    if (looked_again_ && !bodies_->tunnelled().empty())
      report.warnings.push_back("a node went through a body: a smaller time step or a finer mesh helps");
  }
  if (!settled()) ++report.fallbacks["contacts_unsettled"];
}

std::vector<ContactForce> RowContact::forces(double damping, const VecX& v1, const VecX& impulses) const {
  std::vector<ContactForce> out;
  for (std::size_t c = 0; c < laws_.size(); ++c) {
    const Law& law = laws_[c];
    const ContactRow& row = law.row;
    const Vec3 u = relative(row, v1);
    Vec3 force = Vec3::Zero();
    if (options_.pgs && impulses.size() > 0) {
      const auto k = 3 * static_cast<Eigen::Index>(c);
      force = (impulses[k] * row.n + impulses[k + 1] * row.t1 + impulses[k + 2] * row.t2) / h_;
    } else if (options_.newton) {  // as in add_force()
      const double gap = row.gap + h_ * row.n.dot(u);
      force = law.force(h_ * u);
      if (gap > 0) force += law.stiffness * gap * row.n;
    } else if (!options_.pgs && law.active) {
      force = law.force(h_ * u) - damping * (law.matrix() * u);
    }
    if (force.isZero(0)) continue;
    const bool obstacle = row.face[0] < 0;
    out.push_back({row.node, obstacle ? obstacle_of_id(row.id) : -1, force});
    for (std::size_t k = 0; !obstacle && k < 3; ++k) out.push_back({row.face[k], -1, -row.weight[k] * force});
  }
  return out;
}

}  // namespace limber::rigidify
