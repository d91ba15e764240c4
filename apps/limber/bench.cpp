#include "commands.hpp"

#include <limber/core/error.hpp>
#include <limber/scene/suggest.hpp>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <unistd.h>

namespace limber {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "bench_";

// Where the build puts the programs bench_<name>, seen from this one.
fs::path bench_folder() {
  std::error_code ec;
  return fs::read_symlink("/proc/self/exe", ec).parent_path() / "../../bench";
}

std::vector<std::string> bench_names() {
  std::vector<std::string> names;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(bench_folder(), ec)) {
    std::string name = entry.path().filename().string();
    if (name.rfind(kPrefix, 0) != 0 || !entry.is_regular_file(ec)) continue;
    name.erase(0, kPrefix.size());
    std::replace(name.begin(), name.end(), '_', '-');
    names.push_back(std::move(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

int run_bench(std::vector<std::string> words) {
  const std::vector<std::string> names = bench_names();
  // "conjac modes" is "conjac-modes", where there is such a benchmark.
  if (words.size() > 1)
    if (const std::string both = words[0] + "-" + words[1];
        std::find(names.begin(), names.end(), both) != names.end()) {
      words[0] = both;
      words.erase(words.begin() + 1);
    }
  if (names.empty())
    throw Error(ErrorKind::kIo,
                "no benchmarks are built beside this program; `bin/limber bench` builds "
                "them, or `ninja -C build/release` builds everything");
  if (words.empty()) {
    fmt::print("benchmarks (limber bench NAME --help)\n");
    for (const auto& name : names) fmt::print("  {}\n", name);
    return 0;
  }
  std::string name = words[0];
  std::replace(name.begin(), name.end(), '_', '-');
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw Error(ErrorKind::kUsage, fmt::format("there is no benchmark \"{}\"{}", words[0],
                                               did_you_mean_one_of(words[0], names)));
  std::replace(name.begin(), name.end(), '-', '_');
  const std::string program = (bench_folder() / fmt::format("{}{}", kPrefix, name)).lexically_normal();
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (std::size_t k = 1; k < words.size(); ++k) argv.push_back(const_cast<char*>(words[k].c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(program.c_str(), argv.data());
  throw Error(ErrorKind::kIo, fmt::format("{} cannot be started: {}", program, std::strerror(errno)));
}

}  // namespace

void add_bench_command(CLI::App& app, std::function<int()>& action) {
  CLI::App* command = app.add_subcommand("bench", "Run a benchmark, or list them: bench [NAME [OPTIONS]]");
  command->prefix_command();  // what follows belongs to the benchmark
  command->callback(
      [&action, command] { action = [words = command->remaining()] { return run_bench(words); }; });
}

}  // namespace limber
