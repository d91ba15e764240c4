// Islands of the mixed system: objects that are coupled, one way or another, are one matrix.
#include <limber/methods/rigidify/mixed_system.hpp>

#include <limber/core/parallel.hpp>
#include <limber/methods/common/system.hpp>

#include <algorithm>
#include <numeric>

namespace limber::rigidify {
namespace {

// Pᵀ C and C P for P = -[r]x.
Mat3 turn_rows(const Vec3& r, const Mat3& C) {
  Mat3 out;
  for (int k = 0; k < 3; ++k) out.col(k) = cross(r, C.col(k));
  return out;
}
Mat3 turn_columns(const Mat3& C, const Vec3& r) {
  Mat3 out;
  for (int k = 0; k < 3; ++k) out.row(k) = cross(r, C.row(k).transpose()).transpose();
  return out;
}

}  // namespace

// Objects that are coupled, one way or another, are one island.
void MixedSystem::make_islands() {
  stale_ = false;
  const std::vector<std::shared_ptr<Island>> before = std::move(islands_);
  islands_.clear();
  std::fill(island_of_.begin(), island_of_.end(), 0);
  std::fill(offset_.begin(), offset_.end(), 0);
  if (plain()) {
    mesh_island_->changed = mesh_island_->anew = true;
    islands_.push_back(mesh_island_);
    return;
  }
  const std::size_t count = whole_ ? 1 : objects_.size();
  std::vector<std::size_t> root(count);
  std::iota(root.begin(), root.end(), 0);
  const auto root_of = [&](std::size_t o) {
    while (root[o] != o) o = root[o] = root[root[o]];
    return o;
  };
  const auto object_of = [&](Index i) { return whole_ ? 0 : at(model_.piece_of_node[at(i)]); };
  for (const auto& nodes : couplings_)
    for (std::size_t k = 1; k < 4; ++k) {
      const std::size_t a = root_of(object_of(nodes[0])), b = root_of(object_of(nodes[k]));
      root[std::max(a, b)] = std::min(a, b);
    }
  std::vector<Index> number(count, -1);
  for (std::size_t o = 0; o < count; ++o) {
    const std::size_t r = root_of(o);
    if (r == o) {
      number[o] = static_cast<Index>(islands_.size());
      islands_.push_back(std::make_shared<Island>(model_));
    }
    Island& island = *islands_[at(number[r])];
    island.objects.push_back(static_cast<Index>(o));
    island.versions.push_back(whole_ ? 0 : objects_[o].version);
    island.start.push_back(island.blocks);
    if (!whole_) {
      island_of_[o] = number[r];
      offset_[o] = island.blocks - objects_[o].begin;
    }
    island.blocks += whole_ ? blocks_ : objects_[o].end - objects_[o].begin;
  }
  for (const auto& nodes : couplings_)
    islands_[at(number[root_of(object_of(nodes[0]))])]->couplings.push_back(nodes);
  for (std::shared_ptr<Island>& island : islands_) {
    const auto known = std::find_if(before.begin(), before.end(), [&](const std::shared_ptr<Island>& b) {
      return b->objects == island->objects && b->versions == island->versions &&
             b->couplings == island->couplings;
    });
    if (known != before.end()) {
      island = *known;
      continue;
    }
    Object& first = objects_[at(island->objects[0])];
    island->bare = !whole_ && island->objects.size() == 1 && island->couplings.empty() &&
                   first.held.empty() && first.plan.nodes.size() == first.order.size();
    if (!island->bare) {
      make_pattern(*island);
      analyze(*island);
      continue;
    }
    if (!first.elastic) {
      island->pattern = fem::pattern(*first.plan.elements);
      analyze(*island);
      first.elastic = island;
    }
    first.elastic->versions = island->versions;
    first.elastic->start = island->start;
    first.elastic->changed = first.elastic->anew = true;
    first.elastic->formed.clear();
    island = first.elastic;
  }
}

// Where every block of K goes, and with it the pattern of A: column by column.
void MixedSystem::make_pattern(Island& island) {
  const auto visit_terms = [&](Index i, auto&& visit) {
    if (node_block_[at(i)] < 0) return;
    const Index b = node_block_[at(i)] + offset_[at(model_.piece_of_node[at(i)])];
    visit(b, false);
    if (rigid(i)) visit(b + 1, true);
  };
  // Two passes: how many entries a column has, and which.
  const auto visit_entries = [&](auto&& visit) {
    for (std::size_t source = 0; source < island.objects.size(); ++source) {
      const fem::Plan& plan = objects_[at(island.objects[source])].plan;
      if (!whole_ && !plan.elements) continue;
      const BlockPattern& K = whole_ ? *model_.pattern : *fem::pattern(*plan.elements);
      for (Index l = 0; l < K.n; ++l) {
        const Index j = whole_ ? l : plan.nodes[at(l)];
        for (Index b = K.col_begin[at(l)]; b < K.col_begin[at(l) + 1]; ++b) {
          const Index i = whole_ ? K.row[at(b)] : plan.nodes[at(K.row[at(b)])];
          visit_terms(i, [&](Index s, bool turns_i) {
            visit_terms(j, [&](Index t, bool turns_j) {
              if (i == j && s < t) return;  // the transpose of another one
              visit(std::min(s, t), Entry{b, std::max(s, t), i, j, static_cast<Index>(source), turns_i,
                                          turns_j, s < t, i != j && s == t});
            });
          });
        }
      }
    }
  };
  const Index blocks = island.blocks;
  island.entry_begin.assign(at(blocks) + 1, 0);
  visit_entries([&](Index column, const Entry&) { ++island.entry_begin[at(column) + 1]; });
  std::partial_sum(island.entry_begin.begin(), island.entry_begin.end(), island.entry_begin.begin());
  island.entries.resize(at(island.entry_begin.back()));
  std::vector<Index> next(island.entry_begin.begin(), island.entry_begin.end() - 1);
  visit_entries([&](Index column, const Entry& e) { island.entries[at(next[at(column)]++)] = e; });
  // What contacts need besides, and the two blocks of a piece: (column, row).
  std::vector<std::pair<Index, Index>> further;
  for (const auto& nodes : island.couplings)
    for (const Index i : nodes)
      for (const Index j : nodes)
        visit_terms(i, [&](Index s, bool) {
          visit_terms(j, [&](Index t, bool) {
            if (s > t) further.emplace_back(t, s);
          });
        });
  // The second block of a piece has the place of its first.
  const auto pairs_of_pieces = [&](Index begin, Index start, Index count) {
    for (Index b = 1; !whole_ && b < count; ++b)
      if (place_[at(begin + b)] == place_[at(begin + b - 1)]) further.emplace_back(start + b - 1, start + b);
  };
  for_stretches(island, pairs_of_pieces);
  std::sort(further.begin(), further.end());
  std::vector<Index> col_begin{0}, row, seen(at(blocks), -1), place(at(blocks), -1);
  auto more = further.begin();
  for (Index c = 0; c < blocks; ++c) {
    const std::size_t first = row.size();
    row.push_back(c);
    seen[at(c)] = c;
    const auto add = [&](Index r) {
      if (seen[at(r)] == c) return;
      seen[at(r)] = c;
      row.push_back(r);
    };
    for (Index k = island.entry_begin[at(c)]; k < island.entry_begin[at(c) + 1]; ++k)
      add(island.entries[at(k)].to);
    for (; more != further.end() && more->first == c; ++more) add(more->second);
    std::sort(row.begin() + static_cast<std::ptrdiff_t>(first) + 1, row.end());
    for (std::size_t k = first; k < row.size(); ++k) place[at(row[k])] = static_cast<Index>(k);
    for (Index k = island.entry_begin[at(c)]; k < island.entry_begin[at(c) + 1]; ++k)
      island.entries[at(k)].to = place[at(island.entries[at(k)].to)];
    col_begin.push_back(static_cast<Index>(row.size()));
  }
  island.pattern =
      std::make_shared<const BlockPattern>(make_block_pattern(std::move(col_begin), std::move(row)));
}

void MixedSystem::analyze(Island& island) {
  island.eliminator.emplace(*island.pattern);
  island.A = BlockMatrix(island.pattern);
  if (island.blocks == 0) return;
  std::vector<Index> order = order_;
  if (!whole_) {
    order.resize(at(island.blocks));
    std::iota(order.begin(), order.end(), 0);
    std::vector<Index> at_place(order.size());
    for_stretches(island, [&](Index begin, Index start, Index count) {
      for (Index b = 0; b < count; ++b) at_place[at(start + b)] = place_[at(begin + b)];
    });
    std::stable_sort(order.begin(), order.end(),
                     [&](Index a, Index b) { return at_place[at(a)] < at_place[at(b)]; });
  }
  island.solver.analyze_in_order(*island.pattern, order);
  ++analyses_;
}

namespace {

// About what the parts of a step take on one thread [ns]: estimates, of which only ratios matter
// (docs/methods/rigidify.md has them beside measured ones).
constexpr double kElement = 180, kEntry = 1.0, kFlop = 0.05;  // assembly; solve, fronts; factorisation
constexpr double kMaskElement = 400;                          // plan, pattern and analysis

double matrix_cost(const CholeskyStats& stats) { return kEntry * stats.nnz + kFlop * stats.flops; }

}  // namespace

double MixedSystem::full_cost(std::size_t o) const {
  const Island& island = objects_.size() == 1 ? *mesh_island_ : *objects_[o].elastic;
  return matrix_cost(island.solver.stats()) + kElement * static_cast<double>(objects_[o].elements.size());
}

// Objects that share an island share its cost.
double MixedSystem::present_cost(std::size_t o) const {
  const Island& island = *islands_[at(island_of_[o])];
  const Index own = whole_ ? blocks_ : objects_[o].end - objects_[o].begin;
  const std::size_t elastic = whole_ ? objects_[o].elements.size() : objects_[o].list.size();
  const double share = island.blocks > 0 ? static_cast<double>(own) / island.blocks : 0;
  return share * matrix_cost(island.solver.stats()) + kElement * static_cast<double>(elastic);
}

double MixedSystem::mask_cost(std::size_t o) const {
  return kMaskElement * static_cast<double>(objects_[o].elements.size());
}

void MixedSystem::prepare() {
  if (stale_) make_islands();
}

void MixedSystem::touch(Index i) { island_of(i).changed = island_of(i).anew = true; }

void MixedSystem::form(double m, double k, const VecX& x, std::span<const RigidPiece> pieces, bool keep) {
  for (const std::shared_ptr<Island>& each : islands_) {
    Island& island = *each;
    if (!island.changed || corrects(island)) continue;
    if (plain()) {
      if (island.A.pattern != island.pattern) island.A = BlockMatrix(island.pattern);
      if (keep)
        island.A.values = assembled_.K.values;
      else
        island.A.values.swap(assembled_.K.values);
      scale_and_add_mass(island.A, k, m * model_.mass);
    } else if (island.bare) {
      Object& object = objects_[at(island.objects[0])];
      if (keep)
        island.A.values = object.assembled.K.values;
      else
        island.A.values.swap(object.assembled.K.values);
      scale_and_add_mass(island.A, k, m * object.plan.gather(model_.mass));
    } else if (!island.formed.empty()) {
      island.A.values = island.formed;
    } else {
      form_island(island, m, k, x, pieces);
      if (keep) island.formed = island.A.values;
    }
  }
}

void MixedSystem::form_island(Island& island, double m, double k, const VecX& x,
                              std::span<const RigidPiece> pieces) {
  BlockMatrix& A = island.A;
  std::fill(A.values.begin(), A.values.end(), 0.0);
  std::vector<const BlockMatrix*> K;
  for (const Index o : island.objects) K.push_back(whole_ ? &assembled_.K : &objects_[at(o)].assembled.K);
  parallel_for(island.blocks, 128, [&](std::ptrdiff_t c) {
    for (Index n = island.entry_begin[static_cast<std::size_t>(c)];
         n < island.entry_begin[static_cast<std::size_t>(c) + 1]; ++n) {
      const Entry& e = island.entries[at(n)];
      Mat3 C = K[at(e.source)]->block(e.block);
      if (e.turns_i) C = turn_rows(arm(e.i, x, pieces), C);
      if (e.turns_j) C = turn_columns(C, arm(e.j, x, pieces));
      if (e.twice)
        A.block(e.to) += k * (C + C.transpose());
      else if (e.transposed)
        A.block(e.to) += k * C.transpose();
      else
        A.block(e.to) += k * C;
    }
  });
  const auto add_node = [&](Index i) {
    const Index b = node_block_[at(i)] + offset_[at(model_.piece_of_node[at(i)])];
    for (int a = 0; a < 3; ++a)
      A.block(island.pattern->col_begin[at(b)])(a, a) +=
          m * model_.mass[3 * static_cast<Eigen::Index>(i) + a];
  };
  if (whole_) {
    for (Index i = 0; i < model_.nodes(); ++i) add_node(i);
    return;
  }
  for (const Index o : island.objects)
    for (const Index i : objects_[at(o)].order) {
      const std::int32_t j = node_piece_[at(i)];
      if (j < 0) {
        add_node(i);
      } else if (const Index g = piece_block_[at(j)]; g >= 0 && place_[at(g)] == position_[at(i)]) {
        const Index b = g + offset_[at(o)];
        A.block(island.pattern->col_begin[at(b)]) += m * pieces[at(j)].mass * Mat3::Identity();
        A.block(island.pattern->col_begin[at(b) + 1]) += m * pieces[at(j)].I;
      }
    }
}

void MixedSystem::add_spring(std::span<const Index> nodes, std::span<const double> weights, const Mat3& S,
                             const VecX& x, std::span<const RigidPiece> pieces) {
  Island& island = island_of(nodes[0]);
  if (!island.changed || corrects(island)) return;
  // What each block moves of the contact.
  std::array<Index, 8> block{};
  std::array<Mat3, 8> P;
  std::size_t count = 0;
  const auto add = [&](Index b, const Mat3& C) {
    for (std::size_t k = 0; k < count; ++k)
      if (block[k] == b) {
        P[k] += C;
        return;
      }
    block[count] = b;
    P[count++] = C;
  };
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (node_block_[at(nodes[k])] < 0) continue;
    const Index b = node_block_[at(nodes[k])] + offset_[at(model_.piece_of_node[at(nodes[k])])];
    add(b, weights[k] * Mat3::Identity());
    if (rigid(nodes[k])) add(b + 1, turn_columns(weights[k] * Mat3::Identity(), arm(nodes[k], x, pieces)));
  }
  for (std::size_t s = 0; s < count; ++s)
    for (std::size_t t = 0; t < count; ++t)
      if (block[s] >= block[t])
        island.A.block(island.pattern->find(block[s], block[t])) += P[s].transpose() * S * P[t];
}

FactorStatus MixedSystem::factor_island(Island& island, VecX* rhs) {
  if (island.blocks == 0) return {};
  if (keeps_whole_) island.all_rows = island.A;
  std::vector<std::uint8_t> fixed(3 * at(island.blocks));
  VecX velocity(3 * static_cast<Eigen::Index>(island.blocks));
  for_stretches(island, [&](Index begin, Index start, Index count) {
    std::copy_n(fixed_.begin() + 3 * begin, 3 * count, fixed.begin() + 3 * start);
    velocity.segment(3 * start, 3 * count) = fixed_velocity_.segment(3 * begin, 3 * count);
  });
  island.known.resize(0);
  if (std::find(fixed.begin(), fixed.end(), 1) != fixed.end()) {
    const double diagonal = model_.mass.mean();
    if (rhs) {
      VecX& known = island.known;
      island.eliminator->multiply_fixed(island.A, fixed, velocity, known);
      for_stretches(island, [&](Index begin, Index start, Index count) {
        for (Eigen::Index d = 0; d < 3 * static_cast<Eigen::Index>(count); ++d)
          if (fixed[static_cast<std::size_t>(3 * start + d)])
            (*rhs)[3 * begin + d] = diagonal * velocity[3 * start + d];
          else
            (*rhs)[3 * begin + d] -= known[3 * start + d];
      });
    }
    island.eliminator->eliminate(island.A, fixed, diagonal);
  }
  ++factorizations_;
  island.anew = false;
  island.changes.clear();
  FactorStatus status = island.solver.factor(island.A);
  if (!status.ok && !whole_) {
    const Index local = status.node;
    for_stretches(island, [&](Index begin, Index start, Index count) {
      if (local >= start && local < start + count) status.node = begin + local - start;
    });
  }
  return status;
}

FactorStatus MixedSystem::factor(const StepInput& in, VecX& rhs) {
  set_fixed(in);
  for (const std::shared_ptr<Island>& island : islands_) {
    if (!island->changed) continue;
    if (corrects(*island))
      hold_corrected(*island, rhs);
    else if (const FactorStatus status = factor_island(*island, &rhs); !status.ok)
      return status;
  }
  return {};
}

FactorStatus MixedSystem::factor_held() {
  for (const std::shared_ptr<Island>& island : islands_)
    if (const FactorStatus status = factor_island(*island, nullptr); !status.ok) return status;
  return {};
}

VecX MixedSystem::times_whole(const VecX& u) const {
  VecX out = VecX::Zero(u.size()), own, product;
  for (const std::shared_ptr<Island>& island : islands_) {
    if (island->blocks == 0) continue;
    own.resize(3 * static_cast<Eigen::Index>(island->blocks));
    for_stretches(*island, [&](Index begin, Index start, Index count) {
      own.segment(3 * start, 3 * count) = u.segment(3 * begin, 3 * count);
    });
    multiply(island->all_rows, own, product);
    for_stretches(*island, [&](Index begin, Index start, Index count) {
      out.segment(3 * begin, 3 * count) = product.segment(3 * start, 3 * count);
    });
  }
  return out;
}

bool MixedSystem::solve_factored(const VecX& rhs, VecX& u) {
  u.conservativeResize(rhs.size());
  VecX own;
  bool all = true;
  for (const std::shared_ptr<Island>& island : islands_) {
    if (!island->changed) continue;
    island->changed = false;
    if (island->blocks == 0) continue;
    own.resize(3 * static_cast<Eigen::Index>(island->blocks));
    for_stretches(*island, [&](Index begin, Index start, Index count) {
      own.segment(3 * start, 3 * count) = rhs.segment(3 * begin, 3 * count);
    });
    if (island->changes.empty()) {
      island->solver.solve(own);
    } else if (!solve_corrected(*island, own)) {
      island->changed = island->anew = true;
      all = false;
      continue;
    }
    for_stretches(*island, [&](Index begin, Index start, Index count) {
      u.segment(3 * begin, 3 * count) = own.segment(3 * start, 3 * count);
    });
  }
  return all;
}

void MixedSystem::solve(VecX& b) const {
  VecX own;
  for (const std::shared_ptr<Island>& island : islands_) {
    if (island->blocks == 0) continue;
    own.resize(3 * static_cast<Eigen::Index>(island->blocks));
    for_stretches(*island, [&](Index begin, Index start, Index count) {
      own.segment(3 * start, 3 * count) = b.segment(3 * begin, 3 * count);
    });
    island->solver.solve(own);
    for_stretches(*island, [&](Index begin, Index start, Index count) {
      b.segment(3 * begin, 3 * count) = own.segment(3 * start, 3 * count);
    });
  }
}

// A column that does not load an island does not move it.
void MixedSystem::solve_many(Eigen::Ref<MatX> B) const {
  for (const std::shared_ptr<Island>& island : islands_) {
    if (island->blocks == 0) continue;
    std::vector<Eigen::Index> columns;
    for (Eigen::Index c = 0; c < B.cols(); ++c) {
      bool loaded = false;
      for_stretches(*island, [&](Index begin, Index, Index count) {
        loaded = loaded || !B.col(c).segment(3 * begin, 3 * count).isZero(0);
      });
      if (loaded) columns.push_back(c);
    }
    if (columns.empty()) continue;
    MatX own(3 * static_cast<Eigen::Index>(island->blocks), static_cast<Eigen::Index>(columns.size()));
    for_stretches(*island, [&](Index begin, Index start, Index count) {
      for (std::size_t k = 0; k < columns.size(); ++k)
        own.col(static_cast<Eigen::Index>(k)).segment(3 * start, 3 * count) =
            B.col(columns[k]).segment(3 * begin, 3 * count);
    });
    island->solver.solve_many(own);
    for_stretches(*island, [&](Index begin, Index start, Index count) {
      for (std::size_t k = 0; k < columns.size(); ++k)
        B.col(columns[k]).segment(3 * begin, 3 * count) =
            own.col(static_cast<Eigen::Index>(k)).segment(3 * start, 3 * count);
    });
  }
}

}  // namespace limber::rigidify
