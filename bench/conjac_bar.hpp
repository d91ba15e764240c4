// The bar that ConJac's benchmarks measure: 4 x 4 x 14 cm, 5 x 5 x 15 nodes, held at z = 0, without gravity.
#pragma once

#include <limber/scene/scene.hpp>

#include <memory>

inline std::shared_ptr<limber::Scene> conjac_bar(double young, double poisson) {
  auto s = std::make_shared<limber::Scene>();
  s->gravity.setZero();
  limber::BodySpec body;
  body.name = "bar";
  body.generate = limber::GenerateSpec{};
  body.generate->shape = "bar";
  body.generate->size = {.04, .04, .14};
  body.generate->nodes = {5, 5, 15};
  body.material.young = {young};
  body.material.poisson = {poisson};
  s->bodies.push_back(body);
  limber::ConstraintSpec root;
  root.nodes.kind = "set";
  root.nodes.name = "z0";
  s->constraints.push_back(root);
  return s;
}
