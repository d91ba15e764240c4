// Things about a scene that are allowed and probably not meant.
#pragma once

#include <limber/sim/model.hpp>

#include <string>
#include <vector>

namespace limber {

// One line each, for `limber check` and the beginning of a run.
std::vector<std::string> advice(const Model& model);

}  // namespace limber
