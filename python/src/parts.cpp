// The parts by themselves: elements, materials, sparse Cholesky, condensation, eigenmodes, mechanisms,
// obstacles.
#include "common.hpp"
#include "elements.hpp"
#include "symmetric.hpp"

#include <limber/fem/dof.hpp>
#include <limber/linalg/cholesky.hpp>
#include <limber/linalg/eigenpairs.hpp>
#include <limber/material/evaluate.hpp>

#include <pybind11/stl.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace limber::python {
namespace {

// ---- sparse Cholesky

class PyCholesky {
 public:
  PyCholesky(const Indices& indptr, const Indices& indices, const std::string& ordering)
      : matrix_(indptr, indices), solver_(CholeskyOptions{"native", ordering}) {
    const py::gil_scoped_release release;
    solver_.analyze(matrix_.pattern());
  }

  void factor(const Indices& indptr, const Indices& indices, const Doubles& data) {
    if (!matrix_.same(indptr, indices))
      wrong_call(
          "the matrix has entries in other places than the one that was analysed; make a new Cholesky");
    const BlockMatrix& A = matrix_.fill(data);
    FactorStatus status;
    {
      const py::gil_scoped_release release;
      status = solver_.factor(A);
    }
    if (!status.ok) bad_pivot(status);
  }

  // Columns of a Fortran-ordered matrix are right-hand sides.
  py::array solve(const Doubles& b) const {
    const Index n = matrix_.size();
    if ((b.ndim() != 1 && b.ndim() != 2) || b.shape(0) != n)
      wrong_call(fmt::format("the right-hand side has the shape {}, expected ({},) or ({}, k)", shape_text(b),
                             n, n));
    const Eigen::Index rows = 3 * matrix_.pattern().n, columns = b.ndim() == 2 ? b.shape(1) : 1;
    MatX B = MatX::Zero(rows, columns);
    B.topRows(n) = Eigen::Map<const Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
        b.data(), n, columns);
    {
      const py::gil_scoped_release release;
      if (columns == 1) {
        VecX one = B.col(0);
        solver_.solve(one);
        B.col(0) = one;
      } else {
        solver_.solve_many(B);
      }
    }
    if (rows != n) B.conservativeResize(n, columns);
    if (b.ndim() == 1) return owned_vector(VecX(B.col(0)));
    return owned_matrix(std::move(B));
  }

  py::dict stats() const {
    const CholeskyStats& s = solver_.stats();
    py::dict out;
    out["ordering"] = s.ordering;
    out["nnz"] = s.nnz;
    out["flops"] = s.flops;
    out["seconds"] = s.seconds;
    out["analyses"] = s.analyses;
    out["factorizations"] = s.factorizations;
    return out;
  }

 private:
  Symmetric matrix_;
  Cholesky solver_;
};

// ---- ConJac's J, as in methods/conjac/condensation.hpp: one factor of K with the dynamic nodes ordered last

class PyCondensation {
 public:
  PyCondensation(const Indices& indptr, const Indices& indices, const Doubles& data, const Indices& dynamic,
                 const Doubles& fixed)
      : matrix_(indptr, indices), solver_(CholeskyOptions{"native", "auto"}), eliminator_(matrix_.pattern()) {
    const Index n = matrix_.pattern().n;
    if (matrix_.size() != 3 * n)
      wrong_call(fmt::format("K has {} rows, expected three for each node", matrix_.size()));
    tail_ = node_list(dynamic, n, "dynamic");
    if (std::adjacent_find(tail_.begin(), tail_.end(), std::greater_equal<>()) != tail_.end())
      wrong_call("dynamic nodes must be different and ascending");
    const VecX marks = node_vector(fixed, n, "held");
    fixed_.resize(3 * at(n));
    for (std::size_t d = 0; d < fixed_.size(); ++d) fixed_[d] = marks[static_cast<Eigen::Index>(d)] != 0;
    matrix_.fill(data);
    const py::gil_scoped_release release;
    condense();
  }

  py::array J() const {
    const py::ssize_t rows = J_.rows(), cols = J_.cols();
    return owned<double>(RowMatX(J_), {rows, cols});
  }
  py::array S() const { return owned_matrix(S_); }
  py::array dofs() const { return owned_list(dofs_); }

  // K_qq^-1 b_q, zero on dynamic and held degrees of freedom.
  py::array solve(const Doubles& b) const {
    const Index n = matrix_.pattern().n;
    MatX B = node_vector(b, n, "b");
    for (std::size_t d = 0; d < fixed_.size(); ++d)
      if (fixed_[d]) B(static_cast<Eigen::Index>(d), 0) = 0;
    MatX X(B.rows(), 1);
    {
      const py::gil_scoped_release release;
      const auto tail = 3 * static_cast<Eigen::Index>(tail_.size());
      solver_.condense_to_tail(B);
      B.bottomRows(tail).setZero();
      RowMatX none;
      solver_.extend_from_tail(MatX(tail, 0), B, none, X);
    }
    VecX x = X.col(0);
    return b.ndim() == 2 ? py::array(owned_rows(std::move(x))) : py::array(owned_vector(std::move(x)));
  }

 private:
  void condense() {
    BlockMatrix& K = matrix_.matrix();
    const BlockPattern& p = matrix_.pattern();
    double mean = 0;
    for (Index j = 0; j < p.n; ++j) mean += K.block(p.col_begin[at(j)]).trace();
    mean /= 3 * p.n;
    // The tail of a free body is singular; a known shift makes its factor exist and is taken off again.
    for (const Index t : tail_) K.block(p.col_begin[at(t)]).diagonal().array() += mean;
    eliminator_.eliminate(K, fixed_, mean);
    solver_.analyze(p, tail_);
    if (const FactorStatus status = solver_.factor(K); !status.ok) bad_pivot(status);
    MatX schur;
    solver_.tail_schur(schur);
    schur.diagonal().array() -= mean;
    std::vector<Index> active;
    for (std::size_t t = 0; t < tail_.size(); ++t)
      for (Index k = 0; k < 3; ++k)
        if (const Index dof = 3 * tail_[t] + k; !fixed_[at(dof)]) {
          active.push_back(3 * static_cast<Index>(t) + k);
          dofs_.push_back(dof);
        }
    MatX C = MatX::Zero(schur.rows(), static_cast<Eigen::Index>(active.size()));
    for (std::size_t c = 0; c < active.size(); ++c) C(active[c], static_cast<Eigen::Index>(c)) = 1;
    S_ = schur(active, active);
    MatX nothing(3 * static_cast<Eigen::Index>(p.n), 0), X(nothing.rows(), 0);
    solver_.extend_from_tail(C, nothing, J_, X);
  }

  Symmetric matrix_;
  Cholesky solver_;
  fem::DofEliminator eliminator_;
  std::vector<Index> tail_;
  std::vector<std::uint8_t> fixed_;
  std::vector<std::int32_t> dofs_;
  RowMatX J_;
  MatX S_;
};

// ---- eigenmodes

py::tuple eigenmodes(const Indices& indptr, const Indices& indices, const Doubles& data, const Doubles& mass,
                     const Doubles& fixed, Index count, double tolerance) {
  Symmetric matrix(indptr, indices);
  const Index n = matrix.pattern().n;
  if (matrix.size() != 3 * n)
    wrong_call(fmt::format("K has {} rows, expected three for each node", matrix.size()));
  if (mass.size() != n)
    wrong_call(fmt::format("mass has {} numbers, expected one for each of {} nodes", mass.size(), n));
  const VecX marks = node_vector(fixed, n, "held");
  std::vector<std::uint8_t> held(3 * at(n)), active(3 * at(n));
  Index unknowns = 0;
  for (std::size_t d = 0; d < held.size(); ++d) {
    held[d] = marks[static_cast<Eigen::Index>(d)] != 0;
    active[d] = !held[d];
    unknowns += active[d];
  }
  if (count < 1 || count > unknowns)
    wrong_call(fmt::format("{} modes of a body with {} degrees of freedom", count, unknowns));
  BlockMatrix& A = matrix.fill(data);
  VecX m(3 * static_cast<Eigen::Index>(n));
  for (Index i = 0; i < n; ++i) node(m, i).setConstant(mass.data()[i]);
  if (!(m.minCoeff() > 0)) wrong_call("masses must be more than 0");
  Eigenpairs pairs;
  {
    const py::gil_scoped_release release;
    const BlockPattern& p = matrix.pattern();
    // Below zero, and far below the fastest vibrations: a free body's six zeros are then told apart.
    double fastest = 0, mean = 0;
    for (Index j = 0; j < n; ++j) {
      const auto block = A.block(p.col_begin[at(j)]);
      mean += block.trace() / (3 * n);
      fastest = std::max(fastest, block.trace() / 3 / m[3 * j]);
    }
    EigenOptions options;
    options.tolerance = tolerance;
    options.shift = -fastest / std::pow(static_cast<double>(n), 2.0 / 3.0) * 1e-2;
    options.most = std::max<int>(600, 8 * count);
    for (Index j = 0; j < n; ++j) A.block(p.col_begin[at(j)]).diagonal().array() -= options.shift * m[3 * j];
    fem::DofEliminator(p).eliminate(A, held, mean);
    Cholesky solver(CholeskyOptions{"native", "auto"});
    solver.analyze(p);
    if (const FactorStatus status = solver.factor(A); !status.ok) bad_pivot(status);
    const ShiftedSolve solve = [&](Eigen::Ref<MatX> B) {
      for (std::size_t d = 0; d < held.size(); ++d)
        if (held[d]) B.row(static_cast<Eigen::Index>(d)).setZero();
      solver.solve_many(B);
      for (std::size_t d = 0; d < held.size(); ++d)
        if (held[d]) B.row(static_cast<Eigen::Index>(d)).setZero();
    };
    pairs = smallest_eigenpairs(m, active, solve, count, options);
  }
  return py::make_tuple(owned_vector(std::move(pairs.values)), owned_matrix(std::move(pairs.vectors)));
}

// ---- materials

Mat3 matrix_of(const Doubles& F) {
  if (F.ndim() != 2 || F.shape(0) != 3 || F.shape(1) != 3)
    wrong_call(fmt::format("F has the shape {}, expected (3, 3)", shape_text(F)));
  return Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(F.data());
}

ElementMaterial make_material(const std::string& model, double young, double poisson, double density,
                              const std::string& fibre, double stiffness, const Doubles& direction) {
  ElementMaterial m;
  m.model = material::parse_material_model(model.c_str());
  m.young = young;
  m.poisson = poisson;
  m.density = density;
  if (!fibre.empty()) {
    m.fibre = material::parse_fibre_model(fibre.c_str());
    m.fibre_stiffness = stiffness;
    const std::vector<Vec3> d =
        direction.ndim() == 1 && direction.size() == 3
            ? std::vector<Vec3>{Vec3(direction.data()[0], direction.data()[1], direction.data()[2])}
            : points_of(direction, "direction");
    if (d.size() != 1 || !(d[0].norm() > 0))
      wrong_call("the direction of the fibres must be a vector of three numbers");
    m.fibre_direction = d[0].normalized();
    m.activation_channel = 0;
  }
  return m;
}

std::shared_ptr<PyElements> make_py_elements(const Doubles& vertices, const Indices& cells,
                                             const std::string& kind, const std::string& model,
                                             const Doubles& young, const Doubles& poisson,
                                             const Doubles& density, double thickness,
                                             const std::string& fibre, const Doubles& fibre_stiffness,
                                             const Doubles& fibre_direction) {
  fem::ElementInput in;
  in.rest = points_of(vertices, "vertices");
  const auto count = static_cast<std::size_t>(cells.shape(0));
  const py::ssize_t corners = cells.shape(1);
  const std::vector<Index> flat =
      node_list(Indices(cells.attr("ravel")()), static_cast<Index>(in.rest.size()), "cells");
  ElementMaterial m;
  m.model = material::parse_material_model(model.c_str());
  const ElementKind which = corners == 4      ? ElementKind::kTetrahedron
                            : kind == "cloth" ? ElementKind::kClothTriangle
                                              : ElementKind::kPlaneTriangle;
  m.thickness = has_thickness(which) ? thickness : 0;
  if (!fibre.empty()) {
    m.fibre = material::parse_fibre_model(fibre.c_str());
    m.activation_channel = 0;
  }
  for (std::size_t e = 0; e < count; ++e) {
    Tet t{-1, -1, -1, -1};
    for (std::size_t c = 0; c < static_cast<std::size_t>(corners); ++c)
      t[c] = flat[e * static_cast<std::size_t>(corners) + c];
    in.elements.push_back(t);
    m.young = young.data()[e];
    m.poisson = poisson.data()[e];
    m.density = density.data()[e];
    if (!fibre.empty()) {
      m.fibre_stiffness = fibre_stiffness.data()[e];
      m.fibre_direction = Eigen::Map<const Vec3>(fibre_direction.data() + 3 * e).normalized();
    }
    in.material.push_back(m);
    in.kinds.push_back(which);
  }
  return std::make_shared<PyElements>(fem::make_elements(in), fibre.empty() ? 0 : 1);
}

fem::Projection projection_of(const std::string& name) {
  if (name == "psd") return fem::Projection::kPsd;
  if (name == "none") return fem::Projection::kNone;
  wrong_call(fmt::format("projection is \"{}\", expected \"psd\" or \"none\"", name));
}

}  // namespace

// ---- elements

std::vector<double> PyElements::channels(const Doubles& activation) const {
  if (static_cast<std::size_t>(activation.size()) == channels_)
    return {activation.data(), activation.data() + activation.size()};
  if (activation.size() != 0)
    wrong_call(fmt::format("activation has {} numbers, expected {}", activation.size(), channels_));
  return std::vector<double>(channels_, 0.0);
}

double PyElements::energy(const Doubles& x, const Doubles& activation) const {
  return fem::elastic_energy(*elements_, node_vector(x, nodes(), "x"), channels(activation));
}

py::array PyElements::force(const Doubles& x, const Doubles& activation) const {
  const VecX positions = node_vector(x, nodes(), "x");
  const std::vector<double> a = channels(activation);
  fem::Assembled out;
  {
    const py::gil_scoped_release release;
    fem::assemble_force(*elements_, positions, a, out);
  }
  return x.ndim() == 2 ? py::array(owned_rows(std::move(out.f))) : py::array(owned_vector(std::move(out.f)));
}

py::tuple PyElements::assemble(const Doubles& x, const Doubles& activation,
                               const std::string& projection) const {
  const VecX positions = node_vector(x, nodes(), "x");
  const std::vector<double> a = channels(activation);
  const fem::Projection p = projection_of(projection);
  fem::Assembled out;
  Rows rows;
  {
    const py::gil_scoped_release release;
    fem::assemble(*elements_, positions, a, out, p);
    rows = to_rows(out.K);
  }
  return py::make_tuple(out.energy,
                        x.ndim() == 2 ? owned_rows(std::move(out.f)) : owned_vector(std::move(out.f)),
                        arrays_of(std::move(rows)), out.inverted);
}

py::array PyElements::stiffness_times(const Doubles& x, const Doubles& v, const Doubles& activation,
                                      const std::string& projection) const {
  fem::Assembled out;
  fem::multiply_stiffness(*elements_, node_vector(x, nodes(), "x"), channels(activation),
                          node_vector(v, nodes(), "v"), out, projection_of(projection));
  return v.ndim() == 2 ? py::array(owned_rows(std::move(out.f))) : py::array(owned_vector(std::move(out.f)));
}

py::array PyElements::deformation_gradients(const Doubles& x) const {
  std::vector<Mat3> F;
  fem::deformation_gradients(*elements_, node_vector(x, nodes(), "x"), F);
  std::vector<double> out;
  out.reserve(9 * F.size());
  for (const Mat3& f : F)
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c) out.push_back(f(r, c));
  return owned<double>(std::move(out), {count(), 3, 3});
}

py::array PyElements::energy_densities(const Doubles& x, const Doubles& activation) const {
  std::vector<double> psi;
  fem::energy_densities(*elements_, node_vector(x, nodes(), "x"), channels(activation), psi);
  return owned_list(std::move(psi));
}

py::array PyElements::mass() const { return owned_vector(fem::lumped_mass(*elements_)); }
py::array PyElements::volume() const { return owned_list(fem::rest_volume(*elements_)); }

void add_parts(py::module_& m) {
  py::class_<PyElements, std::shared_ptr<PyElements>>(m, "Elements")
      .def(py::init(&make_py_elements))
      .def("energy", &PyElements::energy)
      .def("force", &PyElements::force)
      .def("assemble", &PyElements::assemble)
      .def("stiffness_times", &PyElements::stiffness_times)
      .def("deformation_gradients", &PyElements::deformation_gradients)
      .def("energy_densities", &PyElements::energy_densities)
      .def("mass", &PyElements::mass)
      .def("volume", &PyElements::volume)
      .def("nodes", &PyElements::nodes)
      .def("count", &PyElements::count);

  py::class_<ElementMaterial>(m, "Material")
      .def(py::init(&make_material))
      .def("psi", [](const ElementMaterial& a, const Doubles& F,
                     double activation) { return material::psi(a, matrix_of(F), activation); })
      .def("pk1", [](const ElementMaterial& a, const Doubles& F,
                     double activation) { return owned_matrix(material::pk1(a, matrix_of(F), activation)); })
      .def("dpk1", [](const ElementMaterial& a, const Doubles& F, double activation, bool projected) {
        return owned_matrix(material::dpk1(a, matrix_of(F), activation, projected));
      });

  py::class_<PyCholesky>(m, "Cholesky")
      .def(py::init<const Indices&, const Indices&, const std::string&>())
      .def("factor", &PyCholesky::factor)
      .def("solve", &PyCholesky::solve)
      .def("stats", &PyCholesky::stats);
  py::class_<PyCondensation>(m, "Condensation")
      .def(py::init<const Indices&, const Indices&, const Doubles&, const Indices&, const Doubles&>())
      .def("J", &PyCondensation::J)
      .def("S", &PyCondensation::S)
      .def("dofs", &PyCondensation::dofs)
      .def("solve", &PyCondensation::solve);
  m.def("eigenmodes", &eigenmodes);
}

}  // namespace limber::python
