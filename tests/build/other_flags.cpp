// A program that is compiled for another target than the library: vectors go back and forth, grow and are
// freed on both sides.
#include <limber/fem/assemble.hpp>
#include <limber/mesh/generate.hpp>

#include <cstdio>

int main() {
  using namespace limber;
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    std::puts("this machine cannot run it");
    return 77;
  }
  const TetMesh mesh = make_box(Vec3(1, 1, 2), {3, 3, 5});
  fem::ElementInput input;
  input.rest = mesh.nodes;
  input.elements = mesh.tets;
  input.material.assign(mesh.tets.size(), ElementMaterial{});
  const auto elements = fem::make_elements(input);
  for (int round = 0; round < 20; ++round) {
    VecX x(3 * static_cast<Eigen::Index>(mesh.nodes.size()));
    for (std::size_t i = 0; i < mesh.nodes.size(); ++i) node(x, static_cast<Index>(i)) = 1.01 * mesh.nodes[i];
    fem::Assembled out;
    out.f = VecX::Zero(round);  // freed by the library
    fem::assemble(*elements, x, {}, out);
    std::vector<Mat3> F(3, Mat3::Identity());
    fem::deformation_gradients(*elements, x, F);
    if (!(out.energy > 0) || !(std::abs(F.back()(0, 0) - 1.01) < 1e-12)) return 1;
    out.f = VecX::Ones(5000);  // frees what the library allocated
  }
  return 0;
}
