#include <limber/methods/cloth/step_bounds.hpp>

#include <algorithm>

namespace limber::cloth {
namespace {

// Of the smallest edge: steps are cut so that material slides by a third of it.
constexpr double kMostRoom = 2;

// The normal of the cloth at a vertex, times twice the area around it.
Vec3 normal_at(const Sheet& sheet, Index vertex) {
  Vec3 sum = Vec3::Zero();
  for (const Tri& t : sheet.triangles)
    if (t[0] == vertex || t[1] == vertex || t[2] == vertex)
      sum += cross(sheet.x[at(t[1])] - sheet.x[at(t[0])], sheet.x[at(t[2])] - sheet.x[at(t[0])]);
  return sum;
}

// Vertices on sharp features that move with the material: the mean of the faces' normals, or each (Fig.
// 2.3 e and d).
void conformal_contacts(const StepSituation& w, std::vector<std::uint8_t>& held,
                        std::vector<FaceContact>& contacts) {
  Sheet marked = w.sheet;
  marked.feature = w.on_feature;
  marked.parameter = w.on_parameter;
  for (const EolVertex& e : eol_vertices(marked, w.side, w.features, w.obstacles, w.t, w.in.h)) {
    if (held[at(e.vertex)]) continue;
    held[at(e.vertex)] = 1;
    FaceContact c;
    c.vertex = e.vertex;
    c.obstacle = w.features[at(static_cast<Index>(marked.feature[at(e.vertex)]))].obstacle;
    c.friction = e.friction;
    c.velocity = e.velocity;
    const std::size_t normals = e.kind == EolKind::kEdge ? 2 : e.kind == EolKind::kCorner ? 3 : 1;
    Vec3 mean = Vec3::Zero();
    for (std::size_t k = 0; k < normals; ++k) mean += e.normal[k];
    if (e.kind == EolKind::kWire && mean.isZero(0)) mean = normal_at(w.sheet, e.vertex);
    if (!(mean.norm() > 0)) continue;
    if (w.options.normals == SharpNormals::kAveraged || normals == 1) {
      c.n = mean.normalized();
      c.bound = c.n.dot(e.velocity);
      contacts.push_back(c);
      continue;
    }
    for (std::size_t k = 0; k < normals; ++k) {
      c.n = e.normal[k];
      c.bound = c.n.dot(e.velocity);
      contacts.push_back(c);
    }
  }
}

// Edges and triangles of the cloth at sharp features, where no vertex is; how many of these are too short for
// vertices.
int add_rows(const StepSituation& w, BoundProblem& problem, std::vector<Touch>& touches) {
  int short_edges = 0;
  Sheet marked = w.sheet;
  if (!w.on_feature.empty() && !w.options.eol) marked.feature = w.on_feature;
  for (const FeatureContact& c :
       detect_features(w.features, w.obstacles, marked, w.t, w.in.h, w.options.detect)) {
    BoundRow row;
    bool on_feature = false;
    for (int k = 0; k < c.count; ++k) {
      row.block[static_cast<std::size_t>(k)] = c.vertices[static_cast<std::size_t>(k)];
      row.weight[static_cast<std::size_t>(k)] = c.weights[static_cast<std::size_t>(k)];
      on_feature |= marked.eol(c.vertices[static_cast<std::size_t>(k)]);
    }
    if (on_feature) continue;
    if (!w.too_short.empty() && w.too_short[at(c.feature)]) ++short_edges;
    const Feature& f = w.features[at(c.feature)];
    const Obstacle& obstacle = w.obstacles[at(f.obstacle)];
    row.n = c.n;
    if (f.kind == FeatureKind::kEdge || f.kind == FeatureKind::kCorner) {
      Vec3 mean = Vec3::Zero();
      for (const Vec3& n : feature_place(f, placement_at(obstacle, w.t + w.in.h), c.parameter).normals)
        mean += n;
      if (mean.norm() > 0) row.n = mean.normalized();
    }
    const double along = row.n.dot(c.velocity);
    // Wires and nails have no inside that would tell the sides apart: stay a little away.
    const bool thin = f.kind == FeatureKind::kWire || f.kind == FeatureKind::kNail;
    const double gap = c.gap - (thin ? 0.01 * w.options.detect.threshold : 0.0);
    row.value = std::min(along - gap / w.in.h, along + w.options.contact.recovery);
    row.velocity = c.velocity;
    row.friction = obstacle.friction;
    problem.rows.push_back(row);
    for (int k = 0; k < c.count; ++k)
      touches.push_back({c.vertices[static_cast<std::size_t>(k)], f.obstacle, row.n});
  }
  return short_edges;
}

}  // namespace

StepContacts set_bounds(const StepSituation& w, BoundProblem& problem) {
  StepContacts out;
  problem.resize(w.pattern.size());
  std::vector<std::uint8_t> held(w.sheet.x.size(), 0);
  for (std::size_t d = 0; d < w.in.fixed.size(); ++d) {
    if (!w.in.fixed[d]) continue;
    problem.bound[d] = Bound::kHeld;
    problem.value[static_cast<Eigen::Index>(d)] = w.in.fixed_velocity[static_cast<Eigen::Index>(d)];
    held[d / 3] = 1;
  }
  std::vector<FaceContact> contacts;
  if (w.options.eol) {
    out.eol = eol_vertices(w.sheet, w.side, w.features, w.obstacles, w.t, w.in.h);
    const std::vector<std::vector<Index>> around = triangles_around(w.sheet);
    const SheetBorder border = sheet_border(w.sheet);
    for (const EolVertex& e : out.eol) {
      out.geometry.push_back(eol_geometry(w.sheet, w.body, around[at(e.vertex)], border, e));
      held[at(e.vertex)] = 1;
      const Feature& f = w.features[at(static_cast<Index>(w.sheet.feature[at(e.vertex)]))];
      out.touches.push_back({e.vertex, f.obstacle, out.geometry.back().out});
    }
    EolOptions eol;
    eol.capstan = !w.options.filter;
    eol.most = kMostRoom * w.options.insert.size;
    add_eol_bounds(w.pattern, out.eol, out.geometry, w.in.h, eol, problem);
  } else if (w.options.mesh == ClothMesh::kConformal) {
    conformal_contacts(w, held, contacts);
  }
  std::vector<Vec3> expected = w.sheet.v;
  for (Vec3& v : expected) v += w.in.h * w.in.gravity;
  const std::vector<FaceContact> faces =
      face_contacts(w.obstacles, w.sheet.x, expected, held, w.in.h, w.t, w.options.contact);
  contacts.insert(contacts.end(), faces.begin(), faces.end());
  std::stable_sort(contacts.begin(), contacts.end(),
                   [](const FaceContact& a, const FaceContact& b) { return a.vertex < b.vertex; });
  add_all_face_bounds(contacts, problem);
  for (const FaceContact& c : contacts) out.touches.push_back({c.vertex, c.obstacle, c.n});
  if (w.options.sharp) out.short_edges = add_rows(w, problem, out.touches);
  // What holds a vertex cannot be told from what presses it.
  std::erase_if(out.touches, [&](const Touch& touch) {
    const std::size_t d = 3 * at(touch.vertex);
    return w.in.fixed[d] || w.in.fixed[d + 1] || w.in.fixed[d + 2];
  });
  std::stable_sort(out.touches.begin(), out.touches.end(),
                   [](const Touch& a, const Touch& b) { return a.vertex < b.vertex; });
  out.contacts = static_cast<Index>(contacts.size() + out.eol.size() + problem.rows.size());
  return out;
}

}  // namespace limber::cloth
