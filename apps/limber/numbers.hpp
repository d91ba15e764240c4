// Numbers on the command line: what is expected is said in words, and nothing that is not a number, not
// finite or too large to count with passes.
#pragma once

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace limber {

constexpr std::int64_t kMostThreads = 1024;

namespace detail {

template <class Number>
bool parse_all(std::string_view text, Number& value) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size();
}

inline CLI::Validator number_check(bool zero) {
  const char* expected = zero ? "a finite number, at least 0" : "a finite number more than 0";
  return {[=](std::string& text) -> std::string {
            double value = 0;
            if (parse_all(text, value) && std::isfinite(value) && (zero ? value >= 0 : value > 0)) return "";
            return fmt::format("expected {}, found {}", expected, text);
          },
          "", "number"};
}

}  // namespace detail

inline CLI::Validator more_than_zero() { return detail::number_check(false); }
inline CLI::Validator at_least_zero() { return detail::number_check(true); }

inline CLI::Validator whole_number(std::int64_t least, std::int64_t most) {
  return {[=](std::string& text) -> std::string {
            std::int64_t value = 0;
            if (detail::parse_all(text, value) && value >= least && value <= most) return "";
            return fmt::format("expected a whole number from {} to {}, found {}", least, most, text);
          },
          "", "whole number"};
}

}  // namespace limber
