// The native Cholesky against CHOLMOD with its best ordering and number of BLAS threads, on the same matrices
// in one run, and the speed of the native kernels by front size against DGEMM. Prints Markdown; --csv FILE
// adds the numbers as CSV. Times are minima over rounds in which the contestants take turns.
#include <limber/core/instruction_set.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/assemble.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/linalg/native/kernels.hpp>
#include <limber/mesh/generate.hpp>

#include <fmt/format.h>
#include <omp.h>
#include <CLI/CLI.hpp>
#ifdef LIMBER_HAS_CHOLMOD
#include <cholmod.h>
#endif

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

extern "C" void openblas_set_num_threads(int) __attribute__((weak));
extern "C" void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*,
                       const double*, const int*, const double*, const int*, const double*, double*,
                       const int*);

namespace {

using namespace limber;

double seconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void blas_threads(int n) {
  if (openblas_set_num_threads) openblas_set_num_threads(n);
}

struct Times {
  double analyze = 1e30, factor = 1e30, solve = 1e30, solve31 = 1e30, conjac = 1e30, bytes = 0, residual = 0;
  std::string how;
  void keep(double& slot, double t) const { slot = std::min(slot, t); }
};

// ---- the matrices: M + h^2 K of a soft body that hangs and has been bent a little ----

BlockMatrix step_matrix(const TetMesh& mesh, double poisson) {
  fem::ElementInput input;
  input.rest = mesh.nodes;
  input.elements.assign(mesh.tets.begin(), mesh.tets.end());
  ElementMaterial material;
  material.poisson = poisson;
  input.material.assign(mesh.tets.size(), material);
  const auto elements = fem::make_elements(input);
  VecX x(3 * static_cast<Eigen::Index>(mesh.nodes.size()));
  for (std::size_t i = 0; i < mesh.nodes.size(); ++i) {
    Vec3 p = mesh.nodes[i];
    p.y() += 0.05 * std::sin(3 * p.x());
    node(x, static_cast<Index>(i)) = p;
  }
  fem::Assembled out;
  fem::assemble(*elements, x, {}, out);
  const double h = 5e-3;
  const VecX& mass = fem::lumped_mass(*elements);
  for (double& v : out.K.values) v *= h * h;
  for (Index i = 0; i < out.K.pattern->n; ++i)
    out.K.block(out.K.pattern->col_begin[i]).diagonal().array() += mass[i];
  return std::move(out.K);
}

std::vector<Index> spread_nodes(Index n, Index count) {
  std::vector<Index> nodes;
  for (Index k = 0; k < count; ++k) nodes.push_back(static_cast<Index>((k + 0.5) * n / count));
  return nodes;
}

// The linear algebra of a ConJac step: factor, projected stiffness, condensation map, stabilisation solve.
double conjac_step(Cholesky& chol, const BlockMatrix& A, Index tail) {
  const MatX C = MatX::Identity(3 * tail, 3 * tail);
  MatX S, X, b = MatX::Ones(3 * A.pattern->n, 1);
  RowMatX J;
  return seconds([&] {
    if (!chol.factor(A).ok) throw std::runtime_error("bad pivot");
    chol.tail_schur(S);
    chol.condense_to_tail(b);
    b.bottomRows(3 * tail).setZero();
    chol.extend_from_tail(C, b, J, X);
  });
}

double residual(const BlockMatrix& A, const VecX& x, const VecX& b) {
  VecX y;
  multiply(A, x, y);
  return (y - b).norm() / b.norm();
}

// ---- contestants ----

class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual void analyze() = 0;
  virtual void factor() = 0;
  virtual void solve(MatX& B) = 0;  // B <- A^-1 B
  virtual double bytes() const = 0;
  Times times;
};

class Ours final : public Contestant {
 public:
  Ours(const BlockMatrix& A, std::string backend, std::string ordering) : A_(A), chol_({backend, ordering}) {
    times.how = backend;
  }
  void analyze() override { chol_.analyze(*A_.pattern); }
  void factor() override {
    blas_threads(1);
    omp_set_max_active_levels(1);
    if (!chol_.factor(A_).ok) throw std::runtime_error("bad pivot");
  }
  void solve(MatX& B) override { chol_.solve_many(B); }
  double bytes() const override { return chol_.stats().bytes; }
  const CholeskyStats& stats() const { return chol_.stats(); }

 private:
  const BlockMatrix& A_;
  Cholesky chol_;
};

#ifdef LIMBER_HAS_CHOLMOD
// CHOLMOD as its own users call it: the scalar lower triangle, its ordering, its threads. With one thread its
// OpenMP loops are switched off too: it starts four threads for them, which makes it slower on few cores.
class Cholmod final : public Contestant {
 public:
  Cholmod(const BlockMatrix& A, int ordering, int threads) : threads_(threads) {
    cholmod_start(&c_);
    c_.supernodal = CHOLMOD_SUPERNODAL;
    c_.nmethods = 1;
    c_.method[0].ordering = ordering;
    c_.postorder = 1;
    times.how = fmt::format("{}, {} thread{}", ordering == CHOLMOD_AMD ? "AMD" : "METIS", threads,
                            threads == 1 ? "" : "s");
    const BlockPattern& p = *A.pattern;
    A_ = cholmod_allocate_sparse(3 * p.n, 3 * p.n, 9 * p.row.size() - 3 * p.n, 1, 1, -1, CHOLMOD_REAL, &c_);
    auto* begin = static_cast<int*>(A_->p);
    auto* row = static_cast<int*>(A_->i);
    auto* value = static_cast<double*>(A_->x);
    int k = 0;
    for (Index j = 0; j < p.n; ++j)
      for (int c = 0; c < 3; ++c) {
        begin[3 * j + c] = k;
        for (Index b = p.col_begin[j]; b < p.col_begin[j + 1]; ++b)
          for (int r = p.row[b] == j ? c : 0; r < 3; ++r, ++k) {
            row[k] = 3 * p.row[b] + r;
            value[k] = A.values[9 * static_cast<std::size_t>(b) + 3 * c + r];
          }
      }
    begin[3 * p.n] = k;
    matrix_bytes_ = static_cast<double>(c_.memory_inuse);
  }
  ~Cholmod() override {
    cholmod_free_dense(&X_, &c_);
    cholmod_free_dense(&Y_, &c_);
    cholmod_free_dense(&E_, &c_);
    cholmod_free_factor(&L_, &c_);
    cholmod_free_sparse(&A_, &c_);
    cholmod_finish(&c_);
  }
  void analyze() override {
    cholmod_free_factor(&L_, &c_);
    L_ = cholmod_analyze(A_, &c_);
  }
  void use_threads() const {
    blas_threads(threads_);
    omp_set_max_active_levels(threads_ == 1 ? 0 : 1);
  }
  void factor() override {
    use_threads();
    c_.memory_usage = c_.memory_inuse;
    cholmod_factorize(A_, L_, &c_);
    bytes_ = static_cast<double>(c_.memory_usage) - matrix_bytes_;
    if (c_.status != CHOLMOD_OK) throw std::runtime_error("CHOLMOD failed");
  }
  void solve(MatX& B) override {
    use_threads();
    cholmod_dense b{};
    b.nrow = b.d = B.rows();
    b.ncol = B.cols();
    b.nzmax = B.size();
    b.x = B.data();
    b.xtype = CHOLMOD_REAL;
    cholmod_solve2(CHOLMOD_A, L_, &b, nullptr, &X_, nullptr, &Y_, &E_, &c_);
    std::copy_n(static_cast<const double*>(X_->x), B.size(), B.data());
  }
  double bytes() const override { return bytes_; }

 private:
  cholmod_common c_;
  cholmod_sparse* A_ = nullptr;
  cholmod_factor* L_ = nullptr;
  cholmod_dense *X_ = nullptr, *Y_ = nullptr, *E_ = nullptr;
  int threads_;
  double matrix_bytes_ = 0, bytes_ = 0;
};
#endif

void take_turns(std::vector<std::unique_ptr<Contestant>>& all, const BlockMatrix& A, double budget) {
  const Eigen::Index n = 3 * static_cast<Eigen::Index>(A.pattern->n);
  const MatX b1 = MatX::Random(n, 1), b31 = MatX::Random(n, 31);
  double spent = 0;
  for (int round = 0; round < 2 || (spent < budget && round < 40); ++round)
    for (auto& c : all) {
      // The threads of a parallel BLAS go on spinning for a while, on the cores of whoever comes next.
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      MatX x1 = b1, x31 = b31;
      if (round == 0) c->times.analyze = seconds([&] { c->analyze(); });
      const double t = seconds([&] { c->factor(); });
      c->times.keep(c->times.factor, t);
      c->times.keep(c->times.solve, seconds([&] { c->solve(x1); }));
      c->times.keep(c->times.solve31, seconds([&] { c->solve(x31); }));
      c->times.residual = residual(A, x1, b1);
      c->times.bytes = c->bytes();
      spent += t + c->times.solve + c->times.solve31;
    }
}

struct Case {
  std::string name;
  std::function<TetMesh()> mesh;
};

std::vector<Case> make_cases(Index largest) {
  struct Box {
    const char* name;
    std::array<Index, 3> nodes;
  };
  std::vector<Case> cases;
  for (const Box& box :
       {Box{"bar", {21, 7, 7}}, Box{"bar", {41, 11, 11}}, Box{"bar", {62, 13, 13}}, Box{"bar", {77, 18, 18}},
        Box{"bar", {128, 28, 28}}, Box{"cube", {10, 10, 10}}, Box{"cube", {17, 17, 17}},
        Box{"cube", {22, 22, 22}}, Box{"cube", {29, 29, 29}}, Box{"cube", {46, 46, 46}}}) {
    if (box.nodes[0] * box.nodes[1] * box.nodes[2] > largest) continue;
    cases.push_back({fmt::format("{} {}x{}x{}", box.name, box.nodes[0], box.nodes[1], box.nodes[2]), [box] {
                       return make_box(Vec3(box.nodes[0], box.nodes[1], box.nodes[2]) / box.nodes[0],
                                       box.nodes);
                     }});
  }
  cases.push_back({"torus", [] { return make_torus(0.4, 0.06, 0.012); }});
  const std::filesystem::path assets = std::filesystem::path(LIMBER_SOURCE_DIR) / "assets";
  if (std::filesystem::exists(assets))
    for (const auto& file : std::filesystem::directory_iterator(assets))
      if (file.path().extension() == ".msh")
        cases.push_back(
            {file.path().stem().string(), [file] { return read_tet_mesh(file.path().string()); }});
  return cases;
}

void run_case(const Case& c, double poisson, double budget, int threads, std::FILE* csv) {
  const TetMesh mesh = c.mesh();
  const BlockMatrix A = step_matrix(mesh, poisson);
  set_threads(threads);
  std::vector<std::unique_ptr<Contestant>> all;
  all.push_back(std::make_unique<Ours>(A, "native", "auto"));
#ifdef LIMBER_HAS_CHOLMOD
  for (const int ordering : {CHOLMOD_AMD, CHOLMOD_METIS}) {
    // On large blocks AMD takes several times the flops of METIS, and minutes.
    if (ordering == CHOLMOD_AMD && A.pattern->n > 50'000) continue;
    for (int t = 1; t <= threads; t *= 2) all.push_back(std::make_unique<Cholmod>(A, ordering, t));
  }
#endif
  take_turns(all, A, budget);

  const auto& ours = static_cast<const Ours&>(*all[0]);
  const Times& mine = ours.times;
  Times best;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Times& t = all[i]->times;
    if (t.factor < best.factor) {
      best.how = t.how;
      best.bytes = t.bytes;
      best.residual = t.residual;
    }
    best.analyze = std::min(best.analyze, t.analyze);
    best.factor = std::min(best.factor, t.factor);
    best.solve = std::min(best.solve, t.solve);
    best.solve31 = std::min(best.solve31, t.solve31);
  }
  const double gflops = ours.stats().flops * 1e-9;
  const auto print = [&](const Times& t, const std::string& how) {
    fmt::print("| {} | {} | {} | {:.1f} | {:.3f} | {:.1f} | {:.0f} | {:.2f} | {:.2f} | {:.1f} | {:.0e} |\n",
               c.name, A.pattern->n, how, ours.stats().nnz * 1e-6, gflops, 1e3 * t.factor, gflops / t.factor,
               1e3 * t.solve, 1e3 * t.solve31, t.bytes / 1048576, t.residual);
    if (csv)
      fmt::print(csv, "{},{},{},{},{},{},{},{},{},{},{}\n", c.name, A.pattern->n, mesh.tets.size(), how,
                 ours.stats().nnz, ours.stats().flops, t.analyze, t.factor, t.solve, t.solve31, t.bytes);
  };
  print(mine, "native " + ours.stats().ordering);
  if (all.size() > 1) {
    print(best, "CHOLMOD " + best.how);
    fmt::print("| | | **CHOLMOD / native** | | | **{:.2f}** | | **{:.2f}** | **{:.2f}** | **{:.2f}** | |\n",
               best.factor / mine.factor, best.solve / mine.solve, best.solve31 / mine.solve31,
               best.bytes / mine.bytes);
  }
  std::fflush(stdout);
}

// ---- ConJac and the roofline ----

void run_conjac(const Case& c, double poisson, double budget) {
  const TetMesh mesh = c.mesh();
  const BlockMatrix A = step_matrix(mesh, poisson);
  std::vector<std::string> backends{"native"};
#ifdef LIMBER_HAS_CHOLMOD
  backends.push_back("cholmod");
#endif
  const std::vector<Index> tails{0, 4, 6, 10};
  std::vector<std::unique_ptr<Cholesky>> chol;
  std::vector<double> best(backends.size() * tails.size(), 1e30);
  for (const std::string& backend : backends)
    for (const Index tail : tails) {
      chol.push_back(std::make_unique<Cholesky>(CholeskyOptions{backend, "auto"}));
      chol.back()->analyze(*A.pattern, spread_nodes(A.pattern->n, tail));
    }
  VecX b = VecX::Ones(3 * A.pattern->n);
  double spent = 0;
  for (int round = 0; round < 2 || (spent < budget && round < 40); ++round)
    for (std::size_t i = 0; i < best.size(); ++i) {
      const Index tail = tails[i % tails.size()];
      const double t = tail > 0 ? conjac_step(*chol[i], A, tail) : seconds([&] {
        if (!chol[i]->factor(A).ok) throw std::runtime_error("bad pivot");
        chol[i]->solve(b);
      });
      best[i] = std::min(best[i], t);
      spent += t;
    }
  for (std::size_t k = 0; k < backends.size(); ++k)
    fmt::print("| {} | {} | {:.1f} | {:.1f} (+{:.0f} %) | {:.1f} (+{:.0f} %) | {:.1f} (+{:.0f} %) |\n",
               c.name, backends[k], 1e3 * best[4 * k], 1e3 * best[4 * k + 1],
               100 * (best[4 * k + 1] / best[4 * k] - 1), 1e3 * best[4 * k + 2],
               100 * (best[4 * k + 2] / best[4 * k] - 1), 1e3 * best[4 * k + 3],
               100 * (best[4 * k + 3] / best[4 * k] - 1));
  if (backends.size() == 2)
    fmt::print("| | **CHOLMOD / native** | **{:.2f}** | **{:.2f}** | **{:.2f}** | **{:.2f}** |\n",
               best[4] / best[0], best[5] / best[1], best[6] / best[2], best[7] / best[3]);
  std::fflush(stdout);
}

// ---- one right-hand side, and the memory ----

// A solve reads L twice and does little else: how far more threads help, beside how far they help to read L
// twice. The contestants take turns.
void run_solves(const Case& c, double poisson, double budget, int most) {
  const BlockMatrix A = step_matrix(c.mesh(), poisson);
  Cholesky chol;
  chol.analyze(*A.pattern);
  if (!chol.factor(A).ok) throw std::runtime_error("bad pivot");
  chol.round_to_single();
  const std::span<const double> L = chol.factor_values();
  std::vector<double> sums;
  const auto read = [&] {
    constexpr std::ptrdiff_t kPiece = 1 << 15;
    sums.assign(L.size() / kPiece + 1, 0.0);
    for (int sweep = 0; sweep < 2; ++sweep)
      parallel_ranges(static_cast<std::ptrdiff_t>(L.size()), kPiece,
                      [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                        sums[begin / kPiece] += Eigen::Map<const VecX>(L.data() + begin, end - begin).sum();
                      });
  };
  const VecX b = VecX::Random(3 * A.pattern->n);
  VecX x;
  constexpr double kNever = 1e30;
  std::array<double, 2> solve{kNever, kNever}, rounded{kNever, kNever}, reading{kNever, kNever};
  double spent = 0;
  for (int round = 0; round < 3 || (spent < budget && round < 400); ++round)
    for (int k = 0; k < 2; ++k) {
      set_threads(k == 0 ? 1 : most);
      const auto time = [&](double& best, auto&& f) {
        x = b;
        const double t = seconds(f);
        best = std::min(best, t);
        spent += t;
      };
      time(solve[k], [&] { chol.solve(x); });
      time(rounded[k], [&] { chol.solve_rounded(x); });
      time(reading[k], read);
    }
  set_threads(most);
  fmt::print(
      "| {} | {:.1f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n",
      c.name, 8e-6 * static_cast<double>(L.size()), 1e3 * solve[0], 1e3 * solve[1], solve[0] / solve[1],
      1e3 * rounded[0], 1e3 * rounded[1], rounded[0] / rounded[1], 1e3 * reading[0], 1e3 * reading[1],
      reading[0] / reading[1]);
  std::fflush(stdout);
}

void run_roofline() {
  using namespace limber::sparse;
  blas_threads(1);
  fmt::print(
      "\n## Roofline: one front on one core, GFLOP/s, kernels for {}\n\n"
      "| pivots K | rows M below | flops | native | DGEMM n = K + M |\n|---|---|---|---|---|\n",
      name(instruction_set()));
  std::mt19937 rng(1);
  std::uniform_real_distribution<double> value(-1, 1);
  const std::vector<std::pair<long, long>> fronts{{3, 30},   {6, 36},   {12, 60},  {24, 72},   {30, 120},
                                                  {48, 150}, {60, 240}, {96, 300}, {192, 384}, {384, 600}};
  for (const auto& front_size : fronts) {
    const long K = front_size.first, M = front_size.second;
    const long rows = round_up(K) + round_up(M), cols = round_up(K);
    std::vector<double> X(rows * cols, 0.0), U(update_size(M)), values(ConstPanel{nullptr, K, M}.size()),
        floor(cols, 0.0);
    for (long c = 0; c < K; ++c)
      for (long r = 0; r < rows; ++r)
        if (r < K || r >= cols) X[r + c * rows] = r == c ? static_cast<double>(K + M) : value(rng);
    const PanelOf<double> L{values.data(), K, M};
    const ConstPanel done{values.data(), K, M};
    const int n = static_cast<int>(K + M);
    std::vector<double> a(n * n, 1.0), b(n * n, 1.0), c(n * n, 0.0);
    double flops = 0;
    for (long k = 0; k < K; ++k) flops += static_cast<double>((K + M - k) * (K + M - k));
    const int repeat = std::max(1, static_cast<int>(2e7 / flops)),
              gemm = std::max(1, static_cast<int>(2e7 / (2.0 * n * n * n)));
    double front = 1e30, dgemm = 1e30;
    const double one = 1, minus = -1;
    for (int round = 0; round < 20; ++round) {
      front = std::min(
          front, seconds([&] {
                   for (int i = 0; i < repeat; ++i) {
                     kernels().in_double.factor(L, 0, K, L.strips(), X.data(), rows, floor.data());
                     for (long j = 0; j * kBlock < round_up(M); ++j) {
                       const long first = L.pivot_strips() + j * kBlock / kStrip;
                       kernels().in_double.multiply(done, first, L.strips(), first,
                                                    std::min(L.strips(), first + kBlock / kStrip), 0, K, true,
                                                    false, U.data() + update_offset(M, j), update_ld(M, j));
                     }
                   }
                 }) / repeat);
      dgemm = std::min(dgemm, seconds([&] {
                                for (int i = 0; i < gemm; ++i)
                                  dgemm_("N", "T", &n, &n, &n, &minus, a.data(), &n, b.data(), &n, &one,
                                         c.data(), &n);
                              }) / gemm);
    }
    fmt::print("| {} | {} | {:.3g} | {:.1f} | {:.1f} |\n", K, M, flops, flops / front * 1e-9,
               2.0 * n * n * n / dgemm * 1e-9);
  }
}

// Right-hand sides that go along with the factorisation against those that are swept after it, and the same
// with a factor in single precision.
void run_carried(const Case& c, double poisson, double budget) {
  const BlockMatrix A = step_matrix(c.mesh(), poisson);
  for (const Index columns : {1, 9}) {
    const MatX B = MatX::Random(3 * A.pattern->n, columns), none(0, 0);
    Cholesky swept, carried, single({"native", "auto", true});
    swept.analyze(*A.pattern);
    for (Cholesky* chol : {&carried, &single}) {
      chol->analyze(*A.pattern);
      chol->carry(*A.pattern, columns);
    }
    double best[7] = {1e9, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9};
    const auto least = [&](int k, auto&& work) { best[k] = std::min(best[k], 1e3 * seconds(work)); };
    MatX Y, X, Z;
    RowMatX J;
    for (double spent = 0; spent < budget;)
      spent += seconds([&] {
        least(0, [&] { static_cast<void>(swept.factor(A)); });
        Y = B;
        least(1, [&] { swept.condense_to_tail(Y); });
        least(2, [&] { swept.extend_from_tail(none, Y, J, X); });
        least(3, [&] { static_cast<void>(carried.factor(A, B)); });
        least(4, [&] { X = carried.solve_carried(); });
        least(5, [&] { static_cast<void>(single.factor(A, B)); });
        least(6, [&] { Z = single.solve_carried(); });
      });
    fmt::print(
        "| {} | {} | {:.1f} + {:.1f} + {:.1f} = {:.1f} | {:.1f} + {:.1f} = {:.1f} | {:.1f} + {:.1f} = {:.1f} "
        "| {:.1e} |\n",
        c.name, columns, best[0], best[1], best[2], best[0] + best[1] + best[2], best[3], best[4],
        best[3] + best[4], best[5], best[6], best[5] + best[6], (Z - X).norm() / X.norm());
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Native Cholesky against CHOLMOD");
  Index largest = 26000;
  double budget = 2, poisson = 0.49;
  int threads = limber::threads();
  std::string csv_path, only;
  bool no_roofline = false, no_conjac = false, only_solves = false;
  app.add_option("--largest", largest, "most nodes of a bar or cube (the largest have 100,352 and 97,336)");
  app.add_option("--budget", budget, "seconds of measurement per matrix, about");
  app.add_option("--poisson", poisson, "Poisson's ratio");
  app.add_option("--threads", threads, "threads of the native solver, most BLAS threads of CHOLMOD");
  app.add_option("--only", only, "run only the meshes whose name contains this");
  app.add_option("--csv", csv_path, "write the numbers here too");
  app.add_flag("--no-roofline", no_roofline);
  app.add_flag("--no-conjac", no_conjac);
  app.add_flag("--only-solves", only_solves, "only the table of solves with one right-hand side");
  CLI11_PARSE(app, argc, argv);

  std::FILE* csv = csv_path.empty() ? nullptr : std::fopen(csv_path.c_str(), "w");
  if (csv) fmt::print(csv, "mesh,nodes,tets,solver,nnz,flops,analyze_s,factor_s,solve_s,solve31_s,bytes\n");
  std::vector<Case> cases;
  for (Case& c : make_cases(largest))
    if (c.name.find(only) != std::string::npos) cases.push_back(std::move(c));

  fmt::print("# Sparse Cholesky, {} thread{}\n\n", threads, threads == 1 ? "" : "s");
  const auto solves = [&] {
    fmt::print(
        "\n## One right-hand side: solve, solve with L in single precision, and reading L twice, ms\n\n"
        "| mesh | L [MB] | solve, 1 thread | {0} threads | ratio | rounded, 1 | {0} | ratio | reading, 1 | "
        "{0} | "
        "ratio |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
        threads);
    for (const Case& c : cases) run_solves(c, poisson, budget, threads);
    fmt::print(
        "\n## Right-hand sides that go along with the factorisation, {} threads, ms\n\n"
        "| mesh | columns | factor + forward + backward | factor with them + backward | in single precision "
        "| "
        "its error |\n|---|---|---|---|---|---|\n",
        threads);
    set_threads(threads);
    for (const Case& c : cases) run_carried(c, poisson, budget);
  };
  if (only_solves) {
    solves();
    return 0;
  }
  fmt::print(
      "| mesh | nodes | solver | nnz(L) [M] | GFLOP | factor [ms] | GFLOP/s | solve [ms] | 31 solves [ms] "
      "| "
      "memory [MiB] | residual |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const Case& c : cases) run_case(c, poisson, budget, threads, csv);
  solves();
  if (!no_conjac) {
    fmt::print(
        "\n## Linear algebra of a step: VANILLA (factor, one solve) and ConJac (factor, S, J, one solve), "
        "ms\n\n"
        "| mesh | solver | VANILLA | n_d = 4 | n_d = 6 | n_d = 10 |\n|---|---|---|---|---|---|\n");
    for (const Case& c : cases) run_conjac(c, poisson, budget);
  }
  if (!no_roofline) run_roofline();
  if (csv) std::fclose(csv);
  return 0;
}
