#include "live_server.hpp"

#include "live_session.hpp"

#include <limber/core/error.hpp>
#include <limber/view/page.hpp>

#include <fmt/format.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace limber {
namespace {

constexpr std::size_t kServerThreads = 12, kMostWaiting = 64;
constexpr time_t kServerPatience = 5;  // [s] with a client that says or reads nothing
constexpr double kFrameWait = 1;       // [s]

// A fixed number of threads and a bounded queue: where it is full, accepting waits, and whoever comes then
// waits with the system.
class BoundedTasks final : public httplib::TaskQueue {
 public:
  BoundedTasks() {
    for (std::size_t k = 0; k < kServerThreads; ++k) threads_.emplace_back([this] { work(); });
  }

  void enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return ended_ || tasks_.size() < kMostWaiting; });
    tasks_.push_back(std::move(task));
    due_.notify_one();
  }

  void shutdown() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    due_.notify_all();
    room_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

 private:
  void work() {
    for (;;) {
      std::function<void()> task;
      {
        std::unique_lock lock(mutex_);
        due_.wait(lock, [&] { return ended_ || !tasks_.empty(); });
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      room_.notify_one();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable due_, room_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  bool ended_ = false;
};

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

}  // namespace

struct HoldServer::Impl {
  LiveSession& session;
  httplib::Server server;
  std::string token = new_token(), host, address;
  std::thread thread;

  Impl(LiveSession& s, const std::string& name, int port) : session(s) {
    server.new_task_queue = [] { return new BoundedTasks; };
    server.set_payload_max_length(1 << 16);
    server.set_read_timeout(kServerPatience);
    server.set_write_timeout(kServerPatience);
    server.set_keep_alive_timeout(kServerPatience);
    server.set_keep_alive_max_count(100000);
    server.set_tcp_nodelay(true);
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
            response.status = error.kind() == ErrorKind::kInput ? 400 : 503;
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
    const int bound = port == 0 ? server.bind_to_any_port("127.0.0.1")
                                : (server.bind_to_port("127.0.0.1", port) ? port : -1);
    if (bound < 0)
      throw Error(ErrorKind::kIo, fmt::format("127.0.0.1:{}: cannot listen there; try another --port", port));
    host = fmt::format("127.0.0.1:{}", bound);
    address = fmt::format("http://{}/{}/", host, token);
    thread = std::thread([this] { server.listen_after_bind(); });
  }

  ~Impl() {
    while (!server.is_running()) std::this_thread::yield();  // stop() before it listens would be lost
    server.stop();
    thread.join();
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
    const std::string& path = request.path;
    if (path.size() > token.size() + 1 && same_text(std::string_view(path).substr(1, token.size()), token))
      return true;
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
