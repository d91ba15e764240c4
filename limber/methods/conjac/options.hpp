// ConJac's part of the scene: /method with type "conjac".
#pragma once

#include <limber/methods/conjac/modes.hpp>
#include <limber/methods/conjac/reduced_step.hpp>
#include <limber/scene/scene.hpp>

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>
#include <vector>

namespace limber {

// An entry of /method/dynamic, of `body`, or of all bodies when that is empty: a selection of nodes, or
// `automatic` well-spread nodes ({"auto": n}), or modes of every piece ({"modes": n}, {"below": f}).
struct DynamicChoice {
  Selection nodes = {};
  Index automatic = 0;
  ModeChoice modes = {};
  std::string body = {};
  std::string where = {};  // for messages
};

// An entry of /method/adaptive/regions.
struct RegionChoice {
  std::string name = {}, body = {};
  std::optional<Selection> elements = {};  // none: those nearest to the node
};

struct AdaptiveOptions {
  double threshold = 0.02;  // [1/s]
  double hysteresis = 0.5;  // share of the threshold
  Index window = 10;        // [steps]
  bool start_dynamic = false;
  std::vector<RegionChoice> regions = {};
};

struct ConJacOptions {
  double beta = 0.5;       // numerical damping of the paper's rule, Eq. 11
  double gamma = 1.0 / 3;  // stabilisation, Eq. 13
  TimeRule rule = TimeRule::kGuarded;
  int newton_steps = 0;
  bool static_start = false;
  bool body_contact = false;  // bodies touch each other and themselves
  bool single = false;        // precision of the factors of K
  std::vector<DynamicChoice> dynamic = {};
  std::optional<AdaptiveOptions> adaptive = {};

  // `file`: of the scene, for messages.
  static ConJacOptions read(const nlohmann::json& options, const std::string& file = {});
};

}  // namespace limber
