#include <limber/core/error.hpp>
#include <limber/scene/formula.hpp>
#include <limber/scene/number_file.hpp>
#include <limber/scene/suggest.hpp>
#include <limber/scene/varying.hpp>

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

namespace limber {
namespace {

std::string prefix(const std::string& where) { return where.empty() ? "" : where + ": "; }

std::string path_in(const std::string& folder, const std::string& file) {
  return (std::filesystem::path(folder) / file).lexically_normal().string();
}

// `width` numbers per `item` ("element" or "node") from a file or a mesh field.
std::vector<double> stored(const char* item, const std::string& file, const std::string& field, int width,
                           std::size_t count, const Fields& fields, const std::string& folder,
                           const std::string& where) {
  const auto wrong_size = [&](const std::string& what, std::size_t found) {
    return Error(ErrorKind::kInput,
                 fmt::format("{}{} has {} numbers; expected {} ({} for each of {} {}s)", prefix(where), what,
                             found, count * static_cast<std::size_t>(width), width, count, item));
  };
  if (!file.empty()) {
    const std::string path = path_in(folder, file);
    NumberFile numbers;
    try {
      numbers = read_numbers(path);
    } catch (const Error& e) {
      throw Error(e.kind(), prefix(where) + e.what());
    }
    if (numbers.values.size() != count * static_cast<std::size_t>(width))
      throw wrong_size(path, numbers.values.size());
    return std::move(numbers.values);
  }
  const auto found = fields.find(field);
  if (found == fields.end()) {
    std::vector<std::string> names;
    for (const auto& f : fields) names.push_back(f.first);
    throw Error(ErrorKind::kInput, fmt::format("{}the mesh has no {} field \"{}\"{}", prefix(where), item,
                                               field, did_you_mean_one_of(field, names)));
  }
  if (found->second.components != width ||
      found->second.values.size() != count * static_cast<std::size_t>(width))
    throw wrong_size(fmt::format("{} field \"{}\" ({} components)", item, field, found->second.components),
                     found->second.values.size());
  return found->second.values;
}

std::string bounds(const Range& r) {
  const bool low = std::isfinite(r.min), high = std::isfinite(r.max);
  if (low && high)
    return fmt::format("{}{}, {}{}", r.min_open ? "(" : "[", r.min, r.max, r.max_open ? ")" : "]");
  if (low) return fmt::format("{} {}", r.min_open ? "more than" : "at least", r.min);
  return fmt::format("{} {}", r.max_open ? "less than" : "at most", r.max);
}

}  // namespace

std::vector<double> evaluate(const Varying& varying, std::span<const Vec3> centroids, const Fields& fields,
                             const std::string& folder) {
  std::vector<double> values;
  if (varying.value) {
    values.assign(centroids.size(), *varying.value);
  } else if (!varying.formula.empty()) {
    const Formula formula(varying.formula);
    values.reserve(centroids.size());
    for (const Vec3& p : centroids) values.push_back(formula(p));
  } else {
    values =
        stored("element", varying.file, varying.field, 1, centroids.size(), fields, folder, varying.where);
  }
  for (std::size_t e = 0; e < values.size(); ++e) {
    if (std::isfinite(values[e]) && varying.range.holds(values[e])) continue;
    const Vec3& p = centroids[e];
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}element {} at ({:.4g}, {:.4g}, {:.4g}) gets {}{}; expected {}", prefix(varying.where),
                    e, p.x(), p.y(), p.z(), values[e], varying.unit.empty() ? "" : " " + varying.unit,
                    std::isfinite(values[e]) ? bounds(varying.range) : "a finite number"));
  }
  return values;
}

std::vector<Vec3> evaluate(const NodeVectors& vectors, std::span<const Vec3> nodes, const Fields& fields,
                           const std::string& folder) {
  std::vector<Vec3> values(nodes.size(), vectors.value);
  if (!vectors.formula[0].empty()) {
    const Formula x(vectors.formula[0]), y(vectors.formula[1]), z(vectors.formula[2]);
    for (std::size_t i = 0; i < nodes.size(); ++i) values[i] = Vec3(x(nodes[i]), y(nodes[i]), z(nodes[i]));
  } else if (!vectors.values.empty()) {
    if (vectors.values.size() != nodes.size())
      throw Error(ErrorKind::kInput,
                  fmt::format("{}/values: found {} vectors; expected {}, one for each node", vectors.where,
                              vectors.values.size(), nodes.size()));
    values = vectors.values;
  } else if (vectors.varies()) {
    const std::vector<double> numbers =
        stored("node", vectors.file, vectors.field, 3, nodes.size(), fields, folder, vectors.where);
    for (std::size_t i = 0; i < nodes.size(); ++i) values[i] = Eigen::Map<const Vec3>(&numbers[3 * i]);
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!values[i].allFinite())
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}node {} at ({:.4g}, {:.4g}, {:.4g}) gets ({}, {}, {}); expected finite numbers",
                      prefix(vectors.where), i, nodes[i].x(), nodes[i].y(), nodes[i].z(), values[i].x(),
                      values[i].y(), values[i].z()));
  return values;
}

std::vector<Vec3> fibre_directions(const FibreSpec& fibre, std::span<const Vec3> centroids,
                                   const Fields& fields, const std::string& folder) {
  std::vector<Vec3> directions(centroids.size());
  if (fibre.direction) {
    directions.assign(centroids.size(), *fibre.direction);
  } else if (!fibre.formula[0].empty()) {
    const Formula x(fibre.formula[0]), y(fibre.formula[1]), z(fibre.formula[2]);
    for (std::size_t e = 0; e < centroids.size(); ++e)
      directions[e] = Vec3(x(centroids[e]), y(centroids[e]), z(centroids[e]));
  } else {
    const std::vector<double> numbers =
        stored("element", fibre.file, fibre.field, 3, centroids.size(), fields, folder, fibre.where);
    for (std::size_t e = 0; e < centroids.size(); ++e)
      directions[e] = Eigen::Map<const Vec3>(&numbers[3 * e]);
  }
  for (std::size_t e = 0; e < directions.size(); ++e) {
    const double length = directions[e].norm();
    const Vec3& p = centroids[e];
    if (!std::isfinite(length) || length == 0)
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}element {} at ({:.4g}, {:.4g}, {:.4g}) gets the fibre direction ({}, {}, {}); "
                      "expected a finite vector that is not zero",
                      prefix(fibre.where), e, p.x(), p.y(), p.z(), directions[e].x(), directions[e].y(),
                      directions[e].z()));
    directions[e] /= length;
  }
  return directions;
}

}  // namespace limber
