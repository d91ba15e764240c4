// What the files of the Python module share: arrays in and out, and who owns them.
//
// Arrays that come in are read in place where they are C-contiguous and of the right type, and are never
// kept. Arrays that go out own their memory: results are moved into them without a copy, the simulation's
// state is copied.
#pragma once

#include <limber/core/error.hpp>
#include <limber/core/types.hpp>

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>
#include <vector>

namespace limber::python {

namespace py = pybind11;

using Doubles = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Indices = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

// Moves `value` (with data()) into an array of this shape.
template <class T, class Value>
py::array_t<T> owned(Value value, std::vector<py::ssize_t> shape, std::vector<py::ssize_t> strides = {}) {
  auto held = std::make_unique<Value>(std::move(value));
  T* data = const_cast<T*>(held->data());
  py::capsule owner(held.get(), [](void* p) { delete static_cast<Value*>(p); });
  held.release();
  return strides.empty() ? py::array_t<T>(std::move(shape), data, owner)
                         : py::array_t<T>(std::move(shape), std::move(strides), data, owner);
}
inline py::array_t<double> owned_vector(VecX v) {
  const py::ssize_t n = v.size();
  return owned<double>(std::move(v), {n});
}
// A 3n vector as n rows.
inline py::array_t<double> owned_rows(VecX v) {
  const py::ssize_t n = v.size() / 3;
  return owned<double>(std::move(v), {n, 3});
}
inline py::array_t<double> owned_matrix(MatX m) {  // column-major, as it is
  const py::ssize_t rows = m.rows(), cols = m.cols(), item = sizeof(double);
  return owned<double>(std::move(m), {rows, cols}, {item, item * rows});
}
template <class T>
py::array_t<T> owned_list(std::vector<T> v) {
  const auto n = static_cast<py::ssize_t>(v.size());
  return owned<T>(std::move(v), {n});
}

inline void freeze(py::array& a) {
  py::detail::array_proxy(a.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
}

[[noreturn]] inline void wrong_call(const std::string& what) { throw Error(ErrorKind::kUsage, what); }

std::string shape_text(const py::array& a);

// n rows of three numbers, or 3n numbers, as one vector. `what` names it in messages.
VecX node_vector(const Doubles& a, py::ssize_t nodes, const char* what);
std::vector<Vec3> points_of(const Doubles& a, const char* what);
// Numbers of nodes, each in [0, count).
std::vector<Index> node_list(const Indices& a, Index count, const char* what);
VecX vector_of(const Doubles& a);

template <class M>
py::dict dict_of(const M& map) {
  py::dict out;
  for (const auto& [name, value] : map) out[py::str(name)] = value;
  return out;
}

// One file each.
void add_simulation(py::module_& m);
void add_parts(py::module_& m);
void add_mechanisms(py::module_& m);
void add_mesh_and_runs(py::module_& m);

}  // namespace limber::python
