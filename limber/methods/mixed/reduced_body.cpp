#include <limber/methods/mixed/reduced_body.hpp>

#include <limber/core/cache.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/linalg/tall.hpp>

#include <fmt/format.h>

namespace limber::mixed {
namespace {

constexpr std::uint64_t kReductionVersion = 1;  // to be raised when the same input makes another reduction

using Rows3 = Eigen::Matrix<double, 3, Eigen::Dynamic>;

std::uint64_t reduction_hash(const ReductionInput& in, Index points, const MixedOptions& o) {
  InputHash hash;
  hash.number(kReductionVersion).numbers(std::span<const Vec3>(in.mesh.rest));
  hash.numbers(std::span<const Tet>(in.mesh.elements)).numbers(std::span<const std::uint8_t>(in.pinned));
  for (const ElementMaterial& m : in.mesh.material) {
    hash.number(m.model).number(m.young).number(m.poisson).number(m.density).number(m.fibre);
    hash.number(m.fibre_stiffness).bytes(m.fibre_direction.data(), 3 * sizeof(double));
  }
  hash.text(o.basis).number(o.modes).number(points).number(o.weights_only).number(o.exponent).number(o.seed);
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
  if (stored["W"].rows() != n || stored["Phi"].rows() != n || list.cols() != 2 || list.rows() != points ||
      stored["center"].size() != 3)
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
  body.basis.dropped = static_cast<Index>(body.basis.affine.rows() - body.basis.affine.cols());
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

}  // namespace

VecX ReducedBody::reduced(const VecX& x) const {
  const Eigen::Map<const Rows3> all(x.data(), 3, mass.size());
  const MatX weighted = (all * mass.asDiagonal()).transpose();
  VecX u(unknowns());
  Eigen::Map<Rows3>(u.data(), 3, functions()) = tall_product(basis.Phi, weighted).transpose();
  return u;
}

void ReducedBody::expand(const VecX& u, const VecX& du, VecX& x, VecX& v) const {
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
  body->hash = reduction_hash(in, points, o);
  const auto say = [&](const char* what, double share) {
    if (progress) progress(what, share);
  };
  CachedMatrices stored;
  body->from_cache =
      load_cached(cache, "mixed", body->hash, stored) && take_stored(stored, in, points, *body);
  if (!body->from_cache) {
    body->weights = o.basis == "handles" ? diffused_handles(in.mesh, in.pattern, in.pinned, o.modes)
                                         : skinning_eigenmodes(in.mesh, in.pattern, in.mass, in.pinned,
                                                               o.modes, o.basis == "homogeneous", progress);
    say("basis", 0.7);
    body->basis = skinning_basis(body->weights.W, in.mesh.rest, in.mass);
    say("cubature points", 0.8);
    KMeansOptions k;
    k.points = points;
    k.seed = o.seed;
    const SkinningWeights& w = body->weights;
    body->cubature = kmeans_cubature(
        o.weights_only ? weight_features(w.W, w.gamma, in.mesh.elements, o.exponent)
                       : strain_features(w.W, w.gamma, in.mesh.rest, in.mesh.elements, o.exponent),
        in.volume, k);
    say("storing", 0.95);
    store_cached(cache, "mixed", body->hash, to_store(*body));
  }
  for (std::size_t c = 0; c < body->cubature.elements.size(); ++c)
    body->points.push_back({in.mesh.material[at(body->cubature.elements[c])], body->cubature.weights[c]});
  body->map = make_kronecker_map(basis_gradients(body->basis.Phi, in.mesh, body->cubature.elements));
  say("ready", 1);
  return body;
}

}  // namespace limber::mixed
