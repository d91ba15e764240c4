// The fields that a recording can be coloured by, and their values: one list for the page, pictures and
// exports.
#pragma once

#include <limber/io/replay.hpp>

#include <string>
#include <vector>

namespace limber::view {

struct FieldInfo {
  std::string id;  // "displacement", "speed", "energy_density", "young", "region", or the method's own name
  std::string label;               // for people: "strain energy density"
  std::string unit;                // "J/m^3"; empty: a pure number
  bool per_element = false;        // one number per element, drawn without smoothing; else one per node
  bool constant = false;           // the same in every frame of a topology
  bool categories = false;         // integers that stand for something: never interpolated
  std::vector<std::string> names;  // of the categories, where they have names
  bool highlight = false;          // 0 and 1: what is 1 is drawn in red, the rest as without a colour
  std::string of = {};             // recorded name; where it differs from `id`
  int component = -1;              // of a field with several; -1: the magnitude
};

// Flags that are drawn as marks and not as colours.
bool is_mark(const std::string& field_name);

// Values of the fields of one topology. Element numbers that change in time are averaged to the nodes,
// weighted by rest volume, unless they are categories.
class FieldSampler {
 public:
  // `frame` may be null (a recording without frames).
  FieldSampler(const ReplayTopology& topology, const ReplayFrame* frame);

  const std::vector<FieldInfo>& list() const { return list_; }
  const FieldInfo* find(const std::string& id) const;
  // One number per node or per element; zeros where the frame lacks the field.
  std::vector<float> values(const FieldInfo& field, const ReplayFrame& frame) const;

 private:
  std::vector<float> node_average(const std::vector<float>& of_elements) const;

  const ReplayTopology& topology_;
  std::vector<FieldInfo> list_;
  std::vector<float> volume_;  // rest volume (area) of each element
};

// Whether everything lies in one plane z = constant.
bool is_plane(const ReplayTopology& topology);
// Elements that are neither plane-strain triangles nor the surfaces of links.
std::size_t tet_count(const ReplayTopology& topology);

// The named field, or null.
const ReplayField* find_field(const std::vector<ReplayField>& fields, const std::string& name);

// A number for people: 4 significant digits, "1.2e-05" style outside 1e-3..1e5.
std::string short_number(double value);

}  // namespace limber::view
