#include <limber/core/error.hpp>
#include <limber/io/vtu.hpp>
#include <limber/view/codec.hpp>
#include <limber/view/page.hpp>
#include <limber/view/server.hpp>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <vector>

namespace limber::view {

using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMaxRequest = 16384;     // bytes
constexpr std::chrono::seconds kPatience{10};  // with a client that says and reads nothing
constexpr std::size_t kMaxConnections = 32;

std::string response(int status, const char* reason, const char* type, const std::string& body) {
  // No other page may read or frame this one.
  return fmt::format(
             "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
             "X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
             "Cross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n",
             status, reason, type, body.size()) +
         body;
}

std::string random_token() {
  std::random_device random;
  std::string token;
  for (int k = 0; k < 4; ++k) token += fmt::format("{:08x}", static_cast<std::uint32_t>(random()));
  return token;
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
}

// Takes the same time wherever the difference is.
bool same(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned different = 0;
  for (std::size_t i = 0; i < a.size(); ++i) different |= static_cast<unsigned char>(a[i] ^ b[i]);
  return different == 0;
}

std::string header_value(const std::string& request, std::string_view lower_name) {
  std::size_t at = request.find("\r\n");
  while (at != std::string::npos && at + 2 < request.size()) {
    const std::size_t start = at + 2, end = request.find("\r\n", start);
    if (end == std::string::npos || end == start) break;
    std::string line = request.substr(start, end - start);
    const std::size_t colon = line.find(':');
    if (colon == lower_name.size()) {
      for (std::size_t i = 0; i < colon; ++i)
        line[i] = static_cast<char>(std::tolower(static_cast<unsigned char>(line[i])));
      if (line.compare(0, colon, lower_name) == 0) {
        const std::size_t from = line.find_first_not_of(" \t", colon + 1);
        return from == std::string::npos ? "" : line.substr(from, line.find_last_not_of(" \t") - from + 1);
      }
    }
    at = end;
  }
  return {};
}

}  // namespace

struct LiveServer::Source {
  std::filesystem::path recording;
  std::unique_ptr<ReplayReader> reader;
  std::unique_ptr<RunEncoder> encoder;

  // What is new since block `since`; the description of the run only when something is.
  json news(std::size_t since, bool ended) {
    if (!reader) {
      std::error_code error;
      if (!std::filesystem::exists(recording, error))
        return {{"run", nullptr}, {"blocks", json::array()}, {"next", 0}, {"ended", ended}};
      reader = std::make_unique<ReplayReader>(recording);
      encoder = std::make_unique<RunEncoder>(*reader, EncodeOptions{}, "a");
    } else if (reader->refresh()) {
      encoder->update();
    }
    json blocks = json::array();
    const std::vector<RunEncoder::Block>& all = encoder->blocks();
    for (std::size_t k = since; k < all.size(); ++k) {
      if (all[k].bytes.empty()) continue;  // replaced by a later one
      std::string text;
      append_base64(text, bytes_of(all[k].bytes));
      blocks.push_back({all[k].id, std::move(text)});
    }
    const bool unchanged = since == all.size() && !reader->finished() && !ended;
    // The tail of a run that is going is often half a chunk: that is no damage.
    json run = unchanged ? json() : encoder->manifest();
    if (!unchanged && !reader->finished()) run["notices"] = json::array();
    return {{"run", std::move(run)}, {"blocks", std::move(blocks)}, {"next", all.size()}, {"ended", ended}};
  }
};

struct LiveServer::Connection {
  int socket;
  Clock::time_point since;  // of the last byte in either direction
  std::string request, reply = {};
  std::size_t sent = 0;  // of the reply

  // Goes on as far as it can without waiting; false when it is over.
  bool receive() {
    char buffer[4096];
    const ssize_t n = recv(socket, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    request.append(buffer, static_cast<std::size_t>(n));
    since = Clock::now();
    return request.size() <= kMaxRequest;
  }
  bool send_more() {
    while (sent < reply.size()) {
      const ssize_t n = send(socket, reply.data() + sent, reply.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
      sent += static_cast<std::size_t>(n);
      since = Clock::now();
    }
    shutdown(socket, SHUT_WR);
    return false;
  }
};

LiveServer::LiveServer(const std::filesystem::path& folder, int port) : source_(std::make_unique<Source>()) {
  source_->recording = folder / "replay.lmr";
  socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  const int on = 1;
  if (socket_ < 0 || setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(socket_, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
      listen(socket_, 16) != 0) {
    const std::string reason = std::strerror(errno);
    if (socket_ >= 0) close(socket_);
    throw Error(ErrorKind::kIo,
                fmt::format("127.0.0.1:{}: cannot listen there: {}; try another --port", port, reason));
  }
  socklen_t size = sizeof place;
  getsockname(socket_, reinterpret_cast<sockaddr*>(&place), &size);
  token_ = random_token();
  host_ = fmt::format("127.0.0.1:{}", ntohs(place.sin_port));
  address_ = fmt::format("http://{}/{}/", host_, token_);
  thread_ = std::thread([this] { serve(); });
}

LiveServer::~LiveServer() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
  close(socket_);
}

std::optional<double> LiveServer::silence() const {
  const std::int64_t asked = asked_;
  if (asked == 0) return std::nullopt;
  return static_cast<double>(now_ms() - asked) / 1e3;
}

// One thread, all connections: browsers open some that stay silent, others do not read what they asked for,
// and neither must hold up the rest.
void LiveServer::serve() {
  std::vector<Connection> open;
  while (!stop_) {
    std::vector<pollfd> watch{{socket_, POLLIN, 0}};
    for (const Connection& c : open)
      watch.push_back({c.socket, static_cast<short>(c.reply.empty() ? POLLIN : POLLOUT), 0});
    if (poll(watch.data(), watch.size(), 100) < 0 && errno != EINTR) break;
    std::vector<Connection> kept;
    for (std::size_t k = 0; k < open.size(); ++k) {
      Connection& c = open[k];
      bool goes_on = Clock::now() - c.since <= kPatience;
      if (goes_on && watch[k + 1].revents != 0) {
        if (c.reply.empty()) {
          goes_on = c.receive();
          if (goes_on && c.request.find("\r\n\r\n") != std::string::npos) c.reply = answer(c.request);
        }
        if (!c.reply.empty()) goes_on = c.send_more();
      }
      if (goes_on)
        kept.push_back(std::move(c));
      else
        close(c.socket);
    }
    open = std::move(kept);
    if (watch[0].revents & POLLIN) {
      const int s = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (s < 0) continue;
      // Whoever has been silent for longest makes room: a page always gets in, however many only listen.
      if (open.size() == kMaxConnections) {
        const auto oldest = std::min_element(open.begin(), open.end(), [](const auto& a, const auto& b) {
          return std::pair(!a.reply.empty(), a.since) < std::pair(!b.reply.empty(), b.since);
        });
        close(oldest->socket);
        open.erase(oldest);
      }
      open.push_back({s, Clock::now(), {}});
    }
  }
  for (const Connection& c : open) close(c.socket);
}

std::string LiveServer::answer(const std::string& request) {
  const std::string text = "text/plain; charset=utf-8";
  const std::size_t space = request.find(' '), end = request.find(' ', space + 1);
  if (space == std::string::npos || end == std::string::npos)
    return response(400, "Bad Request", text.c_str(), "");
  if (request.compare(0, space, "GET") != 0) return response(405, "Method Not Allowed", text.c_str(), "");
  // A page from elsewhere that a name server points at this machine does not know this host name.
  const std::string host = header_value(request, "host");
  if (host != host_ && host != "localhost" + host_.substr(host_.find(':')))
    return response(403, "Forbidden", text.c_str(), "");
  const std::string target = request.substr(space + 1, end - space - 1);
  const std::string_view path(target);
  if (path.size() < token_.size() + 2 || path[0] != '/' || path[token_.size() + 1] != '/' ||
      !same(path.substr(1, token_.size()), token_))
    return response(404, "Not Found", text.c_str(), "This address lacks the token that limber printed.");
  const std::string_view rest = path.substr(token_.size() + 2);
  try {
    if (rest.empty()) {
      json manifest = page_manifest("live", "");
      return response(200, "OK", "text/html; charset=utf-8", page_html(manifest, {}));
    }
    constexpr std::string_view kData = "data?since=";
    if (rest.starts_with(kData) && rest.size() < kData.size() + 12) {
      std::size_t since = 0;
      for (char c : rest.substr(kData.size())) {
        if (c < '0' || c > '9') return response(400, "Bad Request", text.c_str(), "");
        since = 10 * since + static_cast<std::size_t>(c - '0');
      }
      asked_ = now_ms();
      const bool ended = ended_;  // before the look at the recording, which then is complete
      const json news = source_->news(since, ended);
      if (ended || (source_->reader && source_->reader->finished())) delivered_ = true;
      return response(200, "OK", "application/json",
                      news.dump(-1, ' ', false, json::error_handler_t::replace));
    }
  } catch (const std::exception& e) {  // a page that cannot be made must not end the run that it follows
    return response(500, "Internal Server Error", text.c_str(), e.what());
  }
  return response(404, "Not Found", text.c_str(), "");
}

}  // namespace limber::view
