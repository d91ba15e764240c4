// Energy, forces and stiffness of all elements. The only code that fills K.
//
// Sign convention, everywhere: f = -dE/dx, K = d2E/dx2 (positive semi-definite after projection).
#pragma once

#include <limber/fem/elements.hpp>

#include <span>

namespace limber::fem {

struct Assembled {
  double energy = 0;   // elastic energy [J]
  VecX f;              // elastic force -dE/dx, 3n [N]
  BlockMatrix K;       // stiffness d2E/dx2 [N/m]
  Index inverted = 0;  // elements with det F <= 0
  bool finite = true;  // false: some element gave a number that is not finite; `first_bad` names it
  Index first_bad = -1;
  std::vector<double> scratch;  // of assemble(); keep the object between calls and nothing is allocated
};

// kPsd: every element's stiffness is made positive semi-definite. kElastic: elements as they are, of a
// StrainTerm only the part that is semi-definite and does not depend on its history. kNone: the derivative
// itself.
enum class Projection { kPsd, kElastic, kNone };

// A further energy density, weight * young * |E - history|^2 with E the Green strain [Pa]. With the strain of
// the last step as history and weight = coefficient / h it is Green-strain damping: the gradient of this
// energy is the force of the dissipation coefficient * young * |dE/dt|^2, with dE/dt by the integrator's own
// difference.
struct StrainTerm {
  double weight = 0;
  std::vector<double> history;  // xx yy zz xy xz yz per element, as green_strains() gives them
};

// `x`: positions, 3n [m]; `activation`: one number per channel. Every function gives the same bits for any
// number of threads.
void assemble(const Elements& elements, const VecX& x, std::span<const double> activation, Assembled& out,
              Projection projection = Projection::kPsd, const StrainTerm* strain = nullptr);
// Energy and force only.
void assemble_force(const Elements& elements, const VecX& x, std::span<const double> activation,
                    Assembled& out, const StrainTerm* strain = nullptr);
double elastic_energy(const Elements& elements, const VecX& x, std::span<const double> activation);
// K v without K: `out.f` = K v, not -K v [N for v in m]; of the rest of `out`, `finite` and `first_bad` are
// set. Costs about half of K (`limber bench assembly`), and no memory for it.
void multiply_stiffness(const Elements& elements, const VecX& x, std::span<const double> activation,
                        const VecX& v, Assembled& out, Projection projection = Projection::kPsd);

// Per element, for output and metrics.
void deformation_gradients(const Elements& elements, const VecX& x, std::vector<Mat3>& F);
void green_strains(const Elements& elements, const VecX& x, std::vector<double>& strain);  // 6 an element
void energy_densities(const Elements& elements, const VecX& x, std::span<const double> activation,
                      std::vector<double>& psi);  // [J/m^3]

// |dE/dt|^2 (Frobenius) of the Green strain E, dE/dt = sym(F^T dF/dt), for nodes at x that move at v; one
// number an element [1/s^2]. With x half way between two positions and v their difference over h this is the
// difference of their strains over h, exactly: a rigid motion has none, however the element is deformed. Of
// cloth: in its plane.
void strain_rates(const Elements& elements, const VecX& x, const VecX& v, std::vector<double>& rate);
// dS/dt with F = R S, from positions and velocities `v`, 3n [1/s] (ConJac, Eq. 17).
void stretch_rates(const Elements& elements, const VecX& x, const VecX& v, std::vector<Mat3>& Sdot);

}  // namespace limber::fem
