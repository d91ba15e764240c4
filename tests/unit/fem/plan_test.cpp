#include "bars.hpp"

#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/plan.hpp>

#include <gtest/gtest.h>

#include <numeric>

namespace limber::fem {
namespace {

ElementMaterial flesh() {
  ElementMaterial m;
  m.young = 3e4;
  m.fibre = FibreModel::kStVenantKirchhoff;
  m.fibre_stiffness = 1e4;
  m.activation_channel = 0;
  return m;
}

// 1800 tetrahedra of three materials and 24 triangles: several chunks, several kinds of batches.
ElementInput mixed_mesh() {
  ElementInput input = bars::block(10, 6, 5, 0.1, flesh());
  for (std::size_t e = 0; e < input.material.size(); ++e) {
    if (e % 5 == 0) input.material[e].model = MaterialModel::kCorotational;
    if (e % 3 == 0) input.material[e].fibre = FibreModel::kNone;
  }
  input.kinds.assign(input.elements.size(), ElementKind::kTetrahedron);
  ElementMaterial fabric;
  fabric.young = 1e4;
  const ElementInput cloth = bars::plate(4, 3, 0.1, fabric, 1e-3, ElementKind::kClothTriangle);
  for (Tet t : cloth.elements) {  // glued to the first layer of the block, nodes renumbered
    for (Index& i : t)
      if (i >= 0) i = i % 5 + 11 * (i / 5);
    input.elements.push_back(t);
  }
  input.material.insert(input.material.end(), cloth.material.begin(), cloth.material.end());
  input.kinds.insert(input.kinds.end(), cloth.kinds.begin(), cloth.kinds.end());
  return input;
}

const std::vector<double> kPlanActivation{0.1};

std::vector<Index> some_elements(const ElementInput& input) {
  std::vector<Index> list;
  for (std::size_t e = 0; e < input.elements.size(); ++e) {
    double x = 0;
    for (const Index i : input.elements[e])
      if (i >= 0) x = std::max(x, input.rest[static_cast<std::size_t>(i)].x());
    if (x < 0.55 && e % 7 != 3) list.push_back(static_cast<Index>(e));
  }
  return list;
}

// The same elements as a mesh of their own, with all nodes.
ElementInput only(const ElementInput& input, const std::vector<Index>& list) {
  ElementInput out;
  out.rest = input.rest;
  for (const Index e : list) {
    out.elements.push_back(input.elements[static_cast<std::size_t>(e)]);
    out.material.push_back(input.material[static_cast<std::size_t>(e)]);
    out.kinds.push_back(input.kinds[static_cast<std::size_t>(e)]);
  }
  return out;
}

TEST(Plan, OfAllElementsGivesTheBitsOfTheMesh) {
  const ElementInput input = mixed_mesh();
  const auto all = make_elements(input);
  std::vector<Index> list(input.elements.size());
  std::iota(list.begin(), list.end(), 0);
  const Plan plan = make_plan(*all, list);
  EXPECT_EQ(plan.nodes.size(), input.rest.size());
  EXPECT_EQ(pattern(*plan.elements)->row, pattern(*all)->row);
  EXPECT_EQ(lumped_mass(*plan.elements), lumped_mass(*all));
  const VecX x = bars::perturbed(input, 0.02, 3);
  Assembled a, b;
  assemble(*all, x, kPlanActivation, a);
  assemble(*plan.elements, plan.gather(x), kPlanActivation, b);
  EXPECT_EQ(a.energy, b.energy);
  EXPECT_EQ(a.f, b.f);
  EXPECT_EQ(a.K.values, b.K.values);
}

TEST(Plan, OfSomeElementsIsTheirSumForAnyThreadCount) {
  const ElementInput input = mixed_mesh();
  const auto all = make_elements(input);
  const std::vector<Index> list = some_elements(input);
  ASSERT_GT(list.size(), 600u);
  const Plan plan = make_plan(*all, list);
  EXPECT_LT(plan.nodes.size(), input.rest.size());
  const auto alone = make_elements(only(input, list));
  const VecX x = bars::perturbed(input, 0.02, 3);
  Assembled a, b, c;
  assemble(*alone, x, kPlanActivation, a);
  set_threads(1);
  assemble(*plan.elements, plan.gather(x), kPlanActivation, b);
  set_threads(3);
  assemble(*plan.elements, plan.gather(x), kPlanActivation, c);
  set_threads(0);
  EXPECT_EQ(b.f, c.f);
  EXPECT_EQ(b.K.values, c.K.values);
  EXPECT_NEAR(a.energy, b.energy, 1e-13 * a.energy);
  VecX f = VecX::Zero(x.size());
  plan.scatter_add(b.f, f);
  EXPECT_LT((f - a.f).norm(), 1e-13 * f.norm());
  const MatX whole = bars::dense(a.K), part = bars::dense(b.K);
  MatX spread = MatX::Zero(whole.rows(), whole.cols());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i)
    for (std::size_t j = 0; j < plan.nodes.size(); ++j)
      spread.block<3, 3>(3 * plan.nodes[i], 3 * plan.nodes[j]) =
          part.block<3, 3>(3 * static_cast<Eigen::Index>(i), 3 * static_cast<Eigen::Index>(j));
  EXPECT_LT((spread - whole).norm(), 1e-13 * whole.norm());
  std::vector<double> E, whole_E;
  green_strains(*plan.elements, plan.gather(x), E);
  green_strains(*all, x, whole_E);
  for (std::size_t i = 0; i < list.size(); ++i)
    for (std::size_t k = 0; k < 6; ++k)
      EXPECT_EQ(E[6 * i + k], whole_E[6 * static_cast<std::size_t>(list[i]) + k]);
}

// A plan of a plan, as a region inside a region.
TEST(Plan, OfAPlanIsOneOfTheMesh) {
  const ElementInput input = mixed_mesh();
  const auto all = make_elements(input);
  const std::vector<Index> list = some_elements(input);
  std::vector<Index> every_other, direct;
  for (std::size_t i = 0; i < list.size(); i += 2) {
    every_other.push_back(static_cast<Index>(i));
    direct.push_back(list[i]);
  }
  const Plan outer = make_plan(*all, list), inner = make_plan(*outer.elements, every_other),
             once = make_plan(*all, direct);
  const VecX x = bars::perturbed(input, 0.02, 5);
  Assembled a, b;
  assemble(*inner.elements, inner.gather(outer.gather(x)), kPlanActivation, a);
  assemble(*once.elements, once.gather(x), kPlanActivation, b);
  EXPECT_LT((a.f - b.f).norm(), 1e-13 * b.f.norm());
  EXPECT_EQ(a.K.pattern->row, b.K.pattern->row);
}

TEST(Plan, WeightsMultiplyEnergyForceStiffnessAndMass) {
  const ElementInput input = mixed_mesh();
  const auto all = make_elements(input);
  const std::vector<Index> one{17};
  const std::vector<double> weight{2.5};
  const VecX x = bars::perturbed(input, 0.02, 3);
  const Plan plain = make_plan(*all, one), heavy = make_plan(*all, one, weight);
  Assembled a, b;
  assemble(*plain.elements, plain.gather(x), kPlanActivation, a);
  assemble(*heavy.elements, heavy.gather(x), kPlanActivation, b);
  EXPECT_NEAR(b.energy, 2.5 * a.energy, 1e-14 * b.energy);
  EXPECT_LT((b.f - 2.5 * a.f).norm(), 1e-14 * b.f.norm());
  EXPECT_LT((bars::dense(b.K) - 2.5 * bars::dense(a.K)).norm(), 1e-14 * bars::dense(b.K).norm());
  EXPECT_LT((lumped_mass(*heavy.elements) - 2.5 * lumped_mass(*plain.elements)).norm(), 1e-15);
  EXPECT_EQ(rest_volume(*heavy.elements)[0], 2.5 * rest_volume(*all)[17]);
}

// Half of a bar is rigid: only elements with a free node are assembled, and the system is the dense one.
TEST(Plan, WithRigidBodyIsTheDenseProduct) {
  const ElementInput input = mixed_mesh();
  const auto all = make_elements(input);
  const VecX x = bars::perturbed(input, 0.005, 3);
  const auto rigid = [&](Index i) { return input.rest[static_cast<std::size_t>(i)].x() > 0.45; };
  std::vector<Index> list;
  for (std::size_t e = 0; e < input.elements.size(); ++e)
    for (const Index i : input.elements[e])
      if (i >= 0 && !rigid(i)) {
        list.push_back(static_cast<Index>(e));
        break;
      }
  const Plan plan = make_plan(*all, list);
  const Vec3 center(0.7, 0.3, 0.2);
  VelocityMap G(static_cast<Index>(plan.nodes.size())), whole(static_cast<Index>(input.rest.size()));
  const auto build = [&](VelocityMap& map, const VecX& at_x, auto&& mesh_node) {
    std::vector<Index> body;
    for (Index k = 0; k < map.nodes(); ++k) {
      if (rigid(mesh_node(k)))
        body.push_back(k);
      else
        map.add_node(k);
    }
    map.add_rigid_body(body, at_x, center);
  };
  build(G, plan.gather(x), [&](Index k) { return plan.nodes[static_cast<std::size_t>(k)]; });
  build(whole, x, [](Index k) { return k; });
  ASSERT_EQ(G.unknowns(), whole.unknowns());
  ReducedAssembly reduced;
  assemble(plan, G, x, kPlanActivation, reduced);
  Assembled a;
  assemble(*all, x, kPlanActivation, a);
  // Elements inside the body do no work on it, up to their own stress: take them out of the whole as well.
  std::vector<Index> inside;
  for (Index e = 0, k = 0; e < static_cast<Index>(input.elements.size()); ++e) {
    if (k < static_cast<Index>(list.size()) && list[static_cast<std::size_t>(k)] == e)
      ++k;
    else
      inside.push_back(e);
  }
  const Plan rest = make_plan(*all, inside);
  Assembled b;
  assemble(*rest.elements, rest.gather(x), kPlanActivation, b);
  MatX K = bars::dense(a.K);
  const MatX R = bars::dense(b.K);
  for (std::size_t i = 0; i < rest.nodes.size(); ++i)
    for (std::size_t j = 0; j < rest.nodes.size(); ++j)
      K.block<3, 3>(3 * rest.nodes[i], 3 * rest.nodes[j]) -=
          R.block<3, 3>(3 * static_cast<Eigen::Index>(i), 3 * static_cast<Eigen::Index>(j));
  const MatX D = whole.dense();
  const MatX expected = D.transpose() * K * D;
  EXPECT_LT((dense(reduced.K) - expected).norm(), 1e-13 * expected.norm());
  VecX f = a.f;
  for (std::size_t i = 0; i < rest.nodes.size(); ++i)
    node(f, rest.nodes[i]) -= node(b.f, static_cast<Index>(i));
  EXPECT_LT((reduced.f - D.transpose() * f).norm(), 1e-12 * reduced.f.norm());
}

TEST(Plan, StiffnessTimesVectorNeedsNoMatrix) {
  const ElementInput input = mixed_mesh();
  const auto all = make_elements(input);
  const VecX x = bars::perturbed(input, 0.03, 3), v = bars::perturbed(input, 1, 4);
  for (const Projection projection : {Projection::kPsd, Projection::kNone}) {
    Assembled a, b, c;
    assemble(*all, x, kPlanActivation, a, projection);
    VecX Kv;
    multiply(a.K, v, Kv);
    set_threads(1);
    multiply_stiffness(*all, x, kPlanActivation, v, b, projection);
    set_threads(3);
    multiply_stiffness(*all, x, kPlanActivation, v, c, projection);
    set_threads(0);
    EXPECT_TRUE(b.finite);
    EXPECT_EQ(b.f, c.f);
    EXPECT_LT((b.f - Kv).norm(), 1e-12 * Kv.norm());
  }
  Assembled a;
  VecX bad = v;
  bad[0] = std::numeric_limits<double>::quiet_NaN();
  multiply_stiffness(*all, x, kPlanActivation, bad, a);
  EXPECT_FALSE(a.finite);
}

TEST(Plan, OfNothingIsNothing) {
  const auto all = make_elements(mixed_mesh());
  const Plan plan = make_plan(*all, {});
  Assembled a;
  assemble(*plan.elements, VecX(), kPlanActivation, a);
  EXPECT_EQ(a.energy, 0);
  EXPECT_EQ(a.f.size(), 0);
}

TEST(Plan, RefusesWrongLists) {
  const auto all = make_elements(mixed_mesh());
  EXPECT_THROW(make_plan(*all, std::vector<Index>{3, 2}), Error);
  EXPECT_THROW(make_plan(*all, std::vector<Index>{2, 2}), Error);
  EXPECT_THROW(make_plan(*all, std::vector<Index>{-1}), Error);
  EXPECT_THROW(make_plan(*all, std::vector<Index>{100000}), Error);
  EXPECT_THROW(make_plan(*all, std::vector<Index>{1, 2}, std::vector<double>{1}), Error);
  EXPECT_THROW(make_plan(*all, std::vector<Index>{1}, std::vector<double>{NAN}), Error);
}

}  // namespace
}  // namespace limber::fem
