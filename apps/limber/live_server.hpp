// The web server of `limber live`: hands pages the state of a session and the session what pages ask for.
#pragma once

#include <memory>
#include <string>

namespace limber {

class LiveSession;

// Listens on the loopback interface only, and answers nothing without the token in its address:
//   GET  /TOKEN/                    the page
//   GET  /TOKEN/shape               what does not move (JSON)
//   GET  /TOKEN/frame?after=N       the newest state, when there is one that is not number N
//   POST /TOKEN/do                  a request (JSON): 200 and its answer, 400 and what is wrong with it
// Pages ask for each frame: who is slow gets fewer, and nothing is kept for anybody. A connection gets one of
// a fixed number of threads when it has said the whole header of a request. Those that do not within five
// seconds are closed, and when there are too many, the one without the token that has been silent for
// longest.
class HoldServer {
 public:
  HoldServer(LiveSession& session, const std::string& name, int port = 0);
  ~HoldServer();

  const std::string& address() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace limber
