// "Did you mean": the known name nearest to a mistyped one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace limber {

// Edits (insert, delete, replace, swap neighbours) between two names, ignoring case, '-' and '_'.
int edit_distance(std::string_view a, std::string_view b);

// The nearest known name, or empty when none is near enough to be what was meant.
std::string nearest_name(std::string_view name, std::span<const std::string> known);

// `, did you mean "young"?`, or `; known: a, b, c` (the first few), or `; there are none`.
std::string did_you_mean_one_of(std::string_view name, std::span<const std::string> known);

// "a, b, c". (fmt::join makes g++ 12 warn about its own inside.)
std::string joined(std::span<const std::string> names, std::string_view separator = ", ");

}  // namespace limber
