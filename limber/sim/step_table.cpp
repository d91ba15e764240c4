#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/sim/step_table.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace limber {
namespace {

// Cells of a line as RFC 4180 has them. A quote that is not closed takes the rest of the line.
std::vector<std::string> split(std::string_view line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"')
      out.back() += line[++i];
    else if (c == '"' && (quoted || out.back().empty()))
      quoted = !quoted;
    else if (c == ',' && !quoted)
      out.emplace_back();
    else
      out.back() += c;
  }
  return out;
}

std::string cell_text(const std::string& cell) {
  if (cell.find_first_of(",\"") == std::string::npos) return cell;
  std::string out = "\"";
  for (const char c : cell) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

std::string join(const std::vector<std::string>& cells) {
  std::string out;
  for (std::size_t i = 0; i < cells.size(); ++i) out += (i ? "," : "") + cell_text(cells[i]);
  return out + "\n";
}

template <class Number>
bool parse_cell(const std::string& cell, Number& value) {
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return error == std::errc{} && end == cell.data() + cell.size();
}

bool printable(char c) { return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f; }

bool printable_cell(const std::string& cell) { return std::all_of(cell.begin(), cell.end(), printable); }

// Names in a scene are free text, but a row is one line.
std::string one_line(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !printable(c); }, ' ');
  return name;
}

bool is_header(const std::vector<std::string>& cells) {
  return cells.size() >= 2 && cells[0] == "step" && cells[1] == "t" &&
         std::all_of(cells.begin(), cells.end(),
                     [](const std::string& c) { return !c.empty() && printable_cell(c); });
}

// Numbers, but for the two columns that are texts; what was not measured in a step is empty.
bool is_row(const std::vector<std::string>& cells, const std::vector<std::string>& columns) {
  if (cells.size() != columns.size()) return false;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string& c = cells[i];
    double value = 0;
    bool good = false;
    if (columns[i] == "fallbacks")
      good = printable_cell(c);
    else if (c.empty())
      good = i > 1;
    else if (columns[i] == "hash")
      good = c.size() == 16 && c.find_first_not_of("0123456789abcdef") == std::string::npos;
    else
      good = parse_cell(c, value);
    if (!good) return false;
  }
  return true;
}

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw Error(ErrorKind::kIo, fmt::format("{}: cannot write: {}", path.string(), std::strerror(error)));
}

}  // namespace

StepTable::StepTable(std::filesystem::path path, std::vector<std::string> columns)
    : path_(std::move(path)), columns_(std::move(columns)) {
  open();
}

StepTable::StepTable(StepTable&& other) noexcept
    : path_(std::move(other.path_)),
      columns_(std::move(other.columns_)),
      kept_(std::move(other.kept_)),
      damaged_(other.damaged_),
      fd_(std::exchange(other.fd_, -1)) {}

StepTable::~StepTable() {
  if (fd_ >= 0) ::close(fd_);
}

void StepTable::open() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(path_, errno);
}

StepTable StepTable::create(const std::filesystem::path& path) {
  write_file_atomic(path.string(), "");
  return StepTable(path, {});
}

StepTable StepTable::resume(const std::filesystem::path& path, std::int64_t last_step) {
  std::string text;
  std::error_code ec;
  if (std::filesystem::exists(path, ec)) text = read_file(path.string());
  std::vector<std::string> columns;
  std::vector<std::pair<std::int64_t, double>> kept;
  std::string good;
  std::size_t damaged = 0;
  for (std::size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    if (end == std::string::npos) break;  // half a line
    const std::vector<std::string> cells = split(std::string_view(text).substr(at, end - at));
    if (at == 0) {
      if (is_header(cells)) columns = cells;
    } else {
      std::int64_t step = -1;
      double t = 0;
      if (!is_row(cells, columns) || !parse_cell(cells[0], step) || !parse_cell(cells[1], t) || step < 0 ||
          (!kept.empty() && step <= kept.back().first)) {
        ++damaged;
        continue;
      }
      if (step > last_step) break;
      kept.emplace_back(step, t);
    }
    if (!columns.empty()) good += text.substr(at, end + 1 - at);
  }
  write_file_atomic(path.string(), good, true);
  StepTable table(path, std::move(columns));
  table.kept_ = std::move(kept);
  table.damaged_ = damaged;
  return table;
}

void StepTable::widen(const Cells& cells) {
  const std::size_t before = columns_.size();
  std::vector<std::string> columns = columns_;
  for (const auto& cell : cells)
    if (std::find(columns.begin(), columns.end(), cell.first) == columns.end()) columns.push_back(cell.first);
  if (columns.size() == before) return;
  std::string old = before > 0 ? read_file(path_.string()) : "";
  std::string text = join(columns);
  std::string zeros;
  for (std::size_t i = before; i < columns.size(); ++i) zeros += ",0";
  std::size_t at = old.find('\n');
  for (at = at == std::string::npos ? old.size() : at + 1; at < old.size();) {
    const std::size_t end = std::min(old.find('\n', at), old.size());
    text += old.substr(at, end - at) + zeros + "\n";
    at = end + 1;
  }
  write_file_atomic(path_.string(), text);
  columns_ = std::move(columns);
  open();
}

void StepTable::write(const std::string& text) {
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t n = ::write(fd_, left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      // A full disk: what is there stays readable, without half a row at the end.
      if (before >= 0 && ::ftruncate(fd_, before) != 0) fail(path_, errno);
      fail(path_, error);
    }
    left.remove_prefix(static_cast<std::size_t>(n));
  }
}

void StepTable::add(Cells cells) {
  for (auto& cell : cells) cell.first = one_line(std::move(cell.first));
  widen(cells);
  std::vector<std::string> row(columns_.size(), "0");
  for (const auto& [column, value] : cells)
    row[static_cast<std::size_t>(std::find(columns_.begin(), columns_.end(), column) - columns_.begin())] =
        value;
  write(join(row));
}

void StepTable::sync() {
  if (::fsync(fd_) != 0 && errno != EINVAL) fail(path_, errno);
}

}  // namespace limber
