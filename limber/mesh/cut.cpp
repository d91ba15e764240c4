#include <limber/mesh/cut.hpp>

#include <limber/mesh/element_kind.hpp>

#include <algorithm>
#include <functional>
#include <numeric>

namespace limber {
namespace {

struct ElementFace {
  Face nodes;  // ascending
  Index element;
};

// An inner face and the two elements that share it.
struct InnerFace {
  Face nodes;
  Index a, b;
};

Face sorted(Face f) {
  std::sort(f.begin(), f.end());
  return f;
}

std::vector<InnerFace> inner_faces(std::span<const Tet> elements) {
  std::vector<ElementFace> all;
  all.reserve(4 * elements.size());
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const Tet& t = elements[e];
    const auto id = static_cast<Index>(e);
    if (corners(t) == 3) {
      for (int k = 0; k < 3; ++k) all.push_back({sorted({t[k], t[(k + 1) % 3], -1}), id});
    } else {
      for (int skip = 0; skip < 4; ++skip)
        all.push_back({sorted({t[(skip + 1) % 4], t[(skip + 2) % 4], t[(skip + 3) % 4]}), id});
    }
  }
  std::sort(all.begin(), all.end(), [](const ElementFace& a, const ElementFace& b) {
    return a.nodes != b.nodes ? a.nodes < b.nodes : a.element < b.element;
  });
  std::vector<InnerFace> inner;
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].nodes == all[i - 1].nodes) inner.push_back({all[i].nodes, all[i - 1].element, all[i].element});
  return inner;
}

// Union-find whose roots are the least members.
class Groups {
 public:
  explicit Groups(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), std::size_t{0}); }
  std::size_t root(std::size_t k) {
    while (parent_[k] != k) k = parent_[k] = parent_[parent_[k]];
    return k;
  }
  void join(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

// Do two elements have n nodes in common?
bool share_all(const Tet& s, const Tet& t, int n) {
  int common = 0;
  for (Index i : s) common += i >= 0 && std::find(t.begin(), t.end(), i) != t.end();
  return common == n;
}

CutMesh cut(Index nodes, std::span<const Tet> elements,
            const std::function<bool(const InnerFace&)>& separates) {
  CutMesh out;
  out.elements.assign(elements.begin(), elements.end());
  out.copy_of.resize(static_cast<std::size_t>(nodes));
  std::iota(out.copy_of.begin(), out.copy_of.end(), 0);

  // The faces to open, and the nodes that the cut touches.
  const std::vector<InnerFace> inner = inner_faces(elements);
  std::vector<std::uint8_t> touched(static_cast<std::size_t>(nodes), 0), open(inner.size(), 0);
  for (std::size_t k = 0; k < inner.size(); ++k) {
    open[k] = separates(inner[k]);
    if (!open[k]) continue;
    for (Index i : inner[k].nodes)
      if (i >= 0) touched[i] = 1;
  }
  std::vector<std::vector<Index>> fan(static_cast<std::size_t>(nodes));
  for (std::size_t e = 0; e < elements.size(); ++e)
    for (Index i : elements[e])
      if (i >= 0 && touched[i]) fan[i].push_back(static_cast<Index>(e));
  std::vector<std::vector<Index>> faces(static_cast<std::size_t>(nodes));
  for (std::size_t k = 0; k < inner.size(); ++k)
    for (Index i : inner[k].nodes)
      if (i >= 0 && touched[i]) faces[i].push_back(static_cast<Index>(k));

  for (Index i = 0; i < nodes; ++i) {
    if (!touched[i]) continue;
    // Groups of elements around the node that still hang together through faces that contain it.
    const std::vector<Index>& around = fan[i];
    auto place = [&](Index e) {
      return static_cast<std::size_t>(std::lower_bound(around.begin(), around.end(), e) - around.begin());
    };
    Groups before(around.size()), after(around.size());
    for (Index k : faces[i]) {
      before.join(place(inner[k].a), place(inner[k].b));
      if (!open[k]) after.join(place(inner[k].a), place(inner[k].b));
    }
    // Of every group before the cut, the part with its first element keeps the node.
    std::vector<Index> copy(around.size(), -1);
    for (std::size_t k = 0; k < around.size(); ++k) {
      const std::size_t r = after.root(k);
      if (r == before.root(k)) continue;
      if (copy[r] < 0) {
        copy[r] = static_cast<Index>(out.copy_of.size());
        out.copy_of.push_back(i);
      }
      std::replace(out.elements[around[k]].begin(), out.elements[around[k]].end(), i, copy[r]);
    }
  }
  for (std::size_t k = 0; k < inner.size(); ++k)
    if (open[k])
      out.faces +=
          !share_all(out.elements[inner[k].a], out.elements[inner[k].b], inner[k].nodes[0] < 0 ? 2 : 3);
  return out;
}

}  // namespace

CutMesh cut_by_side(Index nodes, std::span<const Tet> elements, std::span<const std::uint8_t> side) {
  return cut(nodes, elements, [&](const InnerFace& f) { return side[f.a] != side[f.b]; });
}

CutMesh cut_by_faces(Index nodes, std::span<const Tet> elements, std::span<const Face> faces) {
  std::vector<Face> wanted;
  wanted.reserve(faces.size());
  for (const Face& f : faces) wanted.push_back(sorted(f));
  std::sort(wanted.begin(), wanted.end());
  return cut(nodes, elements,
             [&](const InnerFace& f) { return std::binary_search(wanted.begin(), wanted.end(), f.nodes); });
}

}  // namespace limber
