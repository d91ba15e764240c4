// A page that follows a run while it is going: a small HTTP server on the loopback interface only. The
// address holds a random token; a request without it gets nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace limber::view {

class LiveServer {
 public:
  // Serves folder/replay.lmr, which need not exist yet. Port 0: any free one. Throws Error(kIo) when the port
  // is taken.
  explicit LiveServer(const std::filesystem::path& folder, int port = 0);
  ~LiveServer();  // stops it
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  const std::string& address() const { return address_; }  // http://127.0.0.1:PORT/TOKEN/
  // Whoever records says that nothing more comes, also when the run stopped before its end.
  void run_ended() { ended_ = true; }
  // A page has been told that nothing more comes: nobody waits any longer.
  bool delivered() const { return delivered_; }
  // Seconds since a page asked for data; empty when none ever did.
  std::optional<double> silence() const;

 private:
  struct Source;
  struct Connection;
  void serve();
  std::string answer(const std::string& request);

  std::unique_ptr<Source> source_;
  std::string token_, host_, address_;
  int socket_ = -1;
  std::atomic<bool> stop_{false}, ended_{false}, delivered_{false};
  std::atomic<std::int64_t> asked_{0};  // [ms] of the steady clock; 0: never
  std::thread thread_;
};

}  // namespace limber::view
