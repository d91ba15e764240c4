// From a checked, defaulted scene to plain data.
#pragma once

#include <limber/scene/json_text.hpp>
#include <limber/scene/scene.hpp>

namespace limber {

// `resolved` has passed apply_spec() without a problem.
Scene read_resolved(const Json& resolved, const Marks& marks);

}  // namespace limber
