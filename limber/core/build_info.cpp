#include <limber/core/build_info.hpp>

#include <fmt/format.h>
#include <Eigen/Core>

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace limber {
namespace {

std::vector<std::string> loaded_libraries() {
  std::vector<std::string> out;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        std::array<char, PATH_MAX> real;
        if (info->dlpi_name && *info->dlpi_name)
          static_cast<std::vector<std::string>*>(data)->push_back(
              ::realpath(info->dlpi_name, real.data()) ? real.data() : info->dlpi_name);
        return 0;
      },
      &out);
  return out;
}

// A function of a loaded library, if there is one of this name.
template <class F>
F* loaded(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_DEFAULT, name));
}

}  // namespace

std::string version() { return LIMBER_VERSION; }
std::string commit() { return LIMBER_COMMIT; }
std::string build_type() { return LIMBER_BUILD_TYPE; }

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang++ {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

Libraries libraries() {
  Libraries out;
  std::string path;
  for (const std::string& library : loaded_libraries())
    for (const char* part : {"blas", "mkl", "blis", "atlas"})
      if (library.substr(library.rfind('/') + 1).find(part) != std::string::npos && path.empty())
        path = library;
  if (auto* config = loaded<char*()>("openblas_get_config")) {
    out.blas = config();
    if (auto* core = loaded<char*()>("openblas_get_corename")) out.blas += fmt::format(" ({})", core());
    if (!path.empty()) out.blas += " from " + path;
  } else {
    out.blas = path.empty() ? "linked statically" : path;
    out.blas_is_fast = path.find("mkl") != std::string::npos || path.find("blis") != std::string::npos;
  }
  int v[3] = {0, 0, 0};
  if (auto* cholmod = loaded<int(int*)>("cholmod_version")) {
    cholmod(v);
    out.suitesparse = fmt::format("CHOLMOD {}.{}.{}", v[0], v[1], v[2]);
  }
  if (auto* suitesparse = loaded<int(int*)>("SuiteSparse_version")) {
    suitesparse(v);
    out.suitesparse +=
        fmt::format("{}SuiteSparse {}.{}.{}", out.suitesparse.empty() ? "" : " of ", v[0], v[1], v[2]);
  }
  out.eigen = fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
  return out;
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  return "unknown";
}

}  // namespace limber
