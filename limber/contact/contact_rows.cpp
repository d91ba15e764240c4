#include <limber/contact/contact_rows.hpp>

#include <algorithm>

namespace limber {
namespace {

constexpr std::uint64_t kBodyBit = std::uint64_t{1} << 31;  // Index has 31 bits that are not the sign
constexpr Eigen::Index kMobilityPanel = 24;                 // right-hand sides at a time

Vec3 slip_velocity(const ContactRow& row, const VecX& v) {
  Vec3 u = node(v, row.node);
  if (row.face[0] < 0) return u - row.velocity;
  for (std::size_t k = 0; k < 3; ++k) u -= row.weight[k] * node(v, row.face[k]);
  return u;
}

template <class F>
void add_impulse(const ContactRow& row, const Vec3& p, F&& f) {
  node(f, row.node) += p;
  if (row.face[0] < 0) return;
  for (std::size_t k = 0; k < 3; ++k) node(f, row.face[k]) -= row.weight[k] * p;
}

const Vec3& row_direction(const ContactRow& row, Eigen::Index k) {
  return k == 0 ? row.n : k == 1 ? row.t1 : row.t2;
}

Vec3 impulse_vector(const ContactRow& row, const VecX& p, std::size_t c) {
  const auto at3 = 3 * static_cast<Eigen::Index>(c);
  return p[at3] * row.n + p[at3 + 1] * row.t1 + p[at3 + 2] * row.t2;
}

}  // namespace

std::uint64_t obstacle_contact_id(Index node, Index obstacle) {
  return static_cast<std::uint64_t>(node) << 32 | static_cast<std::uint64_t>(obstacle);
}

std::uint64_t body_contact_id(Index node, Index piece) { return obstacle_contact_id(node, piece) | kBodyBit; }

void set_tangents(ContactRow& row) {
  int axis = 0;
  row.n.cwiseAbs().minCoeff(&axis);
  const Vec3 e = Vec3::Unit(axis);
  row.t1 = (e - row.n[axis] * row.n).normalized();
  const Vec3 &n = row.n, &t = row.t1;
  row.t2 = {n[1] * t[2] - n[2] * t[1], n[2] * t[0] - n[0] * t[2], n[0] * t[1] - n[1] * t[0]};
}

std::vector<ContactRow> contact_rows(std::span<const Contact> contacts, double h) {
  std::vector<ContactRow> rows;
  rows.reserve(contacts.size());
  for (const Contact& c : contacts) {
    ContactRow row;
    row.node = c.node;
    row.n = c.n;
    // A contact's depth is that below the surface at the end of the step, for a node at its start.
    row.gap = h * c.n.dot(c.velocity) - c.depth;
    row.friction = c.friction;
    row.velocity = c.velocity;
    row.id = obstacle_contact_id(c.node, c.obstacle);
    set_tangents(row);
    rows.push_back(row);
  }
  return rows;
}

VecX relative_velocity(std::span<const ContactRow> rows, const VecX& v) {
  VecX out(3 * static_cast<Eigen::Index>(rows.size()));
  for (std::size_t c = 0; c < rows.size(); ++c) {
    const Vec3 u = slip_velocity(rows[c], v);
    for (Eigen::Index k = 0; k < 3; ++k)
      out[3 * static_cast<Eigen::Index>(c) + k] = row_direction(rows[c], k).dot(u);
  }
  return out;
}

void add_impulses(std::span<const ContactRow> rows, const VecX& p, VecX& f) {
  for (std::size_t c = 0; c < rows.size(); ++c) add_impulse(rows[c], impulse_vector(rows[c], p, c), f);
}

MatX contact_mobility(std::span<const ContactRow> rows, Index nodes,
                      const std::function<void(Eigen::Ref<MatX>)>& solve) {
  const auto m = 3 * static_cast<Eigen::Index>(rows.size());
  MatX W(m, m);
  std::vector<ContactRow> still(rows.begin(), rows.end());
  for (ContactRow& row : still) row.velocity.setZero();
  for (Eigen::Index begin = 0; begin < m; begin += kMobilityPanel) {
    const Eigen::Index count = std::min(kMobilityPanel, m - begin);
    MatX B = MatX::Zero(3 * static_cast<Eigen::Index>(nodes), count);
    for (Eigen::Index c = 0; c < count; ++c) {
      const ContactRow& row = rows[static_cast<std::size_t>((begin + c) / 3)];
      auto column = B.col(c);
      add_impulse(row, row_direction(row, (begin + c) % 3), column);
    }
    solve(B);
    for (Eigen::Index c = 0; c < count; ++c) W.col(begin + c) = relative_velocity(still, B.col(c));
  }
  // Rounding leaves it a little unsymmetric, which solvers of its quadratic program need not know.
  return 0.5 * (W + W.transpose());
}

std::vector<ContactImpulse> keep_impulses(std::span<const ContactRow> rows, const VecX& p) {
  std::vector<ContactImpulse> kept;
  kept.reserve(rows.size());
  for (std::size_t c = 0; c < rows.size(); ++c) kept.push_back({rows[c].id, impulse_vector(rows[c], p, c)});
  std::sort(kept.begin(), kept.end(),
            [](const ContactImpulse& a, const ContactImpulse& b) { return a.id < b.id; });
  return kept;
}

VecX warm_start(std::span<const ContactRow> rows, std::span<const ContactImpulse> kept) {
  VecX p = VecX::Zero(3 * static_cast<Eigen::Index>(rows.size()));
  for (std::size_t c = 0; c < rows.size(); ++c) {
    const auto it = std::lower_bound(kept.begin(), kept.end(), rows[c].id,
                                     [](const ContactImpulse& k, std::uint64_t id) { return k.id < id; });
    if (it == kept.end() || it->id != rows[c].id) continue;
    for (Eigen::Index k = 0; k < 3; ++k)
      p[3 * static_cast<Eigen::Index>(c) + k] = row_direction(rows[c], k).dot(it->impulse);
  }
  return p;
}

}  // namespace limber
