// A recording as the page holds it: a manifest (JSON) and blocks of deflated bytes that it names.
// web/src/data.ts is the reader; docs/viewer.md describes the format.
#pragma once

#include <limber/io/replay.hpp>
#include <limber/view/fields.hpp>

#include <functional>
#include <string>
#include <vector>

namespace limber::view {

struct EncodeOptions {
  bool inside = true;   // all tetrahedra and inner nodes, so that a cut shows what is inside
  int bits = 16;        // positions: the longest side of the bounding box at rest has 2^bits - 1 steps
  int field_bits = 12;  // numbers of fields, of the largest in a group of frames
  Index every = 1;      // of the recorded frames
  int level = 6;        // of deflate
  Index sample = 0;     // > 0: encode this many groups only, to estimate the size
  std::function<void(double share)> progress = {};  // called from the threads that encode, one at a time
};

// A further field per node that is not in the recording (the distance to another run).
struct ExtraField {
  FieldInfo info;
  std::function<std::vector<float>(const ReplayFrame&)> values;
};

class RunEncoder {
 public:
  // `prefix` begins the names of the run's blocks. The reader must outlive the encoder.
  RunEncoder(const ReplayReader& reader, const EncodeOptions& options, std::string prefix,
             std::vector<ExtraField> extra = {});
  ~RunEncoder();

  // Encodes what the reader has and the encoder has not yet seen.
  void update();

  const nlohmann::json& manifest() const { return *manifest_; }
  struct Block {
    std::string id;
    std::string bytes;  // zlib
  };
  const std::vector<Block>& blocks() const { return blocks_; }
  // All blocks so far [bytes]; with EncodeOptions::sample, what all frames would need.
  double size() const;
  // Positions in the page differ from the recording by at most this in each coordinate [m].
  double error() const { return error_ > 0 ? error_ : quantum_ / 2; }
  Index frames() const { return static_cast<Index>(frames_.size()); }

 private:
  struct Epoch;
  struct Group {
    std::size_t epoch, first, count;  // page frames
    bool reduced;                     // they have coordinates instead of positions
  };
  void begin_epoch(Index topology);
  Block encode_group(const Group& group, nlohmann::json& entry) const;
  void update_rows();
  void add_shapes();

  const ReplayReader& reader_;
  EncodeOptions options_;
  std::string prefix_;
  std::vector<ExtraField> extra_;
  double quantum_ = 0, error_ = 0;
  std::vector<Index> frames_;  // page frame -> frame of the recording
  Index seen_ = 0;             // frames of the recording that have been looked at
  Index skipped_ = 0;          // frames with numbers that are not finite
  std::size_t rows_seen_ = 0;
  std::size_t sampled_frames_ = 0;
  double sampled_bytes_ = 0;
  std::vector<std::unique_ptr<Epoch>> epochs_;
  BoxedJson manifest_;
  std::vector<Block> blocks_;
};

}  // namespace limber::view
