#include "common.hpp"

#include <limber/core/build_info.hpp>
#include <limber/core/parallel.hpp>
#include <limber/sim/simulation.hpp>

#include <fmt/format.h>

namespace limber::python {

std::string shape_text(const py::array& a) {
  std::string out = "(";
  for (py::ssize_t k = 0; k < a.ndim(); ++k) out += fmt::format("{}{}", k ? ", " : "", a.shape(k));
  return out + (a.ndim() == 1 ? ",)" : ")");
}

VecX node_vector(const Doubles& a, py::ssize_t nodes, const char* what) {
  const bool rows = a.ndim() == 2 && a.shape(0) == nodes && a.shape(1) == 3;
  const bool flat = a.ndim() == 1 && a.shape(0) == 3 * nodes;
  if (!rows && !flat)
    wrong_call(
        fmt::format("{} has the shape {}, expected ({}, 3) or ({},)", what, shape_text(a), nodes, 3 * nodes));
  return Eigen::Map<const VecX>(a.data(), 3 * nodes);
}

std::vector<Vec3> points_of(const Doubles& a, const char* what) {
  if (a.ndim() != 2 || a.shape(1) != 3)
    wrong_call(fmt::format("{} has the shape {}, expected (n, 3)", what, shape_text(a)));
  std::vector<Vec3> out(static_cast<std::size_t>(a.shape(0)));
  const double* p = a.data();
  for (Vec3& x : out) {
    x = Vec3(p[0], p[1], p[2]);
    p += 3;
  }
  return out;
}

std::vector<Index> node_list(const Indices& a, Index count, const char* what) {
  if (a.ndim() > 1)
    wrong_call(fmt::format("{} has the shape {}, expected a list of numbers", what, shape_text(a)));
  std::vector<Index> out;
  out.reserve(static_cast<std::size_t>(a.size()));
  const std::int64_t* p = a.data();
  for (py::ssize_t k = 0; k < a.size(); ++k) {
    if (p[k] < 0 || p[k] >= count)
      wrong_call(fmt::format("{}: there is no number {}; expected 0 to {}", what, p[k], count - 1));
    out.push_back(static_cast<Index>(p[k]));
  }
  return out;
}

VecX vector_of(const Doubles& a) { return Eigen::Map<const VecX>(a.data(), a.size()); }

namespace {

// The classes are in Python (limber/errors.py): what they take apart, they take apart there.
void raise(const char* kind, const char* message, py::dict parts = {}) {
  const py::object type = py::module_::import("limber.errors").attr(kind);
  const py::object error = type(message, **parts);
  PyErr_SetObject(type.ptr(), error.ptr());
}

void translate(std::exception_ptr p) {
  try {
    if (p) std::rethrow_exception(p);
  } catch (const StepFailure& e) {
    py::dict parts;
    parts["step"] = e.step;
    parts["t"] = e.t;
    parts["cause"] = e.why;
    parts["hint"] = e.remedy;
    raise("SimulationError", e.what(), parts);
  } catch (const Error& e) {
    switch (e.kind()) {
      case ErrorKind::kInput:
        return raise("SceneError", e.what());
      case ErrorKind::kSimulation:
        return raise("SimulationError", e.what());
      case ErrorKind::kIo:
        return raise("FileError", e.what());
      case ErrorKind::kUsage:
        return raise("UsageError", e.what());
    }
  }
}

}  // namespace
}  // namespace limber::python

PYBIND11_MODULE(_limber, m) {
  namespace lp = limber::python;
  m.doc() = "The C++ part of limber; import limber instead.";
  pybind11::register_exception_translator(lp::translate);
  m.def("version", &limber::version);
  m.def("commit", &limber::commit);
  m.def("threads", &limber::threads);
  m.def("set_threads", &limber::set_threads);
  lp::add_simulation(m);
  lp::add_parts(m);
  lp::add_mechanisms(m);
  lp::add_mesh_and_runs(m);
}
