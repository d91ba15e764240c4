// What assembly costs: nanoseconds per tetrahedron for force and projected stiffness, per material, state of
// deformation and number of threads; and, in the same run, the straightforward way as a baseline: one element
// after the other, Jacobi SVD, numeric eigen-decomposition of the 9x9 Hessian, 12x12 product, scatter through
// a precomputed map.

// g++ 12 warns of its own AVX-512 intrinsics when Eigen uses them.
#pragma GCC diagnostic ignored "-Wuninitialized"

#include <limber/core/parallel.hpp>
#include <limber/fem/plan.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/material/lame.hpp>
#include <limber/mesh/generate.hpp>

#include <fmt/core.h>
#include <CLI/CLI.hpp>
#include <Eigen/Eigenvalues>
#include <Eigen/Geometry>
#include <Eigen/LU>
#include <Eigen/SVD>

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace limber;
using material::Mat9;
using Clock = std::chrono::steady_clock;

fem::ElementInput bar(int nx, int ny, int nz, const ElementMaterial& m) {
  const TetMesh mesh = make_box(Vec3(nx, ny, nz), {nx + 1, ny + 1, nz + 1});
  fem::ElementInput input;
  input.rest = mesh.nodes;
  input.elements = mesh.tets;
  input.material.assign(input.elements.size(), m);
  return input;
}

VecX moved(const fem::ElementInput& input, double amplitude) {
  std::mt19937 rng(1);
  std::uniform_real_distribution<double> uniform(-amplitude, amplitude);
  VecX x(3 * static_cast<Eigen::Index>(input.rest.size()));
  for (std::size_t i = 0; i < input.rest.size(); ++i)
    for (int d = 0; d < 3; ++d) x[static_cast<Eigen::Index>(3 * i) + d] = input.rest[i][d] + uniform(rng);
  return x;
}

double cpu_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double wall_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

// One thread: CPU time, which other programs on the machine disturb less. More threads: wall time.
template <class Work>
double fastest(int repeats, Work&& work) {
  const auto now = threads() == 1 ? cpu_seconds : wall_seconds;
  double best = 1e300;
  for (int r = 0; r < repeats; ++r) {
    const double start = now();
    work();
    best = std::min(best, now() - start);
  }
  return best;
}

// Stable neo-Hookean the way it is usually first written.
class Straightforward {
 public:
  explicit Straightforward(const fem::ElementInput& input, const BlockPattern& pattern) : input_(input) {
    for (const Tet& t : input.elements) {
      Mat3 Dm;
      for (int a = 1; a < 4; ++a) Dm.col(a - 1) = input.rest[t[a]] - input.rest[t[0]];
      volume_.push_back(Dm.determinant() / 6);
      B_.push_back(Dm.inverse());
      for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) map_.push_back(t[a] >= t[b] ? pattern.find(t[a], t[b]) : -1);
    }
  }

  void assemble(const VecX& x, VecX& f, BlockMatrix& K) const {
    f.setZero(x.size());
    std::fill(K.values.begin(), K.values.end(), 0.0);
    for (std::size_t e = 0; e < input_.elements.size(); ++e) {
      const Tet& t = input_.elements[e];
      const ElementMaterial& m = input_.material[e];
      const material::Lame l = material::lame(m.young, m.poisson);
      Mat3 Ds;
      for (int a = 1; a < 4; ++a) Ds.col(a - 1) = node(x, t[a]) - node(x, t[0]);
      const Mat3 F = Ds * B_[e];
      const Eigen::JacobiSVD<Mat3> svd(F, Eigen::ComputeFullU | Eigen::ComputeFullV);
      const Mat3 U = svd.matrixU(), V = svd.matrixV();
      Vec3 s = svd.singularValues();
      if ((U * V.transpose()).determinant() < 0) s[2] = -s[2];
      const Mat9 H = projected(hessian(F, l));
      const Mat3 P = stress(F, l);
      Eigen::Matrix<double, 9, 12> dFdx = Eigen::Matrix<double, 9, 12>::Zero();
      for (int a = 0; a < 4; ++a)
        for (int j = 0; j < 3; ++j) {
          const double g = a > 0 ? B_[e](a - 1, j) : -B_[e].col(j).sum();
          for (int i = 0; i < 3; ++i) dFdx(i + 3 * j, 3 * a + i) = g;
        }
      const Eigen::Matrix<double, 12, 1> fe =
          -volume_[e] * dFdx.transpose() * Eigen::Map<const Eigen::Matrix<double, 9, 1>>(P.data());
      const Eigen::Matrix<double, 12, 12> Ke = volume_[e] * dFdx.transpose() * H * dFdx;
      for (int a = 0; a < 4; ++a) {
        node(f, t[a]) += fe.segment<3>(3 * a);
        for (int b = 0; b < 4; ++b)
          if (const Index k = map_[16 * e + 4 * static_cast<std::size_t>(a) + static_cast<std::size_t>(b)];
              k >= 0)
            K.block(k) += Ke.block<3, 3>(3 * a, 3 * b);
      }
      singular_sum_ += s.sum();
    }
  }

 private:
  static Mat3 cofactor(const Mat3& F) {
    Mat3 C;
    for (int c = 0; c < 3; ++c) C.col(c) = F.col((c + 1) % 3).cross(F.col((c + 2) % 3));
    return C;
  }
  static Mat3 stress(const Mat3& F, const material::Lame& l) {
    const double L = l.lambda + l.mu;
    return l.mu * F + (L * (F.determinant() - 1) - l.mu) * cofactor(F);
  }
  static Mat9 hessian(const Mat3& F, const material::Lame& l) {
    const double L = l.lambda + l.mu, kappa = L * (F.determinant() - 1) - l.mu;
    const Mat3 C = cofactor(F);
    const Eigen::Map<const Eigen::Matrix<double, 9, 1>> g(C.data());
    Mat9 H = l.mu * Mat9::Identity() + L * g * g.transpose();
    for (int c = 0; c < 3; ++c) {
      const Vec3 v = kappa * F.col(c);
      Mat3 hat;
      hat << 0, -v[2], v[1], v[2], 0, -v[0], -v[1], v[0], 0;
      const int a = (c + 1) % 3, b = (c + 2) % 3;
      H.block<3, 3>(3 * b, 3 * a) += hat;
      H.block<3, 3>(3 * a, 3 * b) -= hat;
    }
    return H;
  }
  static Mat9 projected(const Mat9& H) {
    const Eigen::SelfAdjointEigenSolver<Mat9> eigen(H);
    return eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(0).asDiagonal() *
           eigen.eigenvectors().transpose();
  }

  const fem::ElementInput& input_;
  std::vector<double> volume_;
  std::vector<Mat3> B_;
  std::vector<Index> map_;
  mutable double singular_sum_ = 0;  // keeps the decomposition from being optimised away
};

struct Deformation {
  const char* name;
  double amplitude;  // of random node displacements, in edge lengths
};
constexpr Deformation kDeformations[] = {{"rest", 0}, {"20 %", 0.2}, {"inverted", 0.8}};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Time of assembly, ns per tetrahedron"};
  int nx = 40, ny = 12, nz = 13, repeats = 20;
  app.add_option("--nx", nx, "cubes along x");
  app.add_option("--ny", ny, "cubes along y");
  app.add_option("--nz", nz, "cubes along z");
  app.add_option("--repeats", repeats, "the fastest of this many runs counts");
  std::string only;
  app.add_option("--only", only, "materials whose name contains this");
  CLI11_PARSE(app, argc, argv);

  ElementMaterial m;
  m.poisson = 0.49;
  fem::ElementInput input = bar(nx, ny, nz, m);
  const double tets = static_cast<double>(input.elements.size());
  fmt::print(
      "{} nodes, {} tetrahedra, nu = {}, fastest of {} runs (CPU time on one thread, wall time on two)\n\n",
      input.rest.size(), input.elements.size(), m.poisson, repeats);

  fmt::print("{:<36}{:>10}", "ns per tetrahedron", "threads");
  for (const Deformation& d : kDeformations) fmt::print("{:>12}", d.name);
  fmt::print("\n");
  const auto row = [&](const std::string& name, int threads, auto&& work) {
    set_threads(threads);
    fmt::print("{:<36}{:>10}", name, threads);
    std::vector<double> result;
    for (const Deformation& d : kDeformations) {
      result.push_back(1e9 / tets * work(moved(input, d.amplitude)));
      fmt::print("{:>12.1f}", result.back());
    }
    fmt::print("\n");
    return result;
  };

  std::vector<double> best, baseline;
  for (int model = 0; model < 8; ++model) {
    m.model = static_cast<MaterialModel>(model < 6 ? model : 0);
    m.fibre = static_cast<FibreModel>(model < 6 ? 0 : model - 5);
    m.fibre_stiffness = 1e5;
    std::string name = material::name(m.model);
    if (model >= 6) name += fmt::format(" + {}", material::name(m.fibre));
    if (name.find(only) == std::string::npos) continue;
    std::fill(input.material.begin(), input.material.end(), m);
    const auto elements = fem::make_elements(input);
    fem::Assembled out;
    for (int threads : {1, 2}) {
      const auto times = row(name, threads, [&](const VecX& x) {
        return fastest(repeats, [&] { fem::assemble(*elements, x, {}, out); });
      });
      if (model == 0 && threads == 1) best = times;
    }
    for (int threads : {1, 2})
      row("  force only", threads, [&](const VecX& x) {
        return fastest(repeats, [&] { fem::assemble_force(*elements, x, {}, out); });
      });
    if (model > 0) continue;
    for (int threads : {1, 2})
      row("  energy only", threads,
          [&](const VecX& x) { return fastest(repeats, [&] { fem::elastic_energy(*elements, x, {}); }); });
    for (int threads : {1, 2})
      row("  K v without K", threads, [&](const VecX& x) {
        return fastest(repeats, [&] { fem::multiply_stiffness(*elements, x, {}, x, out); });
      });
    // Half of the elements, per element of the half.
    std::vector<Index> half(input.elements.size() / 2);
    std::iota(half.begin(), half.end(), 0);
    fem::Plan plan;
    row("  plan of one half: to make it", 1,
        [&](const VecX&) { return 2 * fastest(repeats, [&] { plan = fem::make_plan(*elements, half); }); });
    fem::Assembled part;
    for (int threads : {1, 2})
      row("  plan of one half: to assemble it", threads, [&](const VecX& x) {
        const VecX own = plan.gather(x);
        return 2 * fastest(repeats, [&] { fem::assemble(*plan.elements, own, {}, part); });
      });
    const Straightforward plain(input, *fem::pattern(*elements));
    BlockMatrix K(fem::pattern(*elements));
    VecX f;
    baseline = row("  straightforward (SVD, 9x9 eigen)", 1, [&](const VecX& x) {
      const double time = fastest(3, [&] { plain.assemble(x, f, K); });
      fem::assemble(*elements, x, {}, out);
      double difference = 0, size = 0;
      for (std::size_t i = 0; i < K.values.size(); ++i) {
        difference = std::max(difference, std::abs(K.values[i] - out.K.values[i]));
        size = std::max(size, std::abs(K.values[i]));
      }
      if (difference > 1e-12 * size) fmt::print("\nthe two differ by {:g} of {:g}\n", difference, size);
      return time;
    });
  }
  if (best.empty()) return 0;
  fmt::print("\nspeed-up over straightforward, one thread:");
  for (std::size_t i = 0; i < best.size(); ++i) fmt::print("{:>8.1f}", baseline[i] / best[i]);
  fmt::print("\n");
  return 0;
}
