#pragma once

#include <string_view>

namespace limber::view {

// The page without data, as built from web/.
std::string_view page_template();

}  // namespace limber::view
