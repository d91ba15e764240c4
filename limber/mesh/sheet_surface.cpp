#include <limber/core/error.hpp>
#include <limber/mesh/check.hpp>
#include <limber/mesh/sheet_surface.hpp>
#include <limber/mesh/surface.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace limber {
namespace {

// Conjugate gradients on the Laplacian of the inner vertices, one coordinate at a time.
void solve_tutte(const std::vector<std::vector<Index>>& ring, const std::vector<char>& fixed,
                 std::vector<Vec2>& X) {
  const std::size_t n = X.size();
  const auto product = [&](const std::vector<double>& p, std::vector<double>& out) {
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = 0;
      if (fixed[i]) continue;
      out[i] = static_cast<double>(ring[i].size()) * p[i];
      for (const Index j : ring[i]) out[i] -= p[static_cast<std::size_t>(j)];
    }
  };
  for (int axis = 0; axis < 2; ++axis) {
    std::vector<double> x(n), r(n), p, q(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = fixed[i] ? X[i][axis] : 0;
    product(x, r);
    double rr = 0;
    for (double& v : r) {
      v = -v;
      rr += v * v;
    }
    p = r;
    const double enough = 1e-28 * rr;
    for (std::size_t k = 0; k < 20 * n + 100 && rr > enough; ++k) {
      product(p, q);
      double pq = 0;
      for (std::size_t i = 0; i < n; ++i) pq += p[i] * q[i];
      const double alpha = rr / pq;
      double next = 0;
      for (std::size_t i = 0; i < n; ++i) {
        x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
        next += r[i] * r[i];
      }
      for (std::size_t i = 0; i < n; ++i) p[i] = r[i] + next / rr * p[i];
      rr = next;
    }
    for (std::size_t i = 0; i < n; ++i) X[i][axis] = x[i];
  }
}

bool is_flat(const TriMesh& mesh) {
  Vec3 n = Vec3::Zero();
  for (const Tri& t : mesh.triangles) n += triangle_normal(mesh.nodes, t);
  if (!(n.norm() > 0)) return false;
  n.normalize();
  const double size = bounding_box(mesh.nodes).size().maxCoeff();
  return std::all_of(mesh.nodes.begin(), mesh.nodes.end(),
                     [&](const Vec3& p) { return std::abs(n.dot(p - mesh.nodes.front())) <= 1e-6 * size; });
}

}  // namespace

Sheet sheet_of_surface(const TriMesh& surface, const std::string& where) {
  const auto refuse = [&](const std::string& message) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {}", where, message));
  };
  const MeshReport report = check_mesh(surface, TriRole::kSurface);
  for (const MeshProblem& p : report.problems)
    if ((p.fatal && p.kind != MeshProblemKind::kOpenSurface) ||
        p.kind == MeshProblemKind::kNonManifoldSurface || p.kind == MeshProblemKind::kOrientation)
      refuse(p.message);
  if (surface.node_fields.contains("uv") || is_flat(surface)) return sheet_from_mesh(surface, where);

  // The border, walked along.
  std::vector<Vec2> X(surface.nodes.size(), Vec2::Zero());
  const Sheet plain = make_sheet(surface.nodes, X, surface.triangles);
  const SheetBorder border = sheet_border(plain);
  std::vector<char> fixed(X.size(), 0);
  std::vector<Index> loop;
  Index on = 0;
  for (Index i = 0; i < plain.vertices(); ++i) on += border.on(i);
  if (on == 0) refuse("the surface is closed; expected one with a border");
  Index first = 0;
  while (!border.on(first)) ++first;
  for (Index i = first; loop.empty() || i != first; i = border.after[i]) {
    loop.push_back(i);
    if (static_cast<Index>(loop.size()) > on) refuse("the border crosses itself");
  }
  if (static_cast<Index>(loop.size()) != on || report.components != 1 || euler_characteristic(plain) != 1)
    refuse(fmt::format(
        "a curved surface with {} connected part{} and Euler characteristic {}; expected one part with one "
        "border and no handle (characteristic 1), or texture coordinates",
        report.components, report.components == 1 ? "" : "s", euler_characteristic(plain)));
  std::vector<double> arc{0};
  for (std::size_t k = 0; k < loop.size(); ++k)
    arc.push_back(arc.back() + (surface.nodes[loop[(k + 1) % loop.size()]] - surface.nodes[loop[k]]).norm());
  for (std::size_t k = 0; k < loop.size(); ++k) {
    const double a = 2 * std::numbers::pi * arc[k] / arc.back();
    X[loop[k]] = {std::cos(a), std::sin(a)};
    fixed[loop[k]] = 1;
  }
  std::vector<std::vector<Index>> ring(X.size());
  for (const auto& e : surface_edges(surface.triangles).edges) {
    ring[e.nodes[0]].push_back(e.nodes[1]);
    ring[e.nodes[1]].push_back(e.nodes[0]);
  }
  solve_tutte(ring, fixed, X);
  Sheet s = make_sheet(surface.nodes, std::move(X), surface.triangles);
  check_sheet(s, where);
  return s;
}

TriMesh adapted_surface(const TriMesh& surface, const SurfaceAdaptOptions& options, const std::string& where,
                        SurfaceAdaptReport* report) {
  Sheet s = sheet_of_surface(surface, where);
  for (const auto& [name, set] : surface.node_sets)
    for (const Index i : set) s.tag[i] = i;
  const double cosine = std::cos(options.feature_angle * std::numbers::pi / 180);
  const SurfaceEdges edges = surface_edges(s.triangles);
  for (const auto& e : edges.edges) {
    if (e.end - e.begin != 2) continue;
    const Vec3 n = triangle_normal(s.x, s.triangles[edges.triangles[e.begin]]),
               m = triangle_normal(s.x, s.triangles[edges.triangles[e.begin + 1]]);
    if (n.dot(m) < cosine * n.norm() * m.norm()) s.preserved.push_back(e.nodes);
  }
  std::sort(s.preserved.begin(), s.preserved.end());
  AdaptOptions adapt = options.adapt;
  adapt.in_space = true;
  SurfaceAdaptReport local;
  SurfaceAdaptReport& out = report ? *report : local;
  out = {};
  const Sheet before = s;
  const SheetLocator locator(before);
  for (; out.rounds < options.rounds; ++out.rounds) {
    SheetChange change = adapted(s, adapt);
    s = std::move(change.sheet);
    // New vertices go to their place on the old surface: chords of chords would leave it.
    for (std::size_t i = 0; i < change.origin.size(); ++i) {
      if (change.origin[i] >= 0) continue;
      const SheetLocator::Place place = locator.find(s.X[i], 0);
      const Tri& t = before.triangles[place.triangle];
      s.x[i].setZero();
      for (int k = 0; k < 3; ++k) s.x[i] += place.weights[k] * before.x[t[k]];
    }
    out.splits += change.splits;
    out.flips += change.flips;
    out.collapses += change.collapses;
    if (change.splits == 0 && change.collapses == 0) break;
  }
  TriMesh mesh;
  mesh.nodes = std::move(s.x);
  mesh.triangles = std::move(s.triangles);
  if (surface.node_fields.contains("uv")) {
    Field& uv = mesh.node_fields["uv"];
    uv.components = 2;
    for (const Vec2& X : s.X) uv.values.insert(uv.values.end(), {X[0], X[1]});
  }
  std::vector<Index> now(surface.nodes.size(), -1);
  for (std::size_t i = 0; i < s.tag.size(); ++i)
    if (s.tag[i] >= 0) now[static_cast<std::size_t>(s.tag[i])] = static_cast<Index>(i);
  for (const auto& [name, set] : surface.node_sets) {
    auto& target = mesh.node_sets[name];
    for (const Index i : set) target.push_back(now[i]);
    std::sort(target.begin(), target.end());
  }
  return mesh;
}

}  // namespace limber
