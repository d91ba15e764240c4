// A table of results, written as CSV and as Markdown.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace limber {

inline std::string joined(const std::vector<std::string>& cells, const char* apart) {
  std::string s;
  for (std::size_t k = 0; k < cells.size(); ++k) s += (k == 0 ? "" : apart) + cells[k];
  return s;
}

// With its end; cells that hold commas in quotes.
inline std::string row_of_csv(std::vector<std::string> cells) {
  for (std::string& cell : cells)
    if (cell.find(',') != std::string::npos) cell = '"' + cell + '"';
  return joined(cells, ",") + "\n";
}

// A cell with three digits.
inline std::string number(double v) { return fmt::format("{:.3g}", v); }

struct Table {
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;

  // Writes folder/name.csv and folder/name.md, and prints the latter.
  void write(const std::string& folder, const std::string& name) const {
    std::string csv = row_of_csv(head), md = "| " + joined(head, " | ") + " |\n|";
    for (std::size_t k = 0; k < head.size(); ++k) md += "---|";
    md += "\n";
    for (const auto& r : rows) {
      csv += row_of_csv(r);
      md += "| " + joined(r, " | ") + " |\n";
    }
    fmt::print("\n{}", md);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/" + name + ".csv") << csv;
    std::ofstream(folder + "/" + name + ".md") << md;
  }
};

}  // namespace limber
