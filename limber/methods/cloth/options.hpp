#pragma once

#include <limber/cloth/contacts.hpp>
#include <limber/cloth/eol.hpp>

#include <nlohmann/json_fwd.hpp>

namespace limber::cloth {

struct ClothOptions {
  bool eol = false;
  bool inertia_forces = true;
  bool filter = false;  // friction of EOL vertices by the paper's filter
  Wind wind;
  ContactOptions contact;

  static ClothOptions read(const nlohmann::json& o);
};

}  // namespace limber::cloth
