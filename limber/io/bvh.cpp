#include <limber/io/bvh.hpp>

#include <limber/core/error.hpp>
#include <limber/io/cursor.hpp>
#include <limber/io/key_frames.hpp>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace limber::io {
namespace {

constexpr std::size_t kMostJoints = 10000;
constexpr std::array<std::string_view, 6> kChannels{"Xposition", "Yposition", "Zposition",
                                                    "Xrotation", "Yrotation", "Zrotation"};

// From after "ROOT" or "JOINT" on, down to where the joint's parent goes on.
void read_joints(Cursor& in, Bvh& out) {
  std::vector<Index> open;  // joints whose braces are open; -1: an end site
  const auto begin = [&] {
    if (out.joints.size() == kMostJoints) in.fail(fmt::format("more than {} joints", kMostJoints));
    BvhJoint joint;
    joint.name = std::string(in.token("name of a joint"));
    joint.parent = open.empty() ? -1 : open.back();
    in.expect("{");
    in.expect("OFFSET");
    joint.offset = in.point("offset");
    in.expect("CHANNELS");
    const std::int64_t count = in.integer("number of channels", 0, 6);
    joint.first = out.channels;
    for (std::int64_t k = 0; k < count; ++k) {
      const std::string_view word = in.token("name of a channel");
      const auto found = std::find(kChannels.begin(), kChannels.end(), word);
      if (found == kChannels.end())
        in.fail(
            fmt::format("found {}, expected a channel: Xposition, Yposition, Zposition, Xrotation, "
                        "Yrotation or Zrotation",
                        in_quotes(word)));
      joint.channels.push_back(static_cast<int>(found - kChannels.begin()));
    }
    out.channels += static_cast<std::size_t>(count);
    open.push_back(static_cast<Index>(out.joints.size()));
    out.joints.push_back(std::move(joint));
  };
  begin();
  while (!open.empty()) {
    const std::string_view word = in.token("JOINT, End Site or }");
    if (word == "JOINT") {
      begin();
    } else if (word == "End") {
      in.expect("Site");
      in.expect("{");
      in.expect("OFFSET");
      in.point("offset");
      in.expect("}");
    } else if (word == "}") {
      open.pop_back();
    } else {
      in.fail(fmt::format("found {}, expected JOINT, End Site or }}", in_quotes(word)));
    }
  }
}

}  // namespace

Mat3 Bvh::rotation(std::size_t frame, std::size_t j) const {
  Mat3 R = Mat3::Identity();
  const BvhJoint& joint = joints[j];
  for (std::size_t k = 0; k < joint.channels.size(); ++k) {
    if (joint.channels[k] < 3) continue;
    const double angle = values[frame * channels + joint.first + k] * std::numbers::pi / 180;
    R = R * rotation_of(angle * Vec3::Unit(joint.channels[k] - 3));
  }
  return R;
}

Vec3 Bvh::place(std::size_t frame, std::size_t j) const {
  Vec3 out = Vec3::Zero();
  const BvhJoint& joint = joints[j];
  for (std::size_t k = 0; k < joint.channels.size(); ++k)
    if (joint.channels[k] < 3) out[joint.channels[k]] = values[frame * channels + joint.first + k];
  return out;
}

Bvh read_bvh(const std::string& name, std::string_view data) {
  Cursor in(name, data);
  Bvh out;
  out.name = name;
  in.expect("HIERARCHY");
  for (;;) {
    const std::string_view word = in.token("ROOT or MOTION");
    if (word == "MOTION") break;
    if (word != "ROOT") in.fail(fmt::format("found {}, expected ROOT or MOTION", in_quotes(word)));
    read_joints(in, out);
  }
  if (out.joints.empty()) in.fail("found no joint: expected ROOT before MOTION");
  in.expect("Frames:");
  const std::int64_t frames = in.integer("number of frames", 1);
  in.expect("Frame");
  in.expect("Time:");
  out.frame_time = in.number("time of a frame");
  if (!(out.frame_time > 0))
    in.fail(
        fmt::format("time of a frame: found {:g}, expected a positive number of seconds", out.frame_time));
  out.frames = in.count(frames, 2 * out.channels, "frames");
  out.values.reserve(out.frames * out.channels);
  for (std::size_t k = 0; k < out.frames * out.channels; ++k)
    out.values.push_back(in.number("value of a channel"));
  return out;
}

std::vector<MotionKey> bvh_keys(const Bvh& file, const std::string& name, double start, double scale,
                                std::size_t every) {
  std::size_t j = 0;
  while (j < file.joints.size() && file.joints[j].name != name) ++j;
  if (j == file.joints.size()) {
    std::string names;
    for (const BvhJoint& joint : file.joints) names += (names.empty() ? "" : ", ") + joint.name;
    throw Error(ErrorKind::kInput,
                fmt::format("{} has no joint \"{}\"; expected one of {}", file.name, name, names));
  }
  std::vector<KeyFrame> frames;
  const Vec3 origin = file.place(0, j);
  for (std::size_t f = 0; f < file.frames; f += every)
    frames.push_back({start + static_cast<double>(f) * file.frame_time, file.rotation(f, j),
                      scale * (file.place(f, j) - origin)});
  return keys_of_frames(frames, fmt::format("{} turns joint \"{}\"", file.name, name));
}

}  // namespace limber::io
