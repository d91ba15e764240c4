// Whole files in and out. Every failure is Error(kIo) with the path and the system's reason.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace limber {

std::string read_file(const std::string& path);

// Writes a temporary file next to `path` and renames it, so that `path` is at any moment the old or the new
// file, never half of one. With `durable` the bytes are on the disk before the name changes (checkpoints).
void write_file_atomic(const std::string& path, std::string_view data, bool durable = false);
// The same for data in several pieces.
void write_file_atomic(const std::string& path, std::span<const std::string_view> pieces,
                       bool durable = false);

}  // namespace limber
