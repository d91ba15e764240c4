#include <limber/core/build_info.hpp>

#include <fmt/format.h>
#include <Eigen/Core>

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <fstream>

namespace limber {
namespace {

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

std::uint64_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) : 0;
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
