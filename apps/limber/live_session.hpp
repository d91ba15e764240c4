// A simulation that people hold in their hands: it runs on a thread of its own, takes requests between steps
// and shows its newest state. It never waits for anybody who looks.
#pragma once

#include <limber/sim/method.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace limber {

struct Scene;

struct LiveOptions {
  std::string folder = ".";  // where scenes are saved
  double speed = 1;          // simulated seconds per second to aim for
  bool playing = true;
};

class LiveSession {
 public:
  LiveSession(std::shared_ptr<const Scene> scene, Preparation preparation, LiveOptions options);
  ~LiveSession();

  // One request of a page, in JSON, answered in JSON between two steps:
  //   {"do": "play" | "pause" | "step" | "reset" | "describe"}
  //   {"do": "speed", "value": 0.5}
  //   {"do": "grab", "id": 1, "node": 17, "strength": 1}      begins to pull at what is around the node
  //   {"do": "move", "id": 1, "by": [x, y, z], "mark": 3}     since then [m]; answered at once. A hand that
  //       holds nothing moves nothing
  //   {"do": "release", "id": 1}
  //   {"do": "set", "path": "/gravity", "value": [0, 0, 0]}   as an event of the scene
  //   {"do": "drop", "shape": "ball", "size": 0.2, "above": [x, y, z]}
  //       another body, so many times as long as the scene; "above" may be absent: the middle
  //   {"do": "save", "name": "scene.json"}                    all that was done since the beginning; without
  //   a
  //       name, one that is free. Files that are not from this session stay
  // Throws Error(kInput) when there is something wrong with it, Error(kUsage) when too many wait.
  std::string act(const std::string& request);

  // The body as pages draw it (JSON: the manifest and the blocks of a page's run), and which model that is.
  std::shared_ptr<const std::string> shape() const;

  // A state that is newer than number `after`; null when there is none within `seconds`. Its bytes are the
  // length of a JSON text, the text, and positions (float32) of the shape's nodes in ascending order.
  struct Frame {
    std::uint64_t number = 0;
    std::string bytes;
  };
  std::shared_ptr<const Frame> frame_after(std::uint64_t after, double seconds);

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace limber
