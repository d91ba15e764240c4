#include <limber/methods/methods.hpp>

#include <limber/methods/cloth/cloth.hpp>
#include <limber/methods/condense/condense.hpp>
#include <limber/methods/conjac/conjac.hpp>
#include <limber/methods/implicit/implicit.hpp>
#include <limber/methods/joints/joints.hpp>
#include <limber/methods/mixed/mixed.hpp>
#include <limber/methods/rigidify/rigidify.hpp>
#include <limber/methods/static/static.hpp>
#include <limber/methods/vanilla/vanilla.hpp>

namespace limber {

std::span<const Method* const> built_in_methods() {
  static constexpr const Method* kMethods[] = {
      &vanilla_method,   //
      &conjac_method,    //
      &static_method,    //
      &implicit_method,  //
      &mixed_method,     //
      &rigidify_method,  //
      &cloth_method,     //
      &condense_method,  //
      &joints_method,
  };
  return kMethods;
}

}  // namespace limber
