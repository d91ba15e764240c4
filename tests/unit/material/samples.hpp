// Deformation gradients and materials that the tests of this folder run through.
#pragma once

#include <limber/material/evaluate.hpp>

#include <Eigen/Geometry>
#include <random>
#include <string>
#include <vector>

namespace limber::material::samples {

inline const std::vector<MaterialModel>& models() {
  static const std::vector<MaterialModel> all = {MaterialModel::kStableNeoHookean,
                                                 MaterialModel::kStableNeoHookeanLog,
                                                 MaterialModel::kCorotational,
                                                 MaterialModel::kFixedCorotated,
                                                 MaterialModel::kArap,
                                                 MaterialModel::kStVenantKirchhoff};
  return all;
}

inline ElementMaterial make(MaterialModel model, double poisson = 0.4) {
  ElementMaterial m;
  m.model = model;
  m.young = 1e5;
  m.poisson = poisson;
  return m;
}

inline Mat3 rotation(std::mt19937& rng) {
  std::normal_distribution<double> normal;
  return Eigen::Quaterniond(normal(rng), normal(rng), normal(rng), normal(rng))
      .normalized()
      .toRotationMatrix();
}

inline Mat3 noise(std::mt19937& rng) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  return Mat3::NullaryExpr([&] { return uniform(rng); });
}

inline Mat3 turned(std::mt19937& rng, double a, double b, double c) {
  return rotation(rng) * Vec3(a, b, c).asDiagonal() * rotation(rng).transpose();
}

struct Sample {
  std::string name;
  Mat3 F;
};

// Smooth places of every model: no pair of singular values adds up to zero.
inline std::vector<Sample> regular() {
  std::mt19937 rng(7);
  std::vector<Sample> s;
  for (int i = 0; i < 12; ++i) s.push_back({"20 % noise", Mat3::Identity() + 0.2 * noise(rng)});
  for (int i = 0; i < 12; ++i) s.push_back({"strong", Mat3::Identity() + noise(rng)});
  s.push_back({"rest", Mat3::Identity()});
  s.push_back({"turned", rotation(rng)});
  s.push_back({"inverted", turned(rng, 1.3, 0.9, -0.4)});
  s.push_back({"strongly inverted", turned(rng, 2.0, 1.1, -0.9)});
  s.push_back({"flat", turned(rng, 1.2, 0.8, 0)});
  s.push_back({"two equal", turned(rng, 1.2, 1.2, 0.7)});
  s.push_back({"two equal below", turned(rng, 1.4, 0.7, 0.7)});
  s.push_back({"nearly equal", turned(rng, 1.2, 1.2 - 1e-9, 1.2 - 2e-9)});
  s.push_back({"three equal, swollen", turned(rng, 1.3, 1.3, 1.3)});
  s.push_back({"diagonal", Vec3(0.5, 2, 1.1).asDiagonal()});
  s.push_back({"stretched", turned(rng, 8, 0.4, 0.3)});
  return s;
}

// Places where an element is a line or a point, or huge; energies of the rotation have a kink at some.
inline std::vector<Sample> extreme() {
  std::mt19937 rng(11);
  std::vector<Sample> s;
  s.push_back({"line", turned(rng, 1.5, 0, 0)});
  s.push_back({"thin line", turned(rng, 1, 1e-9, 1e-12)});
  s.push_back({"point", Mat3::Zero()});
  s.push_back({"tiny", turned(rng, 1e-7, 0.9e-7, 0.3e-7)});
  s.push_back({"huge", turned(rng, 1e6, 30, 1e-3)});
  s.push_back({"huge volume", turned(rng, 1e4, 0.9e4, 0.5e4)});
  s.push_back({"mirrored", Vec3(1, 1, -1).asDiagonal()});
  s.push_back({"mirrored and shrunk", turned(rng, 0.7, 0.7, -0.7)});
  return s;
}

}  // namespace limber::material::samples
