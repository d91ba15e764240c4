#include <limber/methods/mixed/reduced_body.hpp>

#include <limber/core/cache.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/fem/laplacian.hpp>
#include <limber/linalg/tall.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/reduction/linear_modes.hpp>
#include <limber/scene/number_file.hpp>

#include <fmt/format.h>

namespace limber::mixed {
namespace {

constexpr std::uint64_t kReductionVersion = 2;  // to be raised when the same input makes another reduction

using Rows3 = Eigen::Matrix<double, 3, Eigen::Dynamic>;

std::uint64_t reduction_hash(const ReductionInput& in, Index points, const MixedOptions& o,
                             const MatX& poses) {
  InputHash hash;
  hash.number(kReductionVersion).numbers(std::span<const Vec3>(in.mesh.rest));
  hash.numbers(std::span<const Tet>(in.mesh.elements)).numbers(std::span<const std::uint8_t>(in.pinned));
  for (const ElementMaterial& m : in.mesh.material) {
    hash.number(m.model).number(m.young).number(m.poisson).number(m.density).number(m.fibre);
    hash.number(m.fibre_stiffness).bytes(m.fibre_direction.data(), 3 * sizeof(double));
  }
  hash.text(o.basis).number(o.modes).number(points).number(o.weights_only).number(o.exponent).number(o.seed);
  hash.numbers(std::span<const double>(poses.data(), static_cast<std::size_t>(poses.size())));
  return hash.value();
}

Index points_wanted(const MixedOptions& o, std::size_t elements) {
  if (o.points == 0) return static_cast<Index>(std::min<std::size_t>(20 * at(o.modes), elements));
  if (static_cast<std::size_t>(o.points) > elements)
    throw Error(ErrorKind::kInput,
                fmt::format("/method/points: found {}, but there are {} elements; expected at most as many "
                            "(\"space\": \"full\" uses all)",
                            o.points, elements));
  return o.points;
}

// Everything that takes long, in one file; false when it does not fit the mesh after all.
bool take_stored(CachedMatrices& stored, const ReductionInput& in, Index points, ReducedBody& body) {
  for (const char* name : {"W", "gamma", "Phi", "affine", "center", "points"})
    if (!stored.count(name)) return false;
  const auto n = static_cast<Eigen::Index>(in.mesh.rest.size());
  const MatX& list = stored["points"];
  if (stored["W"].rows() != n || stored["Phi"].rows() != n || list.cols() != 2 || list.rows() > points ||
      list.rows() == 0 || stored["center"].size() != 3)
    return false;
  for (Eigen::Index c = 0; c < list.rows(); ++c) {
    if (!(list(c, 0) >= 0 && list(c, 0) < static_cast<double>(in.mesh.elements.size()))) return false;
    body.cubature.elements.push_back(static_cast<Index>(list(c, 0)));
    body.cubature.weights.push_back(list(c, 1));
  }
  body.weights.W = std::move(stored["W"]);
  body.weights.gamma = stored["gamma"];
  body.basis.Phi = std::move(stored["Phi"]);
  body.basis.affine = stored["affine"];
  body.basis.center = stored["center"];
  body.basis.dropped =
      static_cast<Index>(std::max<Eigen::Index>(0, body.basis.affine.rows() - body.basis.affine.cols()));
  return true;
}

CachedMatrices to_store(const ReducedBody& body) {
  MatX points(static_cast<Eigen::Index>(body.cubature.elements.size()), 2);
  for (Eigen::Index c = 0; c < points.rows(); ++c)
    points.row(c) << body.cubature.elements[static_cast<std::size_t>(c)],
        body.cubature.weights[static_cast<std::size_t>(c)];
  return {{"W", body.weights.W},         {"gamma", body.weights.gamma}, {"Phi", body.basis.Phi},
          {"affine", body.basis.affine}, {"center", body.basis.center}, {"points", points}};
}

// Displacements in some poses, one column each.
MatX training_poses(const std::string& file, const VecX& rest) {
  if (file.empty()) return {};
  const NumberFile numbers = read_numbers(file);
  const auto count = static_cast<Eigen::Index>(numbers.values.size());
  if (count == 0 || count % rest.size() != 0)
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {} numbers, expected the positions of all nodes ({} numbers) for each "
                            "pose, one pose a row",
                            file, count, rest.size()));
  const Eigen::Map<const MatX> all(numbers.values.data(), rest.size(), count / rest.size());
  if (!all.allFinite()) throw Error(ErrorKind::kInput, fmt::format("{}: a number is not finite", file));
  return all.colwise() - rest;
}

// Reduced forces of all elements in the poses are what the points are trained to give.
Cubature trained_points(const ReductionInput& in, const ReducedBody& body, const MatX& poses, Index points,
                        const MixedOptions& o) {
  const Index count = static_cast<Index>(poses.cols()), p = body.functions();
  const auto elements = static_cast<Index>(in.mesh.elements.size());
  const Eigen::Index size = 3 * static_cast<Eigen::Index>(p);
  std::vector<VecX> u;
  for (Index k = 0; k < count; ++k) u.push_back(body.wide(body.reduced(poses.col(k))));
  VecX scale = VecX::Ones(count);
  // Force of one element with the weight 1 in all poses.
  const auto force = [&](Index e, Eigen::Ref<VecX> out) {
    const Tet& t = in.mesh.elements[at(e)];
    const Eigen::Matrix<double, 3, 4> g = fem::shape_gradients(in.mesh.rest, t);
    MatX b = MatX::Zero(p, 3);
    for (int a = 0; a < 4; ++a) b += body.basis.Phi.row(t[a]).transpose() * g.col(a).transpose();
    for (Index k = 0; k < count; ++k) {
      const Eigen::Map<const Rows3> U(u[at(k)].data(), 3, p);
      const Mat3 P = material::pk1(in.mesh.material[at(e)], Mat3::Identity() + U * b);
      Eigen::Map<Rows3>(out.data() + k * size, 3, p) = scale[k] * P * b.transpose();
    }
  };
  // Sums of pieces, in a fixed order.
  constexpr std::ptrdiff_t kPiece = 512;
  const std::ptrdiff_t pieces = (elements + kPiece - 1) / kPiece;
  std::vector<VecX> part(static_cast<std::size_t>(pieces), VecX::Zero(size * count));
  parallel_for(pieces, 1, [&](std::ptrdiff_t piece) {
    VecX one(size * count);
    for (Index e = static_cast<Index>(piece * kPiece);
         e < std::min<Index>(elements, static_cast<Index>((piece + 1) * kPiece)); ++e) {
      force(e, one);
      part[static_cast<std::size_t>(piece)] += in.volume[at(e)] * one;
    }
  });
  VecX target = VecX::Zero(size * count);
  for (const VecX& sum : part) target += sum;
  // Every pose counts the same.
  for (Index k = 0; k < count; ++k) {
    const double length = target.segment(k * size, size).norm();
    if (length > 0) scale[k] = 1 / length;
    target.segment(k * size, size) *= scale[k];
  }
  TrainingOptions options;
  options.points = points;
  options.seed = o.seed;
  return train_cubature(elements, force, target, options).cubature;
}

// Components of linear modes as functions.
void use_linear_modes(const ReductionInput& in, const MixedOptions& o, const PrepareProgress& progress,
                      ReducedBody& body) {
  const LinearModes modes = linear_modes(in.mesh, in.mass, in.pinned, 12 * o.modes, progress);
  const Eigen::Index n = in.mass.size(), r = modes.U.cols();
  body.basis.Phi.resize(n, 3 * r);
  for (Eigen::Index k = 0; k < r; ++k)
    body.basis.Phi.middleCols(3 * k, 3) = Eigen::Map<const Rows3>(modes.U.col(k).data(), 3, n).transpose();
  body.basis.affine = MatX::Zero(0, 0);
  // What elements are clustered by: how they move in the modes, fast ones less than slow ones.
  const Eigen::Index k = r - modes.derivatives;
  body.weights.W = body.basis.Phi.leftCols(3 * std::min<Eigen::Index>(k, o.modes));
  body.weights.gamma = VecX();
}

}  // namespace

VecX ReducedBody::wide(const VecX& q) const {
  if (!linear) return q;
  VecX u = VecX::Zero(3 * static_cast<Eigen::Index>(functions()));
  for (Eigen::Index k = 0; k < q.size(); ++k)
    for (int d = 0; d < 3; ++d) u[3 * (3 * k + d) + d] = q[k];
  return u;
}

VecX ReducedBody::narrow(const VecX& g) const {
  if (!linear) return g;
  VecX out = VecX::Zero(unknowns());
  for (Eigen::Index k = 0; k < out.size(); ++k)
    for (int d = 0; d < 3; ++d) out[k] += g[3 * (3 * k + d) + d];
  return out;
}

void ReducedBody::add_narrow(const BlockMatrix& H, BlockMatrix& out) const {
  const BlockPattern &from = *H.pattern, &to = *out.pattern;
  const auto entry = [&](Index a, int i, Index b, int j) {  // of the symmetric H: functions a, b, axes i, j
    if (a < b) return H.block(from.col_begin[at(a)] + b - a)(j, i);
    return H.block(from.col_begin[at(b)] + a - b)(i, j);
  };
  for (Index c = 0; c < to.n; ++c)
    for (Index r = c; r < to.n; ++r) {
      auto block = out.block(to.col_begin[at(c)] + r - c);
      for (int j = 0; j < 3; ++j)
        for (int i = 0; i < 3; ++i)
          for (int d = 0; d < 3; ++d)
            for (int e = 0; e < 3; ++e) block(i, j) += entry(3 * (3 * r + i) + d, d, 3 * (3 * c + j) + e, e);
    }
}

VecX ReducedBody::reduced(const VecX& x) const {
  const Eigen::Map<const Rows3> all(x.data(), 3, mass.size());
  const MatX weighted = (all * mass.asDiagonal()).transpose();
  VecX u(3 * static_cast<Eigen::Index>(functions()));
  Eigen::Map<Rows3>(u.data(), 3, functions()) = tall_product(basis.Phi, weighted).transpose();
  return narrow(u);
}

void ReducedBody::expand(const VecX& q, const VecX& dq, VecX& x, VecX& v) const {
  const VecX u = wide(q), du = wide(dq);
  x.resize(rest.size());
  v.resize(rest.size());
  MatX both(functions(), 6);
  both << Eigen::Map<const Rows3>(u.data(), 3, functions()).transpose(),
      Eigen::Map<const Rows3>(du.data(), 3, functions()).transpose();
  parallel_ranges(mass.size(), 1024, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    const MatX part = basis.Phi.middleRows(begin, end - begin) * both;
    Eigen::Map<Rows3>(x.data() + 3 * begin, 3, end - begin) =
        Eigen::Map<const Rows3>(rest.data() + 3 * begin, 3, end - begin) + part.leftCols<3>().transpose();
    Eigen::Map<Rows3>(v.data() + 3 * begin, 3, end - begin) = part.rightCols<3>().transpose();
  });
}

MatX ReducedBody::rows(std::span<const Index> nodes) const {
  MatX out(static_cast<Eigen::Index>(nodes.size()), functions());
  for (std::size_t k = 0; k < nodes.size(); ++k)
    out.row(static_cast<Eigen::Index>(k)) = basis.Phi.row(nodes[k]);
  return out;
}

std::unique_ptr<ReducedBody> reduce_body(const ReductionInput& in, const MixedOptions& o,
                                         const std::filesystem::path& cache,
                                         const PrepareProgress& progress) {
  const Index points = points_wanted(o, in.mesh.elements.size());
  auto body = std::make_unique<ReducedBody>();
  const Index n = static_cast<Index>(in.mesh.rest.size());
  body->rest.resize(3 * n);
  for (Index i = 0; i < n; ++i) node(body->rest, i) = in.mesh.rest[at(i)];
  body->mass = in.mass;
  const MatX poses = training_poses(in.training, body->rest);
  body->hash = reduction_hash(in, points, o, poses);
  body->linear = o.basis == "linear";
  const auto say = [&](const char* what, double share) {
    if (progress) progress(what, share);
  };
  CachedMatrices stored;
  body->from_cache =
      load_cached(cache, "mixed", body->hash, stored) && take_stored(stored, in, points, *body);
  if (!body->from_cache) {
    if (body->linear) {
      use_linear_modes(in, o, progress, *body);
    } else {
      body->weights = o.basis == "handles" ? diffused_handles(in.mesh, in.pattern, in.pinned, o.modes)
                                           : skinning_eigenmodes(in.mesh, in.pattern, in.mass, in.pinned,
                                                                 o.modes, o.basis == "homogeneous", progress);
      say("basis", 0.7);
      body->basis = skinning_basis(body->weights.W, in.mesh.rest, in.mass);
    }
    say("cubature points", 0.8);
    const SkinningWeights& w = body->weights;
    if (poses.size() > 0) {
      body->cubature = trained_points(in, *body, poses, points, o);
    } else {
      KMeansOptions k;
      k.points = points;
      k.seed = o.seed;
      body->cubature = kmeans_cubature(
          o.weights_only ? weight_features(w.W, w.gamma, in.mesh.elements, o.exponent)
                         : strain_features(w.W, w.gamma, in.mesh.rest, in.mesh.elements, o.exponent),
          in.volume, k);
    }
    say("storing", 0.95);
    store_cached(cache, "mixed", body->hash, to_store(*body));
  }
  for (std::size_t c = 0; c < body->cubature.elements.size(); ++c)
    body->points.push_back({in.mesh.material[at(body->cubature.elements[c])], body->cubature.weights[c]});
  const MatX gradients = basis_gradients(body->basis.Phi, in.mesh, body->cubature.elements);
  if (body->linear) {
    // F = sum over modes k and axes d of q_k e_d grad(Phi_kd)^T
    MatX J = MatX::Zero(3 * gradients.cols(), body->unknowns());
    for (Eigen::Index c = 0; c < gradients.cols(); ++c)  // 3 a point: the column of F
      for (Eigen::Index k = 0; k < J.cols(); ++k)
        for (int d = 0; d < 3; ++d) J(3 * c + d, k) = gradients(3 * k + d, c);
    body->map = make_dense_map(J);
  } else {
    body->map = make_kronecker_map(gradients);
  }
  say("ready", 1);
  return body;
}

}  // namespace limber::mixed
