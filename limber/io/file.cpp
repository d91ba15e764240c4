#include <limber/core/error.hpp>
#include <limber/io/file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace limber {
namespace {

[[noreturn]] void fail(const std::string& path, const char* doing, int error) {
  throw Error(ErrorKind::kIo, fmt::format("{}: cannot {}: {}", path, doing, std::strerror(error)));
}

// A descriptor that closes itself; close() reports what the destructor cannot.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

void write_all(int fd, std::string_view data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), std::min(data.size(), std::size_t{1} << 30));
    if (n < 0) {
      if (errno == EINTR) continue;
      fail(path, "write", errno);
    }
    data.remove_prefix(static_cast<std::size_t>(n));
  }
}

}  // namespace

std::string read_file(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) fail(path, "open", errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail(path, "read", errno);
  if (S_ISDIR(info.st_mode)) fail(path, "read", EISDIR);
  std::string data;
  data.resize(static_cast<std::size_t>(std::max<off_t>(0, info.st_size)) + 1);
  std::size_t have = 0;
  for (;;) {  // until the end, not until st_size: pipes and /proc have none
    if (have == data.size()) data.resize(2 * data.size());
    const ssize_t n = ::read(fd.get(), data.data() + have, data.size() - have);
    if (n < 0) {
      if (errno == EINTR) continue;
      fail(path, "read", errno);
    }
    if (n == 0) break;
    have += static_cast<std::size_t>(n);
  }
  data.resize(have);
  return data;
}

void write_file_atomic(const std::string& path, std::span<const std::string_view> pieces, bool durable) {
  const std::string temporary = path + ".tmp";
  Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (fd.get() < 0) fail(path, "write", errno);
  try {
    for (const std::string_view piece : pieces) write_all(fd.get(), piece, path);
    if (durable && ::fsync(fd.get()) != 0) fail(path, "write", errno);
    if (fd.close() != 0) fail(path, "write", errno);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail(path, "replace", errno);
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_file_atomic(const std::string& path, std::string_view data, bool durable) {
  write_file_atomic(path, std::span<const std::string_view>(&data, 1), durable);
}

}  // namespace limber
