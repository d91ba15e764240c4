#include <limber/linalg/velocity_map.hpp>

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace limber {
namespace {

using WideRows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Mat3 minus_cross(const Vec3& r) {
  Mat3 m;
  m << 0, r.z(), -r.y(), -r.z(), 0, r.x(), r.y(), -r.x(), 0;
  return m;
}

Vec3 turning(const Vec3& omega, const Vec3& r) {
  return {omega.y() * r.z() - omega.z() * r.y(), omega.z() * r.x() - omega.x() * r.z(),
          omega.x() * r.y() - omega.y() * r.x()};
}

void check_map_size(const char* what, Eigen::Index found, Eigen::Index expected) {
  if (found != expected)
    throw Error(ErrorKind::kUsage,
                fmt::format("velocity map: {} has {} entries, expected {}", what, found, expected));
}

// Calls visit(i, block of A at (i, j)) for every node i that A couples with j, in ascending order.
template <class Visit>
void visit_column(const BlockMatrix& A, Index j, Visit&& visit) {
  const BlockPattern& p = *A.pattern;
  for (Index k = p.rows.begin[j]; k < p.rows.begin[j + 1]; ++k)
    visit(p.rows.col[k], Mat3(A.block(p.rows.block[k]).transpose()));
  for (Index b = p.col_begin[j]; b < p.col_begin[j + 1]; ++b) visit(p.row[b], Mat3(A.block(b)));
}

}  // namespace

VelocityMap::VelocityMap(Index nodes)
    : bias(VecX::Zero(3 * static_cast<Eigen::Index>(nodes))), terms_(at(nodes)) {}

VelocityMap VelocityMap::identity(Index nodes) {
  VelocityMap G(nodes);
  for (Index i = 0; i < nodes; ++i) G.add_node(i);
  return G;
}

VelocityMap VelocityMap::from_columns(MatX columns, VecX bias) {
  VelocityMap G(static_cast<Index>(columns.rows() / 3));
  check_map_size("b", bias.size(), columns.rows());
  std::vector<Index> all(at(G.nodes()));
  std::iota(all.begin(), all.end(), 0);
  G.add_columns(all, std::move(columns));
  G.bias = std::move(bias);
  return G;
}

void VelocityMap::claim(Index node) const {
  if (node < 0 || node >= nodes())
    throw Error(ErrorKind::kUsage, fmt::format("velocity map: node {}, expected 0 to {}", node, nodes() - 1));
  if (terms_[at(node)][0].block >= 0)
    throw Error(ErrorKind::kUsage,
                fmt::format("velocity map: node {} is free or belongs to a body already", node));
}

Index VelocityMap::add_node(Index node) {
  claim(node);
  terms_[at(node)][0].block = blocks_;
  return blocks_++;
}

Index VelocityMap::add_rigid_body(std::span<const Index> nodes, const VecX& x, const Vec3& center) {
  check_map_size("x", x.size(), bias.size());
  for (const Index i : nodes) {
    claim(i);
    terms_[at(i)][0] = {blocks_, false, Vec3::Zero()};
    terms_[at(i)][1] = {blocks_ + 1, true, node(x, i) - center};
  }
  blocks_ += 2;
  return blocks_ - 2;
}

Index VelocityMap::add_columns(std::span<const Index> nodes, MatX D) {
  check_map_size("a column", D.rows(), 3 * static_cast<Eigen::Index>(nodes.size()));
  groups_.push_back({{nodes.begin(), nodes.end()}, std::move(D), columns_});
  columns_ += static_cast<Index>(groups_.back().D.cols());
  return groups_.back().first;
}

void VelocityMap::hold(std::span<const std::uint8_t> held) {
  check_map_size("held", static_cast<Eigen::Index>(held.size()), bias.size());
  held_.assign(held.begin(), held.end());
}

Mat3 VelocityMap::matrix(Index node, const Term& term) const {
  Mat3 P = term.turns ? minus_cross(term.r) : Mat3(Mat3::Identity());
  if (!held_.empty())
    for (int k = 0; k < 3; ++k)
      if (held_[3 * at(node) + static_cast<std::size_t>(k)]) P.row(k).setZero();
  return P;
}

void VelocityMap::multiply(const VecX& u, VecX& v) const {
  check_map_size("u", u.size(), unknowns());
  v.setZero(bias.size());
  parallel_for(nodes(), 512, [&](std::ptrdiff_t i) {
    auto vi = node(v, static_cast<Index>(i));
    for (const Term& t : terms_[static_cast<std::size_t>(i)]) {
      if (t.block < 0) continue;
      if (t.turns)
        vi += turning(node(u, t.block), t.r);
      else
        vi += node(u, t.block);
    }
  });
  for (const Group& g : groups_) {
    const VecX part = g.D * u.segment(3 * static_cast<Eigen::Index>(blocks_) + g.first, g.D.cols());
    for (std::size_t k = 0; k < g.nodes.size(); ++k) node(v, g.nodes[k]) += node(part, static_cast<Index>(k));
  }
  for (std::size_t d = 0; d < held_.size(); ++d)
    if (held_[d]) v[static_cast<Eigen::Index>(d)] = 0;
}

void VelocityMap::multiply_transpose(const VecX& f, VecX& g) const {
  check_map_size("f", f.size(), bias.size());
  VecX own;
  if (!held_.empty()) {
    own = f;
    for (std::size_t d = 0; d < held_.size(); ++d)
      if (held_[d]) own[static_cast<Eigen::Index>(d)] = 0;
  }
  const VecX& load = held_.empty() ? f : own;
  g.setZero(unknowns());
  for (Index i = 0; i < nodes(); ++i)
    for (const Term& t : terms_[at(i)]) {
      if (t.block < 0) continue;
      if (t.turns)
        node(g, t.block) += turning(t.r, node(load, i));  // the moment about c
      else
        node(g, t.block) += node(load, i);
    }
  for (const Group& group : groups_) {
    VecX part(group.D.rows());
    for (std::size_t k = 0; k < group.nodes.size(); ++k)
      node(part, static_cast<Index>(k)) = node(load, group.nodes[k]);
    g.segment(3 * static_cast<Eigen::Index>(blocks_) + group.first, group.D.cols()).noalias() =
        group.D.transpose() * part;
  }
}

VecX VelocityMap::velocity(const VecX& u) const {
  VecX v;
  multiply(u, v);
  return v + bias;
}

MatX VelocityMap::dense() const {
  MatX G(bias.size(), unknowns());
  VecX v;
  for (Eigen::Index k = 0; k < G.cols(); ++k) {
    multiply(VecX::Unit(G.cols(), k), v);
    G.col(k) = v;
  }
  return G;
}

struct VelocityMapProducts {
  using Term = VelocityMap::Term;

  // The nodes that each block moves.
  static std::vector<std::vector<std::pair<Index, const Term*>>> users(const VelocityMap& G) {
    std::vector<std::vector<std::pair<Index, const Term*>>> out(at(G.blocks()));
    for (Index i = 0; i < G.nodes(); ++i)
      for (const Term& t : G.terms_[at(i)])
        if (t.block >= 0) out[at(t.block)].push_back({i, &t});
    return out;
  }

  static BlockPattern pattern(const VelocityMap& G, const BlockPattern& p) {
    const auto use = users(G);
    std::vector<Index> col_begin{0}, row, seen(at(G.blocks()), -1);
    for (Index l = 0; l < G.blocks(); ++l) {
      const auto first = static_cast<std::ptrdiff_t>(row.size());
      row.push_back(l);
      seen[at(l)] = l;
      const auto add = [&](Index i) {
        for (const Term& t : G.terms_[at(i)])
          if (t.block > l && seen[at(t.block)] != l) {
            seen[at(t.block)] = l;
            row.push_back(t.block);
          }
      };
      for (const auto& [j, term] : use[at(l)]) {
        for (Index k = p.rows.begin[at(j)]; k < p.rows.begin[at(j) + 1]; ++k) add(p.rows.col[at(k)]);
        for (Index b = p.col_begin[at(j)]; b < p.col_begin[at(j) + 1]; ++b) add(p.row[at(b)]);
      }
      std::sort(row.begin() + first + 1, row.end());
      col_begin.push_back(static_cast<Index>(row.size()));
    }
    return make_block_pattern(std::move(col_begin), std::move(row));
  }

  // Each column of blocks gathers by itself, over the nodes that its block moves and their neighbours.
  static void blocks(const VelocityMap& G, const BlockMatrix& A, BlockMatrix& K) {
    const auto use = users(G);
    std::fill(K.values.begin(), K.values.end(), 0.0);
    parallel_for(G.blocks(), 64, [&](std::ptrdiff_t column) {
      const Index l = static_cast<Index>(column);
      for (const auto& [j, term] : use[static_cast<std::size_t>(column)]) {
        const Mat3 Q = G.matrix(j, *term);
        visit_column(A, j, [&](Index i, const Mat3& Aij) {
          for (const Term& t : G.terms_[at(i)])
            if (t.block >= l)
              K.block(K.pattern->find(t.block, l)).noalias() += G.matrix(i, t).transpose() * (Aij * Q);
        });
      }
    });
  }

  // The columns of G, all nodes, held rows zero.
  static WideRows columns(const VelocityMap& G) {
    WideRows D = WideRows::Zero(G.bias.size(), G.columns());
    for (const VelocityMap::Group& g : G.groups_)
      for (std::size_t k = 0; k < g.nodes.size(); ++k)
        D.block(3 * static_cast<Eigen::Index>(g.nodes[k]), g.first, 3, g.D.cols()) +=
            g.D.middleRows<3>(3 * static_cast<Eigen::Index>(k));
    for (std::size_t d = 0; d < G.held_.size(); ++d)
      if (G.held_[d]) D.row(static_cast<Eigen::Index>(d)).setZero();
    return D;
  }

  // C += (blocks of G)ᵀ Y, D += (columns of G)ᵀ Y, for Y = A times the columns.
  static void border(const VelocityMap& G, const WideRows& columns, const WideRows& Y, ReducedMatrix& out) {
    for (Index i = 0; i < G.nodes(); ++i)
      for (const Term& t : G.terms_[at(i)])
        if (t.block >= 0)
          out.C.middleRows<3>(3 * static_cast<Eigen::Index>(t.block)).noalias() +=
              G.matrix(i, t).transpose() * Y.middleRows<3>(3 * static_cast<Eigen::Index>(i));
    out.D.noalias() += columns.transpose() * Y;
  }

  static void mass(const VelocityMap& G, const VecX& mass, ReducedMatrix& out) {
    for (Index i = 0; i < G.nodes(); ++i)
      for (const Term& s : G.terms_[at(i)])
        for (const Term& t : G.terms_[at(i)])
          if (s.block >= t.block && t.block >= 0)
            out.K.block(out.K.pattern->find(s.block, t.block)).noalias() +=
                G.matrix(i, s).transpose() * node(mass, i).asDiagonal() * G.matrix(i, t);
    if (G.columns() == 0) return;
    const WideRows D = columns(G);
    border(G, D, mass.asDiagonal() * D, out);
  }
};

BlockPattern reduced_pattern(const VelocityMap& G, const BlockPattern& pattern) {
  check_map_size("the pattern", pattern.n, G.nodes());
  return VelocityMapProducts::pattern(G, pattern);
}

void congruence(const VelocityMap& G, const BlockMatrix& A, ReducedMatrix& out) {
  if (!out.K.pattern || out.K.pattern->n != G.blocks())
    out.K = BlockMatrix(std::make_shared<const BlockPattern>(reduced_pattern(G, *A.pattern)));
  check_map_size("A", A.pattern->n, G.nodes());
  VelocityMapProducts::blocks(G, A, out.K);
  out.C.setZero(3 * static_cast<Eigen::Index>(G.blocks()), G.columns());
  out.D.setZero(G.columns(), G.columns());
  if (G.columns() == 0) return;
  const WideRows D = VelocityMapProducts::columns(G);
  WideRows Y(D.rows(), D.cols());
  parallel_for(G.nodes(), 64, [&](std::ptrdiff_t i) {
    auto row = Y.middleRows<3>(3 * i);
    row.setZero();
    visit_column(A, static_cast<Index>(i), [&](Index j, const Mat3& Aji) {
      row.noalias() += Aji.transpose() * D.middleRows<3>(3 * static_cast<Eigen::Index>(j));
    });
  });
  VelocityMapProducts::border(G, D, Y, out);
}

void add_mass(const VelocityMap& G, const VecX& mass, ReducedMatrix& out) {
  check_map_size("the mass", mass.size(), G.bias.size());
  VelocityMapProducts::mass(G, mass, out);
}

MatX dense(const ReducedMatrix& A) {
  const Eigen::Index n = A.C.rows(), m = A.D.rows();
  MatX out = MatX::Zero(n + m, n + m);
  for (Index j = 0; j < A.K.pattern->n; ++j)
    for (Index b = A.K.pattern->col_begin[at(j)]; b < A.K.pattern->col_begin[at(j) + 1]; ++b) {
      const Eigen::Index r = 3 * static_cast<Eigen::Index>(A.K.pattern->row[at(b)]),
                         c = 3 * static_cast<Eigen::Index>(j);
      out.block<3, 3>(r, c) = A.K.block(b);
      if (r != c) out.block<3, 3>(c, r) = A.K.block(b).transpose();
    }
  out.topRightCorner(n, m) = A.C;
  out.bottomLeftCorner(m, n) = A.C.transpose();
  out.bottomRightCorner(m, m) = A.D;
  return out;
}

}  // namespace limber
