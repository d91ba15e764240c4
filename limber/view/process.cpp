#include <limber/core/error.hpp>
#include <limber/view/process.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

extern char** environ;

namespace limber::view {
namespace {

// Starts `command` with the given descriptors as standard input, output and error (-1: the null device);
// `detached`: a Ctrl-C in the terminal does not reach it.
int start(const std::vector<std::string>& command, int in, int out, int err, bool detached = false) {
  std::vector<char*> argv;
  for (const std::string& a : command) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  const int wanted[3] = {in, out, err};
  for (int fd = 0; fd < 3; ++fd) {
    if (wanted[fd] < 0)
      posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd == 0 ? O_RDONLY : O_WRONLY, 0);
    else
      posix_spawn_file_actions_adddup2(&actions, wanted[fd], fd);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  if (detached) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t pid = -1;
  const int status = posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0)
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot be started: {}", command[0], std::strerror(status)));
  return pid;
}

}  // namespace

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  const std::string list = path ? path : "";
  std::size_t at = 0;
  while (at <= list.size()) {
    const std::size_t end = std::min(list.find(':', at), list.size());
    const std::string candidate = list.substr(at, end - at) + "/" + name;
    if (end > at && access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return {};
}

PipedProgram::PipedProgram(const std::vector<std::string>& command) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0)
    throw Error(ErrorKind::kIo, fmt::format("{}: no pipe: {}", command[0], std::strerror(errno)));
  // Messages go to an unlinked temporary file: a pipe that nobody reads could block the program.
  char name[] = "/tmp/limber-messages-XXXXXX";
  errors_ = mkostemp(name, O_CLOEXEC);
  if (errors_ >= 0) unlink(name);
  try {
    pid_ = start(command, pipe_ends[0], -1, errors_);
  } catch (...) {
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    if (errors_ >= 0) close(errors_);
    throw;
  }
  close(pipe_ends[0]);
  input_ = pipe_ends[1];
}

PipedProgram::~PipedProgram() {
  if (input_ >= 0) close(input_);
  if (pid_ >= 0) {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }
  if (errors_ >= 0) close(errors_);
}

bool PipedProgram::write(std::span<const std::uint8_t> bytes) {
  // Writing to a program that has ended must be an answer, not a signal.
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = ::write(input_, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  sigaction(SIGPIPE, &before, nullptr);
  return done == bytes.size();
}

int PipedProgram::finish(std::string& messages) {
  close(input_);
  input_ = -1;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  messages.clear();
  if (errors_ >= 0) {
    lseek(errors_, 0, SEEK_SET);
    char buffer[4096];
    for (ssize_t n; (n = read(errors_, buffer, sizeof buffer)) > 0;)
      messages.append(buffer, static_cast<std::size_t>(n));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool open_in_browser(const std::string& address) {
  if (!std::getenv("DISPLAY") && !std::getenv("WAYLAND_DISPLAY")) return false;
  const std::string opener = find_program("xdg-open");
  if (opener.empty()) return false;
  const int pid = start({opener, address}, -1, -1, -1, true);
  // Some openers return at once, others stay as long as the browser does.
  for (int k = 0; k < 100; ++k) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace limber::view
