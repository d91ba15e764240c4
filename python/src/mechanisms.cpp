// Mechanisms and obstacles.
#include "common.hpp"

#include <limber/rigid/articulation.hpp>
#include <limber/rigid/dynamics.hpp>
#include <limber/sim/contact_model.hpp>
#include <limber/sim/model.hpp>

#include <pybind11/stl.h>

#include <fmt/format.h>

namespace limber::python {
namespace {

class PyMechanism {
 public:
  explicit PyMechanism(std::shared_ptr<Scene> scene) {
    articulation_ = build_model(std::move(scene)).articulation;
    if (!articulation_) wrong_call("the scene has no links");
  }

  const rigid::Mechanism& mechanism() const { return articulation_->mechanism; }
  const rigid::Articulation& articulation() const { return *articulation_; }
  VecX q_of(const Doubles& q) const { return checked(q, mechanism().positions, "q"); }
  VecX v_of(const Doubles& v) const { return checked(v, mechanism().velocities, "v"); }
  rigid::Motion motion(const VecX& q, const VecX& v) const {
    rigid::Motion out;
    rigid::update_motion(mechanism(), q, v, out);
    return out;
  }

 private:
  static VecX checked(const Doubles& a, Index n, const char* what) {
    if (a.ndim() != 1 || a.size() != n)
      wrong_call(fmt::format("{} has the shape {}, expected ({},)", what, shape_text(a), n));
    return vector_of(a);
  }
  std::shared_ptr<const rigid::Articulation> articulation_;
};

py::list joints_of(const PyMechanism& p) {
  py::list out;
  for (const rigid::Joint& j : p.mechanism().joints) {
    py::dict d;
    d["name"] = j.name;
    d["type"] = rigid::to_string(j.type);
    d["parent"] = j.parent;
    d["child"] = j.child;
    d["q"] = py::slice(j.q_begin, j.q_begin + rigid::position_numbers(j.type), 1);
    d["v"] = py::slice(j.v_begin, j.v_begin + rigid::velocity_numbers(j.type), 1);
    out.append(d);
  }
  return out;
}

py::array poses_of(const PyMechanism& p, const Doubles& q) {
  const rigid::Mechanism& m = p.mechanism();
  const rigid::Motion motion = p.motion(p.q_of(q), VecX::Zero(m.velocities));
  std::vector<double> out;
  for (const rigid::LinkMotion& link : motion.links) {
    Eigen::Matrix<double, 4, 4, Eigen::RowMajor> T = Eigen::Matrix<double, 4, 4, Eigen::RowMajor>::Identity();
    T.topLeftCorner<3, 3>() = link.pose.R;
    T.topRightCorner<3, 1>() = link.pose.p;
    out.insert(out.end(), T.data(), T.data() + 16);
  }
  return owned<double>(std::move(out), {m.size(), 4, 4});
}

py::array mass_matrix_of(const PyMechanism& p, const Doubles& q) {
  const rigid::Mechanism& m = p.mechanism();
  const rigid::Motion motion = p.motion(p.q_of(q), VecX::Zero(m.velocities));
  const MatX J = rigid::dense_J(m, motion);
  MatX M = MatX::Zero(J.cols(), J.cols());
  for (Index i = 0; i < m.size(); ++i) {
    const auto rows = J.middleRows(6 * i, 6);
    M += rows.transpose() * rigid::mass_matrix(m.links[at(i)], motion.links[at(i)]) * rows;
  }
  return owned_matrix(std::move(M));
}

class PyObstacles {
 public:
  explicit PyObstacles(const Scene& scene) {
    for (const ObstacleSpec& spec : scene.obstacles)
      obstacles_.push_back(make_obstacle(spec, scene.folder, scene.contact.friction));
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const Obstacle& o : obstacles_) out.push_back(o.name);
    return out;
  }
  // (distance, point, normal, obstacle) of the nearest one.
  py::tuple closest(const Doubles& points, double t) const {
    const std::vector<Vec3> x = points_of(points, "points");
    if (obstacles_.empty()) wrong_call("there are no obstacles");
    std::vector<Placement> placements;
    for (const Obstacle& o : obstacles_) placements.push_back(placement_at(o, t));
    std::vector<double> distance;
    std::vector<std::int32_t> which;
    VecX point(3 * static_cast<Eigen::Index>(x.size())), normal(point.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      SurfacePoint best;
      Index of = -1;
      for (std::size_t o = 0; o < obstacles_.size(); ++o) {
        const SurfacePoint p = closest_point(obstacles_[o], placements[o], x[k]);
        if (of >= 0 && p.distance >= best.distance) continue;
        best = p;
        of = static_cast<Index>(o);
      }
      distance.push_back(best.distance);
      which.push_back(of);
      node(point, static_cast<Index>(k)) = best.x;
      node(normal, static_cast<Index>(k)) = best.n;
    }
    return py::make_tuple(owned_list(std::move(distance)), owned_rows(std::move(point)),
                          owned_rows(std::move(normal)), owned_list(std::move(which)));
  }

 private:
  std::vector<Obstacle> obstacles_;
};

}  // namespace

void add_mechanisms(py::module_& m) {
  py::class_<PyMechanism>(m, "Mechanism")
      .def(py::init<std::shared_ptr<Scene>>())
      .def("links",
           [](const PyMechanism& p) {
             std::vector<std::string> out;
             for (const rigid::Link& l : p.mechanism().links) out.push_back(l.name);
             return out;
           })
      .def("link_mass",
           [](const PyMechanism& p) {
             std::vector<double> out;
             for (const rigid::Link& l : p.mechanism().links) out.push_back(l.inertia.mass);
             return owned_list(std::move(out));
           })
      .def("joints", &joints_of)
      .def("notices", [](const PyMechanism& p) { return p.articulation().notices; })
      .def("q", [](const PyMechanism& p) { return owned_vector(p.articulation().q); })
      .def("v", [](const PyMechanism& p) { return owned_vector(p.articulation().v); })
      .def("poses", &poses_of)
      .def("jacobian",
           [](const PyMechanism& p, const Doubles& q) {
             return owned_matrix(
                 rigid::dense_J(p.mechanism(), p.motion(p.q_of(q), VecX::Zero(p.mechanism().velocities))));
           })
      .def("mass_matrix", &mass_matrix_of)
      .def("acceleration",
           [](const PyMechanism& p, const Doubles& q, const Doubles& v, double t, const Doubles& gravity) {
             const VecX g = vector_of(gravity);
             return owned_vector(
                 rigid::acceleration(p.mechanism(), p.q_of(q), p.v_of(v), t, Vec3(g.head<3>())));
           })
      .def("energy",
           [](const PyMechanism& p, const Doubles& q, const Doubles& v, const Doubles& gravity) {
             const VecX at = p.q_of(q), g = vector_of(gravity);
             const rigid::Energy e =
                 rigid::measure_energy(p.mechanism(), p.motion(at, p.v_of(v)), at, Vec3(g.head<3>()));
             return py::make_tuple(e.kinetic, e.gravity, e.springs);
           })
      .def("integrate", [](const PyMechanism& p, const Doubles& q, const Doubles& v, double h) {
        VecX out = p.q_of(q);
        rigid::integrate(p.mechanism(), p.v_of(v), h, out);
        return owned_vector(std::move(out));
      });

  py::class_<PyObstacles>(m, "Obstacles")
      .def(py::init<const Scene&>())
      .def("names", &PyObstacles::names)
      .def("closest", &PyObstacles::closest);
}

}  // namespace limber::python
