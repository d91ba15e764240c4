// Which rigid elements must become elastic (section 3.5): one step of conjugate gradients on the system of
// all nodes of an object, with a fixed preconditioner, predicts how velocities would change if everything
// were elastic.
//
//   A dv = r,   r = h (f + f_ext) + contact impulses - h a M v - (h^2 + h b) K v            (Eq. 5)
//   P = (1 + h a) M + (h^2 + h b) L,   L the Laplacian with the weights V (2 mu + lambda), factored once
//   dv = s P^-1 r,   s = r . P^-1 r / (P^-1 r . A P^-1 r)
//   rate = |sym(Fᵀ d(dv)/dX)|^2
// The object's rigid motions that its held nodes leave it are solved for exactly and taken out of r first:
// they deform nothing, and P does not know turns. In a rigid piece K v is left out: seen from the piece
// nothing moves.
//
// One step is short: at the turning point of a swing nothing moves, and a force needs a quarter of a period
// to build up speed. dv is about the shape of the motion that begins, and its Rayleigh quotient about the
// squared frequency w of it, so that with Kelvin-Voigt damping b the largest velocity to come is about
//   dv (1 + h b w^2 + h^2 w^2) / (h w (1 + b w)),
// exact without damping and with much ("predict": "swing").
#pragma once

#include <limber/fem/plan.hpp>
#include <limber/linalg/scalar_cholesky.hpp>
#include <limber/methods/rigidify/pieces.hpp>

#include <memory>
#include <span>
#include <vector>

namespace limber::rigidify {

class QuickSolve {
 public:
  // `order`: of elimination of the whole mesh. What follows from the mesh alone is made here, before the
  // first step.
  QuickSolve(const Model& model, const Connectivity& mesh, std::span<const Index> order);

  // Before anything is asked of a step. `driven` of predict(): change of velocity with the script's motion of
  // the object as a whole, 3n [m/s]; empty: none is driven.
  void begin(const StepInput& in, std::span<const std::uint8_t> hold);
  // The predicted squared strain rates of the object's elements, in the order of object_elements. `impulse`:
  // of script, gravity and contact, `drag`: (h^2 + h b) K v of the elastic elements, both 3n [N s].
  // `swing`: the largest ones of the motion that begins, instead of those after the step.
  const std::vector<double>& predict(Index object, const VecX& x, const VecX& v, const VecX& impulse,
                                     const VecX& drag, const VecX& driven, bool swing);
  // About (A^-1)_ii: of P [1/kg].
  double compliance(Index node);
  // What a force on the node can do to the strain rate of its elements at most, in a step [1/(N s)].
  double reach(Index node, double h) const { return h / (model_.mass[3 * node] * edge_of_node_[at(node)]); }

 private:
  struct Object {
    fem::Plan plan;
    double edge = 0;                 // mean [m]
    std::vector<std::uint8_t> hold;  // that the factor was made with, and
    double h = 0;                    // its time step [s]
    bool ready = false;              // for this step
    bool factored = false;
    std::unique_ptr<ScalarCholesky> P;
    std::vector<double> diagonal;  // of P^-1; 0: not yet asked for
  };
  Object& prepared(Index object);
  VecX without_rigid_motion(const Object& object, const VecX& x, VecX r, double m) const;

  const Model& model_;
  const Connectivity& mesh_;
  std::vector<Object> objects_;
  std::vector<Index> own_number_;  // of every node, in its object's plan
  std::vector<double> edge_of_node_;
  fem::Assembled now_, then_;
  std::vector<double> rate_;
  const StepInput* in_ = nullptr;
  std::span<const std::uint8_t> hold_;
};

}  // namespace limber::rigidify
