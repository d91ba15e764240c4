// Parts of `rigidify`: pieces (Algorithm 2), the mixed system, the strain rate.
#include <limber/core/motion.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/linalg/velocity_map.hpp>
#include <limber/methods/rigidify/mixed_system.hpp>
#include <limber/methods/rigidify/pieces.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <set>

namespace limber::rigidify {
namespace {

Model box_model(const std::string& shape, const Vec3& size, const std::array<Index, 3>& nodes) {
  auto scene = std::make_shared<Scene>();
  BodySpec body;
  body.name = "body";
  body.generate = GenerateSpec{};
  body.generate->shape = shape;
  body.generate->size = size;
  body.generate->nodes = nodes;
  scene->bodies.push_back(body);
  return build_model(scene);
}

std::vector<std::uint8_t> none(Index n) { return std::vector<std::uint8_t>(at(n), 0); }

// Whatever is a candidate: no node is in two pieces, pieces are connected over faces, and an element all of
// whose nodes are in a piece belongs to it.
TEST(RigidPieces, ShareNoNodesAndAreConnected) {
  for (const std::string shape : {"bar", "rectangle"}) {
    const Model model = shape == "bar" ? box_model("bar", {1, 1, 2}, {6, 6, 11})
                                       : box_model("rectangle", {2, 1, 0}, {21, 11, 1});
    const Connectivity mesh(model);
    std::mt19937 random(7);
    for (const double share : {0.3, 0.6, 0.9, 1.0}) {
      std::vector<std::uint8_t> candidate(mesh.nodes.size());
      for (auto& c : candidate) c = static_cast<double>(random() % 1000) < 1000 * share;
      std::vector<std::uint8_t> loose = none(model.nodes()), hold = none(model.nodes());
      for (auto& l : loose) l = random() % 97 == 0;
      if (share == 1.0) std::fill(loose.begin(), loose.end(), 0);
      const PieceAssignment a = grow_pieces(mesh, candidate, loose, hold);
      for (std::size_t e = 0; e < mesh.nodes.size(); ++e) {
        std::set<std::int32_t> around;
        for (int k = 0; k < corners(mesh.nodes[e]); ++k) {
          const std::int32_t j = a.node[at(mesh.nodes[e][static_cast<std::size_t>(k)])];
          around.insert(j);
          if (a.element[e] >= 0) {
            EXPECT_EQ(j, a.element[e]);
            EXPECT_FALSE(loose[at(mesh.nodes[e][static_cast<std::size_t>(k)])]);
          }
        }
        const bool inside = around.size() == 1 && *around.begin() >= 0;
        EXPECT_TRUE(!inside || a.element[e] == *around.begin());
        if (a.element[e] >= 0 && candidate[e]) {
          bool connected = false;
          for (const Index other : mesh.neighbour[e])
            connected |= other >= 0 && a.element[at(other)] == a.element[e];
          EXPECT_TRUE(connected);
        }
      }
      if (share == 1.0) {
        EXPECT_EQ(a.held.size(), 1u);
        EXPECT_EQ(std::count(a.element.begin(), a.element.end(), 0),
                  static_cast<std::ptrdiff_t>(mesh.nodes.size()));
      }
    }
  }
}

// Figure 2: an element that would join two pieces at one node belongs to neither of them twice. Two squares
// of a plate that meet at one node: the second may not have the elements at that node.
TEST(RigidPieces, DoNotHinge) {
  const Model model = box_model("rectangle", {2, 2, 0}, {9, 9, 1});
  const Connectivity mesh(model);
  std::vector<std::uint8_t> candidate(mesh.nodes.size(), 0);
  Index middle = -1;
  for (Index i = 0; i < model.nodes(); ++i)
    if (model.mesh.rest[at(i)].head<2>().isApprox(Vec2(1, 1))) middle = i;
  ASSERT_GE(middle, 0);
  for (std::size_t e = 0; e < mesh.nodes.size(); ++e) {
    Vec3 c = Vec3::Zero();
    for (int k = 0; k < 3; ++k) c += model.mesh.rest[at(mesh.nodes[e][static_cast<std::size_t>(k)])] / 3;
    candidate[e] = (c[0] < 1) == (c[1] < 1);
  }
  const PieceAssignment a = grow_pieces(mesh, candidate, none(model.nodes()), none(model.nodes()));
  ASSERT_EQ(a.held.size(), 2u);
  std::set<std::int32_t> at_middle;
  Index refused = 0;
  for (std::size_t e = 0; e < mesh.nodes.size(); ++e)
    for (int k = 0; k < 3; ++k)
      if (mesh.nodes[e][static_cast<std::size_t>(k)] == middle && candidate[e]) {
        at_middle.insert(a.element[e]);
        refused += a.element[e] < 0;
      }
  EXPECT_EQ(at_middle.size(), 2u);  // one of the pieces, and elastic
  EXPECT_GT(refused, 0);
}

// Pieces that hold still begin where three nodes are held, and nobody else takes held nodes.
TEST(RigidPieces, HeldNodesBelongToPiecesThatHoldStill) {
  const Model model = box_model("bar", {1, 1, 2}, {3, 3, 5});
  const Connectivity mesh(model);
  std::vector<std::uint8_t> candidate(mesh.nodes.size(), 1), hold = none(model.nodes());
  hold[0] = static_cast<std::uint8_t>(HoldKind::kStill);  // one node alone
  PieceAssignment a = grow_pieces(mesh, candidate, none(model.nodes()), hold);
  ASSERT_EQ(a.held.size(), 1u);
  EXPECT_FALSE(a.held[0]);
  EXPECT_EQ(a.node[0], -1);
  for (Index i = 0; i < model.nodes(); ++i)
    if (model.mesh.rest[at(i)][2] == 0) hold[at(i)] = static_cast<std::uint8_t>(HoldKind::kStill);
  a = grow_pieces(mesh, candidate, none(model.nodes()), hold);
  ASSERT_EQ(a.held.size(), 1u);
  EXPECT_TRUE(a.held[0]);
  EXPECT_EQ(a.node[0], 0);
}

// A deformed element that turns has no strain rate, however fast; F Fᵀ would give 2 e² ω².
TEST(StrainRate, IsZeroInRigidMotion) {
  const Model model = box_model("bar", {1, 1, 1}, {3, 3, 3});
  VecX x0(3 * model.nodes());
  for (Index i = 0; i < model.nodes(); ++i) {
    node(x0, i) = model.mesh.rest[at(i)];
    x0[3 * i] *= 1.01;
  }
  const double h = 0.01;
  const Mat3 R = rotation_of(h * Vec3(0.3, -0.4, 2));
  VecX x1(x0.size());
  for (Index i = 0; i < model.nodes(); ++i) node(x1, i) = R * node(x0, i) + Vec3(0.1, 0, -0.2);
  std::vector<double> rate;
  fem::strain_rates(*model.elements, 0.5 * (x0 + x1), (x1 - x0) / h, rate);
  for (const double r : rate) EXPECT_LT(r, 1e-20);
  // And where there is one, it is the difference of the strains.
  for (Index i = 0; i < model.nodes(); ++i) x1[3 * i] *= 1 + 0.003 * x0[3 * i + 1];
  std::vector<double> E0, E1;
  fem::green_strains(*model.elements, x0, E0);
  fem::green_strains(*model.elements, x1, E1);
  fem::strain_rates(*model.elements, 0.5 * (x0 + x1), (x1 - x0) / h, rate);
  for (std::size_t e = 0; e < rate.size(); ++e) {
    double sum = 0;
    for (std::size_t k = 0; k < 6; ++k) {
      const double d = (E1[6 * e + k] - E0[6 * e + k]) / h;
      sum += (k < 3 ? 1 : 2) * d * d;
    }
    EXPECT_NEAR(rate[e], sum, 1e-9 * (1 + sum));
  }
}

// A of the mixed system is Gᵀ (m M + k K) G with the G of VelocityMap, and it solves as that does; a contact
// spring between two pieces too. No ordering is looked for again.
TEST(MixedSystem, IsTheCongruenceWithTheVelocityMap) {
  const Model model = box_model("bar", {1, 1, 4}, {4, 4, 13});
  const Connectivity mesh(model);
  std::vector<std::uint8_t> candidate(mesh.nodes.size(), 0);
  for (std::size_t e = 0; e < mesh.nodes.size(); ++e) {
    double z = 0;
    for (const Index i : mesh.nodes[e]) z += model.mesh.rest[at(i)][2] / 4;
    candidate[e] = z < 1.1 || z > 2.7;
  }
  const PieceAssignment a = grow_pieces(mesh, candidate, none(model.nodes()), none(model.nodes()));
  ASSERT_EQ(a.held.size(), 2u);
  VecX x(3 * model.nodes()), v(3 * model.nodes());
  std::mt19937 random(3);
  std::uniform_real_distribution<double> noise(-0.02, 0.02);
  for (Index i = 0; i < model.nodes(); ++i)
    for (int k = 0; k < 3; ++k) {
      x[3 * i + k] = model.mesh.rest[at(i)][k] + noise(random);
      v[3 * i + k] = noise(random);
    }
  std::vector<RigidPiece> pieces;
  for (std::size_t j = 0; j < 2; ++j) pieces.push_back(start_piece(a.piece_nodes[j], 0, model.mass, x, v));

  MixedSystem system(model);
  system.set_pieces(a);
  const std::vector<Index> touch{a.piece_nodes[0][3], a.piece_nodes[1][1], a.piece_nodes[1][2],
                                 a.piece_nodes[1][5]};
  const std::vector<double> weights{1, -0.2, -0.3, -0.5};
  system.set_couplings({{touch[0], touch[1], touch[2], touch[3]}});
  system.assemble(x, {});
  system.prepare();
  const double m = 1.1, k = 2e-3;
  system.form(m, k, x, pieces, false);
  Mat3 S;
  S << 3, 1, 0, 1, 4, 0.5, 0, 0.5, 2;
  system.add_spring(touch, weights, 1e2 * S, x, pieces);

  // The same by the velocity map, in the order of the system's blocks.
  VelocityMap G(model.nodes());
  std::vector<Index> block_of(at(model.nodes()), -1);
  std::vector<std::pair<Index, Index>> columns;  // block of the system, block of G
  for (Index i = 0; i < model.nodes(); ++i)
    if (!system.rigid(i)) columns.push_back({system.node_block(i), G.add_node(i)});
  for (std::size_t j = 0; j < 2; ++j) {
    const Index b = G.add_rigid_body(a.piece_nodes[j], x, pieces[j].c);
    columns.push_back({system.piece_block(j), b});
    columns.push_back({system.piece_block(j) + 1, b + 1});
  }
  ASSERT_EQ(G.blocks(), system.blocks());
  fem::Assembled all;  // of the elastic elements
  const fem::Plan plan = fem::make_plan(*model.elements, system.elastic_elements());
  fem::assemble(*plan.elements, plan.gather(x), {}, all);
  MatX A = MatX::Zero(3 * model.nodes(), 3 * model.nodes());
  const BlockPattern& p = *all.K.pattern;
  for (Index j = 0; j < p.n; ++j)
    for (Index b = p.col_begin[at(j)]; b < p.col_begin[at(j) + 1]; ++b) {
      const Index r = 3 * plan.nodes[at(p.row[at(b)])], c = 3 * plan.nodes[at(j)];
      A.block<3, 3>(r, c) = k * all.K.block(b);
      A.block<3, 3>(c, r) = k * all.K.block(b).transpose();
    }
  for (Index i = 0; i < model.nodes(); ++i)
    for (int d = 0; d < 3; ++d) A(3 * i + d, 3 * i + d) += m * model.mass[3 * i + d];
  for (std::size_t s = 0; s < 4; ++s)
    for (std::size_t t = 0; t < 4; ++t)
      A.block<3, 3>(3 * touch[s], 3 * touch[t]) += 1e2 * weights[s] * weights[t] * S;
  const MatX D = G.dense(), full = D.transpose() * A * D;
  MatX expected(full.rows(), full.cols());
  for (const auto& [r, gr] : columns)
    for (const auto& [c, gc] : columns) expected.block<3, 3>(3 * r, 3 * c) = full.block<3, 3>(3 * gr, 3 * gc);
  const BlockMatrix& found = system.matrix();
  MatX dense = MatX::Zero(expected.rows(), expected.cols());
  for (Index j = 0; j < found.pattern->n; ++j)
    for (Index b = found.pattern->col_begin[at(j)]; b < found.pattern->col_begin[at(j) + 1]; ++b) {
      dense.block<3, 3>(3 * found.pattern->row[at(b)], 3 * j) = found.block(b);
      dense.block<3, 3>(3 * j, 3 * found.pattern->row[at(b)]) = found.block(b).transpose();
    }
  EXPECT_LT((dense - expected).norm(), 1e-13 * expected.norm());

  // Gᵀ and G.
  VecX g, w, own(3 * system.blocks());
  G.multiply_transpose(v, g);
  const VecX reduced = system.reduce(v, x, pieces);
  for (const auto& [b, gb] : columns) EXPECT_LT((node(reduced, b) - node(g, gb)).norm(), 1e-12);
  for (Eigen::Index d = 0; d < own.size(); ++d) own[d] = noise(random);
  VecX gu(own.size());
  for (const auto& [b, gb] : columns) node(gu, gb) = node(own, b);
  G.multiply(gu, w);
  EXPECT_LT((system.expand(own, x, pieces) - w).norm(), 1e-13);

  // The inherited order solves as any other does.
  BlockMatrix copy = found;
  Cholesky amd({"native", "amd"});
  amd.analyze(*copy.pattern);
  ASSERT_TRUE(amd.factor(copy).ok);
  VecX b1 = own, b2 = own;
  amd.solve(b1);
  StepInput in;
  in.fixed.assign(3 * at(model.nodes()), 0);
  in.fixed_velocity.setZero(3 * model.nodes());
  ASSERT_TRUE(system.factor(in, b2).ok);
  system.solve(b2);
  EXPECT_LT((b1 - b2).norm(), 1e-11 * b1.norm());
}

// Objects that touch nobody have a system each: a mask that changes costs one analysis, and a contact that
// changes one factor. Objects with a contact between them have one system, and all of it solves as one dense
// matrix does.
TEST(MixedSystem, EveryObjectIsASystemOfItsOwn) {
  auto scene = std::make_shared<Scene>();
  for (int k = 0; k < 3; ++k) {
    BodySpec body;
    body.name = "body" + std::to_string(k);
    body.generate = GenerateSpec{};
    body.generate->shape = "bar";
    body.generate->size = {1, 1, 2};
    body.generate->nodes = {3, 3, 5};
    body.translation = Vec3(3.0 * k, 0, 0);
    scene->bodies.push_back(body);
  }
  const Model model = build_model(scene);
  const Connectivity mesh(model);
  VecX x(3 * model.nodes());
  for (Index i = 0; i < model.nodes(); ++i) node(x, i) = model.mesh.rest[at(i)];
  const auto pieces_up_to = [&](const std::array<double, 3>& height) {
    std::vector<std::uint8_t> candidate(mesh.nodes.size(), 0);
    for (std::size_t e = 0; e < mesh.nodes.size(); ++e) {
      double z = 0;
      for (const Index i : mesh.nodes[e]) z += model.mesh.rest[at(i)][2] / 4;
      candidate[e] = z < height[at(mesh.object_of[e])];
    }
    return grow_pieces(mesh, candidate, none(model.nodes()), none(model.nodes()));
  };
  StepInput in;
  in.fixed.assign(3 * at(model.nodes()), 0);
  in.fixed_velocity.setZero(3 * model.nodes());
  std::mt19937 random(5);
  std::uniform_real_distribution<double> noise(-1, 1);
  MixedSystem system(model);
  std::vector<Index> touch;
  const std::vector<double> weights{1, -0.2, -0.3, -0.5};
  const Mat3 S = 50 * Mat3::Identity();
  // Solves with the present masks and compares with the dense matrix, column by column of the inverse.
  const auto solves = [&](const PieceAssignment& a) {
    std::vector<RigidPiece> pieces;
    for (const auto& nodes : a.piece_nodes)
      pieces.push_back(start_piece(nodes, 0, model.mass, x, VecX::Zero(x.size())));
    system.set_pieces(a);
    system.set_couplings(touch.empty()
                             ? std::vector<std::array<Index, 4>>{}
                             : std::vector<std::array<Index, 4>>{{touch[0], touch[1], touch[2], touch[3]}});
    EXPECT_LT(system.assemble(x, {}).first_bad, 0);
    system.prepare();
    system.form(1.0, 1e-3, x, pieces, true);
    if (!touch.empty()) system.add_spring(touch, weights, S, x, pieces);
    VecX v(x.size()), rhs, u;
    for (Eigen::Index d = 0; d < v.size(); ++d) v[d] = noise(random);
    rhs = system.reduce(v, x, pieces);
    const VecX b = rhs;
    EXPECT_TRUE(system.factor(in, rhs).ok);
    EXPECT_TRUE(system.solve_factored(rhs, u));
    // A u, by the elastic elements' own product, the masses and the spring.
    const VecX w = system.expand(u, x, pieces);
    VecX f = VecX::Zero(x.size());
    system.add_stiffness_times(1e-3, x, {}, w, f);
    if (!touch.empty()) {
      Vec3 d = Vec3::Zero();
      for (std::size_t k = 0; k < 4; ++k) d += weights[k] * node(w, touch[k]);
      for (std::size_t k = 0; k < 4; ++k) node(f, touch[k]) += weights[k] * (S * d);
    }
    const VecX Au = system.reduce(f, x, pieces) + system.multiply_mass(u, pieces);
    EXPECT_LT((Au - b).norm(), 1e-10 * b.norm());
    VecX again = rhs;
    system.solve(again);
    EXPECT_EQ((again - u).norm(), 0);
    MatX many(rhs.size(), 2);
    many << VecX::Zero(rhs.size()), rhs;
    system.solve_many(many);
    EXPECT_LT((many.col(1) - u).norm() + many.col(0).norm(), 1e-12 * u.norm());
    return pieces;
  };
  const PieceAssignment first = pieces_up_to({1.2, 1.2, 3.0});
  solves(first);
  EXPECT_EQ(system.islands(), 3u);
  long analyses = system.analyses(), factors = system.factorizations();
  solves(first);  // nothing new to analyse
  EXPECT_EQ(system.analyses(), analyses);
  EXPECT_EQ(system.factorizations(), factors + 3);
  const PieceAssignment second = pieces_up_to({1.2, 0.7, 3.0});
  solves(second);  // another mask of one object
  EXPECT_EQ(system.analyses(), analyses + 1);
  // A node of the first object touches a face of the third.
  std::vector<Index> a, c;
  for (Index i = 0; i < model.nodes(); ++i) {
    if (model.piece_of_node[at(i)] == 0) a.push_back(i);
    if (model.piece_of_node[at(i)] == 2) c.push_back(i);
  }
  touch = {a.back(), c[0], c[1], c[3]};
  const std::vector<RigidPiece> pieces = solves(second);
  EXPECT_EQ(system.islands(), 2u);
  EXPECT_EQ(system.analyses(), analyses + 2);
  // The contact opens: the second object's factor stays.
  factors = system.factorizations();
  system.touch(a.back());
  system.form(1.0, 1e-3, x, pieces, true);
  VecX rhs = VecX::Ones(3 * system.blocks()), u = VecX::Zero(rhs.size());
  ASSERT_TRUE(system.factor(in, rhs).ok);
  ASSERT_TRUE(system.solve_factored(rhs, u));
  EXPECT_EQ(system.factorizations(), factors + 1);
  for (Index i = 0; i < model.nodes(); ++i)
    EXPECT_EQ(node(u, system.node_block(i)).isZero(0), model.piece_of_node[at(i)] == 1);
}

// Springs that come and go after the factorisation are solved for with the factor that there is, as if they
// had been in it: on elastic nodes, pieces and held nodes that move.
TEST(MixedSystem, SpringsThatComeAndGoAreCorrected) {
  const Model model = box_model("bar", {1, 1, 4}, {7, 7, 17});
  const Connectivity mesh(model);
  std::vector<std::uint8_t> candidate(mesh.nodes.size(), 0);
  for (std::size_t e = 0; e < mesh.nodes.size(); ++e) {
    double z = 0;
    for (const Index i : mesh.nodes[e]) z += model.mesh.rest[at(i)][2] / 4;
    candidate[e] = z > 3;
  }
  const PieceAssignment a = grow_pieces(mesh, candidate, none(model.nodes()), none(model.nodes()));
  ASSERT_EQ(a.held.size(), 1u);
  VecX x(3 * model.nodes()), f(3 * model.nodes());
  std::mt19937 random(7);
  std::uniform_real_distribution<double> noise(-1, 1);
  for (Index i = 0; i < model.nodes(); ++i)
    for (int k = 0; k < 3; ++k) {
      x[3 * i + k] = model.mesh.rest[at(i)][k] + 0.02 * noise(random);
      f[3 * i + k] = noise(random);
    }
  const std::vector<RigidPiece> pieces{start_piece(a.piece_nodes[0], 0, model.mass, x, f)};
  StepInput in;
  in.fixed.assign(3 * at(model.nodes()), 0);
  in.fixed_velocity.setZero(3 * model.nodes());
  std::vector<Index> held, loose;
  for (Index i = 0; i < model.nodes(); ++i) {
    const double z = model.mesh.rest[at(i)][2];
    if (z == 0) held.push_back(i);
    if (z > 0.1 && z < 2.5) loose.push_back(i);
  }
  for (const Index i : held)
    for (int k = 0; k < 3; ++k) {
      in.fixed[3 * at(i) + static_cast<std::size_t>(k)] = 1;
      in.fixed_velocity[3 * i + k] = 0.3 * (k + 1);
    }
  struct Spring {
    std::vector<Index> nodes;
    std::vector<double> weights;
    Vec3 d;
    double s;
  };
  const std::vector<double> four{1, -0.2, -0.3, -0.5};
  const double strong = 1e3 * model.mass[3 * loose[0]];
  // At first: two springs. Later the second has gone, and others have come.
  const Spring stays{{loose[0]}, {1}, Vec3(0, 0, 1), strong};
  const Spring goes{{loose[40], loose[3], loose[9], loose[11]}, four, Vec3(0.6, 0.8, 0), strong};
  const Spring comes{{loose[5], held[0], held[1], loose[7]}, four, Vec3(1, 0, 0), strong};
  const Spring turns{{loose[30], a.piece_nodes[0][2], a.piece_nodes[0][5], a.piece_nodes[0][7]},
                     four,
                     Vec3(0, 0.8, 0.6),
                     strong};
  MixedSystem system(model), direct(model);
  const auto add = [&](MixedSystem& to, const Spring& spring) {
    to.add_spring(spring.nodes, spring.weights, spring.s * spring.d * spring.d.transpose(), x, pieces);
  };
  const auto begin = [&](MixedSystem& to) {
    to.set_pieces(a);
    to.set_couplings({{goes.nodes[0], goes.nodes[1], goes.nodes[2], goes.nodes[3]},
                      {comes.nodes[0], comes.nodes[1], comes.nodes[2], comes.nodes[3]},
                      {turns.nodes[0], turns.nodes[1], turns.nodes[2], turns.nodes[3]}});
    EXPECT_LT(to.assemble(x, {}).first_bad, 0);
    to.prepare();
    to.form(1.0, 1e-3, x, pieces, true);
  };
  const auto solution = [&](MixedSystem& of) {
    VecX rhs = of.reduce(f, x, pieces), u = VecX::Zero(3 * of.blocks());
    EXPECT_TRUE(of.factor(in, rhs).ok);
    EXPECT_TRUE(of.solve_factored(rhs, u));
    return u;
  };
  begin(system);
  add(system, stays);
  add(system, goes);
  const VecX before = solution(system);
  const long factors = system.factorizations();
  ASSERT_TRUE(system.change_spring(goes.nodes, goes.weights, goes.d, -goes.s, x, pieces));
  ASSERT_TRUE(system.change_spring(comes.nodes, comes.weights, comes.d, comes.s, x, pieces));
  ASSERT_TRUE(system.change_spring(turns.nodes, turns.weights, turns.d, turns.s, x, pieces));
  ASSERT_TRUE(system.corrects(loose[0]));
  system.form(1.0, 1e-3, x, pieces, true);
  for (const Spring& spring : {stays, comes, turns}) add(system, spring);
  const VecX found = solution(system);
  EXPECT_EQ(system.factorizations(), factors);
  EXPECT_EQ(system.corrections(), 1);

  begin(direct);
  for (const Spring& spring : {stays, comes, turns}) add(direct, spring);
  const VecX expected = solution(direct);
  EXPECT_GT((before - expected).norm(), 1e-2 * expected.norm());
  EXPECT_LT((found - expected).norm(), 1e-10 * expected.norm());

  // A spring that the matrix stands on cannot be taken away by a correction.
  ASSERT_TRUE(system.change_spring(stays.nodes, stays.weights, stays.d, -1e9 * stays.s, x, pieces));
  VecX rhs = system.reduce(f, x, pieces), u = found;
  ASSERT_TRUE(system.factor(in, rhs).ok);
  EXPECT_FALSE(system.solve_factored(rhs, u));
  EXPECT_FALSE(system.corrects(loose[0]));
}

}  // namespace
}  // namespace limber::rigidify
