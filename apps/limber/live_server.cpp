#include "live_server.hpp"

#include "live_session.hpp"

#include <limber/core/error.hpp>
#include <limber/view/page.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace limber {
namespace {

using ServerClock = std::chrono::steady_clock;

constexpr std::size_t kServerThreads = 32, kMostConnections = 128, kLongestHeader = 16384;
constexpr std::chrono::seconds kServerPatience{5};
constexpr double kFrameWait = 1;  // [s]

std::string new_token() {
  std::random_device random;
  std::string token;
  for (int k = 0; k < 4; ++k) token += fmt::format("{:08x}", static_cast<std::uint32_t>(random()));
  return token;
}

// Takes the same time wherever the difference is.
bool same_text(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return different == 0;
}

constexpr const char* kPlain = "text/plain; charset=utf-8";

// Whether the socket takes or has something before the time is over.
bool ready(int socket, short what, ServerClock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - ServerClock::now()).count();
    pollfd watch{socket, what, 0};
    const int n = ::poll(&watch, 1, static_cast<int>(std::max<std::int64_t>(0, left)));
    if (n > 0) return true;
    if (n == 0 || errno != EINTR) return false;
  }
}

class Handle {
 public:
  explicit Handle(int fd) : fd_(fd) {}
  Handle(Handle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Handle() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Handle listening_socket(int port) {
  Handle out(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  const int on = 1;
  if (out.get() < 0 || ::setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(out.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
      ::listen(out.get(), kMostConnections) != 0)
    throw Error(ErrorKind::kIo, fmt::format("127.0.0.1:{}: cannot listen there: {}; try another --port", port,
                                            std::strerror(errno)));
  return out;
}

int port_of(const Handle& socket) {
  sockaddr_in place{};
  socklen_t size = sizeof place;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&place), &size);
  return ntohs(place.sin_port);
}

struct Connection {
  Handle socket;
  ServerClock::time_point since;  // it has come, or has been answered
  std::string said;               // and not been read yet, from `read` on
  std::size_t read = 0;
  bool known = false;  // has shown the token

  bool asks() const { return said.find("\r\n\r\n", read) != std::string::npos; }

  // Takes what is there without waiting; false when nothing more can come.
  bool receive() {
    char buffer[4096];
    for (;;) {
      const ssize_t n = ::recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (n < 0) return errno == EAGAIN || errno == EINTR;
      if (n == 0) return false;
      said.append(buffer, static_cast<std::size_t>(n));
      if (asks() || said.size() > kLongestHeader) return asks();
    }
  }

  // No more answers. Closing a socket with something unread would take back the last one.
  void finish() const {
    char buffer[4096];
    ::shutdown(socket.get(), SHUT_WR);
    for (int k = 0; k < 32 && ::recv(socket.get(), buffer, sizeof buffer, MSG_DONTWAIT) > 0;) ++k;
  }
};

// What is left of a request when its header is there. Only who has the token may make a thread wait.
class RequestStream final : public httplib::Stream {
 public:
  explicit RequestStream(Connection& connection)
      : c_(connection), until_(ServerClock::now() + kServerPatience) {}

  bool is_readable() const override { return c_.read < c_.said.size() || c_.known; }
  // The next four have come or gone with versions of the library; they override what is there.
  bool is_writable() const { return ready(c_.socket.get(), POLLOUT, ServerClock::now() + kServerPatience); }
  bool wait_readable() const { return is_readable(); }
  bool wait_writable() const { return is_writable(); }
  time_t duration() const { return 0; }
  ssize_t read(char* to, size_t size) override {
    if (c_.read == c_.said.size()) {
      c_.said.clear();
      c_.read = 0;
      if (!c_.known || !ready(c_.socket.get(), POLLIN, until_)) return -1;
      return ::recv(c_.socket.get(), to, size, MSG_DONTWAIT);
    }
    const std::size_t n = c_.said.copy(to, size, c_.read);
    c_.read += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* from, size_t size) override {
    const auto until = ServerClock::now() + kServerPatience;
    while (ready(c_.socket.get(), POLLOUT, until)) {
      const ssize_t n = ::send(c_.socket.get(), from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n >= 0 || (errno != EAGAIN && errno != EINTR)) return n;
    }
    return -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    ip = "127.0.0.1";
    port = 0;
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override { get_remote_ip_and_port(ip, port); }
  socket_t socket() const override { return c_.socket.get(); }

 private:
  Connection& c_;
  const ServerClock::time_point until_;  // the whole body must have come
};

// The library reads a header in a thread that waits for each of its bytes: some slow clients would take all
// threads. So one thread waits for all of them at once, and whoever has said a whole header gets another one.
class Reception {
 public:
  // `answer` answers one request, and says whether more may come.
  Reception(int port, std::function<bool(Connection&)> answer)
      : listening_(listening_socket(port)),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        answer_(std::move(answer)) {}

  ~Reception() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      for (const int socket : answered_) ::shutdown(socket, SHUT_RDWR);
    }
    due_.notify_all();
    wake();
    for (std::thread& t : threads_) t.join();
  }

  int port() const { return port_of(listening_); }

  void open() {
    threads_.emplace_back([this] { receive(); });
    for (std::size_t k = 0; k < kServerThreads; ++k) threads_.emplace_back([this] { work(); });
  }

 private:
  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
  }

  void receive() {
    std::vector<Connection> open;
    for (;;) {
      {
        const std::lock_guard lock(mutex_);
        if (ended_) return;
        for (Connection& c : returned_) open.push_back(std::move(c));
        returned_.clear();
      }
      hand_over(open);
      std::vector<pollfd> watch{{listening_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
      for (const Connection& c : open) watch.push_back({c.socket.get(), POLLIN, 0});
      if (::poll(watch.data(), watch.size(), 100) < 0) continue;
      std::uint64_t count = 0;
      [[maybe_unused]] const ssize_t n = ::read(wake_.get(), &count, sizeof count);
      const auto now = ServerClock::now();
      std::vector<Connection> kept;
      for (std::size_t k = 0; k < open.size(); ++k)
        if ((!watch[k + 2].revents || open[k].receive()) && now - open[k].since < kServerPatience)
          kept.push_back(std::move(open[k]));
      open = std::move(kept);
      hand_over(open);
      if (watch[0].revents) accept(open);
    }
  }

  // Those that have said a header to the threads.
  void hand_over(std::vector<Connection>& open) {
    const auto first =
        std::stable_partition(open.begin(), open.end(), [](const auto& c) { return !c.asks(); });
    for (auto c = first; c != open.end(); ++c) hand_over(std::move(*c));
    open.erase(first, open.end());
  }
  void hand_over(Connection c) {
    const std::lock_guard lock(mutex_);
    asking_.push_back(std::move(c));
    due_.notify_one();
  }

  void accept(std::vector<Connection>& open) {
    for (std::size_t k = 0; k < kMostConnections; ++k) {
      Handle socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket.get() < 0) {
        // Too many files are open, say: no reason to ask again and again at once.
        if (errno != EAGAIN) std::this_thread::sleep_for(std::chrono::milliseconds(5));
        return;
      }
      std::size_t others = 0;
      {
        const std::lock_guard lock(mutex_);
        others = asking_.size() + answered_.size() + returned_.size();
      }
      // Who has been silent for longest makes room, and who has not shown the token before who has.
      if (open.size() + others >= kMostConnections) {
        if (open.empty()) continue;
        open.erase(std::min_element(open.begin(), open.end(), [](const auto& a, const auto& b) {
          return std::pair(a.known, a.since) < std::pair(b.known, b.since);
        }));
      }
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      Connection c{std::move(socket), ServerClock::now(), {}};
      if (!c.receive()) continue;
      if (c.asks())
        hand_over(std::move(c));
      else
        open.push_back(std::move(c));
    }
  }

  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      due_.wait(lock, [&] { return ended_ || !asking_.empty(); });
      if (ended_) return;
      Connection c = std::move(asking_.front());
      asking_.pop_front();
      answered_.insert(c.socket.get());
      lock.unlock();
      const bool more = answer_(c);
      if (!more) c.finish();
      lock.lock();
      answered_.erase(c.socket.get());
      if (!more) continue;
      c.said.erase(0, c.read);
      c.read = 0;
      c.since = ServerClock::now();
      returned_.push_back(std::move(c));
      lock.unlock();
      wake();
    }
  }

  const Handle listening_, wake_;
  const std::function<bool(Connection&)> answer_;
  std::mutex mutex_;
  std::condition_variable due_;
  std::deque<Connection> asking_;     // that no thread answers yet
  std::set<int> answered_;            // sockets
  std::vector<Connection> returned_;  // answered, and may ask again
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

// The library's reading of requests and its table of handlers, without its threads.
class RequestHandlers final : public httplib::Server {
 public:
  bool answer(Connection& c) {
    RequestStream stream(c);
    bool closed = false;
    return process(*this, stream, !c.known, closed) && !closed && c.known;
  }

 private:
  // Debian 12 has version 0.11; from 0.18 on it wants the addresses, too.
  template <class Self>
  static bool process(Self& self, httplib::Stream& stream, bool close, bool& closed) {
    if constexpr (requires { self.process_request(stream, close, closed, nullptr); })
      return self.process_request(stream, close, closed, nullptr);
    else
      return self.process_request(stream, "127.0.0.1", 0, "127.0.0.1", 0, close, closed, nullptr);
  }
};

}  // namespace

struct HoldServer::Impl {
  LiveSession& session;
  const std::string token = new_token();
  std::string host, address;
  RequestHandlers server;
  Reception reception;

  Impl(LiveSession& s, const std::string& name, int port)
      : session(s), reception(port, [this](Connection& c) {
          c.known = c.known || has_token(c);
          return server.answer(c);
        }) {
    server.set_payload_max_length(1 << 16);
    server.set_keep_alive_timeout(kServerPatience.count());
    server.set_keep_alive_max_count(100000);
    // No other page may read or frame this one.
    server.set_default_headers({{"Cache-Control", "no-store"},
                                {"X-Content-Type-Options", "nosniff"},
                                {"X-Frame-Options", "DENY"},
                                {"Referrer-Policy", "no-referrer"},
                                {"Cross-Origin-Resource-Policy", "same-origin"}});
    server.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return admit(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                      : httplib::Server::HandlerResponse::Handled;
    });
    server.set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, std::exception_ptr e) {
          try {
            std::rethrow_exception(e);
          } catch (const Error& error) {
            response.status = error.kind() == ErrorKind::kInput   ? 400
                              : error.kind() == ErrorKind::kUsage ? 503
                                                                  : 500;
            response.set_content(error.what(), kPlain);
          } catch (const std::exception& error) {
            response.status = 500;
            response.set_content(error.what(), kPlain);
          }
        });
    const std::string root = "/" + token;
    server.Get(root + "/", [name](const httplib::Request&, httplib::Response& response) {
      response.set_content(view::page_html(view::page_manifest("hold", name), {}),
                           "text/html; charset=utf-8");
    });
    server.Get(root + "/shape", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(*session.shape(), "application/json");
    });
    server.Get(root + "/frame", [this](const httplib::Request& request, httplib::Response& response) {
      const std::string after = request.get_param_value("after");
      std::uint64_t number = 0;
      const auto end = after.data() + after.size();
      if (const auto r = std::from_chars(after.data(), end, number); r.ec != std::errc() || r.ptr != end)
        throw Error(ErrorKind::kInput, "after: expected the number of a frame");
      const auto frame = session.frame_after(number, kFrameWait);
      if (!frame) {
        response.status = 204;
        return;
      }
      response.set_content(frame->bytes, "application/octet-stream");
    });
    server.Post(root + "/do", [this](const httplib::Request& request, httplib::Response& response) {
      response.set_content(session.act(request.body), "application/json");
    });
    host = fmt::format("127.0.0.1:{}", reception.port());
    address = fmt::format("http://{}/{}/", host, token);
    reception.open();
  }

  bool in_path(std::string_view path) const {
    return path.size() > token.size() + 1 && same_text(path.substr(1, token.size()), token);
  }

  // In the line that begins a request.
  bool has_token(const Connection& c) const {
    const std::string_view line = std::string_view(c.said).substr(c.read);
    const std::size_t space = line.find(' ');
    return space != std::string_view::npos && in_path(line.substr(space + 1));
  }

  // The token; and a page from elsewhere, that a name server points at this machine, does not know this host.
  bool admit(const httplib::Request& request, httplib::Response& response) const {
    const auto local = [&](const std::string& name) {
      return name == host || name == "localhost" + host.substr(host.find(':'));
    };
    const std::string from = request.get_header_value("Origin");
    if (!local(request.get_header_value("Host")) ||
        (!from.empty() && !(from.starts_with("http://") && local(from.substr(7))))) {
      response.status = 403;
      return false;
    }
    if (in_path(request.path)) return true;
    response.status = 404;
    response.set_content("This address lacks the token that limber printed.", kPlain);
    return false;
  }
};

HoldServer::HoldServer(LiveSession& session, const std::string& name, int port)
    : impl_(std::make_unique<Impl>(session, name, port)) {}
HoldServer::~HoldServer() = default;
const std::string& HoldServer::address() const { return impl_->address; }

}  // namespace limber
