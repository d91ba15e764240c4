// steps.csv: one row per step, written as the run goes. A column that appears later (a phase that was not
// entered before) is added to the whole file, with 0 in the rows before it. Names with commas or quotes are
// quoted (RFC 4180); line ends and other control characters in them become blanks.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace limber {

class StepTable {
 public:
  using Cells = std::vector<std::pair<std::string, std::string>>;  // column, value; the first two: step, t

  // Starts a new file.
  static StepTable create(const std::filesystem::path& path);
  // Opens an existing one and drops the rows after `step`, whatever a crash left half written, and rows that
  // are damaged: not as many cells as columns, or cells that are no numbers.
  static StepTable resume(const std::filesystem::path& path, std::int64_t step);

  StepTable(StepTable&& other) noexcept;
  StepTable& operator=(StepTable&&) = delete;
  ~StepTable();

  // Throws Error(kIo); the file then ends with the row before.
  void add(Cells cells);
  void sync();  // forces the rows to the disk

  // The steps of the file and their times [s], in order.
  const std::vector<std::pair<std::int64_t, double>>& kept() const { return kept_; }
  std::size_t damaged() const { return damaged_; }  // rows that resume dropped for it

 private:
  StepTable(std::filesystem::path path, std::vector<std::string> columns);
  void open();
  void widen(const Cells& cells);
  void write(const std::string& text);

  std::filesystem::path path_;
  std::vector<std::string> columns_;
  std::vector<std::pair<std::int64_t, double>> kept_;  // found by resume
  std::size_t damaged_ = 0;
  int fd_ = -1;
};

}  // namespace limber
