#include <limber/core/error.hpp>
#include <limber/scene/formula.hpp>
#include <limber/scene/selection.hpp>
#include <limber/scene/suggest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace limber {
namespace {

[[noreturn]] void fail(const Selection& s, const std::string& message) {
  throw Error(ErrorKind::kInput, s.where.empty() ? message : s.where + ": " + message);
}

std::string text(const Vec3& p) { return fmt::format("({:.4g}, {:.4g}, {:.4g})", p.x(), p.y(), p.z()); }

double distance_to_segment(const Vec3& p, const Selection& s) {
  const Vec3 along = s.b - s.a;
  const double share = along.squaredNorm() > 0 ? (p - s.a).dot(along) / along.squaredNorm() : 0.0;
  return (p - s.a - std::clamp(share, 0.0, 1.0) * along).norm();
}

using Flags = std::vector<std::uint8_t>;

Flags mark(const Selection& s, std::span<const Vec3> points, const IndexSets& sets) {
  const std::size_t n = points.size();
  Flags in(n, 0);
  const auto where = [&](auto&& holds) {
    for (std::size_t i = 0; i < n; ++i) in[i] = holds(points[i]);
  };
  if (s.kind == "all") {
    std::fill(in.begin(), in.end(), std::uint8_t{1});
  } else if (s.kind == "set") {
    const auto set = sets.find(s.name);
    if (set == sets.end()) {
      std::vector<std::string> names;
      for (const auto& entry : sets) names.push_back(entry.first);
      fail(s, fmt::format("there is no set \"{}\"{}", s.name, did_you_mean_one_of(s.name, names)));
    }
    for (const Index i : set->second) in[static_cast<std::size_t>(i)] = 1;
  } else if (s.kind == "ids") {
    for (const Index i : s.ids) {
      if (i < 0 || static_cast<std::size_t>(i) >= n)
        fail(s, fmt::format("index {} does not exist; indices run from 0 to {}", i,
                            static_cast<std::ptrdiff_t>(n) - 1));
      in[static_cast<std::size_t>(i)] = 1;
    }
  } else if (s.kind == "box") {
    where(
        [&](const Vec3& p) { return (p.array() >= s.a.array()).all() && (p.array() <= s.b.array()).all(); });
  } else if (s.kind == "sphere") {
    where([&](const Vec3& p) { return (p - s.a).squaredNorm() <= s.radius * s.radius; });
  } else if (s.kind == "capsule") {
    where([&](const Vec3& p) { return distance_to_segment(p, s) <= s.radius; });
  } else if (s.kind == "plane") {
    where([&](const Vec3& p) { return (p - s.a).dot(s.b) >= 0; });
  } else if (s.kind == "nearest") {
    for (const Vec3& target : s.points) {
      if (n == 0) break;
      std::size_t best = 0;  // the lowest index among equals
      for (std::size_t i = 1; i < n; ++i)
        if ((points[i] - target).squaredNorm() < (points[best] - target).squaredNorm()) best = i;
      in[best] = 1;
    }
  } else if (s.kind == "formula") {
    const Formula formula(s.name);
    for (std::size_t i = 0; i < n; ++i) {
      const double value = formula(points[i]);
      if (std::isnan(value))
        fail(s, fmt::format("formula \"{}\" has no value at {}", s.name, text(points[i])));
      in[i] = value != 0;
    }
  } else if (s.kind == "any") {
    for (const Selection& part : s.parts) {
      const Flags other = mark(part, points, sets);
      for (std::size_t i = 0; i < n; ++i) in[i] |= other[i];
    }
  } else if (s.kind == "every") {
    std::fill(in.begin(), in.end(), std::uint8_t{1});
    for (const Selection& part : s.parts) {
      const Flags other = mark(part, points, sets);
      for (std::size_t i = 0; i < n; ++i) in[i] &= other[i];
    }
  } else if (s.kind == "not") {
    in = mark(s.parts.at(0), points, sets);
    for (auto& flag : in) flag = !flag;
  } else {
    fail(s, fmt::format("unknown kind of selection \"{}\"", s.kind));
  }
  return in;
}

// How far the nearest point is from what was asked for, to show a slip of scale or of place.
std::string nearest_miss(const Selection& s, std::span<const Vec3> points) {
  const auto distance = [&](const Vec3& p) {
    if (s.kind == "sphere") return (p - s.a).norm() - s.radius;
    if (s.kind == "capsule") return distance_to_segment(p, s) - s.radius;
    if (s.kind == "plane") return -(p - s.a).dot(s.b) / std::max(s.b.norm(), 1e-300);
    return (p - p.cwiseMax(s.a).cwiseMin(s.b)).norm();
  };
  if (s.kind != "box" && s.kind != "sphere" && s.kind != "capsule" && s.kind != "plane") return "";
  const Vec3* best = &points[0];
  for (const Vec3& p : points)
    if (distance(p) < distance(*best)) best = &p;
  return fmt::format("; the nearest point {} is {:.3g} m away", text(*best), distance(*best));
}

}  // namespace

std::string describe(const Selection& s) {
  const auto parts = [&](const char* join) {
    std::string all;
    for (const Selection& part : s.parts) all += (all.empty() ? "" : join) + describe(part);
    return all;
  };
  if (s.kind == "set") return fmt::format("set \"{}\"", s.name);
  if (s.kind == "ids") return fmt::format("{} ids", s.ids.size());
  if (s.kind == "box") return fmt::format("box {} to {}", text(s.a), text(s.b));
  if (s.kind == "sphere") return fmt::format("sphere {} radius {:.4g}", text(s.a), s.radius);
  if (s.kind == "capsule")
    return fmt::format("capsule {} to {} radius {:.4g}", text(s.a), text(s.b), s.radius);
  if (s.kind == "plane") return fmt::format("plane {} normal {}", text(s.a), text(s.b));
  if (s.kind == "nearest")
    return s.points.size() == 1 ? "nearest to " + text(s.points[0])
                                : fmt::format("nearest to {} points", s.points.size());
  if (s.kind == "formula") return fmt::format("formula \"{}\"", s.name);
  if (s.kind == "any") return "(" + parts(" or ") + ")";
  if (s.kind == "every") return "(" + parts(" and ") + ")";
  if (s.kind == "not") return "not " + parts("");
  return s.kind;
}

std::vector<Index> select_or_none(const Selection& selection, std::span<const Vec3> points,
                                  const IndexSets& sets) {
  const Flags in = mark(selection, points, sets);
  std::vector<Index> chosen;
  for (std::size_t i = 0; i < in.size(); ++i)
    if (in[i]) chosen.push_back(static_cast<Index>(i));
  return chosen;
}

std::vector<Index> select(const Selection& selection, std::span<const Vec3> points, const IndexSets& sets) {
  std::vector<Index> chosen = select_or_none(selection, points, sets);
  if (!chosen.empty()) return chosen;
  if (points.empty()) fail(selection, "nothing to select from");
  Vec3 low = points[0], high = points[0];
  for (const Vec3& p : points) {
    low = low.cwiseMin(p);
    high = high.cwiseMax(p);
  }
  fail(selection, fmt::format("{} selects nothing; the points lie between {} and {} [m]{}",
                              describe(selection), text(low), text(high), nearest_miss(selection, points)));
}

}  // namespace limber
