#include "synthetic.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace limber::test {
namespace {

constexpr double kLength = 1, kWidth = 0.25;  // [m]

// The faces that only one tetrahedron has, turned outwards.
void find_surface(ReplayTopology& t) {
  std::map<Tri, std::pair<Tri, Index>> open;
  for (Index e = 0; e < t.element_count(); ++e) {
    const Tet& n = t.elements[static_cast<std::size_t>(e)];
    for (const Tri& face :
         {Tri{n[1], n[2], n[3]}, Tri{n[0], n[3], n[2]}, Tri{n[0], n[1], n[3]}, Tri{n[0], n[2], n[1]}}) {
      Tri key = face;
      std::sort(key.begin(), key.end());
      if (auto it = open.find(key); it != open.end())
        open.erase(it);
      else
        open.emplace(key, std::pair{face, e});
    }
  }
  for (const auto& [key, value] : open) {
    t.surface.push_back(value.first);
    t.surface_element.push_back(value.second);
  }
}

}  // namespace

ReplayTopology bar_topology(const BarOptions& o, bool cut) {
  const auto [nx, ny, nz] = o.cells;
  ReplayTopology t;
  auto id = [&, ny = ny, nz = nz](Index i, Index j, Index k) { return (i * (ny + 1) + j) * (nz + 1) + k; };
  for (Index i = 0; i <= nx; ++i)
    for (Index j = 0; j <= ny; ++j)
      for (Index k = 0; k <= nz; ++k)
        for (double v : {kLength * i / nx, kWidth * (double(j) / ny - 0.5), kWidth * (double(k) / nz - 0.5)})
          t.rest.push_back(static_cast<float>(v));
  for (Index i = 0; i < nx; ++i)
    for (Index j = 0; j < ny; ++j)
      for (Index k = 0; k < nz; ++k) {
        const Index c[8] = {id(i, j, k),         id(i + 1, j, k),        id(i, j + 1, k),
                            id(i + 1, j + 1, k), id(i, j, k + 1),        id(i + 1, j, k + 1),
                            id(i, j + 1, k + 1), id(i + 1, j + 1, k + 1)};
        for (const auto& n : {Tet{0, 1, 3, 7}, Tet{0, 3, 2, 7}, Tet{0, 2, 6, 7}, Tet{0, 6, 4, 7},
                              Tet{0, 4, 5, 7}, Tet{0, 5, 1, 7}})
          t.elements.push_back({c[n[0]], c[n[1]], c[n[2]], c[n[3]]});
      }
  if (cut) {
    t.step = o.frames / 2;
    const Index mid = nx / 2;
    std::map<Index, Index> twin;
    for (Index j = 0; j <= ny; ++j)
      for (Index k = 0; k <= nz; ++k) {
        const Index a = id(mid, j, k);
        twin[a] = t.node_count();
        for (int d = 0; d < 3; ++d) t.rest.push_back(t.rest[static_cast<std::size_t>(3 * a + d)]);
      }
    for (std::size_t e = static_cast<std::size_t>(mid * ny * nz * 6); e < t.elements.size(); ++e)
      for (Index& n : t.elements[e])
        if (auto it = twin.find(n); it != twin.end()) n = it->second;
  }
  find_surface(t);
  t.bodies.push_back({"bar", 0, t.element_count()});
  t.regions = {"soft", "stiff"};
  ReplayField young{"young", "Pa", 1, {}}, region{"region", "", 1, {}}, fibre{"fibre", "", 3, {}};
  for (const Tet& e : t.elements) {
    float x = 0;
    for (Index n : e) x += t.rest[static_cast<std::size_t>(3 * n)] / 4;
    const bool stiff = x > 0.6f * kLength;
    young.values.push_back(stiff ? 1e6f : 1e5f);
    region.values.push_back(stiff ? 1 : 0);
    for (float a : {stiff ? 0.0f : 1.0f, 0.0f, 0.0f}) fibre.values.push_back(a);
  }
  t.element_fields = {young, region, fibre};
  ReplayField candidate{"candidate", "", 1, {}};
  for (Index i = 0; i < t.node_count(); ++i) candidate.values.push_back(i % 7 == 3 ? 1 : 0);
  t.node_fields = {candidate};
  return t;
}

std::vector<float> bar_positions(const ReplayTopology& topology, const BarOptions& o, double t, bool cut) {
  std::mt19937 rng(static_cast<unsigned>(std::lround(t * 1000)));
  std::uniform_real_distribution<double> random(-o.noise, o.noise);
  const double bend = o.amplitude * std::sin(6 * t);
  const Index before_cut = (o.cells[0] + 1) * (o.cells[1] + 1) * (o.cells[2] + 1);
  std::vector<float> x(topology.rest.size());
  for (Index i = 0; i < topology.node_count(); ++i) {
    const float* X = &topology.rest[static_cast<std::size_t>(3 * i)];
    // A circular arc: the section at X0 is turned by `bend` X0 / length.
    const double a = bend * X[0] / kLength, r = std::abs(bend) > 1e-9 ? kLength / bend : 0;
    double y[3] = {r != 0 ? r * std::sin(a) - X[1] * std::sin(a) : X[0],
                   r != 0 ? r * (1 - std::cos(a)) + X[1] * std::cos(a) : X[1], X[2]};
    const bool right = i >= before_cut || X[0] > 0.5f * kLength + 1e-5f;
    if (cut && right) y[0] += 0.1 + 0.2 * t;
    for (int d = 0; d < 3; ++d)
      x[static_cast<std::size_t>(3 * i + d)] = static_cast<float>(y[d] + (o.noise > 0 ? random(rng) : 0));
  }
  return x;
}

std::vector<float> bar_basis(const ReplayTopology& topology, Index functions) {
  std::vector<float> out;
  for (Index i = 0; i < topology.node_count(); ++i) {
    const float* X = &topology.rest[static_cast<std::size_t>(3 * i)];
    for (Index j = 0; j < functions; ++j) {
      const double a = M_PI * (j % 4) * X[0] / kLength, b = M_PI * (j / 4 % 4) * (X[1] / kWidth + 0.5),
                   c = M_PI * (j / 16) * (X[2] / kWidth + 0.5);
      out.push_back(static_cast<float>(std::cos(a) * std::cos(b) * std::cos(c)));
    }
  }
  return out;
}

std::vector<float> bar_coordinates(const BarOptions& o, double t) {
  std::vector<float> out;
  for (Index j = 0; j < o.functions; ++j)
    for (int d = 0; d < 3; ++d) {
      const double phase = 1.7 * j + 2.1 * d, size = j % 4 == 0 && j < 16 ? 0.02 : 0.1 / (1 + j * j);
      out.push_back(static_cast<float>(o.amplitude * size * (std::sin(6 * t + phase) - std::sin(phase))));
    }
  return out;
}

void write_bar(const std::filesystem::path& path, const BarOptions& o) {
  ReplayHeader header;
  header.scene = "bending bar";
  header.description = "A bar that is bent by a formula, half of it ten times stiffer.";
  header.method = "formula";
  header.h = 0.01;
  header.end = 0.01 * o.frames;
  header.gravity = {0, -9.81, 0};
  *header.parameters = {{"amplitude", o.amplitude}, {"window", 10}};
  *header.facts = {{"threads", 2}};
  if (o.obstacle) {
    ReplayObstacle floor, ball;
    floor.name = "floor";
    floor.shape = "plane";
    floor.point = {0, -0.5, 0};
    ball.name = "ball";
    ball.shape = "sphere";
    ball.point = {0.7, -0.35, 0};
    ball.radius = 0.15;
    header.obstacles = {floor, ball};
  }
  ReplayWriter w = ReplayWriter::create(path, header);
  ReplayTopology topology = bar_topology(o, false);
  const std::vector<float> basis = bar_basis(topology, o.functions);
  if (o.functions > 0 && !o.positions) {
    topology.functions = o.functions;
    topology.basis = basis;
  }
  w.add_topology(topology);
  const auto reduced_positions = [&](double t) {
    std::vector<float> x = topology.rest;
    const std::vector<float> u = bar_coordinates(o, t);
    const auto p = static_cast<std::size_t>(o.functions);
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < p; ++j) x[i] += basis[p * (i / 3) + j] * u[3 * j + i % 3];
    return x;
  };
  bool cut = false;
  for (Index i = 0; i < o.frames; ++i) {
    const double t = o.interval * i;
    if (o.cut && i == o.frames / 2) {
      cut = true;
      topology = bar_topology(o, true);
      w.add_topology(topology);
    }
    ReplayFrame f;
    f.t = t;
    f.step = 2 * i;
    if (o.functions > 0 && !o.positions) {
      f.coordinates = bar_coordinates(o, t);
      const std::vector<float> ahead = bar_coordinates(o, t + 1e-3);
      for (std::size_t k = 0; k < ahead.size(); ++k)
        f.velocity_coordinates.push_back((ahead[k] - f.coordinates[k]) / 1e-3f);
      ReplayField pinned{"pinned", "", 1, {}};
      for (std::size_t k = 0; k < topology.rest.size(); k += 3)
        pinned.values.push_back(topology.rest[k] < 1e-6f ? 1 : 0);
      f.node_fields = {pinned};
      if (o.obstacle) f.obstacles.resize(2);
      w.add_row({i, t, {{"energy/kinetic", 1.0}}});
      w.add_frame(f);
      continue;
    }
    const auto place = [&](double time) {
      return o.functions > 0 ? reduced_positions(time) : bar_positions(topology, o, time, cut);
    };
    f.x = place(t);
    ReplayField velocity{"velocity", "m/s", 3, {}}, dynamic{"dynamic", "", 1, {}},
        pinned{"pinned", "", 1, {}};
    const std::vector<float> ahead = place(t + 1e-3);
    for (Index n = 0; n < topology.node_count(); ++n) {
      const auto k = static_cast<std::size_t>(3 * n);
      for (std::size_t d = 0; d < 3; ++d) velocity.values.push_back((ahead[k + d] - f.x[k + d]) / 1e-3f);
      dynamic.values.push_back(n % 7 == 3 && (n / 7 + i / 5) % 2 == 0 ? 1 : 0);
      pinned.values.push_back(topology.rest[k] < 1e-6f ? 1 : 0);
    }
    ReplayField energy{"energy_density", "J/m^3", 1, {}};
    for (const Tet& e : topology.elements) {
      float y = 0;
      for (Index n : e) y += topology.rest[static_cast<std::size_t>(3 * n + 1)] / 4;
      const double strain = o.amplitude * std::sin(6 * t) * y / kLength;
      energy.values.push_back(static_cast<float>(0.5 * 1e5 * strain * strain));
    }
    if (o.functions > 0) {
      f.node_fields = {velocity, pinned};
      if (o.obstacle) f.obstacles.resize(2);
      w.add_row({i, t, {{"energy/kinetic", 1.0}}});
      w.add_frame(f);
      continue;
    }
    f.node_fields = {velocity, dynamic, pinned};
    f.element_fields = {energy};
    if (o.obstacle) {
      f.obstacles.resize(2);
      f.obstacles[1].translation = {static_cast<float>(0.2 * std::sin(3 * t)), 0, 0};
    }
    for (int s = 0; s < 2; ++s) {
      const double now = t - 0.01 * (1 - s);
      if (now < 0) continue;
      const double bend = o.amplitude * std::sin(6 * now), rate = 6 * o.amplitude * std::cos(6 * now);
      w.add_row({2 * i - 1 + s,
                 now,
                 {{"energy/kinetic", 0.02 * rate * rate},
                  {"energy/elastic", 3 * bend * bend},
                  {"energy/gravity", -0.5 * bend},
                  {"dofs", 30.0 + 3 * (i / 5)},
                  {"liveliness/mean", std::abs(rate)},
                  {"liveliness/max", 1.7 * std::abs(rate)},
                  {"phase/assemble", 1.2},
                  {"phase/factor", 2.5 + 0.3 * std::sin(20 * now)},
                  {"phase/solve", 0.8}}});
    }
    w.add_frame(f);
  }
  if (o.finished) w.finish({{"wall time [s]", 1.5}, {"ms per step", 4.5}});
}

std::filesystem::path scratch(const std::string& name) {
  const std::filesystem::path p = std::filesystem::path(LIMBER_BINARY_DIR) / "scratch" / "view" / name;
  std::filesystem::remove_all(p);
  std::filesystem::create_directories(p);
  return p;
}

}  // namespace limber::test
