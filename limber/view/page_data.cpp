#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/view/carried_sheet.hpp>
#include <limber/view/codec.hpp>
#include <limber/view/page_data.hpp>
#include <limber/view/page_skin.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

namespace limber::view {

using nlohmann::json;

namespace {

constexpr std::size_t kGroup = 32;        // frames that are predicted from each other
constexpr std::size_t kMaxRows = 4000;    // points of a plot
constexpr std::size_t kMaxFibres = 4000;  // drawn lines

// Neighbours of each node, through elements (or surface triangles when only the surface is shown).
template <std::size_t N>
void add_neighbours(const std::vector<std::array<Index, N>>& cells, std::vector<std::vector<Index>>& out) {
  for (const auto& cell : cells)
    for (Index a : cell)
      for (Index b : cell)
        if (a != b && a >= 0 && b >= 0) out[static_cast<std::size_t>(a)].push_back(b);
}

// Appends arrays to the bytes of a block and lists them.
class BlockBuilder {
 public:
  void floats(const char* name, const std::vector<float>& values) {
    std::vector<std::uint32_t> bits(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) bits[i] = std::bit_cast<std::uint32_t>(values[i]);
    append_planes(bytes, bits, 4);
    layout.push_back({{"name", name}, {"type", "f32"}, {"count", values.size()}});
  }
  // Stored as differences between successive numbers.
  void indices(const char* name, const std::vector<Index>& values) {
    std::vector<std::uint32_t> bits(values.size());
    std::uint32_t last = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto v = static_cast<std::uint32_t>(values[i]);
      bits[i] = zigzag(v - last);
      last = v;
    }
    append_planes(bytes, bits, 4);
    layout.push_back({{"name", name}, {"type", "i32"}, {"count", values.size()}});
  }
  // As they are.
  void words(const char* name, const std::vector<std::uint32_t>& values) {
    append_planes(bytes, values, 4);
    layout.push_back({{"name", name}, {"type", "z32"}, {"count", values.size()}});
  }
  std::string bytes;
  json layout = json::array();
};

json to_json(const FieldInfo& f) {
  return {{"id", f.id},
          {"label", f.label},
          {"unit", f.unit},
          {"per", f.per_element ? "element" : "node"},
          {"constant", f.constant},
          {"categories", f.categories},
          {"names", f.names},
          {"highlight", f.highlight}};
}

json to_json(const Vec3& v) { return json::array({v.x(), v.y(), v.z()}); }

json obstacles_json(const ReplayHeader& header) {
  json out = json::array();
  for (const ReplayObstacle& o : header.obstacles) {
    json j{{"name", o.name}, {"shape", o.shape}, {"point", to_json(o.point)}, {"radius", o.radius}};
    if (o.shape == "capsule") j["end"] = to_json(o.end);
    if (o.shape == "plane") j["normal"] = to_json(o.normal);
    if (o.shape == "box") j["size"] = to_json(o.size);
    if (o.shape == "mesh") {
      json nodes = json::array(), triangles = json::array();
      for (const Vec3& p : o.nodes)
        for (int d = 0; d < 3; ++d) nodes.push_back(static_cast<float>(p[d]));
      for (const Tri& t : o.triangles)
        for (Index i : t) triangles.push_back(i);
      j["nodes"] = std::move(nodes);
      j["triangles"] = std::move(triangles);
    }
    out.push_back(std::move(j));
  }
  return out;
}

std::string base64(const std::string& bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k)
      out += i + k > bytes.size() ? '=' : kLetters[word >> (18 - 6 * k) & 63];
  }
  return out;
}

// A carried surface: which nodes move its points, and its corners with texture coordinates and smooth groups.
json add_surface(const ReplaySurface& r, const ReplayTopology& t, const std::vector<Index>& page_of,
                 std::size_t number, BlockBuilder& block) {
  const TexturedSurface& s = r.surface;
  const CarriedSheet sheet = carried_sheet(s);
  const auto name = [&](const char* what) { return fmt::format("surface{}:{}", number, what); };
  std::vector<Index> nodes, points;
  std::vector<float> uv;
  for (const Index e : r.element)
    for (const Index i : t.elements[static_cast<std::size_t>(e)])
      nodes.push_back(page_of[static_cast<std::size_t>(i)]);
  for (std::size_t c = 0; c < 3 * sheet.triangles.size(); ++c) {
    points.push_back(sheet.triangles[c / 3][c % 3]);
    const Index k = s.corner_uv[static_cast<std::size_t>(sheet.corners[c / 3][c % 3])];
    for (int d = 0; d < 2; ++d)
      uv.push_back(k < 0 ? 0.0f : static_cast<float>(s.uv[static_cast<std::size_t>(k)][d]));
  }
  block.indices(name("nodes").c_str(), nodes);
  block.floats(name("weights").c_str(), r.weight);
  block.indices(name("points").c_str(), points);
  block.indices(name("groups").c_str(), sheet.groups.of_corner);
  if (!s.uv.empty()) block.floats(name("uv").c_str(), uv);
  json materials = json::array(), pieces = json::array();
  for (const SurfaceMaterial& m : s.materials) {
    materials.push_back({{"name", m.name}, {"color", to_json(m.color)}});
    if (!m.image.empty())
      materials.back()["image"] = fmt::format("data:{};base64,{}", image_type(m.image), base64(m.image));
  }
  for (const CarriedSheet::Piece& p : sheet.pieces)
    pieces.push_back({{"first", 3 * p.first}, {"count", 3 * (p.last - p.first)}, {"material", p.material}});
  return {{"body", r.body},
          {"smooth", sheet.groups.count},
          {"materials", std::move(materials)},
          {"pieces", std::move(pieces)}};
}

// Longest side of the bounding box of the rest shape, over all topologies [m].
double rest_extent(const ReplayTopology& t, Vec3& low) {
  low = Vec3::Constant(std::numeric_limits<double>::max());
  Vec3 high = -low;
  for (std::size_t i = 0; i < t.rest.size(); ++i) {
    low[i % 3] = std::min(low[i % 3], double(t.rest[i]));
    high[i % 3] = std::max(high[i % 3], double(t.rest[i]));
  }
  if (t.rest.empty()) low.setZero();
  return t.rest.empty() ? 0 : (high - low).maxCoeff();
}

}  // namespace

// One topology as the page sees it.
struct RunEncoder::Epoch {
  ReplayTopology topology;
  std::unique_ptr<FieldSampler> sampler;
  std::vector<Index> nodes;     // page node -> node of the recording; surface nodes first
  std::vector<Index> parent;    // page node -> earlier page node it is predicted from, or -1
  std::vector<Index> elements;  // page element -> element of the recording
  std::vector<std::int32_t> rest;
  Vec3 origin = Vec3::Zero();
  std::size_t surface_nodes = 0;
  std::unique_ptr<PageSkin> skin;  // of a reduced method
};

RunEncoder::~RunEncoder() = default;

RunEncoder::RunEncoder(const ReplayReader& reader, const EncodeOptions& options, std::string prefix,
                       std::vector<ExtraField> extra)
    : reader_(reader), options_(options), prefix_(std::move(prefix)), extra_(std::move(extra)) {
  const ReplayHeader& h = reader.header();
  *manifest_ = {{"scene", h.scene},
                {"description", h.description},
                {"method", h.method},
                {"version", h.version},
                {"h", h.h},
                {"end", h.end},
                {"gravity", to_json(h.gravity)},
                {"parameters", *h.parameters},
                {"facts", *h.facts},
                {"obstacles", obstacles_json(h)},
                {"epochs", json::array()},
                {"groups", json::array()},
                {"times", json::array()},
                {"steps", json::array()},
                {"poses", json::array()},
                {"every", options.every}};
  update();
}

// Orders the nodes, chooses what the page needs of the mesh, and writes its block.
void RunEncoder::begin_epoch(Index index) {
  auto epoch = std::make_unique<Epoch>();
  epoch->topology = reader_.topology(index);
  const ReplayTopology& t = epoch->topology;
  const auto n = static_cast<std::size_t>(t.node_count());
  const double extent = rest_extent(t, epoch->origin);
  if (quantum_ == 0) quantum_ = extent > 0 ? extent / (std::ldexp(1.0, options_.bits) - 1) : 1e-6;

  ReplayFrame first;
  bool have_frame = false;
  // The frame with most fields of the first two: a reduced method has no velocities before its first step.
  for (Index f = seen_, looked = 0; f < reader_.frame_count() && looked < 2; ++f)
    if (reader_.frame_topology(f) == index) {
      ReplayFrame frame = reader_.frame(f);
      if (looked++ == 0 || frame.node_fields.size() > first.node_fields.size()) first = std::move(frame);
      have_frame = true;
    }
  epoch->sampler = std::make_unique<FieldSampler>(t, have_frame ? &first : nullptr);

  // Fibres are drawn as short lines in some of the elements that have them.
  const ReplayField* fibre = find_field(t.element_fields, "fibre");
  std::vector<bool> at_surface(t.elements.size(), false);
  for (Index e : t.surface_element) at_surface[static_cast<std::size_t>(e)] = true;
  std::vector<Index> fibre_elements;
  if (fibre)
    for (std::size_t e = 0; e < t.elements.size(); ++e)
      if ((options_.inside || at_surface[e]) &&
          (fibre->values[3 * e] != 0 || fibre->values[3 * e + 1] != 0 || fibre->values[3 * e + 2] != 0))
        fibre_elements.push_back(static_cast<Index>(e));
  if (fibre_elements.size() > kMaxFibres) {
    const double stride = double(fibre_elements.size()) / kMaxFibres;
    for (std::size_t i = 0; i < kMaxFibres; ++i)
      fibre_elements[i] = fibre_elements[static_cast<std::size_t>(double(i) * stride)];
    fibre_elements.resize(kMaxFibres);
  }

  // Nodes that are needed: 1 surface, 2 others.
  std::vector<std::uint8_t> need(n, options_.inside ? 2 : 0);
  const ReplayField* candidate = find_field(t.node_fields, "candidate");
  if (candidate)
    for (std::size_t i = 0; i < n; ++i)
      if (candidate->values[i] != 0) need[i] = 2;
  if (have_frame)
    if (const ReplayField* dynamic = find_field(first.node_fields, "dynamic"); dynamic && !candidate) {
      // Without a list of candidates any node may become dynamic, unless all of them always are.
      if (std::find(dynamic->values.begin(), dynamic->values.end(), 0.0f) != dynamic->values.end())
        std::fill(need.begin(), need.end(), std::uint8_t{2});
    }
  for (Index e : fibre_elements)
    for (Index i : t.elements[static_cast<std::size_t>(e)])
      if (i >= 0) need[static_cast<std::size_t>(i)] = 2;
  for (const ReplaySurface& s : t.surfaces)
    for (const Index e : s.element)
      for (const Index i : t.elements[static_cast<std::size_t>(e)]) need[static_cast<std::size_t>(i)] = 2;
  for (const Tri& tri : t.surface)
    for (Index i : tri) need[static_cast<std::size_t>(i)] = 1;

  // Breadth first over the surface, then inwards: every node follows a neighbour.
  std::vector<std::vector<Index>> neighbours(n);
  add_neighbours(t.surface, neighbours);
  std::vector<Index> page_of(n, -1);
  auto visit_from = [&](std::uint8_t kind) {
    std::size_t head = kind == 1 ? epoch->nodes.size() : 0;
    Index seed = 0;
    for (;;) {
      if (head == epoch->nodes.size()) {
        while (seed < static_cast<Index>(n) &&
               !(need[static_cast<std::size_t>(seed)] == kind && page_of[static_cast<std::size_t>(seed)] < 0))
          ++seed;
        if (seed == static_cast<Index>(n)) return;
        page_of[static_cast<std::size_t>(seed)] = static_cast<Index>(epoch->nodes.size());
        epoch->parent.push_back(static_cast<Index>(epoch->nodes.size()) - 1);
        epoch->nodes.push_back(seed);
      }
      const Index node = epoch->nodes[head];
      for (Index m : neighbours[static_cast<std::size_t>(node)])
        if (need[static_cast<std::size_t>(m)] == kind && page_of[static_cast<std::size_t>(m)] < 0) {
          page_of[static_cast<std::size_t>(m)] = static_cast<Index>(epoch->nodes.size());
          epoch->parent.push_back(static_cast<Index>(head));
          epoch->nodes.push_back(m);
        }
      ++head;
    }
  };
  visit_from(1);
  epoch->surface_nodes = epoch->nodes.size();
  add_neighbours(t.elements, neighbours);
  visit_from(2);

  // Elements: all, or those behind the surface.
  std::vector<Index> page_element(t.elements.size(), -1);
  for (std::size_t e = 0; e < t.elements.size(); ++e)
    if (options_.inside || at_surface[e]) {
      page_element[e] = static_cast<Index>(epoch->elements.size());
      epoch->elements.push_back(static_cast<Index>(e));
    }

  BlockBuilder block;
  const std::size_t m = epoch->nodes.size();
  std::vector<float> rest(3 * m);
  epoch->rest.resize(3 * m);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t d = 0; d < 3; ++d) {
      const float x = t.rest[3 * static_cast<std::size_t>(epoch->nodes[i]) + d];
      rest[3 * i + d] = x;
      epoch->rest[3 * i + d] = static_cast<std::int32_t>(
          std::floor((double(x) - epoch->origin[static_cast<Eigen::Index>(d)]) / quantum_ + 0.5));
    }
  block.floats("rest", rest);
  if (t.functions > 0) {
    epoch->skin = std::make_unique<PageSkin>(t, epoch->nodes, epoch->surface_nodes, epoch->parent,
                                             coordinate_reach(reader_, index, t, extent), quantum_);
    block.floats("basisStep", epoch->skin->steps());
    block.words("basis", epoch->skin->words());
  }
  block.indices("nodes", epoch->nodes);
  block.indices("parent", epoch->parent);
  std::vector<Index> triangles, triangle_element, tets;
  for (std::size_t k = 0; k < t.surface.size(); ++k) {
    for (Index i : t.surface[k]) triangles.push_back(page_of[static_cast<std::size_t>(i)]);
    triangle_element.push_back(page_element[static_cast<std::size_t>(t.surface_element[k])]);
  }
  block.indices("triangles", triangles);
  block.indices("triangleElement", triangle_element);
  json surfaces = json::array();
  for (const ReplaySurface& s : t.surfaces)
    surfaces.push_back(add_surface(s, t, page_of, surfaces.size(), block));
  const bool plane = is_plane(t), inside = options_.inside && tet_count(t) > 0;
  if (inside) {
    // A triangle (of a link) is a tetrahedron without volume, of which a cut shows nothing.
    for (const Tet& e : t.elements)
      for (Index i : e) tets.push_back(page_of[static_cast<std::size_t>(i < 0 ? e[2] : i)]);
    block.indices("tets", tets);
  }
  if (!fibre_elements.empty()) {
    std::vector<Index> ends;
    std::vector<float> direction;
    for (Index e : fibre_elements) {
      const Tet& nodes = t.elements[static_cast<std::size_t>(e)];
      for (Index i : nodes) ends.push_back(page_of[static_cast<std::size_t>(i < 0 ? nodes[2] : i)]);
      for (std::size_t d = 0; d < 3; ++d)
        direction.push_back(fibre->values[3 * static_cast<std::size_t>(e) + d]);
    }
    block.indices("fibreTets", ends);
    block.floats("fibreDirection", direction);
  }
  if (candidate) {
    std::vector<Index> list;
    for (std::size_t i = 0; i < m; ++i)
      if (candidate->values[static_cast<std::size_t>(epoch->nodes[i])] != 0)
        list.push_back(static_cast<Index>(i));
    block.indices("candidates", list);
  }
  json fields = json::array();
  for (const FieldInfo& f : epoch->sampler->list()) {
    fields.push_back(to_json(f));
    if (!f.constant || f.id == "displacement") continue;
    const std::vector<float> all = epoch->sampler->values(f, first);
    std::vector<float> some;
    for (Index i : f.per_element ? epoch->elements : epoch->nodes)
      some.push_back(all[static_cast<std::size_t>(i)]);
    block.floats(("field:" + f.id).c_str(), some);
  }
  for (const ExtraField& f : extra_) fields.push_back(to_json(f.info));

  json bodies = json::array();
  for (const ReplayBody& b : t.bodies) {
    auto page_index = [&](Index e) {
      return std::lower_bound(epoch->elements.begin(), epoch->elements.end(), e) - epoch->elements.begin();
    };
    bodies.push_back(
        {{"name", b.name}, {"begin", page_index(b.element_begin)}, {"end", page_index(b.element_end)}});
  }
  const std::string id = fmt::format("{}e{}", prefix_, index);
  manifest_["epochs"].push_back({{"topology", index},
                                 {"step", t.step},
                                 {"totalNodes", n},
                                 {"totalElements", plane ? t.elements.size() : tet_count(t)},
                                 {"nodes", m},
                                 {"surfaceNodes", epoch->surface_nodes},
                                 {"elements", epoch->elements.size()},
                                 {"triangles", t.surface.size()},
                                 {"inside", inside},
                                 {"functions", t.functions},
                                 {"plane", plane},
                                 {"origin", to_json(epoch->origin)},
                                 {"bodies", std::move(bodies)},
                                 {"surfaces", std::move(surfaces)},
                                 {"fields", std::move(fields)},
                                 {"block", id},
                                 {"layout", block.layout}});
  blocks_.push_back({id, deflated(block.bytes, options_.level)});
  epochs_.push_back(std::move(epoch));
}

RunEncoder::Block RunEncoder::encode_group(const Group& group, json& entry) const {
  const Epoch& epoch = *epochs_[group.epoch];
  const bool reduced = group.reduced;
  bool moving = reduced;  // velocities have coordinates too
  std::vector<ReplayFrame> frames;
  for (std::size_t f = 0; f < group.count; ++f) {
    frames.push_back(reader_.frame(frames_[group.first + f], !reduced || !extra_.empty()));
    moving = moving && !frames.back().velocity_coordinates.empty();
  }

  std::string bytes;
  entry = {{"epoch", group.epoch}, {"first", group.first}, {"count", group.count}};
  auto append = [&](json& target, const Coded& coded) {
    target["order"] = coded.order;
    target["spatial"] = coded.spatial;
    target["planes"] = coded.planes;
    bytes += coded.bytes;
  };

  Vec3 low = Vec3::Constant(std::numeric_limits<double>::max()), high = -low;
  if (reduced) {
    std::vector<std::uint32_t> bits;
    double error = 0;
    for (const ReplayFrame& f : frames) {
      for (const float v : f.coordinates) bits.push_back(std::bit_cast<std::uint32_t>(v));
      epoch.skin->grow(f.coordinates, low, high);
      error = std::max(error, epoch.skin->error(f.coordinates));
    }
    if (moving)
      for (const ReplayFrame& f : frames)
        for (const float v : f.velocity_coordinates) bits.push_back(std::bit_cast<std::uint32_t>(v));
    append_planes(bytes, bits, 4);
    entry["u"] = {{"velocity", moving}};
    entry["error"] = error;
  } else {
    std::vector<std::vector<std::int32_t>> q(group.count);
    for (std::size_t f = 0; f < group.count; ++f) {
      q[f].resize(3 * epoch.nodes.size());
      for (std::size_t i = 0; i < epoch.nodes.size(); ++i)
        for (std::size_t d = 0; d < 3; ++d) {
          const double x = frames[f].x[3 * static_cast<std::size_t>(epoch.nodes[i]) + d];
          q[f][3 * i + d] = static_cast<std::int32_t>(
              std::floor((x - epoch.origin[static_cast<Eigen::Index>(d)]) / quantum_ + 0.5));
        }
    }
    append(entry["x"], encode_frames(q, epoch.rest, epoch.parent, 3));
    for (const ReplayFrame& f : frames)
      for (std::size_t i = 0; i < f.x.size(); ++i) {
        const auto d = static_cast<Eigen::Index>(i % 3);
        low[d] = std::min(low[d], double(f.x[i]));
        high[d] = std::max(high[d], double(f.x[i]));
      }
    entry["error"] = quantum_ / 2;
  }
  entry["low"] = to_json(low);
  entry["high"] = to_json(high);

  entry["fields"] = json::array();
  // Numbers of the page's nodes or elements in every frame -> integers -> bytes.
  auto add_field = [&](const std::string& id, bool per_element, bool exact,
                       const std::vector<std::vector<float>>& values, int place_bits = 0) {
    const std::vector<Index>& items = per_element ? epoch.elements : epoch.nodes;
    double low = 0, high = 0;
    for (const auto& v : values)
      for (Index i : items)
        if (const double x = v[static_cast<std::size_t>(i)]; std::isfinite(x)) {
          low = std::min(low, x);
          high = std::max(high, x);
        }
    // The square root keeps small values apart: energies span many orders of magnitude.
    const bool root = !exact && low >= 0 && place_bits == 0;
    const double levels = exact ? 1 : std::ldexp(1.0, place_bits > 0 ? place_bits : options_.field_bits) - 1;
    const double range = exact ? 1 : (high > low ? high - low : 1);
    std::vector<std::vector<std::int32_t>> coded(values.size());
    for (std::size_t f = 0; f < values.size(); ++f) {
      coded[f].reserve(items.size());
      for (Index i : items) {
        double x = values[f][static_cast<std::size_t>(i)];
        if (!std::isfinite(x)) x = low;
        x = exact ? x : (x - low) / range;
        coded[f].push_back(static_cast<std::int32_t>(std::lround(levels * (root ? std::sqrt(x) : x))));
      }
    }
    json j{{"id", id},
           {"per", per_element ? "element" : "node"},
           {"map", exact  ? "exact"
                   : root ? "root"
                          : "linear"},
           {"low", exact ? 0 : low},
           {"range", range},
           {"levels", levels}};
    // What does not change is there once.
    if (std::all_of(coded.begin(), coded.end(), [&](const auto& frame) { return frame == coded.front(); })) {
      coded.resize(1);
      j["same"] = true;
    }
    append(j,
           encode_frames(coded, {},
                         per_element ? std::span<const Index>() : std::span<const Index>(epoch.parent), 1));
    entry["fields"].push_back(std::move(j));
  };
  for (const FieldInfo& info : epoch.sampler->list()) {
    if (info.constant || info.id == "displacement" || (info.id == "speed" && moving)) continue;
    std::vector<std::vector<float>> values;
    for (const ReplayFrame& f : frames) values.push_back(epoch.sampler->values(info, f));
    add_field(info.id, info.per_element, info.categories, values);
  }
  for (const ExtraField& extra : extra_) {
    std::vector<std::vector<float>> values;
    for (const ReplayFrame& f : frames) values.push_back(extra.values(f));
    add_field(extra.info.id, false, false, values);
  }
  // Marks are integers. Places in the material are as exact as those in space, or its grid would tremble.
  for (const char* mark : {"dynamic", "pinned", "eol", "material_u", "material_v"}) {
    std::vector<std::vector<float>> values;
    for (const ReplayFrame& f : frames) {
      const ReplayField* field = find_field(f.node_fields, mark);
      if (!field) field = find_field(epoch.topology.node_fields, mark);  // cloth that is not remeshed
      if (field) values.push_back(field->values);
    }
    const bool place = std::string_view(mark).starts_with("material");
    if (values.size() == frames.size()) add_field(mark, false, !place, values, place ? options_.bits : 0);
  }
  Block block{fmt::format("{}g{}", prefix_, group.first), deflated(bytes, options_.level)};
  entry["block"] = block.id;
  return block;
}

void RunEncoder::update() {
  // Which frames: finite ones, every k-th, and the last of a topology that lasted as long as that. A run that
  // remeshes in every step has as many topologies as frames: most of them are then not shown at all.
  const Index count = reader_.frame_count();
  std::vector<Group> groups;
  json &times = manifest_["times"], &steps = manifest_["steps"], &poses = manifest_["poses"];
  if (reader_.topology_count() > 0 && count == 0 && epochs_.empty()) begin_epoch(0);
  for (; seen_ < count; ++seen_) {
    const Index topology = reader_.frame_topology(seen_);
    const bool ends = seen_ + 1 < count && reader_.frame_topology(seen_ + 1) != topology;
    const Index since = std::max<Index>(0, seen_ - options_.every + 1);
    const bool last = seen_ + 1 == count || (ends && reader_.frame_topology(since) == topology);
    if (!epochs_.empty() && seen_ % options_.every != 0 && !last) continue;
    if (epochs_.empty() || manifest_["epochs"].back()["topology"] != topology) begin_epoch(topology);
    const ReplayFrame frame = reader_.frame(seen_, false);
    // A quantised position must fit into 31 bits; a body that far away is lost anyway.
    const double limit = frame.coordinates.empty() ? quantum_ * 1e9 : 1e12;
    const std::vector<float>& numbers = frame.coordinates.empty() ? frame.x : frame.coordinates;
    if (!std::all_of(numbers.begin(), numbers.end(), [&](float v) { return std::abs(v) < limit; })) {
      ++skipped_;
      continue;
    }
    const std::size_t epoch = epochs_.size() - 1;
    const bool reduced = epochs_.back()->skin && !frame.coordinates.empty();
    if (groups.empty() || groups.back().epoch != epoch || groups.back().count == kGroup ||
        groups.back().reduced != reduced)
      groups.push_back({epoch, frames_.size(), 0, reduced});
    ++groups.back().count;
    frames_.push_back(seen_);
    times.push_back(frame.t);
    steps.push_back(frame.step);
    if (!frame.obstacles.empty()) {
      json pose = json::array();
      for (const ReplayPose& p : frame.obstacles) {
        for (float v : p.translation) pose.push_back(v);
        for (float v : p.rotation) pose.push_back(v);
        pose.push_back(p.scale);
      }
      poses.push_back(std::move(pose));
    }
  }
  if (options_.sample > 0 && groups.size() > static_cast<std::size_t>(options_.sample)) {
    std::vector<Group> some;
    for (Index k = 0; k < options_.sample; ++k)
      some.push_back(
          groups[static_cast<std::size_t>(k) * groups.size() / static_cast<std::size_t>(options_.sample)]);
    groups = std::move(some);
  }

  std::vector<json> entries(groups.size());
  std::vector<Block> blocks(groups.size());
  std::mutex mutex;
  std::size_t done = 0;
  parallel_for(static_cast<std::ptrdiff_t>(groups.size()), 1, [&](std::ptrdiff_t k) {
    const auto i = static_cast<std::size_t>(k);
    blocks[i] = encode_group(groups[i], entries[i]);
    const std::lock_guard lock(mutex);
    ++done;
    if (options_.progress) options_.progress(static_cast<double>(done) / static_cast<double>(groups.size()));
  });
  for (std::size_t i = 0; i < groups.size(); ++i) {
    sampled_frames_ += groups[i].count;
    sampled_bytes_ += static_cast<double>(blocks[i].bytes.size());
    error_ = std::max(error_, entries[i].at("error").get<double>());
    manifest_["groups"].push_back(std::move(entries[i]));
    blocks_.push_back(std::move(blocks[i]));
  }
  update_rows();
  add_shapes();

  manifest_["finished"] = reader_.finished();
  manifest_["summary"] = reader_.summary();
  manifest_["quantum"] = quantum_;
  manifest_["error"] = error();
  manifest_["recordedFrames"] = count;
  json notices = json::array();
  if (const std::string damage = reader_.damage(); !damage.empty())
    notices.push_back("Damaged recording: " + damage + ".");
  if (skipped_ > 0)
    notices.push_back(fmt::format("{} frame{} with positions that are not finite, or far outside, left out.",
                                  skipped_, skipped_ == 1 ? " is" : "s are"));
  if (options_.every > 1)
    notices.push_back(fmt::format("To keep the page small it shows every {} of {} recorded frames.",
                                  options_.every == 2 ? "second" : fmt::format("{}th", options_.every),
                                  count));
  manifest_["notices"] = std::move(notices);
}

// Shapes come after the first frames of their topology.
void RunEncoder::add_shapes() {
  constexpr double kLevels = 2047;
  for (std::size_t e = 0; e < epochs_.size(); ++e) {
    json& entry = manifest_["epochs"][e];
    if (entry.contains("shapes")) continue;
    const std::vector<ReplayShape> shapes = reader_.shapes(entry.at("topology").get<Index>());
    if (shapes.empty()) continue;
    json names = json::array();
    std::vector<std::vector<std::int32_t>> q;
    for (const ReplayShape& s : shapes) {
      names.push_back(s.name);
      std::vector<std::int32_t>& numbers = q.emplace_back();
      for (const Index i : epochs_[e]->nodes)
        for (std::size_t d = 0; d < 3; ++d)
          numbers.push_back(static_cast<std::int32_t>(
              std::lround(kLevels * s.values[3 * static_cast<std::size_t>(i) + d])));
    }
    const Coded coded = encode_frames(q, {}, epochs_[e]->parent, 3);
    const std::string id = fmt::format("{}s{}", prefix_, e);
    entry["shapes"] = {{"names", std::move(names)}, {"levels", kLevels},        {"block", id},
                       {"order", coded.order},      {"spatial", coded.spatial}, {"planes", coded.planes}};
    blocks_.push_back({id, deflated(coded.bytes, options_.level)});
  }
}

// The columns of steps.csv, as plotted.
void RunEncoder::update_rows() {
  const std::vector<ReplayRow>& rows = reader_.rows();
  if (rows.size() == rows_seen_ && manifest_->contains("rows")) return;
  rows_seen_ = rows.size();
  if (manifest_->contains("rows"))  // a later table replaces an earlier one
    for (Block& b : blocks_)
      if (b.id == manifest_["rows"]["block"]) b.bytes.clear();
  const std::size_t stride = std::max<std::size_t>(1, (rows.size() + kMaxRows - 1) / kMaxRows);
  std::vector<std::string> columns{"step", "t"};
  for (const ReplayRow& r : rows)
    for (const auto& v : r.values)
      if (std::find(columns.begin(), columns.end(), v.first) == columns.end()) columns.push_back(v.first);
  std::vector<std::vector<float>> table(columns.size());
  for (std::size_t i = 0; i < rows.size(); i += stride) {
    for (auto& column : table) column.push_back(std::numeric_limits<float>::quiet_NaN());
    table[0].back() = static_cast<float>(rows[i].step);
    table[1].back() = static_cast<float>(rows[i].t);
    for (const auto& v : rows[i].values)
      table[static_cast<std::size_t>(std::find(columns.begin(), columns.end(), v.first) - columns.begin())]
          .back() = static_cast<float>(v.second);
  }
  BlockBuilder block;
  for (std::size_t c = 0; c < columns.size(); ++c) block.floats(columns[c].c_str(), table[c]);
  const std::string id = fmt::format("{}r{}", prefix_, rows.size());
  manifest_["rows"] = {{"block", id}, {"layout", block.layout}, {"every", stride}};
  blocks_.push_back({id, deflated(block.bytes, options_.level)});
}

double RunEncoder::size() const {
  double total = 0;
  for (const Block& b : blocks_) total += static_cast<double>(b.bytes.size());
  if (sampled_frames_ > 0 && sampled_frames_ < frames_.size())
    total +=
        sampled_bytes_ * (static_cast<double>(frames_.size()) / static_cast<double>(sampled_frames_) - 1);
  return total;
}

}  // namespace limber::view
