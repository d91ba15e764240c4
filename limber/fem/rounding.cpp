#include <limber/fem/rounding.hpp>

#include <cmath>
#include <limits>

namespace limber::fem {

Rounding rounding(const ElementInput& mesh, const std::vector<double>& volume) {
  Rounding out;
  double squares = 0;
  for (std::size_t e = 0; e < volume.size(); ++e) {
    const ElementMaterial& m = mesh.material[e];
    out.energy += m.young * volume[e];
    const double edge =
        has_thickness(mesh.kind(e)) ? std::sqrt(volume[e] / m.thickness) : std::cbrt(volume[e]);
    const double modulus =  // of a plane wave
        m.young * (1 - m.poisson) / ((1 + m.poisson) * (1 - 2 * m.poisson)) + m.fibre_stiffness;
    squares += std::pow(modulus * volume[e] / (edge * edge), 2);
  }
  out.force = 0.5 * std::numeric_limits<double>::epsilon() * std::sqrt(squares);
  return out;
}

}  // namespace limber::fem
