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

std::string kind_of(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

[[noreturn]] void refuse_kind(const std::string& path, const std::string& kind) {
  throw Error(ErrorKind::kIo, fmt::format("{}: is {}; expected an ordinary file", path, kind));
}

std::string amount(std::uint64_t bytes) {
  if (bytes >= 1 << 20) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} bytes", bytes);
}

std::string read_whole(const std::string& path, std::uint64_t most, bool pipe_allowed) {
  const auto check_size = [&](std::uint64_t size) {
    if (size > most)
      throw Error(ErrorKind::kIo,
                  fmt::format("{}: is larger than {}, the most that is read here", path, amount(most)));
  };
  // Without O_NONBLOCK the open itself would wait for somebody to write into a pipe.
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (pipe_allowed ? 0 : O_NONBLOCK)));
  if (fd.get() < 0) fail(path, "open", errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail(path, "read", errno);
  const std::string kind = kind_of(info.st_mode);
  if (!kind.empty() && !(pipe_allowed && kind != "a folder")) refuse_kind(path, kind);
  const auto announced = static_cast<std::uint64_t>(std::max<off_t>(0, info.st_size));
  check_size(announced);
  std::string data;
  data.resize(static_cast<std::size_t>(announced) + 1);
  std::size_t have = 0;
  for (;;) {  // until the end, not until st_size: pipes and /proc have none
    check_size(have);
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

}  // namespace

std::string read_file(const std::string& path, std::uint64_t most_bytes) {
  return read_whole(path, most_bytes, false);
}

std::string read_file_or_pipe(const std::string& path, std::uint64_t most_bytes) {
  return read_whole(path, most_bytes, true);
}

std::string not_ordinary(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? kind_of(info.st_mode) : "";
}

void require_ordinary(const std::string& path) {
  if (const std::string kind = not_ordinary(path); !kind.empty()) refuse_kind(path, kind);
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
