// The elements of a mesh for Python: energy, forces and stiffness at any positions.
#pragma once

#include "common.hpp"

#include <limber/fem/assemble.hpp>

#include <memory>
#include <utility>

namespace limber::python {

class PyElements {
 public:
  PyElements(std::shared_ptr<const fem::Elements> elements, std::size_t channels)
      : elements_(std::move(elements)), channels_(channels) {}

  double energy(const Doubles& x, const Doubles& activation) const;
  py::array force(const Doubles& x, const Doubles& activation) const;
  // (energy, force, (data, indices, indptr) of the whole K in rows, inverted elements)
  py::tuple assemble(const Doubles& x, const Doubles& activation, const std::string& projection) const;
  py::array stiffness_times(const Doubles& x, const Doubles& v, const Doubles& activation,
                            const std::string& projection) const;
  py::array deformation_gradients(const Doubles& x) const;
  py::array energy_densities(const Doubles& x, const Doubles& activation) const;
  py::array mass() const;
  py::array volume() const;
  Index nodes() const { return fem::node_count(*elements_); }
  Index count() const { return fem::element_count(*elements_); }

 private:
  std::vector<double> channels(const Doubles& activation) const;

  std::shared_ptr<const fem::Elements> elements_;
  std::size_t channels_;
};

}  // namespace limber::python
