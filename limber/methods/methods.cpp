#include <limber/methods/methods.hpp>

#include <limber/core/error.hpp>
#include <limber/methods/conjac/conjac.hpp>
#include <limber/methods/implicit/implicit.hpp>
#include <limber/methods/joints/joints.hpp>
#include <limber/methods/static/static.hpp>
#include <limber/methods/vanilla/vanilla.hpp>

#include <array>

#include <fmt/format.h>

namespace limber {
namespace {

constexpr std::array kMethods{
    Method{"vanilla", "full space, linearly implicit: every node is an unknown", make_vanilla},
    Method{"static", "equilibrium at every step: the reference shape", make_static},
    Method{"conjac", "condensation Jacobian: a few dynamic nodes move the whole body", make_conjac},
    Method{"implicit", "nonlinear implicit integrators with solvers that reuse their factor", make_implicit},
    Method{"joints", "articulated links with friction inside their joints", make_joints},
};

}  // namespace

std::span<const Method> methods() { return kMethods; }

std::unique_ptr<Stepper> make_stepper(const Scene& scene) {
  for (const Method& m : kMethods)
    if (scene.method == m.name) return m.make(scene);
  std::string names;
  for (const Method& m : kMethods) names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", m.name);
  throw Error(ErrorKind::kInput,
              fmt::format("/method/type: \"{}\" is not a method; expected one of {}", scene.method, names));
}

}  // namespace limber
