#include <limber/cloth/feature_inserter.hpp>
#include <limber/core/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace limber {

FeatureInserter::FeatureInserter(const Sheet& sheet, const FeatureSet& set,
                                 std::span<const Obstacle> obstacles, double t, const InsertOptions& options)
    : before_(sheet), set_(set), o_(options), e_(sheet) {
  for (const Obstacle& o : obstacles) placement_.push_back(placement_at(o, t));
  e_.place_on_feature = feature_placer(set, obstacles, t);
  find_border();
}

Insertion FeatureInserter::run(std::span<const FeatureContact> contacts) {
  follow_features();
  std::vector<const FeatureContact*> order;
  for (const FeatureContact& c : contacts) order.push_back(&c);
  // Corners and nails first: lines then end there.
  std::stable_partition(order.begin(), order.end(), [](const FeatureContact* c) { return c->count == 3; });
  for (const FeatureContact* c : order) put(*c);
  forget_lines();
  connect();
  clean_up();
  connect();
  return finish();
}

namespace {

void list_kinds(const Sheet& before, Insertion& in) {
  in.became.clear();
  in.stopped.clear();
  const Sheet& s = in.change.sheet;
  for (Index v = 0; v < s.vertices(); ++v) {
    const Index o = in.change.origin[v];
    // A vertex that splits an edge along a feature has its neighbours' rates: it is not new to it.
    const bool was = o >= 0 ? before.eol(o) : s.eol(v) && s.age[v] != 0;
    if (s.eol(v) && !was) in.became.push_back(v);
    if (!s.eol(v) && was) in.stopped.push_back(v);
  }
}

}  // namespace

void check_options(const InsertOptions& o, const std::string& where) {
  const auto positive = [&](const char* name, double value) {
    if (!(value > 0) || !std::isfinite(value))
      throw Error(ErrorKind::kInput,
                  fmt::format("{}/{}: {}, expected a positive number", where, name, value));
  };
  positive("size", o.size);
  positive("collapse", o.collapse);
  positive("conformal", o.conformal);
  positive("altitude", o.altitude);
  positive("border_band", o.border_band);
  positive("border_angle", o.border_angle);
  if (o.border_angle >= 90)
    throw Error(ErrorKind::kInput,
                fmt::format("{}/border_angle: {}, expected less than 90", where, o.border_angle));
  if (o.altitude > o.collapse)
    throw Error(
        ErrorKind::kInput,
        fmt::format(
            "{}/altitude: {}, expected at most collapse ({}): what mends a flat triangle is a collapse",
            where, o.altitude, o.collapse));
}

Insertion insert_features(const Sheet& sheet, const FeatureSet& set, std::span<const Obstacle> obstacles,
                          double t, std::span<const FeatureContact> contacts, const InsertOptions& options) {
  Insertion in = FeatureInserter(sheet, set, obstacles, t, options).run(contacts);
  list_kinds(sheet, in);
  return in;
}

PlaceOnFeature feature_placer(const FeatureSet& set, std::span<const Obstacle> obstacles, double t) {
  std::vector<Placement> placement;
  for (const Obstacle& o : obstacles) placement.push_back(placement_at(o, t));
  return [&set, placement = std::move(placement)](Sheet& s, Index a, Index b, Index fresh) {
    const auto fa = static_cast<Index>(s.feature[a]), fb = static_cast<Index>(s.feature[b]);
    const Index line = common_line(set, fa, fb);
    s.feature[fresh] = line;
    s.parameter[fresh] = 0;
    if (line < 0) return;
    // By the share of the edge at which it is split.
    const double u = (s.X[fresh] - s.X[a]).norm() / std::max((s.X[b] - s.X[a]).norm(), 1e-300);
    double pa = parameter_on(set, line, fa, s.parameter[a], s.parameter[b]);
    double pb = parameter_on(set, line, fb, s.parameter[b], s.parameter[a]);
    if (set[line].closed && std::abs(pa - pb) > 0.5) (pa < pb ? pa : pb) += 1;
    double p = (1 - u) * pa + u * pb;
    if (p > 1) p -= 1;
    s.parameter[fresh] = p;
    s.x[fresh] = feature_point(set[line], placement[set[line].obstacle], p);
  };
}

Insertion insert_and_adapt(const Sheet& sheet, const FeatureSet& set, std::span<const Obstacle> obstacles,
                           double t, std::span<const FeatureContact> contacts, const InsertOptions& insert,
                           const AdaptOptions& adapt) {
  Insertion in = insert_features(sheet, set, obstacles, t, contacts, insert);
  in.change = then(in.change, adapted(in.change.sheet, adapt, feature_placer(set, obstacles, t)));
  list_kinds(sheet, in);
  return in;
}

}  // namespace limber
