#include <limber/methods/condense/subspace.hpp>

#include <limber/core/cache.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/methods/condense/contact_training.hpp>
#include <limber/methods/condense/domains.hpp>
#include <limber/methods/condense/force_samples.hpp>
#include <limber/reduction/seeded_numbers.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace limber::condense {

std::vector<Index> cubature_candidates(const std::vector<double>& strength, Index room, std::uint64_t seed) {
  SeededNumbers numbers(seed);
  std::vector<Index> pool(strength.size());
  std::iota(pool.begin(), pool.end(), 0);
  const auto count = static_cast<Index>(pool.size());
  if (room >= count) return pool;
  const Index strongest = room / 4;
  std::nth_element(pool.begin(), pool.begin() + strongest, pool.end(), [&](Index a, Index b) {
    return std::pair(-strength[at(a)], a) < std::pair(-strength[at(b)], b);
  });
  std::sort(pool.begin() + strongest, pool.end());  // nth_element leaves an order of its own
  for (Index i = strongest; i < room; ++i) std::swap(pool[at(i)], pool[at(i + numbers.below(count - i))]);
  pool.resize(at(room));
  std::sort(pool.begin(), pool.end());
  return pool;
}

namespace {

constexpr std::uint64_t kPointsVersion = 5;  // to be raised when the same poses give other points
constexpr double kRoom = 1e8;                // numbers: forces of elements that cubature is chosen from
constexpr double kLeastNoise = 0.03;      // of the greatest spread: coordinates that no pose moves get that
constexpr double kMostBody = 10;          // volumes of the body, or the domain, that a point may stand for
constexpr std::size_t kDomainPoses = 24;  // that a domain's points are trained with, at most
constexpr std::size_t kTestPoses = 64;    // that cubature is tested with, at most

// Greedy training over the elements of the samples, or over as many as there is room for the forces of.
TrainedCubature train_points(const ForceSamples& samples, TrainingOptions training) {
  const std::span<const Index> elements = samples.elements();
  const auto count = static_cast<Index>(elements.size());
  const Index room = std::max<Index>(2 * training.points, static_cast<Index>(kRoom / samples.rows()));
  std::vector<Index> pool(elements.size());
  std::iota(pool.begin(), pool.end(), 0);
  if (room < count) pool = cubature_candidates(samples.strengths(), room, training.seed + 17);
  const auto size = static_cast<Eigen::Index>(pool.size());
  Eigen::MatrixXf forces(samples.rows(), size);
  parallel_for(size, 64, [&](std::ptrdiff_t k) {
    VecX one(samples.rows());
    samples.element(elements[at(pool[static_cast<std::size_t>(k)])], one);
    forces.col(k) = one.cast<float>();
  });
  training.points = std::min<Index>(training.points, static_cast<Index>(size));
  training.candidates = static_cast<Index>(size);
  double whole = 0;
  for (const Index e : elements) whole += samples.volume(e);
  for (const Index k : pool) training.greatest.push_back(kMostBody * whole / samples.volume(elements[at(k)]));
  TrainedCubature trained = train_cubature(
      static_cast<Index>(size), [&](Index k, Eigen::Ref<VecX> f) { f = forces.col(k).cast<double>(); },
      samples.total(), training);
  for (Index& e : trained.cubature.elements) e = elements[at(pool[at(e)])];
  return trained;
}

// The poses that move a domain most, in their order.
std::vector<std::size_t> greatest_poses(const MatX& q, Index first, Index columns, std::size_t count) {
  std::vector<std::size_t> out(static_cast<std::size_t>(q.cols()));
  std::iota(out.begin(), out.end(), std::size_t{0});
  if (out.size() <= count) return out;
  const VecX size = q.middleRows(first, columns).colwise().norm().transpose();
  std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) {
    return size[static_cast<Eigen::Index>(a)] > size[static_cast<Eigen::Index>(b)];
  });
  out.resize(count);
  std::sort(out.begin(), out.end());
  return out;
}

// Points for the elements of each domain, trained by themselves: the cost is linear in the domains, and
// points are where the columns are.
void train_domains(const Model& model, const BoneSkinning& skinning, std::span<const TrainingPose> poses,
                   const CondenseOptions& o, const Preparation& preparation, Subspace& out) {
  std::vector<std::vector<Index>> elements(out.basis.domains().size());
  for (std::size_t e = 0; e < out.domain_of_element.size(); ++e)
    elements[at(out.domain_of_element[e])].push_back(static_cast<Index>(e));
  const bool several = o.bone_domains;
  Index wide = 0;  // columns of domains that have no elements of their own: vibration modes
  for (std::size_t d = 0; d < elements.size(); ++d)
    if (elements[d].empty()) wide += out.basis.domains()[d].columns();
  std::vector<std::pair<Index, double>> points;
  double weight = 0;
  for (std::size_t d = 0; d < elements.size(); ++d) {
    if (elements[d].empty()) continue;
    const Domain& domain = out.basis.domains()[d];
    const double share =
        static_cast<double>(elements[d].size()) / static_cast<double>(model.mesh.elements.size());
    preparation.say("training the subspace: cubature", 0.82 + 0.15 * weight);
    std::vector<TrainingPose> own;
    MatX q(out.q.rows(), 0);
    const auto chosen = several ? greatest_poses(out.q, domain.first, domain.columns(), kDomainPoses)
                                : greatest_poses(out.q, 0, out.columns(), poses.size());
    q.resize(out.q.rows(), static_cast<Eigen::Index>(chosen.size()));
    for (std::size_t k = 0; k < chosen.size(); ++k) {
      own.push_back(poses[chosen[k]]);
      q.col(static_cast<Eigen::Index>(k)) = out.q.col(static_cast<Eigen::Index>(chosen[k]));
    }
    const ForceSamples samples(model, skinning, own, out, q, elements[d], kLeastNoise, o.noise, o.samples,
                               o.seed + d);
    samples.check();
    const double columns = domain.columns() + wide * share;
    TrainingOptions training;
    training.points =
        static_cast<Index>(std::ceil(o.points > 0 ? o.points * columns / out.columns() : 10 * columns));
    training.points = std::min<Index>(training.points, static_cast<Index>(elements[d].size()));
    training.seed = o.seed;
    training.replace = true;
    const TrainedCubature trained = train_points(samples, training);
    for (std::size_t c = 0; c < trained.cubature.elements.size(); ++c)
      points.emplace_back(trained.cubature.elements[c], trained.cubature.weights[c]);
    out.error += share * trained.error;
    weight += share;
  }
  std::sort(points.begin(), points.end());
  for (const auto& [element, w] : points) {
    out.cubature.elements.push_back(element);
    out.cubature.weights.push_back(w);
  }
}

bool take_subspace(CachedMatrices& stored, const Model& model, Subspace& out) {
  for (const char* name : {"q", "spread", "points", "numbers", "mass", "coupling", "element_domain"})
    if (!stored.count(name)) return false;
  const MatX &points = stored["points"], &numbers = stored["numbers"], &domain = stored["element_domain"];
  const auto elements = static_cast<Eigen::Index>(model.mesh.elements.size());
  if (points.cols() != 2 || numbers.size() != 4 || domain.size() != elements) return false;
  std::vector<Domain> domains;
  for (int d = 0; d < static_cast<int>(numbers(3)); ++d) {
    const std::string U = fmt::format("U{}", d), nodes = fmt::format("nodes{}", d);
    if (!stored.count(U) || !stored.count(nodes) || 3 * stored[nodes].size() != stored[U].rows())
      return false;
    Domain next;
    for (const double i : stored[nodes].reshaped()) {
      if (!(i >= 0 && i < model.nodes())) return false;
      next.nodes.push_back(static_cast<Index>(i));
    }
    next.U = std::move(stored[U]);
    domains.push_back(std::move(next));
  }
  const Basis basis(model.nodes(), std::move(domains));
  const Eigen::Index r = basis.columns();
  if (stored["spread"].size() != r || stored["q"].rows() != r || stored["mass"].rows() != r ||
      stored["mass"].cols() != r || stored["coupling"].rows() != r || stored["coupling"].cols() != r)
    return false;
  for (Eigen::Index e = 0; e < elements; ++e) {
    if (!(domain(e) >= 0 && domain(e) < static_cast<double>(basis.domains().size()))) return false;
    out.domain_of_element.push_back(static_cast<Index>(domain(e)));
  }
  for (Eigen::Index c = 0; c < points.rows(); ++c) {
    if (!(points(c, 0) >= 0 && points(c, 0) < static_cast<double>(elements))) return false;
    out.cubature.elements.push_back(static_cast<Index>(points(c, 0)));
    out.cubature.weights.push_back(points(c, 1));
  }
  out.basis = basis;
  if (stored.count("touched")) {
    const MatX &touched = stored["touched"], &weights = stored["contact_weights"];
    if (weights.size() != model.nodes() || touched.cols() != 2) return false;
    for (Eigen::Index k = 0; k < touched.rows(); ++k)
      out.touched.emplace_back(static_cast<Index>(touched(k, 0)), static_cast<Index>(touched(k, 1)));
    out.contact_weights.assign(weights.data(), weights.data() + weights.size());
  }
  out.q = std::move(stored["q"]);
  out.spread = stored["spread"];
  out.mass = std::move(stored["mass"]);
  out.coupling = std::move(stored["coupling"]);
  out.mean_mass = numbers(0);
  out.error = numbers(1);
  out.held_out = numbers(2);
  out.from_cache = true;
  return true;
}

void store_subspace(const Subspace& s, const std::filesystem::path& cache) {
  MatX points(static_cast<Eigen::Index>(s.cubature.elements.size()), 2);
  for (Eigen::Index c = 0; c < points.rows(); ++c)
    points.row(c) << s.cubature.elements[static_cast<std::size_t>(c)],
        s.cubature.weights[static_cast<std::size_t>(c)];
  MatX numbers(4, 1);
  numbers << s.mean_mass, s.error, s.held_out, static_cast<double>(s.basis.domains().size());
  const auto list = [](const std::vector<Index>& values) {
    MatX out(static_cast<Eigen::Index>(values.size()), 1);
    std::copy(values.begin(), values.end(), out.data());
    return out;
  };
  CachedMatrices all{{"q", s.q},
                     {"spread", s.spread},
                     {"points", points},
                     {"numbers", numbers},
                     {"mass", s.mass},
                     {"coupling", s.coupling},
                     {"element_domain", list(s.domain_of_element)}};
  for (std::size_t d = 0; d < s.basis.domains().size(); ++d) {
    all[fmt::format("U{}", d)] = s.basis.domains()[d].U;
    all[fmt::format("nodes{}", d)] = list(s.basis.domains()[d].nodes);
  }
  if (!s.touched.empty()) {
    MatX touched(static_cast<Eigen::Index>(s.touched.size()), 2);
    for (Eigen::Index k = 0; k < touched.rows(); ++k)
      touched.row(k) << s.touched[static_cast<std::size_t>(k)].first,
          s.touched[static_cast<std::size_t>(k)].second;
    all["touched"] = touched;
    all["contact_weights"] =
        Eigen::Map<const VecX>(s.contact_weights.data(), static_cast<Eigen::Index>(s.contact_weights.size()));
  }
  store_cached(cache, "condense", s.hash, all);
}

}  // namespace

bool Subspace::knows(const std::array<Index, 4>& pair) const {
  const auto seen = [&](Index node, Index bone) {
    return std::binary_search(touched.begin(), touched.end(), std::pair(node, bone));
  };
  return !touched.empty() && std::any_of(pair.begin() + 1, pair.end(), [&](Index corner) {
    return seen(pair[0], heaviest[at(corner)]) && seen(corner, heaviest[at(pair[0])]);
  });
}

VecX reduced_force(const Subspace& subspace, const SkinnedBody& skin, const VecX& f,
                   std::span<const std::uint8_t> skip) {
  VecX turned(f.size());
  parallel_for(f.size() / 3, 2048, [&](std::ptrdiff_t i) {
    const auto k = static_cast<std::size_t>(i);
    turned.segment<3>(3 * i) =
        !skip.empty() && skip[k] ? Vec3(Vec3::Zero()) : Vec3(skin.R[k].transpose() * f.segment<3>(3 * i));
  });
  return subspace.basis.transposed(turned);
}

void subspace_positions(const Subspace& subspace, const SkinnedBody& skin, const VecX& q, VecX& x) {
  x = subspace.basis.times(q);
  parallel_for(x.size() / 3, 2048, [&](std::ptrdiff_t i) {
    x.segment<3>(3 * i) =
        skin.x.segment<3>(3 * i) + skin.R[static_cast<std::size_t>(i)] * x.segment<3>(3 * i).eval();
  });
}

VecX local_displacement(const SkinnedBody& skin, const VecX& x) {
  VecX out(x.size());
  parallel_for(x.size() / 3, 2048, [&](std::ptrdiff_t i) {
    out.segment<3>(3 * i) =
        skin.R[static_cast<std::size_t>(i)].transpose() * (x.segment<3>(3 * i) - skin.x.segment<3>(3 * i));
  });
  return out;
}

BasisRows turned_rows(const Subspace& subspace, const SkinnedBody& skin, std::span<const Index> nodes) {
  return BasisRows(subspace.basis, skin.R, nodes);
}

Subspace train_subspace(const Model& model, const Skeleton& skeleton, const BoneSkinning& skinning,
                        std::span<const TrainingPose> poses, const CondenseOptions& o,
                        const Preparation& preparation) {
  InputHash hash = body_hash(model, skeleton, o);
  hash.number(kPointsVersion);
  for (const TrainingPose& pose : poses) {
    add_poses(hash, pose.bones);
    hash.number(pose.t).number(pose.restart);
  }
  hash.number(o.modes).number(o.least_spread).number(o.linear_modes).number(o.points).number(o.samples);
  hash.number(o.noise).number(o.seed).number(o.exact);
  hash.number(o.bone_domains).number(o.bone_domains ? o.coupling : 0.0);
  hash.bytes(model.scene->gravity.data(), sizeof model.scene->gravity);
  for (const Load& load : model.loads) {
    const ForceSpec& f = model.scene->forces[load.force];
    hash.numbers(std::span<const Index>(load.nodes)).bytes(f.force.data(), sizeof f.force).number(f.from);
    hash.bytes(f.acceleration.value.data(), sizeof f.acceleration.value).number(f.until.value_or(-1));
    hash.numbers(std::span<const Vec3>(load.acceleration)).number(f.ramp);
  }
  Subspace out;
  out.hash = hash.value();
  for (Index i = 0; i < model.nodes(); ++i) out.heaviest.push_back(skinning.bones_of(i)[0]);
  CachedMatrices stored;
  if (load_cached(preparation.cache, "condense", out.hash, stored) && take_subspace(stored, model, out))
    return out;
  out.cubature = {};
  out.domain_of_element.clear();
  check_held(model, skeleton);
  if (!preparation.train) return out;
  std::vector<std::size_t> solved;
  const MatX displacements = solve_poses(model, skeleton, skinning, poses, o, preparation, solved);
  preparation.say("training the subspace: basis", 0.8);
  make_basis(model, skeleton, skinning, displacements, o, out);
  std::vector<TrainingPose> used;
  for (const std::size_t k : solved) used.push_back(poses[k]);
  if (!o.exact) {
    train_domains(model, skinning, used, o, preparation, out);
    out.held_out = cubature_error(model, skinning, used, out, o, o.seed + 1000);
  }
  if (o.trained_contact) train_contacts(model, skinning, used, o, out);
  preparation.say("storing", 0.98);
  store_subspace(out, preparation.cache);
  return out;
}

double cubature_error(const Model& model, const BoneSkinning& skinning, std::span<const TrainingPose> poses,
                      const Subspace& subspace, const CondenseOptions& o, std::uint64_t seed) {
  std::vector<Index> all(model.mesh.elements.size());
  std::iota(all.begin(), all.end(), 0);
  // One sample a pose; of very many poses some.
  std::vector<TrainingPose> own;
  const std::size_t stride = (poses.size() + kTestPoses - 1) / kTestPoses;
  MatX q(subspace.q.rows(), static_cast<Eigen::Index>((poses.size() + stride - 1) / stride));
  for (std::size_t p = 0; p < poses.size(); p += stride) {
    q.col(static_cast<Eigen::Index>(own.size())) = subspace.q.col(static_cast<Eigen::Index>(p));
    own.push_back(poses[p]);
  }
  const ForceSamples samples(model, skinning, own, subspace, q, all, kLeastNoise, o.noise, 1, seed);
  return samples.error(subspace.cubature);
}

}  // namespace limber::condense
