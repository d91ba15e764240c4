// Conformal remeshing: gives a sheet vertices on the sharp features that it touches, and edges along them
// (section 2.6.1 of Weidner's dissertation).
#pragma once

#include <limber/contact/feature_contact.hpp>
#include <limber/mesh/sheet_adapt.hpp>

namespace limber {

// Lengths as shares of `size`, the smallest edge that remeshing aims at. An EOL vertex is one on a feature,
// whether or not its method lets it slide.
struct InsertOptions {
  double size = 0;           // [m]
  double collapse = 0.25;    // shorter edges between an EOL vertex and another are collapsed
  double conformal = 0.5;    // shorter edges along a feature are collapsed
  double altitude = 0.125;   // flatter triangles with an EOL vertex are mended
  double border_band = 0.5;  // so close to the border nothing is put on corners and nails,
  double border_angle = 36;  // nor on lines that cross the border at less than this [degrees]
  int rounds = 10;           // of the clean-up
};
void check_options(const InsertOptions& options, const std::string& where);

struct Insertion {
  SheetChange change;
  std::vector<Index> became;   // vertices of the new sheet that are on a feature now and were not; ascending
  std::vector<Index> stopped;  // vertices that were and are no longer; v and V as before; ascending
  Index refused = 0;           // contacts at the border
  Index skipped = 0;           // contacts at a tagged vertex, a corner of the cloth, or on another feature
  Index flat = 0;              // triangles that are still flatter than `altitude` says
  int rounds = 0;
  bool clean = true;  // the clean-up came to an end within its rounds
};

// The sheet at time t, with its EOL vertices drawn onto their features again (past the end of a line: onto
// its corner, or off it), vertices at the new contacts, and as `preserved` the edges that follow features.
// Short edges and flat triangles around EOL vertices are mended; other parts of the sheet are left as they
// are.
Insertion insert_features(const Sheet& sheet, const FeatureSet& set, std::span<const Obstacle> obstacles,
                          double t, std::span<const FeatureContact> contacts, const InsertOptions& options);

// For `adapted`: where a vertex goes that splits an edge along a feature. `set` must stay.
PlaceOnFeature feature_placer(const FeatureSet& set, std::span<const Obstacle> obstacles, double t);

// Insertion, then adaptation, as one change; became and stopped are those of both.
Insertion insert_and_adapt(const Sheet& sheet, const FeatureSet& set, std::span<const Obstacle> obstacles,
                           double t, std::span<const FeatureContact> contacts, const InsertOptions& insert,
                           const AdaptOptions& adapt);

}  // namespace limber
