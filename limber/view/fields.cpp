#include <limber/view/fields.hpp>

#include <limber/mesh/element_kind.hpp>

#include <fmt/format.h>

#include <Eigen/Geometry>

#include <algorithm>
#include <array>
#include <cmath>

namespace limber::view {
namespace {

struct Known {
  const char* name;
  const char* label;
};
// Labels of names that many methods use; other names are shown as they are.
constexpr std::array<Known, 10> kKnown{{{"von_mises", "von Mises stress"},
                                        {"cauchy_stress", "stress"},
                                        {"velocity", "speed"},
                                        {"energy_density", "strain energy density"},
                                        {"young", "Young's modulus"},
                                        {"poisson", "Poisson's ratio"},
                                        {"region", "region"},
                                        {"liveliness", "liveliness"},
                                        {"contact_force", "contact force"},
                                        {"body", "body"}}};

std::string label_of(const std::string& name) {
  for (const Known& k : kKnown)
    if (name == k.name) return k.label;
  std::string label = name;
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

// Numbers that stand for something and must not be interpolated: "region", "body", "rigid_piece", "..._id".
bool is_category(const std::string& name) {
  return name == "region" || name == "body" || name == "rigid_piece" ||
         (name.size() > 3 && name.ends_with("_id"));
}

// The names of the components that are shown one by one: principal values, and tensors in the order of VTK.
// Of other vectors the magnitude is shown.
std::vector<std::string> component_names(const ReplayField& f) {
  if (f.components == 3 && f.name.starts_with("principal_")) return {"1", "2", "3"};
  if (f.components == 6) return {"xx", "yy", "zz", "xy", "yz", "xz"};
  return {};
}

std::vector<float> numbers_of(const ReplayField& f, int component) {
  if (f.components == 1) return f.values;
  const auto c = static_cast<std::size_t>(f.components);
  std::vector<float> out(f.values.size() / c);
  if (component >= 0) {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = f.values[c * i + static_cast<std::size_t>(component)];
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    double sum = 0;
    for (std::size_t d = 0; d < c; ++d) sum += double(f.values[c * i + d]) * f.values[c * i + d];
    out[i] = static_cast<float>(std::sqrt(sum));
  }
  return out;
}

Eigen::Vector3f rest_of(const ReplayTopology& t, Index i) {
  return Eigen::Map<const Eigen::Vector3f>(&t.rest[3 * static_cast<std::size_t>(i)]);
}

}  // namespace

bool is_mark(const std::string& name) {
  return name == "dynamic" || name == "pinned" || name == "candidate" || name == "fibre" || name == "cloth" ||
         name == "eol" || name == "material_u" || name == "material_v";
}

bool is_plane(const ReplayTopology& t) {
  if (find_field(t.element_fields, "cloth")) return false;  // it may be flat at rest, but it moves in space
  for (std::size_t i = 2; i < t.rest.size(); i += 3)
    if (t.rest[i] != t.rest[2]) return false;
  return !t.elements.empty() && tet_count(t) == 0;
}

std::size_t tet_count(const ReplayTopology& t) {
  return static_cast<std::size_t>(
      std::count_if(t.elements.begin(), t.elements.end(), [](const Tet& e) { return corners(e) == 4; }));
}

const ReplayField* find_field(const std::vector<ReplayField>& fields, const std::string& name) {
  for (const ReplayField& f : fields)
    if (f.name == name) return &f;
  return nullptr;
}

std::string short_number(double v) {
  if (v == 0) return "0";
  const double a = std::abs(v);
  return a < 1e-3 || a >= 1e5 ? fmt::format("{:.3g}", v) : fmt::format("{:.4g}", v);
}

FieldSampler::FieldSampler(const ReplayTopology& topology, const ReplayFrame* frame) : topology_(topology) {
  list_.push_back({"displacement", "displacement", "m", false, false, false, {}});
  auto add = [&](const ReplayField& f, bool per_element, bool constant) {
    if (is_mark(f.name)) return;
    FieldInfo info;
    info.id = f.name == "velocity" ? "speed" : f.name;
    info.label = label_of(f.name);
    info.unit = f.unit;
    info.constant = constant;
    info.categories = per_element && is_category(f.name);
    info.per_element = per_element && (constant || info.categories);
    if (f.name == "region") info.names = topology.regions;
    if (f.name == "rigid_piece") info.names = {"elastic"};
    if (f.name == "full" && !per_element) {  // of `condense`, as its paper shows it
      info.label = "solved in";
      info.categories = info.highlight = true;
      info.names = {"subspace", "full space"};
    }
    info.of = f.name;
    const std::vector<std::string> parts = component_names(f);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      FieldInfo part = info;
      part.id = fmt::format("{}_{}", info.id, parts[k]);
      part.label = fmt::format("{} {}", info.label, parts[k]);
      part.component = static_cast<int>(k);
      if (!find(part.id)) list_.push_back(std::move(part));
    }
    if (parts.empty() && !find(info.id)) list_.push_back(std::move(info));
  };
  if (frame) {
    for (const ReplayField& f : frame->node_fields) add(f, false, false);
    for (const ReplayField& f : frame->element_fields) add(f, true, false);
  }
  for (const ReplayField& f : topology.node_fields) add(f, false, true);
  for (const ReplayField& f : topology.element_fields) add(f, true, true);
  if (topology.bodies.size() > 1 && !find("body")) {
    FieldInfo info{"body", "body", "", true, true, true, {}, false, "body"};
    for (const ReplayBody& b : topology.bodies) info.names.push_back(b.name);
    list_.push_back(std::move(info));
  }

  volume_.reserve(topology.elements.size());
  for (const Tet& e : topology.elements) {
    const Eigen::Vector3f a = rest_of(topology, e[0]), b = rest_of(topology, e[1]) - a,
                          c = rest_of(topology, e[2]) - a;
    volume_.push_back(corners(e) == 3 ? b.cross(c).norm() / 2
                                      : std::abs(b.cross(c).dot(rest_of(topology, e[3]) - a)) / 6);
  }
}

const FieldInfo* FieldSampler::find(const std::string& id) const {
  for (const FieldInfo& f : list_)
    if (f.id == id) return &f;
  return nullptr;
}

std::vector<float> FieldSampler::node_average(const std::vector<float>& of_elements) const {
  const auto n = static_cast<std::size_t>(topology_.node_count());
  std::vector<double> sum(n), weight(n);
  for (std::size_t e = 0; e < topology_.elements.size(); ++e)
    for (Index i : topology_.elements[e])
      if (i >= 0) {
        sum[static_cast<std::size_t>(i)] += double(volume_[e]) * of_elements[e];
        weight[static_cast<std::size_t>(i)] += volume_[e];
      }
  std::vector<float> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = weight[i] > 0 ? static_cast<float>(sum[i] / weight[i]) : 0;
  return out;
}

std::vector<float> FieldSampler::values(const FieldInfo& field, const ReplayFrame& frame) const {
  if (field.id == "displacement") {
    std::vector<float> out(frame.x.size() / 3);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = (Eigen::Map<const Eigen::Vector3f>(&frame.x[3 * i]) -
                Eigen::Map<const Eigen::Vector3f>(&topology_.rest[3 * i]))
                   .norm();
    return out;
  }
  const std::string& name = field.of;
  const std::size_t count = field.per_element ? topology_.elements.size() : topology_.rest.size() / 3;
  if (const ReplayField* f = find_field(frame.node_fields, name)) return numbers_of(*f, field.component);
  if (const ReplayField* f = find_field(frame.element_fields, name)) {
    std::vector<float> values = numbers_of(*f, field.component);
    return field.per_element ? values : node_average(values);
  }
  if (const ReplayField* f = find_field(topology_.node_fields, name)) return numbers_of(*f, field.component);
  if (const ReplayField* f = find_field(topology_.element_fields, name))
    return numbers_of(*f, field.component);
  std::vector<float> out(count, 0.0f);
  if (field.id == "body")
    for (std::size_t b = 0; b < topology_.bodies.size(); ++b)
      std::fill(out.begin() + topology_.bodies[b].element_begin,
                out.begin() + topology_.bodies[b].element_end, static_cast<float>(b));
  return out;
}

}  // namespace limber::view
