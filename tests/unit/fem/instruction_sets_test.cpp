// The kernels of different instruction sets: the same bits with AVX2 and AVX-512, the same numbers with all.
#include <limber/core/instruction_set.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/mesh/generate.hpp>

#include <gtest/gtest.h>

#include <random>

namespace limber::fem {
namespace {

struct Everything {
  Assembled assembled;
  std::vector<Mat3> F, Sdot;
  std::vector<double> strain, psi;
};

Everything compute_all(const Elements& elements, const VecX& x, Projection projection) {
  const std::vector<double> activation{.1};
  StrainTerm term;
  term.weight = 1e-3;
  term.history.assign(6 * static_cast<std::size_t>(element_count(elements)), .01);
  Everything out;
  assemble(elements, x, activation, out.assembled, projection, &term);
  deformation_gradients(elements, x, out.F);
  stretch_rates(elements, x, VecX(.3 * x.reverse()), out.Sdot);
  green_strains(elements, x, out.strain);
  energy_densities(elements, x, activation, out.psi);
  return out;
}

// The largest difference of all numbers, relative to the largest number of their kind.
double difference(const Everything& a, const Everything& b) {
  double worst = 0;
  const auto compare = [&](const double* p, const double* q, std::size_t n) {
    double size = 0, off = 0;
    for (std::size_t i = 0; i < n; ++i) {
      size = std::max(size, std::abs(p[i]));
      off = std::max(off, std::abs(p[i] - q[i]));
    }
    worst = std::max(worst, off / size);
  };
  compare(&a.assembled.energy, &b.assembled.energy, 1);
  compare(a.assembled.f.data(), b.assembled.f.data(), static_cast<std::size_t>(a.assembled.f.size()));
  compare(a.assembled.K.values.data(), b.assembled.K.values.data(), a.assembled.K.values.size());
  compare(a.F[0].data(), b.F[0].data(), 9 * a.F.size());
  compare(a.Sdot[0].data(), b.Sdot[0].data(), 9 * a.Sdot.size());
  compare(a.strain.data(), b.strain.data(), a.strain.size());
  compare(a.psi.data(), b.psi.data(), a.psi.size());
  return worst;
}

TEST(InstructionSets, GiveTheSameBitsWithFusedMultiplyAddAndTheSameNumbersWithout) {
  const TetMesh mesh = make_box(Vec3(1, 1, 2), {3, 3, 6});
  const InstructionSet best = instruction_set();
  for (const FibreModel fibre : {FibreModel::kNone, FibreModel::kStVenantKirchhoff, FibreModel::kFung})
    for (int model = 0; model < 6; ++model) {
      ElementMaterial m;
      m.model = static_cast<MaterialModel>(model);
      m.fibre = fibre;
      m.fibre_stiffness = 3e4;
      m.fibre_direction = Vec3(.3, .4, .5).normalized();
      m.activation_channel = 0;
      ElementInput input;
      input.rest = mesh.nodes;
      input.elements = mesh.tets;
      input.material.assign(mesh.tets.size(), m);
      const auto elements = make_elements(input);
      VecX x(3 * static_cast<Eigen::Index>(mesh.nodes.size()));
      std::mt19937 rng(1);
      std::uniform_real_distribution<double> u(-.2, .2);  // some elements invert
      for (Eigen::Index i = 0; i < x.size(); ++i)
        x[i] = 1.03 * mesh.nodes[static_cast<std::size_t>(i / 3)][i % 3] + u(rng);
      for (const Projection projection : {Projection::kPsd, Projection::kElastic, Projection::kNone}) {
        std::vector<Everything> all;
        for (const InstructionSet set : instruction_sets()) {
          choose_instruction_set(set);
          all.push_back(compute_all(*elements, x, projection));
          const double d = difference(all.front(), all.back());
          if (set == InstructionSet::kBase)
            EXPECT_LT(d, 1e-9) << "model " << model;
          else
            EXPECT_EQ(d, 0) << name(set) << ", model " << model;
        }
      }
    }
  choose_instruction_set(best);
}

TEST(InstructionSets, AnUnknownOneIsRefusedByName) {
  EXPECT_ANY_THROW(choose_instruction_set("avx1024"));
  EXPECT_NO_THROW(choose_instruction_set(name(instruction_sets().front())));
}

}  // namespace
}  // namespace limber::fem
