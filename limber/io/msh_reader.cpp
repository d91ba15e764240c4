// Gmsh MSH 2.x and 4.1, text and binary. Nodes and elements are ordered by their tags, physical groups become
// sets.
#include <limber/io/raw_mesh.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace limber::io {
namespace {

constexpr std::int64_t kIntMax = std::numeric_limits<std::int32_t>::max();

CellKind gmsh_kind(std::int64_t type) {
  switch (type) {
    case 1:
      return {1, 2, 2, "lines"};
    case 2:
      return {2, 3, 3, "triangles"};
    case 3:
      return {2, 4, 4, "quadrangles"};
    case 4:
      return {3, 4, 4, "tets"};
    case 5:
      return {3, 8, 8, "hexahedra"};
    case 6:
      return {3, 6, 6, "prisms"};
    case 7:
      return {3, 5, 5, "pyramids"};
    case 8:
      return {1, 3, 2, "lines of second order"};
    case 9:
      return {2, 6, 3, "triangles of second order"};
    case 10:
      return {2, 9, 4, "quadrangles of second order"};
    case 11:
      return {3, 10, 4, "tets of second order"};
    case 12:
      return {3, 27, 8, "hexahedra"};
    case 13:
      return {3, 18, 6, "prisms"};
    case 14:
      return {3, 14, 5, "pyramids"};
    case 15:
      return {0, 1, 1, "points"};
    case 16:
      return {2, 8, 4, "quadrangles of second order"};
    case 17:
      return {3, 20, 8, "hexahedra"};
    case 18:
      return {3, 15, 6, "prisms"};
    case 19:
      return {3, 13, 5, "pyramids"};
    case 20:
      return {2, 9, 3, "triangles of third order"};
    case 21:
      return {2, 10, 3, "triangles of third order"};
    case 26:
      return {1, 4, 2, "lines of third order"};
    case 29:
      return {3, 20, 4, "tets of third order"};
    default:
      return {-1, 0, 0, "elements"};
  }
}

using Group = std::pair<int, std::int64_t>;  // dimension and physical tag

// Cells of one shape with their tags; sorted by tag at the end.
template <class Cell>
struct Cells {
  std::vector<Cell> cells;
  std::vector<std::int64_t> tags;
  std::map<Group, std::vector<Index>> groups;

  void add(const Cell& cell, std::int64_t tag, int dim, const std::vector<std::int64_t>& physical) {
    for (const std::int64_t p : physical) groups[{dim, p}].push_back(static_cast<Index>(cells.size()));
    cells.push_back(cell);
    tags.push_back(tag);
  }

  void sort() {
    if (std::is_sorted(tags.begin(), tags.end())) return;
    std::vector<Index> order(cells.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return tags[a] < tags[b]; });
    std::vector<Index> place(cells.size());
    std::vector<Cell> sorted_cells(cells.size());
    std::vector<std::int64_t> sorted_tags(cells.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      place[order[i]] = static_cast<Index>(i);
      sorted_cells[i] = cells[order[i]];
      sorted_tags[i] = tags[order[i]];
    }
    cells = std::move(sorted_cells);
    tags = std::move(sorted_tags);
    for (auto& [group, members] : groups)
      for (Index& i : members) i = place[i];
  }
};

class MshReader {
 public:
  MshReader(const std::string& name, std::string_view data) : in_(name, data) {}

  RawMesh read() {
    header();
    while (in_.skip_space()) {
      const std::string section(in_.token());
      if (!section.starts_with('$'))
        in_.fail(fmt::format("found {}, expected a section like $Nodes", in_quotes(section)));
      if (section == "$PhysicalNames")
        physical_names();
      else if (section == "$Entities" && version4_)
        entities();
      else if (section == "$Nodes")
        version4_ ? nodes4() : nodes2();
      else if (section == "$Elements")
        version4_ ? elements4() : elements2();
      else if (section == "$NodeData")
        data(node_data_);
      else if (section == "$ElementData")
        data(element_data_);
      else
        skip(section);
      in_.binary(false);
      in_.expect("$End" + section.substr(1));
    }
    if (!have_nodes_) in_.fail("the file has no section $Nodes");
    return finish();
  }

 private:
  struct Data {
    std::string name;
    int components = 1;
    std::vector<std::int64_t> tags;
    std::vector<double> values;
  };

  void header() {
    in_.expect("$MeshFormat");
    const std::string version(in_.token("the version"));
    const std::int64_t type = in_.integer("the file type", 0, 1);
    size_bytes_ = in_.integer("the data size", 4, 8);
    if (version == "4.1")
      version4_ = true;
    else if (version != "2" && !version.starts_with("2."))
      in_.fail(
          fmt::format("found MSH version {}, expected 2.2 or 4.1; gmsh converts it: gmsh {} -save -format "
                      "msh41 -o new.msh",
                      in_quotes(version), in_.name()));
    if (size_bytes_ != 4 && size_bytes_ != 8)
      in_.fail(fmt::format("found data size {}, expected 8", size_bytes_));
    binary_ = type == 1;
    in_.line();
    if (binary_) {
      in_.binary(true);
      const auto one = in_.read<std::int32_t>("the number 1 that shows the byte order");
      if (one == 1 << 24)
        in_.swap_bytes(true);
      else if (one != 1)
        in_.fail(fmt::format("found {}, expected the number 1 that shows the byte order", one));
      in_.binary(false);
    }
    in_.expect("$EndMeshFormat");
    mesh_.format = fmt::format("Gmsh MSH {}, {}", version, binary_ ? "binary" : "text");
  }

  // Binary data starts right after the line of the section's name.
  void begin_data() {
    in_.line();
    in_.binary(binary_);
  }

  std::int64_t int_(const char* what) {
    return binary_ ? in_.read<std::int32_t>(what) : in_.integer(what, -kIntMax - 1, kIntMax);
  }
  std::int64_t size_(const char* what) {
    if (!binary_) return in_.integer(what, 0);
    if (size_bytes_ == 4) return in_.read<std::uint32_t>(what);
    return static_cast<std::int64_t>(in_.read<std::uint64_t>(what));
  }
  double double_(const char* what) { return binary_ ? in_.read<double>(what) : in_.number(what); }
  // A count of things of so many ints, sizes and doubles each.
  std::size_t count_(std::int64_t n, int ints, int sizes, int doubles, const char* what) {
    return in_.count(n, binary_ ? 4 * ints + size_bytes_ * sizes + 8 * doubles : 2 * (ints + sizes + doubles),
                     what);
  }

  void skip(const std::string& section) {
    const std::string end = "$End" + section.substr(1);
    const std::size_t found = in_.rest().find(end);
    if (found == std::string_view::npos) in_.fail(fmt::format("section {} has no {}", section, end));
    in_.seek(in_.position() + found);
    if (section == "$PartitionedEntities")
      mesh_.notices.push_back("the mesh is partitioned; groups of partitioned entities were not read");
  }

  void physical_names() {
    const std::size_t n = in_.count(in_.integer("the number of names", 0), 6, "physical names");
    for (std::size_t i = 0; i < n; ++i) {
      const auto dim = static_cast<int>(in_.integer("a dimension", 0, 3));
      const std::int64_t tag = in_.integer("a physical tag");
      in_.more_in_line();
      names_[{dim, tag}] = quoted_name();
    }
  }

  std::string quoted_name() {
    std::string_view text = in_.line();
    const std::size_t first = text.find('"'), last = text.rfind('"');
    if (first == std::string_view::npos || last == first)
      in_.fail(fmt::format("found {}, expected a name in double quotes", in_quotes(text)));
    return std::string(text.substr(first + 1, last - first - 1));
  }

  void entities() {
    begin_data();
    std::array<std::size_t, 4> n;
    for (int d = 0; d < 4; ++d)
      n[d] = count_(size_("the number of entities"), 1, d == 0 ? 1 : 2, d == 0 ? 3 : 6, "entities");
    for (int d = 0; d < 4; ++d)
      for (std::size_t e = 0; e < n[d]; ++e) {
        const std::int64_t tag = int_("the tag of an entity");
        for (int c = 0; c < (d == 0 ? 3 : 6); ++c) double_("a coordinate of an entity");
        const std::size_t groups = count_(size_("the number of physical groups"), 1, 0, 0, "physical groups");
        auto& list = entities_[{d, tag}];
        for (std::size_t g = 0; g < groups; ++g) list.push_back(std::abs(int_("a physical group")));
        if (d == 0) continue;
        const std::size_t bounds =
            count_(size_("the number of bounding entities"), 1, 0, 0, "bounding entities");
        for (std::size_t b = 0; b < bounds; ++b) int_("a bounding entity");
      }
  }

  void nodes2() {
    const std::size_t n = count_(in_.integer("the number of nodes", 0), 1, 0, 3, "nodes");
    begin_data();
    for (std::size_t i = 0; i < n; ++i) {
      node_tags_.push_back(int_("the tag of a node"));
      Vec3 p;
      for (int a = 0; a < 3; ++a) p[a] = double_("a node coordinate");
      mesh_.nodes.push_back(p);
    }
    index_nodes();
  }

  void nodes4() {
    begin_data();
    const std::size_t blocks = count_(size_("the number of node blocks"), 3, 1, 0, "node blocks");
    const std::size_t total = count_(size_("the number of nodes"), 0, 1, 3, "nodes");
    size_("the least node tag");
    size_("the greatest node tag");
    for (std::size_t b = 0; b < blocks; ++b) {
      const std::int64_t dim = int_("the dimension of a node block");
      int_("the entity of a node block");
      const std::int64_t parametric = int_("whether nodes have parameters");
      if (dim < 0 || dim > 3)
        in_.fail(fmt::format("found {} as the dimension of a node block, expected 0 to 3", dim));
      const std::size_t n = count_(size_("the number of nodes in a block"), 0, 1, 3, "nodes in a block");
      for (std::size_t i = 0; i < n; ++i) node_tags_.push_back(size_("the tag of a node"));
      for (std::size_t i = 0; i < n; ++i) {
        Vec3 p;
        for (int a = 0; a < 3; ++a) p[a] = double_("a node coordinate");
        for (std::int64_t a = 0; parametric && a < dim; ++a) double_("a parameter of a node");
        mesh_.nodes.push_back(p);
      }
    }
    if (mesh_.nodes.size() != total)
      in_.fail(
          fmt::format("found {} nodes in the blocks, expected {} as announced", mesh_.nodes.size(), total));
    index_nodes();
  }

  // Sorts the nodes by tag.
  void index_nodes() {
    if (have_nodes_) in_.fail("found a second section $Nodes");
    have_nodes_ = true;
    if (!std::is_sorted(node_tags_.begin(), node_tags_.end())) {
      std::vector<Index> order(node_tags_.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](Index a, Index b) { return node_tags_[a] < node_tags_[b]; });
      std::vector<Vec3> nodes;
      std::vector<std::int64_t> tags;
      for (const Index i : order) {
        nodes.push_back(mesh_.nodes[i]);
        tags.push_back(node_tags_[i]);
      }
      mesh_.nodes = std::move(nodes);
      node_tags_ = std::move(tags);
    }
    const auto twin = std::adjacent_find(node_tags_.begin(), node_tags_.end());
    if (twin != node_tags_.end()) in_.fail(fmt::format("two nodes have the tag {}", *twin));
  }

  // The index of a tag in a sorted list, or -1. Nearly always the tags have no gaps.
  static Index find_tag(const std::vector<std::int64_t>& tags, std::int64_t tag) {
    if (tags.empty() || tag < tags.front() || tag > tags.back()) return -1;
    const auto guess = static_cast<std::size_t>(tag - tags.front());
    if (guess < tags.size() && tags[guess] == tag) return static_cast<Index>(guess);
    const auto it = std::lower_bound(tags.begin(), tags.end(), tag);
    return it != tags.end() && *it == tag ? static_cast<Index>(it - tags.begin()) : -1;
  }

  CellKind kind_of(std::int64_t type) {
    if (!have_nodes_) in_.fail("found $Elements before $Nodes");
    const CellKind kind = gmsh_kind(type);
    if (kind.dim < 0) in_.fail(fmt::format("found element type {}, which is not known here", type));
    if (!kind.usable())
      in_.fail(fmt::format(
          "the mesh has {}; Limber reads tets (in Gmsh: no Recombine, no transfinite volumes)", kind.name));
    return kind;
  }

  void element(const CellKind& kind, std::int64_t tag, const std::vector<std::int64_t>& physical,
               bool wide_tags) {
    corners_.clear();
    for (int k = 0; k < kind.nodes; ++k) {
      const std::int64_t node_tag = wide_tags ? size_("a node of an element") : int_("a node of an element");
      const Index i = find_tag(node_tags_, node_tag);
      if (i < 0) in_.fail(fmt::format("element {} names node {}, which is not in the file", tag, node_tag));
      if (k < kind.corners) corners_.push_back(i);
    }
    if (kind.nodes > kind.corners) higher_order_ = kind.name;
    if (kind.dim == 3) {
      tets_.add({corners_[0], corners_[1], corners_[2], corners_[3]}, tag, 3, physical);
    } else if (kind.dim == 2) {
      for (std::size_t k = 1; k + 1 < corners_.size(); ++k)
        triangles_.add({corners_[0], corners_[k], corners_[k + 1]}, tag, 2, physical);
      quads_ += kind.corners > 3;
    } else {
      for (const std::int64_t p : physical) {
        auto& set = low_groups_[{kind.dim, p}];
        set.insert(set.end(), corners_.begin(), corners_.end());
      }
    }
  }

  void elements2() {
    const std::size_t n = count_(in_.integer("the number of elements", 0), 2, 0, 0, "elements");
    begin_data();
    std::size_t done = 0;
    while (done < n) {
      std::int64_t tag = binary_ ? 0 : int_("the tag of an element");
      const CellKind kind = kind_of(int_("the type of an element"));
      const std::size_t follow =
          binary_ ? count_(int_("the number of elements that follow"), 2, 0, 0, "elements") : 1;
      const std::int64_t tags = int_("the number of tags");
      if (tags < 0 || tags > 1000)
        in_.fail(fmt::format("found {} as the number of tags, expected 0 to 1000", tags));
      if (follow == 0 || follow > n - done)
        in_.fail(fmt::format("found a block of {} elements, expected 1 to {}", follow, n - done));
      for (std::size_t i = 0; i < follow; ++i) {
        if (binary_) tag = int_("the tag of an element");
        std::vector<std::int64_t> physical;
        for (std::int64_t t = 0; t < tags; ++t) {
          const std::int64_t value = int_("a tag");
          if (t == 0 && value != 0) physical.push_back(std::abs(value));  // 0: in no group
        }
        element(kind, tag, physical, false);
      }
      done += follow;
    }
  }

  void elements4() {
    begin_data();
    const std::size_t blocks = count_(size_("the number of element blocks"), 3, 1, 0, "element blocks");
    const std::size_t total = count_(size_("the number of elements"), 0, 2, 0, "elements");
    size_("the least element tag");
    size_("the greatest element tag");
    std::size_t done = 0;
    static const std::vector<std::int64_t> kNone;
    for (std::size_t b = 0; b < blocks; ++b) {
      const auto dim = static_cast<int>(int_("the dimension of an element block"));
      const std::int64_t entity = int_("the entity of an element block");
      const CellKind kind = kind_of(int_("the type of an element block"));
      const std::size_t n =
          count_(size_("the number of elements in a block"), 0, 1 + kind.nodes, 0, "elements");
      const auto groups = entities_.find({dim, entity});
      for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t tag = size_("the tag of an element");
        element(kind, tag, groups == entities_.end() ? kNone : groups->second, true);
      }
      done += n;
    }
    if (done != total)
      in_.fail(fmt::format("found {} elements in the blocks, expected {} as announced", done, total));
  }

  // $NodeData and $ElementData: text head, then (tag, values) as text or (int, doubles).
  void data(std::vector<Data>& out) {
    Data d;
    const std::size_t strings = in_.count(in_.integer("the number of string tags", 0), 2, "string tags");
    for (std::size_t i = 0; i < strings; ++i) {
      in_.skip_space();
      const std::string text = quoted_name();
      if (i == 0) d.name = text;
    }
    const std::size_t reals = in_.count(in_.integer("the number of real tags", 0), 2, "real tags");
    for (std::size_t i = 0; i < reals; ++i) in_.number("a real tag");
    const std::size_t integers = in_.count(in_.integer("the number of integer tags", 0), 2, "integer tags");
    if (integers < 3) in_.fail(fmt::format("found {} integer tags, expected at least 3", integers));
    in_.integer("the time step");
    d.components = static_cast<int>(in_.integer("the number of components", 1, 9));
    const std::int64_t items = in_.integer("the number of items", 0);
    for (std::size_t i = 3; i < integers; ++i) in_.integer("an integer tag");
    begin_data();
    const std::size_t n = count_(items, 1, 0, d.components, "items");
    for (std::size_t i = 0; i < n; ++i) {
      d.tags.push_back(int_("the tag of an item"));
      for (int c = 0; c < d.components; ++c) d.values.push_back(double_("a value"));
    }
    if (!d.name.empty()) out.push_back(std::move(d));
  }

  // Values of `d` for the things with these sorted tags; nothing when it concerns others. A field with gaps
  // is left out: a made-up number for the rest would be worse than none.
  void place_field(const Data& d, const std::vector<std::int64_t>& tags, Fields& fields) {
    if (tags.empty()) return;
    std::vector<Index> place;
    std::vector<std::uint8_t> seen(d.tags.size() < tags.size() ? 0 : tags.size(), 0);
    std::size_t found = 0;
    for (const std::int64_t tag : d.tags) {
      place.push_back(find_tag(tags, tag));
      if (place.back() < 0 || seen.empty()) continue;
      found += !seen[place.back()];
      seen[place.back()] = 1;
    }
    if (found < tags.size()) {
      if (std::any_of(place.begin(), place.end(), [](Index i) { return i >= 0; }))
        mesh_.notices.push_back(
            fmt::format("left out field \"{}\", which has no value for some items", d.name));
      return;
    }
    Field& field = fields[d.name];
    field.components = d.components;
    field.values.assign(tags.size() * d.components, 0.0);
    for (std::size_t i = 0; i < place.size(); ++i)
      for (int c = 0; c < d.components && place[i] >= 0; ++c)
        field.values[static_cast<std::size_t>(place[i]) * d.components + c] = d.values[i * d.components + c];
  }

  std::string name_of(const Group& group) const {
    const auto it = names_.find(group);
    return it != names_.end() && !it->second.empty() ? it->second : group_name(group.second);
  }

  RawMesh finish() {
    tets_.sort();
    triangles_.sort();
    for (const Data& d : node_data_) place_field(d, node_tags_, mesh_.node_fields);
    for (const Data& d : element_data_) {
      place_field(d, tets_.tags, mesh_.tet_fields);
      // A quadrangle became two triangles with one tag: values per triangle cannot be placed then.
      if (tets_.tags.empty() && quads_ == 0) place_field(d, triangles_.tags, mesh_.triangle_fields);
    }
    const auto add = [](std::vector<Index>& set, const std::vector<Index>& more) {
      set.insert(set.end(), more.begin(), more.end());
    };
    for (const auto& [group, members] : tets_.groups) add(mesh_.tet_groups[name_of(group)], members);
    for (const auto& [group, members] : triangles_.groups)
      add(mesh_.triangle_groups[name_of(group)], members);
    for (const auto& [group, nodes] : low_groups_) add(mesh_.node_sets[name_of(group)], nodes);
    if (higher_order_) mesh_.notices.push_back(fmt::format("used only the corners of {}", higher_order_));
    if (quads_ > 0) mesh_.notices.push_back(fmt::format("cut {} quadrangles into triangles", quads_));
    mesh_.tets = std::move(tets_.cells);
    mesh_.triangles = std::move(triangles_.cells);
    return std::move(mesh_);
  }

  Cursor in_;
  RawMesh mesh_;
  bool version4_ = false, binary_ = false, have_nodes_ = false;
  std::int64_t size_bytes_ = 8;
  std::map<Group, std::string> names_;
  std::map<Group, std::vector<std::int64_t>> entities_;  // (dimension, entity) -> physical groups
  std::vector<std::int64_t> node_tags_;
  Cells<Tet> tets_;
  Cells<Tri> triangles_;
  std::map<Group, std::vector<Index>> low_groups_;  // nodes of lines and points
  std::vector<Data> node_data_, element_data_;
  std::vector<Index> corners_;
  std::size_t quads_ = 0;
  const char* higher_order_ = nullptr;
};

}  // namespace

RawMesh read_msh(const std::string& name, std::string_view data) { return MshReader(name, data).read(); }

}  // namespace limber::io
