// Whole files in and out. Every failure is Error(kIo) with the path and the system's reason.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace limber {

// The largest file that is read whole, unless a caller says less. Larger ones are refused before any of it is
// in memory, and the message says how much is allowed.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30;

// Ordinary files only. Pipes and devices may keep their reader waiting for ever or never end, and what a
// scene names is read more than once.
std::string read_file(const std::string& path, std::uint64_t most_bytes = kMostBytes);
// The same for a file that was named on the command line, which may be a pipe: limber check <(make-scene).
std::string read_file_or_pipe(const std::string& path, std::uint64_t most_bytes = kMostBytes);

// What something that is not an ordinary file is, for messages: "a folder", "a pipe", "a device"; empty for
// an ordinary file, and when there is nothing.
std::string not_ordinary(const std::string& path);
// Error(kIo) when the path is not_ordinary, for those who open a file themselves.
void require_ordinary(const std::string& path);

// Writes a temporary file next to `path` and renames it, so that `path` is at any moment the old or the new
// file, never half of one. With `durable` the bytes are on the disk before the name changes (checkpoints).
void write_file_atomic(const std::string& path, std::string_view data, bool durable = false);
// The same for data in several pieces.
void write_file_atomic(const std::string& path, std::span<const std::string_view> pieces,
                       bool durable = false);

}  // namespace limber
