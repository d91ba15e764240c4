#include <limber/view/carried_sheet.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace limber::view {

CarriedSheet carried_sheet(const TexturedSurface& s) {
  CarriedSheet out;
  std::vector<std::pair<Index, Tri>> all;  // material, corners
  Index face = 0;
  for (const Tri& t : corner_triangles(s)) {
    while (s.face_begin[at(face) + 1] <= t[0]) ++face;
    all.emplace_back(s.face_material[at(face)], t);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (k == 0 || all[k].first != all[k - 1].first) out.pieces.push_back({k, k, all[k].first});
    ++out.pieces.back().last;
    const Tri& t = all[k].second;
    out.corners.push_back(t);
    out.triangles.push_back({s.corner_point[at(t[0])], s.corner_point[at(t[1])], s.corner_point[at(t[2])]});
  }
  if (std::any_of(s.corner_normal.begin(), s.corner_normal.end(), [](Index n) { return n < 0; })) {
    std::vector<float> rest;
    for (const Vec3& p : s.points)
      for (int d = 0; d < 3; ++d) rest.push_back(static_cast<float>(p[d]));
    out.groups = smooth_groups(rest, out.triangles);
    return out;
  }
  std::map<std::pair<Index, Index>, Index> group;  // point and normal
  for (const Tri& t : out.corners)
    for (const Index c : t)
      out.groups.of_corner.push_back(group
                                         .emplace(std::pair(s.corner_point[at(c)], s.corner_normal[at(c)]),
                                                  static_cast<Index>(group.size()))
                                         .first->second);
  out.groups.count = static_cast<Index>(group.size());
  return out;
}

}  // namespace limber::view
