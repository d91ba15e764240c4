#pragma once

#include <limber/cloth/contacts.hpp>
#include <limber/cloth/eol.hpp>
#include <limber/cloth/insert.hpp>

#include <nlohmann/json_fwd.hpp>

namespace limber::cloth {

enum class ClothMesh { kStatic, kAdaptive, kConformal };
enum class SharpNormals { kAveraged, kCone };

struct ClothOptions {
  bool eol = false;
  ClothMesh mesh = ClothMesh::kStatic;
  SharpNormals normals = SharpNormals::kAveraged;  // of vertices without material velocity, at sharp features
  bool sharp = false;                              // edges, corners, wires and nails are seen at all
  bool inertia_forces = true;
  bool filter = false;       // friction of EOL vertices by the paper's filter
  double sharp_angle = 30;   // [degrees]
  double link_friction = 0;  // mu
  Wind wind;
  ContactOptions contact;
  FeatureContactOptions detect;
  InsertOptions insert;
  AdaptOptions adapt;

  static ClothOptions read(const nlohmann::json& o);
};

}  // namespace limber::cloth
