// How insert.hpp puts vertices and edges on features: its own header, for the files insert_*.cpp alone.
#pragma once

#include <limber/cloth/insert.hpp>

#include <cmath>

namespace limber {

class FeatureInserter {
 public:
  FeatureInserter(const Sheet& sheet, const FeatureSet& set, std::span<const Obstacle> obstacles, double t,
                  const InsertOptions& options);
  Insertion run(std::span<const FeatureContact> contacts);

 private:
  const Sheet& s() const { return e_.sheet(); }
  Index feature(Index v) const { return static_cast<Index>(s().feature[v]); }
  const Placement& placement(Index f) const { return placement_[set_[f].obstacle]; }
  double length(Index a, Index b) const { return e_.material_length(a, b); }

  // The border of the cloth.
  struct BorderSide {
    Vec2 a, b;
    std::int64_t patch;
  };
  void find_border();
  bool spoils_border(const Vec2& X, std::int64_t patch, const Vec2& d, double share) const;
  Vec2 pulled_back(Index triangle, const Vec3& tangent) const;

  // Vertices that are on features already.
  void stop(Index v);
  void sit(Index v, Index f, double parameter, const Vec3& x);
  Index vertex_on_point(Index f, std::int64_t patch) const;
  void follow_features();

  // New ones.
  Index locate(Index from, const Vec2& X, std::array<double, 3>& w) const;
  bool may_sit(Index v, Index f) const;
  void put(const FeatureContact& c);

  // Edges along features.
  void forget_lines();
  bool span_on_line(Index line, Index a, Index b, double& pa, double& pb) const;
  bool follows(Index a, Index b) const;
  void connect();
  bool next_to(Index v, Index b, Index line) const;

  // Clean-up.
  bool collapse_is_sound(Index a, Index b, bool conformal) const;
  bool collapse_towards();
  bool goes_before(Index a, Index b) const;
  bool collapse_along();
  bool part_strangers();
  void release_all(Index v);
  Index common_corner(Index f, Index g) const;
  double altitude_over(Index a, Index b, Index c) const {  // of c over ab
    const Vec2 d = s().X[b] - s().X[a];
    return std::abs(cross2(d, s().X[c] - s().X[a])) / d.norm();
  }
  bool pull_in(Index a, Index b, Index apex);
  bool mend_flat();
  void clean_up();
  Index count_flat() const;
  Insertion finish();

  const Sheet& before_;
  const FeatureSet& set_;
  InsertOptions o_;
  SheetEditor e_;
  std::vector<Placement> placement_;
  std::vector<BorderSide> sides_;
  Index refused_ = 0, skipped_ = 0;
  int rounds_ = 0;
  bool clean_ = true;
};

}  // namespace limber
