// All isotropic models, and the one switch between them.
#pragma once

#include <limber/material/arap.hpp>
#include <limber/material/corotational.hpp>
#include <limber/material/fixed_corotated.hpp>
#include <limber/material/invariants.hpp>
#include <limber/material/material.hpp>
#include <limber/material/st_venant_kirchhoff.hpp>
#include <limber/material/stable_neo_hookean.hpp>
#include <limber/material/stable_neo_hookean_log.hpp>

#include <utility>

namespace limber::material {

// Calls fn(model object) for the built-in model with the given Lame constants.
template <class T, class Fn>
decltype(auto) with_model(MaterialModel model, const T& mu, const T& lambda, Fn&& fn) {
  switch (model) {
    case MaterialModel::kStableNeoHookeanLog:
      return std::forward<Fn>(fn)(StableNeoHookeanLog<T>(mu, lambda));
    case MaterialModel::kCorotational:
      return std::forward<Fn>(fn)(Corotational<T>(mu, lambda));
    case MaterialModel::kFixedCorotated:
      return std::forward<Fn>(fn)(FixedCorotated<T>(mu, lambda));
    case MaterialModel::kArap:
      return std::forward<Fn>(fn)(Arap<T>(mu, lambda));
    case MaterialModel::kStVenantKirchhoff:
      return std::forward<Fn>(fn)(StVenantKirchhoff<T>(mu, lambda));
    case MaterialModel::kStableNeoHookean:
    case MaterialModel::kInvariants:  // not among these
      break;
  }
  return std::forward<Fn>(fn)(StableNeoHookean<T>(mu, lambda));
}

// Calls fn(model object) for the model with the given Lame constants. `energy`: of kInvariants, else null.
template <class T, class Fn>
decltype(auto) with_model(MaterialModel model, const InvariantEnergy* energy, const T& mu, const T& lambda,
                          Fn&& fn) {
  if (model == MaterialModel::kInvariants) return std::forward<Fn>(fn)(Invariants<T>{energy, mu, lambda});
  return with_model(model, mu, lambda, std::forward<Fn>(fn));
}

// For a call to a model that does not use the singular values.
struct NoSvd {};

// psi and pk1 of any model at F; `decomposition` is an Svd or, for models of F itself, may be NoSvd.
template <class Model, class T, class Decomposition>
T model_psi(const Model& model, [[maybe_unused]] const M3<T>& F,
            [[maybe_unused]] const Decomposition& decomposition) {
  if constexpr (Model::kForceNeedsSvd)
    return model.psi(decomposition.s);
  else
    return model.psi(F);
}

template <class Model, class T, class Decomposition>
M3<T> model_pk1(const Model& model, [[maybe_unused]] const M3<T>& F,
                [[maybe_unused]] const Decomposition& decomposition) {
  if constexpr (Model::kForceNeedsSvd)
    return times_diagonal_transposed(decomposition.U, model.stress(decomposition.s), decomposition.V);
  else
    return model.pk1(F);
}

}  // namespace limber::material
