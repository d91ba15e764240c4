#include <limber/core/error.hpp>
#include <limber/core/rotation.hpp>
#include <limber/view/picture.hpp>
#include <limber/view/shapes.hpp>

#include <fmt/format.h>
#include <Eigen/LU>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace limber::view {
namespace {

enum : std::uint8_t { kBody, kCap, kDynamic, kCandidate, kPin, kFibre, kObstacle, kChecker, kPaints };

constexpr std::size_t kMaxPictureFibres = 4000;  // drawn lines

[[noreturn]] void wrong_picture(const std::string& message) { throw Error(ErrorKind::kUsage, message); }

// Numbers separated by commas.
std::vector<double> numbers(const std::string& text) {
  std::vector<double> out;
  std::size_t at = 0;
  while (at <= text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    try {
      std::size_t used = 0;
      out.push_back(std::stod(text.substr(at, end - at), &used));
      if (used != end - at) return {};
    } catch (const std::exception&) {
      return {};
    }
    at = end + 1;
  }
  return out;
}

double percentile(std::vector<float>& values, double share) {
  if (values.empty()) return 0;
  const auto k =
      std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(k), values.end());
  return static_cast<double>(values[k]);
}

// Fibres as short lines on the surface, carried along by their elements.
void add_fibres(Triangles& out, const ReplayTopology& t, const std::vector<Vec3f>& x, const CutPlane* cut) {
  const ReplayField* fibre = find_field(t.element_fields, "fibre");
  if (!fibre) return;
  std::vector<std::size_t> faces;
  for (std::size_t k = 0; k < t.surface.size(); ++k)
    if (Eigen::Map<const Vec3f>(&fibre->values[3 * static_cast<std::size_t>(t.surface_element[k])]).norm() >
        0)
      faces.push_back(k);
  const std::size_t stride = faces.size() / kMaxPictureFibres + 1;
  const auto rest = [&](Index i) {
    return Vec3f(Eigen::Map<const Vec3f>(&t.rest[3 * static_cast<std::size_t>(i)]));
  };
  for (std::size_t f = 0; f < faces.size(); f += stride) {
    const std::size_t k = faces[f], element = static_cast<std::size_t>(t.surface_element[k]);
    const Tet& nodes = t.elements[element];
    const int edges = nodes[3] >= 0 ? 3 : 2;
    Eigen::Matrix3f E, e;
    for (int c = 0; c < edges; ++c) {
      const Index i = nodes[static_cast<std::size_t>(c) + 1];
      E.col(c) = rest(i) - rest(nodes[0]);
      e.col(c) = x[static_cast<std::size_t>(i)] - x[static_cast<std::size_t>(nodes[0])];
    }
    if (edges == 2) {  // a fibre of a triangle lies in its plane
      E.col(2) = E.col(0).cross(E.col(1));
      e.col(2).setZero();
    }
    // d = E w at rest, so e w now.
    const Vec3f d = Eigen::Map<const Vec3f>(&fibre->values[3 * element]);
    const Vec3f along = e * (E.inverse() * d);
    const Tri& face = t.surface[k];
    const Vec3f p0 = x[static_cast<std::size_t>(face[0])], p1 = x[static_cast<std::size_t>(face[1])],
                p2 = x[static_cast<std::size_t>(face[2])];
    const Vec3f center = (p0 + p1 + p2) / 3;
    if (cut && cut->side(center) > 0) continue;
    const float size = std::sqrt(0.5f * (p1 - p0).cross(p2 - p0).norm());
    const Vec3f half = 0.45f * size * along / std::max(1e-12f, along.norm());
    add_stick(out, center - half, center + half, 0.08f * size, kFibre);
  }
}

// A triangle of cloth, cut along the lines of its material's grid: pieces of odd cells get the paint
// kChecker. Material coordinates are in units of a cell.
struct CheckerCorner {
  Vec3f p, n;
  float value, u, v;
};

CheckerCorner between(const CheckerCorner& a, const CheckerCorner& b, float s) {
  return {(1 - s) * a.p + s * b.p, (1 - s) * a.n + s * b.n, (1 - s) * a.value + s * b.value,
          (1 - s) * a.u + s * b.u, (1 - s) * a.v + s * b.v};
}

// Cuts a convex polygon at coordinate `at` of the first (`first`) or second axis: what is below is left in
// `below`.
void cut_polygon(std::vector<CheckerCorner>& polygon, std::vector<CheckerCorner>& below, bool first,
                 float at) {
  std::vector<CheckerCorner> above;
  below.clear();
  for (std::size_t k = 0; k < polygon.size(); ++k) {
    const CheckerCorner &a = polygon[k], &b = polygon[(k + 1) % polygon.size()];
    const float da = (first ? a.u : a.v) - at, db = (first ? b.u : b.v) - at;
    (da <= 0 ? below : above).push_back(a);
    if ((da <= 0) != (db <= 0)) {
      const CheckerCorner m = between(a, b, da / (da - db));
      below.push_back(m);
      above.push_back(m);
    }
  }
  polygon = std::move(above);
}

void add_checkered(Triangles& out, const std::array<CheckerCorner, 3>& corners, const CutPlane* cut) {
  const auto range = [&](auto&& polygon, float CheckerCorner::*axis) {
    float low = polygon[0].*axis, high = low;
    for (const CheckerCorner& c : polygon) {
      low = std::min(low, c.*axis);
      high = std::max(high, c.*axis);
    }
    return std::pair{static_cast<long>(std::floor(low)), static_cast<long>(std::floor(high))};
  };
  std::vector<CheckerCorner> rest(corners.begin(), corners.end()), column, piece;
  const auto [first_u, last_u] = range(rest, &CheckerCorner::u);
  if (last_u - first_u > 64) return;  // coordinates that are no cloth's
  for (long i = first_u; i <= last_u && !rest.empty(); ++i) {
    if (i < last_u)
      cut_polygon(rest, column, true, static_cast<float>(i + 1));
    else
      column = std::move(rest);
    if (column.size() < 3) continue;
    const auto [first_v, last_v] = range(column, &CheckerCorner::v);
    for (long j = first_v; j <= last_v && column.size() >= 3; ++j) {
      if (j < last_v)
        cut_polygon(column, piece, false, static_cast<float>(j + 1));
      else
        piece = std::move(column);
      for (std::size_t k = 2; k < piece.size(); ++k)
        add_clipped(out, {piece[0].p, piece[k - 1].p, piece[k].p}, {piece[0].n, piece[k - 1].n, piece[k].n},
                    {piece[0].value, piece[k - 1].value, piece[k].value}, ((i + j) & 1) ? kChecker : kBody,
                    cut);
    }
  }
}

// The page's: about a twentieth of the cloth, a round number.
double checker_cell(const std::vector<float>& u, const std::vector<float>& v) {
  float low = u[0], high = low;
  for (const auto* list : {&u, &v})
    for (const float m : *list) {
      low = std::min(low, m);
      high = std::max(high, m);
    }
  const double raw = (double(high) - low) / 20, power = std::pow(10, std::floor(std::log10(raw)));
  return raw > 0 ? power * (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10) : 1;
}

// Vertices of a cloth on sharp features and edges along them: positive marks are on lines, negative on
// corners.
void add_conformal(Triangles& out, const ReplayTopology& t, const std::vector<Vec3f>& x,
                   const std::vector<float>& eol, float radius, const CutPlane* cut) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (eol[i] != 0 && !(cut && cut->side(x[i]) > 0)) add_sphere(out, x[i], 0.6f * radius, 6, kDynamic);
  for (const Tri& n : t.surface)
    for (std::size_t c = 0; c < 3; ++c) {
      const auto a = static_cast<std::size_t>(n[c]), b = static_cast<std::size_t>(n[(c + 1) % 3]);
      const float p = eol[a], q = eol[b];
      if (p == 0 || q == 0 || (p != q && (p > 0) == (q > 0)) || (p < 0 && q < 0)) continue;
      if (!(cut && cut->side(x[a]) > 0)) add_stick(out, x[a], x[b], 0.25f * radius, kFibre);
    }
}

}  // namespace

std::vector<double> round_ticks(double low, double high, int count) {
  if (!(high > low)) return {low};
  const double raw = (high - low) / count, power = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (double m : {5.0, 2.0, 1.0})
    if (m * power >= raw) step = m * power;
  std::vector<double> out;
  for (double k = std::ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) out.push_back(k * step);
  return out;
}

struct Painter::Stage {
  Eigen::Quaternionf turn;
  Vec3f center;
  float scale;
  Vec3 low, high;  // extent of the run [m]
  double grid;     // spacing of the floor's lines [m]
  float lowest;    // of the run, on the stage
  Vec3f to_stage(const Vec3f& p) const { return scale * (turn * (p - center)); }
};

struct Painter::Mesh {
  Index index;
  ReplayTopology topology;
  std::unique_ptr<FieldSampler> sampler;
  SmoothGroups groups;
  float mark_radius;  // stage units
};

Painter::~Painter() = default;

Painter::Painter(const ReplayReader& reader, const PictureOptions& options)
    : reader_(reader), options_(options) {
  if (reader.frame_count() == 0)
    throw Error(ErrorKind::kInput, "the recording has no frames, so there is nothing to draw");
  if (options.width < 16 || options.height < 16 || options.width > 16384 || options.height > 16384)
    wrong_picture(
        fmt::format("picture size {}x{}: expected 16 to 16384 pixels", options.width, options.height));
  find_extent();
  use_topology(reader.frame_topology(0));
  if (options_.color != "plain" && !mesh_->sampler->find(options_.color)) {
    std::string known = "plain";
    for (const FieldInfo& f : mesh_->sampler->list()) known += ", " + f.id;
    wrong_picture(
        fmt::format("--color {}: the recording has no such field; it has {}", options_.color, known));
  }
  find_range();
}

std::pair<Vec3, Vec3> extent(const ReplayReader& reader) {
  Vec3 low = Vec3::Constant(std::numeric_limits<double>::max()), high = -low;
  const Index stride = std::max(1, reader.frame_count() / 40);
  auto include = [&](Index i) {
    const ReplayFrame f = reader.frame(i);
    for (std::size_t k = 0; k < f.x.size(); ++k)
      if (std::isfinite(f.x[k])) {
        const auto d = static_cast<Eigen::Index>(k % 3);
        low[d] = std::min(low[d], double(f.x[k]));
        high[d] = std::max(high[d], double(f.x[k]));
      }
  };
  for (Index i = 0; i < reader.frame_count(); i += stride) include(i);
  include(reader.frame_count() - 1);
  return {low, high};
}

void Painter::find_extent() {
  stage_ = std::make_unique<Stage>();
  auto [low, high] = extent(reader_);
  if (options_.beside) {
    low = low.cwiseMin(options_.beside->first);
    high = high.cwiseMax(options_.beside->second);
  }
  Stage& s = *stage_;
  s.low = low;
  s.high = high;
  const double size = std::max((high - low).norm(), 1e-9);
  s.scale = static_cast<float>(1 / size);
  s.center = (0.5 * (low + high)).cast<float>();
  Vec3f up = -reader_.header().gravity.cast<float>();
  if (up.norm() == 0) up = Vec3f::UnitY();
  s.turn = turn_between<float>(up, Vec3f::UnitY());
  s.lowest = 1;
  for (int k = 0; k < 8; ++k)
    s.lowest = std::min(s.lowest, s.to_stage(Vec3(k & 1 ? high.x() : low.x(), k & 2 ? high.y() : low.y(),
                                                  k & 4 ? high.z() : low.z())
                                                 .cast<float>())
                                      .y());
  const double raw = size / 8, power = std::pow(10, std::floor(std::log10(raw)));
  s.grid = 10 * power;
  for (double m : {5.0, 2.0, 1.0})
    if (m * power >= raw) s.grid = m * power;
}

void Painter::use_topology(Index index) {
  if (mesh_ && mesh_->index == index) return;
  mesh_ = std::make_unique<Mesh>();
  mesh_->index = index;
  mesh_->topology = reader_.topology(index);
  Index first = 0;
  while (first + 1 < reader_.frame_count() && reader_.frame_topology(first) != index) ++first;
  const ReplayFrame frame = reader_.frame(first);
  mesh_->sampler = std::make_unique<FieldSampler>(mesh_->topology, &frame);
  const ReplayTopology& t = mesh_->topology;
  mesh_->groups = smooth_groups(t.rest, t.surface);
  double edge = 0;
  for (const Tri& n : t.surface)
    edge += (Eigen::Map<const Vec3f>(&t.rest[3 * static_cast<std::size_t>(n[0])]) -
             Eigen::Map<const Vec3f>(&t.rest[3 * static_cast<std::size_t>(n[1])]))
                .norm();
  edge *= stage_->scale / std::max<double>(1, static_cast<double>(t.surface.size()));
  mesh_->mark_radius = static_cast<float>(std::clamp(0.28 * edge, 0.004, 0.016));
}

// Over the whole run: the largest value but for the topmost 0.2 %, as the page does.
void Painter::find_range() {
  if (options_.color == "plain") return;
  const FieldInfo field = *mesh_->sampler->find(options_.color);
  if (field.categories) return;
  std::vector<float> sample;
  const Index stride = std::max(1, reader_.frame_count() / 16);
  for (Index i = 0; i < reader_.frame_count(); i += stride) {
    use_topology(reader_.frame_topology(i));
    if (const FieldInfo* f = mesh_->sampler->find(options_.color)) {
      const std::vector<float> values = mesh_->sampler->values(*f, reader_.frame(i));
      for (float v : values)
        if (std::isfinite(v)) sample.push_back(v);
    }
  }
  const double least = sample.empty() ? 0 : double(*std::min_element(sample.begin(), sample.end()));
  high_ = percentile(sample, 0.998);
  low_ = field.constant || least < 0 ? least : 0;
  if (options_.range) std::tie(low_, high_) = *options_.range;
  if (!(high_ > low_)) {
    if (field.constant) low_ = high_ / 2;
    high_ = low_ > 0 ? 2 * low_ : 1;
  }
  log_ = field.constant && least > 0 && high_ / least > 30 && !options_.range;
  if (log_) low_ = least;
  const std::vector<double> ticks = round_ticks(low_, high_, 4);
  tick_ = log_ ? 1 : ticks.size() > 1 ? ticks[1] - ticks[0] : 0;
}

Image Painter::paint(Index index) {
  const ReplayFrame frame = reader_.frame(index);
  use_topology(frame.topology);
  const Mesh& mesh = *mesh_;
  const ReplayTopology& t = mesh.topology;
  const Stage& stage = *stage_;

  std::vector<Vec3f> x(frame.x.size() / 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = stage.to_stage(Eigen::Map<const Vec3f>(&frame.x[3 * i]));
  const FieldInfo* field = options_.color == "plain" ? nullptr : mesh.sampler->find(options_.color);
  const std::vector<float> values = field ? mesh.sampler->values(*field, frame) : std::vector<float>();
  auto value = [&](std::size_t element, Index node) {
    return !field ? 0.0f : values[field->per_element ? element : static_cast<std::size_t>(node)];
  };

  std::vector<Paint> paints(kPaints);
  Paint& body = paints[kBody];
  body.base = from_hex(options_.dark ? 0xcbb9a2 : 0xd2bfa7);
  body.mode = !field ? Paint::kPlain : field->categories ? Paint::kCategories : Paint::kNumbers;
  body.highlight = field && field->highlight;
  body.low = log_ ? std::log10(low_) : low_;
  body.high = log_ ? std::log10(high_) : high_;
  body.log = log_;
  body.tick = options_.contours ? tick_ : 0;
  body.edges = options_.edges;
  paints[kCap] = body;
  paints[kCap].gloss = 0;
  paints[kCap].shadow = false;
  paints[kChecker] = body;
  paints[kChecker].base = from_hex(options_.dark ? 0x8a7b68 : 0x94836d);
  paints[kDynamic].base = from_hex(0xff7a1a);
  paints[kCandidate].base = from_hex(0x8b97a6);
  paints[kPin].base = from_hex(0x2d6cdf);
  paints[kObstacle].base = from_hex(0x9aa2aa);
  paints[kObstacle].gloss = 0.1f;
  paints[kObstacle].behind = 0.002f;
  paints[kFibre].base = from_hex(0xe0344a);
  for (int k : {kDynamic, kCandidate, kPin, kFibre}) paints[static_cast<std::size_t>(k)].shadow = false;

  std::optional<CutPlane> cut;
  if (!options_.clip.empty()) {
    const char axis = options_.clip[0];
    const auto place = options_.clip.size() > 2 && options_.clip[1] == ':' ? numbers(options_.clip.substr(2))
                                                                           : std::vector<double>{0.5};
    if (axis < 'x' || axis > 'z' || place.size() != 1)
      wrong_picture(
          fmt::format("--clip {}: expected an axis and a share of the extent, as in x:0.5", options_.clip));
    const Eigen::Index d = axis - 'x';
    Vec3 p = Vec3::Zero();
    p[d] = stage.low[d] + place[0] * (stage.high[d] - stage.low[d]);
    const Vec3f normal = stage.turn * Vec3f(Vec3::Unit(d).cast<float>());
    cut = CutPlane{normal, normal.dot(stage.to_stage(p.cast<float>()))};
  }

  Triangles out;
  const std::vector<Vec3f> normals = group_normals(mesh.groups, t.surface, x);
  const ReplayField *material_u = find_field(frame.node_fields, "material_u"),
                    *material_v = find_field(frame.node_fields, "material_v");
  if (!material_u) material_u = find_field(t.node_fields, "material_u");  // cloth that is not remeshed
  if (!material_v) material_v = find_field(t.node_fields, "material_v");
  const bool checkered = !field && material_u && material_v && !material_u->values.empty();
  const double cell = checkered ? checker_cell(material_u->values, material_v->values) : 1;
  for (std::size_t k = 0; k < t.surface.size(); ++k) {
    std::array<Vec3f, 3> p, n;
    std::array<float, 3> v;
    for (std::size_t c = 0; c < 3; ++c) {
      p[c] = x[static_cast<std::size_t>(t.surface[k][c])];
      n[c] = normals[static_cast<std::size_t>(mesh.groups.of_corner[3 * k + c])];
      v[c] = value(static_cast<std::size_t>(t.surface_element[k]), t.surface[k][c]);
    }
    if (checkered) {
      std::array<CheckerCorner, 3> corners;
      for (std::size_t c = 0; c < 3; ++c) {
        const auto i = static_cast<std::size_t>(t.surface[k][c]);
        corners[c] = {p[c], n[c], v[c], static_cast<float>(material_u->values[i] / cell),
                      static_cast<float>(material_v->values[i] / cell)};
      }
      add_checkered(out, corners, cut ? &*cut : nullptr);
    } else {
      add_clipped(out, p, n, v, kBody, cut ? &*cut : nullptr);
    }
  }
  if (cut) add_cap(out, t.elements, x, value, kCap, *cut);

  if (options_.marks) {
    const ReplayField *dynamic = find_field(frame.node_fields, "dynamic"),
                      *candidate = find_field(t.node_fields, "candidate"),
                      *pinned = find_field(frame.node_fields, "pinned");
    // A method in which every node is dynamic has nothing to point out.
    const bool all =
        dynamic && std::find(dynamic->values.begin(), dynamic->values.end(), 0.0f) == dynamic->values.end();
    std::vector<bool> outside(x.size(), false);
    for (const Tri& n : t.surface)
      for (Index i : n) outside[static_cast<std::size_t>(i)] = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (cut && cut->side(x[i]) > 0) continue;
      const bool live = dynamic && dynamic->values[i] != 0;
      if (live && !all)
        add_sphere(out, x[i], mesh.mark_radius, 8, kDynamic);
      else if (candidate && candidate->values[i] != 0 && outside[i])
        add_sphere(out, x[i], 0.45f * mesh.mark_radius, 5, kCandidate);
      if (pinned && pinned->values[i] != 0 && outside[i])
        add_octahedron(out, x[i], 0.8f * mesh.mark_radius, kPin);
    }
  }

  if (options_.marks) add_fibres(out, t, x, cut ? &*cut : nullptr);
  if (const ReplayField* eol = find_field(frame.node_fields, "eol"); eol && options_.marks)
    add_conformal(out, t, x, eol->values, mesh.mark_radius, cut ? &*cut : nullptr);

  const bool plane_body = is_plane(t);
  std::vector<Floor> floors;
  const std::vector<ReplayObstacle>& obstacles = reader_.header().obstacles;
  if (options_.obstacles)
    for (std::size_t k = 0; k < obstacles.size(); ++k) {
      const ReplayPose& pose = frame.obstacles[k];
      if (obstacles[k].shape == "plane") {
        Floor f;
        f.point = stage.to_stage(posed(pose, obstacles[k].point.cast<float>()));
        f.normal = (stage.turn * posed_direction(pose, obstacles[k].normal.cast<float>())).normalized();
        f.grid = stage.grid * stage.scale;
        floors.push_back(f);
      } else {
        add_obstacle(
            out, obstacles[k], pose, [&](const Vec3f& p) { return stage.to_stage(p); }, kObstacle);
      }
    }
  if (floors.empty() && options_.floor && !plane_body)
    floors.push_back({Vec3f(0, stage.lowest - 0.004f, 0), Vec3f::UnitY(), stage.grid * stage.scale});

  Camera camera;
  Vec3f from(0.62f, 0.42f, 1);
  double zoom = 1;
  if (options_.camera == "front" || (options_.camera == "three-quarter" && plane_body)) {
    from = Vec3f(0, 0, 1);
  } else if (options_.camera == "side") {
    from = Vec3f(1, 0, 0);
  } else if (options_.camera == "top") {
    from = Vec3f(0, 1, 0.001f);
  } else if (options_.camera != "three-quarter") {
    const std::vector<double> a = numbers(options_.camera);
    if (a.size() < 2 || a.size() > 3 || (a.size() == 3 && a[2] <= 0))
      wrong_picture(
          fmt::format("--camera {}: expected three-quarter, front, side, top, or azimuth,elevation[,zoom] in "
                      "degrees",
                      options_.camera));
    const double azimuth = a[0] * std::numbers::pi / 180, elevation = a[1] * std::numbers::pi / 180;
    from = Vec3f(static_cast<float>(std::sin(azimuth) * std::cos(elevation)),
                 static_cast<float>(std::sin(elevation)),
                 static_cast<float>(std::cos(azimuth) * std::cos(elevation)));
    if (a.size() == 3) zoom = a[2];
  }
  // The box that the run stays in, or that of now; on the stage.
  Vec3f low = Vec3f::Constant(std::numeric_limits<float>::max()), high = -low;
  const auto grow = [&](const Vec3f& p) {
    low = low.cwiseMin(p);
    high = high.cwiseMax(p);
  };
  if (options_.follow)
    for (const Tri& n : t.surface)
      for (const Index i : n) grow(x[static_cast<std::size_t>(i)]);
  else
    for (int k = 0; k < 8; ++k)
      grow(stage.to_stage(Vec3f((k & 1 ? stage.high : stage.low).cast<float>()[0],
                                (k & 2 ? stage.high : stage.low).cast<float>()[1],
                                (k & 4 ? stage.high : stage.low).cast<float>()[2])));
  if (options_.follow) camera.target = 0.5f * (low + high);
  camera.eye = camera.target +
               from.normalized() *
                   static_cast<float>(
                       fitting_distance(from, camera.fov, low - camera.target, high - camera.target) / zoom);

  Image image = render(out, paints, camera, floors, lighting(options_.dark), options_.width, options_.height,
                       options_.samples);
  if (options_.legend) add_legend(image, frame);
  if (!options_.title.empty()) {
    const double s = std::max(0.6, image.height / 720.0);
    draw_text(image, 20 * s, 36 * s, 16 * s, options_.title, from_hex(options_.dark ? 0xe8edf2 : 0x1b222b));
  }
  return image;
}

// How near the camera may come, looking at the origin, with all corners of the box remaining in the picture.
double Painter::fitting_distance(const Vec3f& from, double fov, const Vec3f& low, const Vec3f& high) const {
  const double aspect = double(options_.width) / options_.height;
  const Vec3f towards = from.normalized(), right = Vec3f::UnitY().cross(towards).normalized(),
              above = towards.cross(right);
  const double slope = 0.86 * std::tan(fov * std::numbers::pi / 360);  // the rest is margin
  double distance = 0.2;
  for (int k = 0; k < 8; ++k) {
    const Vec3f c((k & 1 ? high : low)[0], (k & 2 ? high : low)[1], (k & 4 ? high : low)[2]);
    const double across = std::max<double>(std::abs(c.dot(above)), std::abs(c.dot(right)) / aspect);
    distance = std::max(distance, c.dot(towards) + across / slope);
  }
  return distance;
}

// Title, bar and numbers in the lower left corner, the time in the lower right one.
void Painter::add_legend(Image& image, const ReplayFrame& frame) const {
  const double s = std::max(0.6, image.height / 720.0);
  const Rgb ink = from_hex(options_.dark ? 0xe8edf2 : 0x1b222b),
            soft = from_hex(options_.dark ? 0xa4b0bd : 0x55616e),
            panel = from_hex(options_.dark ? 0x1c2127 : 0xffffff);
  const std::string time = fmt::format("t = {:.3f} s", frame.t);
  draw_text(image, image.width - 20 * s - text_width(10 * s, time), image.height - 18 * s, 10 * s, time,
            soft);

  const FieldInfo* field = options_.color == "plain" ? nullptr : mesh_->sampler->find(options_.color);
  if (!field) return;
  const double left = 20 * s, text = 10 * s;
  const std::string title =
      field->unit.empty() ? field->label : fmt::format("{} [{}]", field->label, field->unit);
  if (field->categories) {
    const double row = 22 * s;
    const std::size_t count = std::min<std::size_t>(std::max<std::size_t>(1, field->names.size()), 12);
    double width = text_width(text, title);
    for (std::size_t k = 0; k < std::min(count, field->names.size()); ++k)
      width = std::max(width, 30 * s + text_width(text, field->names[k]));
    const double top = image.height - 16 * s - row * static_cast<double>(count + 1) - 12 * s;
    fill_rect(image, left - 8 * s, top, width + 32 * s, row * static_cast<double>(count + 1) + 12 * s, panel,
              0.82);
    draw_text(image, left + 4 * s, top + 20 * s, text, title, ink);
    for (std::size_t k = 0; k < std::min(count, field->names.size()); ++k) {
      const double y = top + row * static_cast<double>(k + 1) + 20 * s;
      const Rgb plain = from_hex(options_.dark ? 0xcbb9a2 : 0xd2bfa7);
      const Rgb color = !field->highlight ? category_color(k) : k == 1 ? highlight_color() : plain;
      fill_rect(image, left + 4 * s, y - 11 * s, 18 * s, 12 * s, color, 1);
      draw_text(image, left + 30 * s, y, text, field->names[k], ink);
    }
    return;
  }
  const double bar = std::round(230 * s), top = image.height - 92 * s;
  fill_rect(image, left - 8 * s, top, std::max(bar, text_width(text, title)) + 32 * s, 78 * s, panel, 0.82);
  draw_text(image, left + 4 * s, top + 22 * s, text, title, ink);
  const double y = std::round(top + 34 * s);
  const double bar_left = std::round(left + 4 * s);  // whole pixels: columns that share one would be pale
  for (int i = 0; i < static_cast<int>(bar); ++i)
    fill_rect(image, bar_left + i, y, 1.0, 13 * s, sequential_color(i / (bar - 1)), 1);
  std::vector<double> ticks;
  if (log_) {
    for (double p = std::ceil(std::log10(low_) - 1e-6); p <= std::log10(high_) + 1e-6; ++p)
      ticks.push_back(std::pow(10, p));
    if (ticks.size() < 2) ticks = {low_, high_};
  } else {
    ticks = round_ticks(low_, high_, 4);
  }
  for (double v : ticks) {
    const double u = log_ ? (std::log10(v) - std::log10(low_)) / (std::log10(high_) - std::log10(low_))
                          : (v - low_) / (high_ - low_);
    const std::string number = short_number(v);
    const double width = text_width(0.9 * text, number), at = bar_left + u * bar;
    fill_rect(image, at - 0.5 * s, y, s, 17 * s, ink, 0.7);
    draw_text(image, std::clamp(at - width / 2, left + 4 * s, left + 4 * s + bar - width + 14 * s),
              y + 32 * s, 0.9 * text, number, ink);
  }
}

}  // namespace limber::view
