// The page of a run: one self-contained HTML file made from a recording.
#pragma once

#include <limber/view/page_data.hpp>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace limber::view {

// folder/replay.lmr, or the recording itself when `folder` is one. Throws Error(kIo) when it is not there.
std::filesystem::path find_recording(const std::filesystem::path& folder);

struct PageOptions {
  // The page is kept below this by leaving out, in this order: the inside, precision, frames. [bytes]
  double max_bytes = 15e6;
  bool inside = true;
  std::function<void(double share)> progress = {};  // of writing; it begins again where the page is too large
};

struct PageReport {
  std::size_t bytes = 0;
  Index frames = 0;                  // on the page
  double error = 0;                  // of positions, in each coordinate [m]
  bool inside = false;               // a cut shows the inside
  std::vector<std::string> notices;  // damage, left-out frames; also on the page
  std::string failure;               // why nothing can be shown; the page says it, too
};

// Writes `html`. A damaged or empty recording gives a page that says so; throws only when `html` cannot be
// written.
PageReport write_page(const std::filesystem::path& recording, const std::filesystem::path& html,
                      const PageOptions& options = {});

// The template with a manifest and blocks in it.
std::string page_html(const nlohmann::json& manifest, const std::vector<const RunEncoder*>& runs);
nlohmann::json page_manifest(const std::string& mode, const std::string& title);

// Chooses what to leave out so that the run's blocks fit, and encodes it. `room` [bytes of HTML].
std::unique_ptr<RunEncoder> encode_within(const ReplayReader& reader, const PageOptions& options, double room,
                                          const std::string& prefix,
                                          const std::vector<ExtraField>& extra = {});

}  // namespace limber::view
