#include <limber/sim/measured_fields.hpp>

#include <limber/fem/assemble.hpp>
#include <limber/material/svd.hpp>
#include <limber/sim/stress.hpp>

#include <Eigen/LU>

#include <stdexcept>

namespace limber {
namespace {

Field three_per_node(const VecX& v) { return {3, std::vector<double>(v.data(), v.data() + v.size())}; }

struct MeasuredKind {
  const char* name;
  bool elements;
  const char* unit;
  int components;
};
constexpr MeasuredKind kMeasured[] = {
    {"position", false, "m", 3},  {"displacement", false, "m", 3},      {"velocity", false, "m/s", 3},
    {"force", false, "N", 3},     {"reaction", false, "N", 3},          {"contact_force", false, "N", 3},
    {"mass", false, "kg", 1},     {"energy_density", true, "J/m^3", 1}, {"volume_ratio", true, "", 1},
    {"von_mises", true, "Pa", 1}, {"principal_stress", true, "Pa", 3},  {"cauchy_stress", true, "Pa", 6},
    {"strain", true, "", 6},      {"principal_stretches", true, "", 3}};

const MeasuredKind& kind_of_measured(const std::string& name) {
  for (const MeasuredKind& k : kMeasured)
    if (name == k.name) return k;
  throw std::logic_error("nothing is measured under the name " + name);
}

}  // namespace

bool MeasuredFields::of_elements(const std::string& name) { return kind_of_measured(name).elements; }
const char* MeasuredFields::unit(const std::string& name) { return kind_of_measured(name).unit; }

std::vector<std::string> MeasuredFields::components(const std::string& name) {
  const MeasuredKind& k = kind_of_measured(name);
  if (k.components == 1) return {""};
  if (k.components == 6) return {"xx", "yy", "zz", "xy", "yz", "xz"};
  return k.elements ? std::vector<std::string>{"1", "2", "3"} : std::vector<std::string>{"x", "y", "z"};
}

const NodalForces& MeasuredFields::forces() {
  if (!forces_)
    forces_ = nodal_forces(simulation_.model(), simulation_.state(), simulation_.velocity_before(), input_,
                           simulation_.forces());
  return *forces_;
}

const std::vector<Mat3>& MeasuredFields::gradients() {
  if (!F_) fem::deformation_gradients(*simulation_.model().elements, simulation_.state().x, F_.emplace());
  return *F_;
}

const std::vector<SymmetricTensor>& MeasuredFields::stresses() {
  if (!stress_)
    stress_ = cauchy_stresses(simulation_.model(), gradients(), simulation_.state().x, input_.activation);
  return *stress_;
}

const Field& MeasuredFields::get(const std::string& name) {
  const auto known = fields_.find(name);
  return known != fields_.end() ? known->second : fields_.emplace(name, compute(name)).first->second;
}

Field MeasuredFields::compute(const std::string& name) {
  const Model& model = simulation_.model();
  const State& state = simulation_.state();
  if (name == "position") return three_per_node(state.x);
  if (name == "velocity") return three_per_node(state.v);
  if (name == "force") return three_per_node(input_.force);
  if (name == "reaction") return three_per_node(forces().reaction);
  if (name == "contact_force") return three_per_node(forces().contact);
  if (name == "displacement") {
    VecX d = state.x;
    for (Index i = 0; i < model.nodes(); ++i) node(d, i) -= model.mesh.rest[static_cast<std::size_t>(i)];
    return three_per_node(d);
  }
  Field out;
  if (name == "mass") {
    for (Index i = 0; i < model.nodes(); ++i) out.values.push_back(model.mass[3 * i]);
  } else if (name == "energy_density") {
    fem::energy_densities(*model.elements, state.x, input_.activation, out.values);
  } else if (name == "volume_ratio") {
    for (const Mat3& F : gradients()) out.values.push_back(F.determinant());
  } else if (name == "von_mises") {
    for (const SymmetricTensor& s : stresses()) out.values.push_back(von_mises(s));
  } else if (name == "cauchy_stress") {
    out.components = 6;
    for (const SymmetricTensor& s : stresses()) out.values.insert(out.values.end(), s.begin(), s.end());
  } else if (name == "principal_stress") {
    out.components = 3;
    for (const SymmetricTensor& s : stresses()) {
      const Vec3 p = principal_values(s);
      out.values.insert(out.values.end(), p.data(), p.data() + 3);
    }
  } else if (name == "strain") {
    out.components = 6;
    for (const Mat3& F : gradients()) {
      const SymmetricTensor E = green_strain(F);
      out.values.insert(out.values.end(), E.begin(), E.end());
    }
  } else if (name == "principal_stretches") {
    out.components = 3;
    for (const Mat3& F : gradients()) {
      const auto s = material::svd(material::from_eigen(F)).s;
      out.values.insert(out.values.end(), s.a, s.a + 3);
    }
  } else {
    throw std::logic_error("nothing is measured under the name " + name);
  }
  return out;
}

}  // namespace limber
