// Part of the scene: /method with type "rigidify".
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace limber::rigidify {

struct RigidifyOptions {
  bool newton = false;  // "integrator": "bdf1"; else the linearly implicit step of the paper
  double tau_rigid =
      0;  // tau_R: squared strain rate below which an element may become rigid [1/s^2]; 0: none does
  double tau_elastic =
      0;  // tau_E: predicted squared strain rate above which it becomes elastic again [1/s^2]
  int quiet_steps = 3;
  int foresight = 0;   // steps for which a strain rate that changes as it does must stay below the threshold
  bool swing = false;  // "predict": "swing"; else the rate after one step, as in the paper
  int predict_every = 4;     // an object without new loads is predicted in every so many steps
  int regrow = 4;            // pieces grow in every so many steps only; they give way at once
  double least_share = 0.4;  // of an object's nodes: less is not made rigid
  bool never_slower = true;  // pieces that do not pay for their masks stay elastic
  bool sleep = true;
  bool body_contact = false;
  bool pgs = false;          // "contact": "pgs"; else penalty springs
  double baumgarte = 0.2;    // share of a depth that PGS takes away in a step
  double compliance = 1e-3;  // gamma of PGS [1/kg]
  int sweeps = 200;          // of PGS
  int max_iterations = 50;   // of Newton's method
  double relative = 1e-6, absolute = 1e-6;

  static RigidifyOptions read(const nlohmann::json& options);
};

}  // namespace limber::rigidify
