#include <limber/sim/overlap.hpp>

#include <limber/contact/body_surfaces.hpp>
#include <limber/core/error.hpp>
#include <limber/mesh/surface.hpp>
#include <limber/mesh/surface_tree.hpp>
#include <limber/sim/method.hpp>

#include <fmt/format.h>
#include <Eigen/Geometry>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace limber {
namespace {

constexpr double kAllowedInBody = 0.2;      // sizes of a face
constexpr double kAllowedInObstacle = 0.1;  // sizes of the piece
constexpr double kTouches = 1e-6;           // of either: not worth a word

// Where the segment p to q goes through the triangle, as a share of its length.
std::optional<double> crossing(const Vec3& p, const Vec3& q, const Vec3& a, const Vec3& b, const Vec3& c) {
  const Vec3 n = (b - a).cross(c - a);
  const double at_p = n.dot(p - a), at_q = n.dot(q - a);
  if (!(at_p * at_q < 0)) return std::nullopt;
  const double t = at_p / (at_p - at_q);
  const Vec3 x = p + t * (q - p);
  if (n.dot((b - a).cross(x - a)) < 0 || n.dot((c - b).cross(x - b)) < 0 || n.dot((a - c).cross(x - c)) < 0)
    return std::nullopt;
  return t;
}

struct PieceSurface {
  std::vector<Tri> faces;
  Box box;
  std::optional<SurfaceTree> tree;
};

// Collects the deepest place of every pair.
class Depths {
 public:
  Depths(const Model& model, const std::vector<Vec3>& x, std::vector<PieceSurface>& pieces)
      : model_(model), x_(x), pieces_(pieces) {}

  void add(Index body, Index piece, const Vec3& p, bool is_node, double allowed) {
    const Index other = model_.body_of_node[pieces_[piece].faces.front()[0]];
    Overlap& o = pairs_[{body, other}];
    o.body = body;
    o.other = other;
    o.nodes += is_node ? 1 : 0;
    o.allowed = allowed;
    PieceSurface& surface = pieces_[piece];
    if (!surface.tree) surface.tree.emplace(x_, surface.faces);
    const double depth = surface.tree->nearest(p).distance;
    if (depth > o.depth) {
      o.depth = depth;
      o.where = p;
    }
  }

  bool knows(Index body, Index other) const {
    return pairs_.contains({body, other}) || pairs_.contains({other, body});
  }

  // Of two entries for the same two bodies the deeper one stands for both.
  std::vector<Overlap> result() const {
    std::vector<Overlap> out;
    for (const auto& [key, o] : pairs_) {
      const auto back = pairs_.find({key.second, key.first});
      if (key.first != key.second && back != pairs_.end()) {
        const double theirs = back->second.depth;
        if (o.depth < theirs || (o.depth == theirs && key.second < key.first)) continue;
      }
      if (o.depth > kTouches / kAllowedInBody * o.allowed) out.push_back(o);
    }
    return out;
  }

 private:
  const Model& model_;
  const std::vector<Vec3>& x_;
  std::vector<PieceSurface>& pieces_;
  std::map<std::pair<Index, Index>, Overlap> pairs_;
};

std::vector<Overlap> between_bodies(const Model& model, const VecX& at) {
  BodySurfaces surfaces(model.mesh);
  const double allowed = kAllowedInBody * surfaces.edge();
  std::vector<Vec3> x(static_cast<std::size_t>(model.nodes()));
  for (Index i = 0; i < model.nodes(); ++i) x[i] = node(at, i);
  std::vector<PieceSurface> pieces(model.pieces.size());
  for (const Tri& t : surfaces.faces()) {
    PieceSurface& piece = pieces[model.piece_of_node[t[0]]];
    piece.faces.push_back(t);
    for (const Index i : t) piece.box.add(x[i]);
  }
  Depths depths(model, x, pieces);
  for (const BodySurfaces::Inside& i : surfaces.inside(at)) {
    const Index v = surfaces.sites()[i.site];
    const Index piece = model.piece_of_node[surfaces.faces()[i.face][0]];
    if (piece != model.piece_of_node[v]) depths.add(model.body_of_node[v], piece, x[v], true, allowed);
  }
  // Coarse bodies can cross with all their nodes outside: an edge goes in by one face and out by another.
  for (std::size_t a = 0; a < pieces.size(); ++a)
    for (std::size_t b = 0; b < pieces.size(); ++b) {
      if (a == b || pieces[a].faces.empty() || pieces[b].faces.empty()) continue;
      if (!overlap(pieces[a].box, pieces[b].box)) continue;
      if (!pieces[b].tree) pieces[b].tree.emplace(x, pieces[b].faces);
      for (const Tri& t : pieces[a].faces)
        for (int k = 0; k < 3; ++k) {
          const Index i = t[k], j = t[(k + 1) % 3];
          if (i > j) continue;  // each edge once: closed surfaces have it both ways
          Box box;
          box.add(x[i]);
          box.add(x[j]);
          std::vector<double> through;
          pieces[b].tree->overlapping(box, [&](Index f) {
            const Tri& s = pieces[b].faces[f];
            if (const auto at_edge = crossing(x[i], x[j], x[s[0]], x[s[1]], x[s[2]]))
              through.push_back(*at_edge);
          });
          if (through.size() < 2) continue;
          std::sort(through.begin(), through.end());
          const double middle = 0.5 * (through[0] + through[1]);
          depths.add(model.body_of_node[i], static_cast<Index>(b), x[i] + middle * (x[j] - x[i]), false,
                     allowed);
        }
    }
  // Bodies in the same place have neither: their elements are inside each other all the same.
  for (std::size_t e = 0; e < model.mesh.elements.size(); ++e) {
    const Tet& t = model.mesh.elements[e];
    if (corners(t) == 3) continue;
    const Vec3 middle = 0.25 * (x[t[0]] + x[t[1]] + x[t[2]] + x[t[3]]);
    for (std::size_t b = 0; b < pieces.size(); ++b) {
      const Box& box = pieces[b].box;
      const Index other = model.piece_of_node[t[0]] == static_cast<Index>(b) || pieces[b].faces.empty()
                              ? -1
                              : model.body_of_node[pieces[b].faces.front()[0]];
      if (other < 0 || depths.knows(model.body_of_node[t[0]], other)) continue;
      if ((middle.array() < box.lo.array()).any() || (middle.array() > box.hi.array()).any()) continue;
      if (!pieces[b].tree) pieces[b].tree.emplace(x, pieces[b].faces);
      if (pieces[b].tree->winding(middle) > 0.9)
        depths.add(model.body_of_node[t[0]], static_cast<Index>(b), middle, false, allowed);
    }
  }
  return depths.result();
}

std::vector<Overlap> with_obstacles(const Model& model, const VecX& x, double t) {
  std::vector<std::uint8_t> held(static_cast<std::size_t>(model.nodes()), 0);
  for (const Hold& hold : model.holds)
    for (const Index i : hold.nodes) held[i] = 1;
  std::vector<double> size(model.pieces.size(), 0.0);
  for (std::size_t p = 0; p < model.pieces.size(); ++p) {
    Box box;
    for (const Index i : model.pieces[p].nodes) box.add(node(x, i));
    size[p] = box.size().norm();
  }
  std::map<std::pair<Index, Index>, Overlap> pairs;
  for (const Contact& c : touching(model.contact, x, t)) {
    if (held[c.node] || !(c.depth > kTouches * size[model.piece_of_node[c.node]])) continue;
    Overlap& o = pairs[{model.body_of_node[c.node], c.obstacle}];
    o.body = model.body_of_node[c.node];
    o.obstacle = c.obstacle;
    ++o.nodes;
    if (c.depth > o.depth) {
      o.depth = c.depth;
      o.where = node(x, c.node);
      o.allowed = kAllowedInObstacle * size[model.piece_of_node[c.node]];
    }
  }
  std::vector<Overlap> out;
  for (const auto& [key, o] : pairs) out.push_back(o);
  return out;
}

std::string describe(const Model& model, const Overlap& o) {
  const auto body = [&](Index b) { return fmt::format("body \"{}\" (/bodies/{})", model.bodies[b].name, b); };
  std::string other;
  if (o.obstacle >= 0) {
    const std::string& name = model.scene->obstacles[o.obstacle].name;
    other = name.empty() ? fmt::format("/obstacles/{}", o.obstacle)
                         : fmt::format("obstacle \"{}\" (/obstacles/{})", name, o.obstacle);
  } else {
    other = o.other == o.body ? std::string("another piece of itself") : body(o.other);
  }
  const std::string how =
      o.nodes > 0 ? fmt::format("{} node{}", o.nodes, o.nodes == 1 ? "" : "s") : "edges or elements";
  return fmt::format("{} is inside {} with {}, {:.3g} m deep at ({:.4g}, {:.4g}, {:.4g})", body(o.body),
                     other, how, o.depth, o.where[0], o.where[1], o.where[2]);
}

}  // namespace

std::vector<Overlap> find_overlaps(const Model& model, const VecX& x, bool bodies, double t) {
  std::vector<Overlap> out;
  if (bodies) out = between_bodies(model, x);
  if (!model.contact.empty()) {
    const std::vector<Overlap> more = with_obstacles(model, x, t);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

std::vector<std::string> check_start(const Model& model, const VecX& x, double t, Index first_body) {
  const Scene& scene = *model.scene;
  const Capabilities& can = method_named(scene.method).spec.can;
  if (!can.bodies || !(can.obstacles || can.body_contact)) return {};  // it does not look at contact of nodes
  const bool bodies = scene.method_options->is_object() && scene.method_options->value("body_contact", false);
  const nlohmann::ordered_json::json_pointer option("/contact/overlap");
  const bool accepted = scene.resolved->contains(option) && scene.resolved->at(option) == "accept";
  const std::string when = t > 0 ? fmt::format("{:.6g} s", t) : "the start";
  std::vector<std::string> notices;
  std::string refused;
  for (const Overlap& o : find_overlaps(model, x, bodies, t)) {
    if (std::max(o.body, o.other) < first_body) continue;
    const std::string text = describe(model, o);
    if (o.depth > o.allowed && !accepted)
      refused += "\n  " + text;
    else
      notices.push_back(fmt::format("at {} ", when) + text + ": contact pushes it out");
  }
  if (!refused.empty())
    throw Error(
        ErrorKind::kInput,
        fmt::format("bodies overlap at {}:", when) + refused +
            "\nmove them apart (\"translation\"), or set /contact/overlap to \"accept\": contact then pushes "
            "them out as it can");
  return notices;
}

}  // namespace limber
