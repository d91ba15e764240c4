// Checkpoints: the whole State in a file, so that a run can go on as if it had never stopped.
//
// File (.lmc), little-endian: "LIMBERCK", u32 version, u32 zero, u64 scene hash, u64 length of the notes, the
// notes (JSON), u32 number of fields, fields (u32 name length, name, u32 item type, u64 count, items), u64
// checksum of everything before. Fields are read by name: those of all methods as visit(State) calls them,
// "method" (its name, bytes), "memory_epoch", and what the method remembers as "memory/NAME". One that is
// missing keeps its default where that is sound; one that nobody knows is refused by name. Written to a
// temporary file, forced to the disk and renamed: a checkpoint exists whole or not at all.
#pragma once

#include <limber/io/boxed_json.hpp>
#include <limber/sim/state.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace limber {

struct Checkpoint {
  State state;
  std::string method;  // whose memory the state holds
  std::uint64_t scene_hash = 0;
  BoxedJson notes;  // wall time so far, version: nothing that the motion depends on
};

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

// Throws Error(kIo) when the file cannot be read and Error(kInput) that says what is wrong when it is cut
// off, damaged or from another version.
Checkpoint read_checkpoint(const std::filesystem::path& path);
Checkpoint parse_checkpoint(std::string_view bytes, const std::string& name);

// The checkpoints of a folder, newest (highest step) first. Files with other names are left out.
struct CheckpointFile {
  std::int64_t step = 0;
  std::filesystem::path path;
};
std::vector<CheckpointFile> list_checkpoints(const std::filesystem::path& folder);
std::string checkpoint_name(std::int64_t step);  // "000500.lmc"

}  // namespace limber
