#include <limber/methods/cloth/cloth_mesh.hpp>

#include <limber/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

namespace limber::cloth {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_from(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double kRoom = 2;  // altitude of triangles at EOL vertices over what slides in a step, at least
constexpr double kMostAltitude = 0.5;    // of the smallest edge
constexpr std::int64_t kStaysSteps = 3;  // an EOL vertex that nothing presses is one for so many steps more

// Contacts of cloth that an EOL vertex or edge of the same feature will have reached in this step, or has
// just left: the line is there already.
void leave_out_swept(const Sheet& sheet, double h, double size, std::vector<FeatureContact>& contacts) {
  std::map<std::int64_t, std::vector<std::array<Index, 2>>> lines;  // feature -> edges and vertices on it
  for (const auto& edge : sheet.preserved)
    for (const Index end : edge) lines[sheet.feature[at(end)]].push_back(edge);
  for (Index i = 0; i < sheet.vertices(); ++i)
    if (sheet.eol(i)) lines[sheet.feature[at(i)]].push_back({i, i});
  std::erase_if(contacts, [&](const FeatureContact& c) {
    const auto known = lines.find(c.feature);
    if (known == lines.end()) return false;
    Vec2 X = Vec2::Zero();
    for (int k = 0; k < c.count; ++k)
      X += c.weights[static_cast<std::size_t>(k)] * sheet.X[at(c.vertices[static_cast<std::size_t>(k)])];
    const std::int64_t patch = sheet.patch[at(c.vertices[0])];
    return std::any_of(known->second.begin(), known->second.end(), [&](const auto& edge) {
      if (sheet.patch[at(edge[0])] != patch) return false;
      const Vec2 a = sheet.X[at(edge[0])], d = sheet.X[at(edge[1])] - a;
      const double length2 = d.squaredNorm();
      const double s = length2 > 0 ? std::clamp((X - a).dot(d) / length2, 0.0, 1.0) : 0.0;
      const double sweep = h * std::max(sheet.V[at(edge[0])].norm(), sheet.V[at(edge[1])].norm());
      // A vertex alone stands for its line only as far as that sweeps; an edge also for what is close to it.
      const double reach = edge[0] == edge[1] ? 1.5 * sweep : std::max(2 * sweep, 0.5 * size);
      return (a + s * d - X).norm() < reach;
    });
  });
}

// Unit, by area.
std::vector<Vec3> vertex_normals(const Sheet& sheet) {
  std::vector<Vec3> out(sheet.x.size(), Vec3::Zero());
  for (const Tri& t : sheet.triangles) {
    const Vec3 n = triangle_normal(sheet.x, t);
    for (const Index i : t) out[at(i)] += n;
  }
  for (Vec3& n : out)
    if (n.norm() > 0) n.normalize();
  return out;
}

// On which side of the cloth its features are: known of vertices that were there before, told by the contact
// of new ones, and the same along a line.
std::vector<std::uint8_t> sides_of(const Prepared& now, const Sheet& before,
                                   const std::vector<std::uint8_t>& side,
                                   const std::vector<FeatureContact>& contacts) {
  const Sheet& sheet = now.sheet;
  const std::vector<Vec3> normals = vertex_normals(before);
  std::vector<std::uint8_t> out(sheet.x.size(), 0);
  for (Index i = 0; i < sheet.vertices(); ++i) {
    if (!sheet.eol(i)) continue;
    if (const Index from = now.origin[at(i)];
        from >= 0 && before.eol(from) && !side.empty() && side[at(from)] != 0) {
      out[at(i)] = side[at(from)];
      continue;
    }
    double nearest = std::numeric_limits<double>::infinity();
    for (const FeatureContact& c : contacts) {
      if (c.feature != sheet.feature[at(i)]) continue;
      Vec2 X = Vec2::Zero();
      Vec3 n = Vec3::Zero();
      for (int k = 0; k < c.count; ++k) {
        X += c.weights[static_cast<std::size_t>(k)] * before.X[at(c.vertices[static_cast<std::size_t>(k)])];
        n += normals[at(c.vertices[static_cast<std::size_t>(k)])];
      }
      const double distance = (X - sheet.X[at(i)]).norm();
      if (distance >= nearest) continue;
      nearest = distance;
      out[at(i)] = n.dot(c.n) > 0 ? 1 : 2;
    }
  }
  for (int round = 0; round < 2; ++round)
    for (const auto& edge : sheet.preserved)
      for (int k = 0; k < 2; ++k)
        if (const Index i = edge[static_cast<std::size_t>(k)]; sheet.eol(i) && out[at(i)] == 0)
          out[at(i)] = out[at(edge[static_cast<std::size_t>(1 - k)])];
  return out;
}

}  // namespace

std::vector<std::optional<Chart>> find_charts(const Model& model) {
  std::vector<std::optional<Chart>> out;
  for (const Body& body : model.bodies) {
    Vec3 sum = Vec3::Zero();
    double area = 0;
    for (Index e = body.elements.begin; e < body.elements.end; ++e) {
      const Tet& t = model.mesh.elements[at(e)];
      const Vec3 n = cross(model.mesh.rest[at(t[1])] - model.mesh.rest[at(t[0])],
                           model.mesh.rest[at(t[2])] - model.mesh.rest[at(t[0])]);
      sum += n;
      area += n.norm();
    }
    // Triangles that all turn the same way in one plane have normals that add up.
    if (!(sum.norm() > (1 - 1e-9) * area)) {
      out.emplace_back();
      continue;
    }
    Chart chart;
    const Vec3 n = sum.normalized();
    int axis = 0;  // along x as far as that lies in the plane, else y
    if (std::abs(n[0]) > 0.9) axis = 1;
    chart.a = (Vec3::Unit(axis) - n[axis] * n).normalized();
    chart.b = cross(n, chart.a);
    const Vec3& any = model.mesh.rest[at(model.mesh.elements[at(body.elements.begin)][0])];
    chart.origin = n.dot(any) * n;
    out.emplace_back(chart);
  }
  return out;
}

Sheet sheet_of(const Model& model, const State& state, const std::vector<std::optional<Chart>>& charts) {
  Sheet s;
  const std::size_t n = at(model.nodes());
  s.x.resize(n);
  s.v.resize(n);
  s.X.assign(n, Vec2::Zero());
  s.V.assign(n, Vec2::Zero());
  s.feature.assign(n, -1);
  s.parameter.assign(n, 0.0);
  s.age.assign(n, 0);
  s.tag.assign(n, -1);
  s.patch.resize(n);
  const ClothMemory* m = memory_of<ClothMemory>(state);
  const bool known = m && m->X.size() == 2 * n;
  for (std::size_t i = 0; i < n; ++i) {
    const auto k = static_cast<Index>(i);
    s.x[i] = node(state.x, k);
    s.v[i] = node(state.v, k);
    s.patch[i] = model.body_of_node[i];
    const auto& chart = charts[at(model.body_of_node[i])];
    if (known) {
      s.X[i] = Vec2(m->X[2 * i], m->X[2 * i + 1]);
      s.V[i] = Vec2(m->V[2 * i], m->V[2 * i + 1]);
      s.feature[i] = m->feature[i];
      s.parameter[i] = m->parameter[i];
      s.age[i] = m->age[i];
    } else if (chart) {
      s.X[i] = chart->material(model.mesh.rest[i]);
    }
  }
  if (known)
    for (std::size_t k = 0; k + 1 < m->preserved.size(); k += 2)
      s.preserved.push_back({m->preserved[k], m->preserved[k + 1]});
  // What the script holds or pulls by itself stays a vertex.
  for (const Hold& hold : model.holds)
    for (const Index i : hold.nodes) s.tag[at(i)] = i;
  for (const Load& load : model.loads)
    if (load.nodes.size() < n || !load.acceleration.empty())
      for (const Index i : load.nodes) s.tag[at(i)] = i;
  for (const Tet& t : model.mesh.elements) s.triangles.push_back({t[0], t[1], t[2]});
  return s;
}

void store(const Sheet& sheet, ClothMemory& m) {
  const std::size_t n = sheet.x.size();
  m.X.resize(2 * n);
  m.V.resize(2 * n);
  for (std::size_t i = 0; i < n; ++i)
    for (int k = 0; k < 2; ++k) {
      m.X[2 * i + static_cast<std::size_t>(k)] = sheet.X[i][k];
      m.V[2 * i + static_cast<std::size_t>(k)] = sheet.V[i][k];
    }
  m.feature = sheet.feature;
  m.parameter = sheet.parameter;
  m.age = sheet.age;
  m.preserved.clear();
  for (const auto& edge : sheet.preserved) m.preserved.insert(m.preserved.end(), {edge[0], edge[1]});
}

std::vector<std::uint8_t> short_features(const FeatureSet& features, std::span<const Obstacle> obstacles,
                                         double size) {
  std::vector<std::uint8_t> out(features.size(), 0);
  std::vector<std::uint8_t> long_ends(features.size(), 0), ends(features.size(), 0);
  for (std::size_t f = 0; f < features.size(); ++f) {
    const Feature& feature = features[f];
    if (!feature.line()) continue;
    double length = 0;
    for (std::size_t k = 1; k < feature.points.size(); ++k)
      length += (feature.points[k] - feature.points[k - 1]).norm();
    out[f] = length * placement_at(obstacles[at(feature.obstacle)], 0).scale < size;
    for (const Index corner : feature.ends)
      if (corner >= 0) (out[f] ? ends : long_ends)[at(corner)] = 1;
  }
  for (std::size_t f = 0; f < features.size(); ++f)
    if (features[f].kind == FeatureKind::kCorner) out[f] = ends[f] && !long_ends[f];
  return out;
}

Prepared prepare(std::span<const Obstacle> obstacles, const State& state, double h, const Sheet& before,
                 const std::vector<std::uint8_t>& side, const ClothBody& body,
                 const std::vector<Fabric>& of_patch, const FeatureSet& features,
                 const std::vector<std::uint8_t>& too_short, const ClothOptions& options) {
  Prepared out;
  Sheet sheet = before;
  const auto start = Clock::now();
  std::vector<FeatureContact> contacts;
  if (options.mesh == ClothMesh::kConformal) {
    if (options.eol) {
      // Vertices that nothing has pressed for some steps are on no feature any more.
      const std::vector<std::vector<Index>> around = triangles_around(sheet);
      std::vector<std::pair<Index, Vec3>> lifted;
      for (Index i = 0; i < sheet.vertices(); ++i)
        if (sheet.eol(i) && sheet.age[at(i)] < -kStaysSteps)
          lifted.emplace_back(i, joined_velocity(sheet, body, around[at(i)], i));
      for (const auto& [i, v] : lifted) {
        sheet.v[at(i)] = v;
        sheet.V[at(i)].setZero();
        sheet.feature[at(i)] = -1;
        sheet.age[at(i)] = 0;
      }
      std::erase_if(sheet.preserved,
                    [&](const auto& edge) { return !sheet.eol(edge[0]) || !sheet.eol(edge[1]); });
    } else {
      // They move with the material, off the features: begin anew.
      std::fill(sheet.feature.begin(), sheet.feature.end(), -1);
      std::fill(sheet.age.begin(), sheet.age.end(), 0);
      sheet.preserved.clear();
    }
    contacts = detect_features(features, obstacles, sheet, state.t, h, options.detect);
    std::erase_if(contacts, [&](const FeatureContact& c) { return too_short[at(c.feature)] != 0; });
    if (options.eol) leave_out_swept(sheet, h, options.insert.size, contacts);
  }
  out.detect_seconds = seconds_from(start);
  const auto remeshing = Clock::now();
  if (options.mesh == ClothMesh::kConformal) {
    // Room for the material that slides: triangles ahead of it must not be flatter than it goes in a step.
    InsertOptions insert = options.insert;
    double fastest = 0;
    for (const Vec2& V : sheet.V) fastest = std::max(fastest, V.norm());
    insert.altitude = std::clamp(kRoom * fastest * h / insert.size, insert.altitude, kMostAltitude);
    insert.collapse = std::max(insert.collapse, insert.altitude);
    Insertion insertion =
        insert_and_adapt(sheet, features, obstacles, state.t, contacts, insert, options.adapt);
    if (!insertion.clean) out.fallbacks["remesh-unclean"] += 1;
    out.sheet = std::move(insertion.change.sheet);
    out.origin = std::move(insertion.change.origin);
    if (options.eol) {
      // Vertices that lift off are not drawn back.
      for (std::size_t i = 0; i < out.origin.size(); ++i)
        if (const Index from = out.origin[i]; from >= 0 && sheet.eol(from) && sheet.age[at(from)] < 0)
          out.sheet.x[i] = sheet.x[at(from)];
      // Section 2.6.2: velocities of vertices whose kind has changed.
      ClothBody fresh;
      for (const Tri& t : out.sheet.triangles)
        fresh.fabric.push_back(of_patch[static_cast<std::size_t>(out.sheet.patch[at(t[0])])]);
      update_rest(out.sheet, fresh);
      const std::vector<std::vector<Index>> around = triangles_around(out.sheet);
      const SheetBorder border = sheet_border(out.sheet);
      for (const Index i : insertion.stopped) {
        out.sheet.v[at(i)] = joined_velocity(out.sheet, fresh, around[at(i)], i);
        out.sheet.V[at(i)].setZero();
      }
      out.side = sides_of(out, sheet, side, contacts);
      std::vector<EolVertex> all = eol_vertices(out.sheet, out.side, features, obstacles, state.t, h);
      for (const EolVertex& e : all) {
        if (!std::binary_search(insertion.became.begin(), insertion.became.end(), e.vertex)) continue;
        const EolGeometry g = eol_geometry(out.sheet, fresh, around[at(e.vertex)], border, e);
        const Vec3 w = out.sheet.v[at(e.vertex)] - e.velocity;
        Vec3 v;
        split_velocity(g, w, v, out.sheet.V[at(e.vertex)]);
        out.sheet.v[at(e.vertex)] = v + e.velocity;
      }
    }
  } else {
    SheetChange change = adapted(sheet, options.adapt);
    out.sheet = std::move(change.sheet);
    out.origin = std::move(change.origin);
  }
  // Those of one body together, bodies in their order.
  std::stable_sort(out.sheet.triangles.begin(), out.sheet.triangles.end(), [&](const Tri& a, const Tri& b) {
    return out.sheet.patch[at(a[0])] < out.sheet.patch[at(b[0])];
  });
  out.same = out.sheet.triangles == before.triangles && out.sheet.vertices() == before.vertices();
  for (std::size_t i = 0; i < out.origin.size() && out.same; ++i)
    out.same = out.origin[i] == static_cast<Index>(i);
  out.remesh_seconds = seconds_from(remeshing);
  return out;
}

TopologyChange change_of(const Model& model, const Prepared& prepared,
                         const std::vector<std::optional<Chart>>& charts, ClothMemory memory) {
  const Sheet& sheet = prepared.sheet;
  TopologyChange out;
  // A vertex that is new is a copy of one that nobody holds, as far as the script is concerned.
  std::vector<Index> plain(model.bodies.size(), -1);
  std::vector<std::uint8_t> held(at(model.nodes()), 0);
  for (const Hold& hold : model.holds)
    for (const Index i : hold.nodes) held[at(i)] = 1;
  for (const Load& load : model.loads)
    if (static_cast<Index>(load.nodes.size()) < model.nodes() || !load.acceleration.empty())
      for (const Index i : load.nodes) held[at(i)] = 1;
  for (Index i = model.nodes() - 1; i >= 0; --i)
    if (!held[at(i)]) plain[at(model.body_of_node[at(i)])] = i;
  const std::size_t n = sheet.x.size();
  out.x.resize(static_cast<Eigen::Index>(3 * n));
  out.v.resize(static_cast<Eigen::Index>(3 * n));
  for (std::size_t i = 0; i < n; ++i) {
    const auto k = static_cast<Index>(i);
    const auto b = static_cast<std::size_t>(sheet.patch[i]);
    out.rest.push_back(charts[b]->rest(sheet.X[i]));
    out.nodes.add_copy(prepared.origin[i] >= 0 ? prepared.origin[i] : plain[b]);
    node(out.x, k) = sheet.x[i];
    node(out.v, k) = sheet.v[i];
  }
  for (const Tri& t : sheet.triangles) {
    out.elements.push_back(as_element(t));
    out.element_values.add_copy(model.bodies[static_cast<std::size_t>(sheet.patch[at(t[0])])].elements.begin);
  }
  // What the last step ended with belongs to the vertices that stay.
  std::vector<std::uint8_t> active(6 * n, 0);
  std::vector<double> friction(memory.friction.empty() ? 0 : 2 * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    const Index from = prepared.origin[i];
    if (from < 0) continue;
    for (std::size_t k = 0; k < 6 && !memory.active.empty(); ++k)
      active[6 * i + k] = memory.active[6 * at(from) + k];
    for (std::size_t k = 0; k < 2 && !friction.empty(); ++k)
      friction[2 * i + k] = memory.friction[2 * at(from) + k];
  }
  store(sheet, memory);
  memory.side = prepared.side;
  memory.active = std::move(active);
  memory.friction = std::move(friction);
  out.memory = MethodMemory::of(std::move(memory), 0);
  return out;
}

std::vector<EolVertex> eol_vertices(const Sheet& sheet, const std::vector<std::uint8_t>& side,
                                    const FeatureSet& features, std::span<const Obstacle> obstacles, double t,
                                    double h) {
  std::vector<EolVertex> out;
  const std::vector<Vec3> normals = vertex_normals(sheet);
  for (Index i = 0; i < sheet.vertices(); ++i) {
    if (!sheet.eol(i)) continue;
    const Feature& f = features[static_cast<std::size_t>(sheet.feature[at(i)])];
    const Obstacle& obstacle = obstacles[at(f.obstacle)];
    const FeaturePlace then = feature_place(f, placement_at(obstacle, t + h), sheet.parameter[at(i)]);
    const Vec3 now = feature_point(f, placement_at(obstacle, t), sheet.parameter[at(i)]);
    EolVertex e;
    e.vertex = i;
    e.velocity = (then.x - now) / h;
    e.tangent = then.tangent;
    e.friction = obstacle.friction;
    switch (f.kind) {
      case FeatureKind::kEdge:
        e.kind = EolKind::kEdge;
        for (std::size_t k = 0; k < 2; ++k) e.normal[k] = then.normals[k];
        break;
      case FeatureKind::kWire:
        e.kind = EolKind::kWire;
        if (i < static_cast<Index>(side.size()) && side[at(i)] != 0)
          e.normal[0] = (side[at(i)] == 1 ? 1.0 : -1.0) * normals[at(i)];
        break;
      case FeatureKind::kNail:
        e.kind = EolKind::kNail;
        if (!then.normals.empty()) e.normal[0] = then.normals[0];
        break;
      case FeatureKind::kCorner: {
        // The three normals that span the most; with less than three that do, it holds as a nail does.
        double best = 0.05;
        e.kind = EolKind::kNail;
        const std::vector<Vec3>& n = then.normals;
        Vec3 mean = Vec3::Zero();
        for (const Vec3& one : n) mean += one;
        if (mean.norm() > 0) e.normal[0] = mean.normalized();
        for (std::size_t a = 0; a < n.size(); ++a)
          for (std::size_t b = a + 1; b < n.size(); ++b)
            for (std::size_t c = b + 1; c < n.size(); ++c)
              if (const double det = std::abs(n[a].dot(cross(n[b], n[c]))); det > best) {
                best = det;
                e.kind = EolKind::kCorner;
                e.normal = {n[a], n[b], n[c]};
              }
        break;
      }
    }
    out.push_back(e);
  }
  return out;
}

}  // namespace limber::cloth
