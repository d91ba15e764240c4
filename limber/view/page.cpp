#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/vtu.hpp>
#include <limber/view/codec.hpp>
#include <limber/view/page.hpp>
#include <limber/view/page_template.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace limber::view {

using nlohmann::json;

namespace {

// "<" must not appear in JSON inside HTML: "</script>" would end the element.
std::string script_text(const json& j) {
  const std::string text = j.dump(-1, ' ', false, json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

void replace_once(std::string& text, std::string_view mark, const std::string& by) {
  const std::size_t at = text.find(mark);
  if (at == std::string::npos)
    throw Error(ErrorKind::kIo,
                fmt::format("page: the template lacks '{}'; rebuild web/dist/page.html", mark));
  text.replace(at, mark.size(), by);
}

}  // namespace

std::filesystem::path find_recording(const std::filesystem::path& folder) {
  std::error_code error;
  if (std::filesystem::is_regular_file(folder, error)) return folder;
  const std::filesystem::path recording = folder / "replay.lmr";
  if (std::filesystem::is_regular_file(recording, error)) return recording;
  throw Error(ErrorKind::kIo, fmt::format("{}: has no replay.lmr; expected the output folder of `limber run`",
                                          folder.string()));
}

json page_manifest(const std::string& mode, const std::string& title) {
  return {{"format", 1},
          {"mode", mode},
          {"title", title},
          {"generator", std::string("limber ") + LIMBER_VERSION},
          {"runs", json::array()}};
}

std::string page_html(const json& manifest, const std::vector<const RunEncoder*>& runs) {
  std::string html(page_template());
  std::string blocks;
  for (const RunEncoder* run : runs)
    for (const RunEncoder::Block& b : run->blocks()) {
      blocks += fmt::format("<script type=\"text/plain\" id=\"limber-{}\">", b.id);
      append_base64(blocks, bytes_of(b.bytes));
      blocks += "</script>\n";
    }
  // The blocks first: the marks must not be searched for in user text.
  replace_once(html, "<!--BLOCKS-->", blocks);
  replace_once(html, "/*MANIFEST*/", script_text(manifest));
  return html;
}

std::unique_ptr<RunEncoder> encode_within(const ReplayReader& reader, const PageOptions& options, double room,
                                          const std::string& prefix, const std::vector<ExtraField>& extra) {
  std::vector<EncodeOptions> plans;
  if (options.inside) plans.push_back({});
  for (const auto& [bits, field_bits] : {std::pair{16, 12}, {14, 8}, {12, 7}}) {
    EncodeOptions o;
    o.inside = false;
    o.bits = bits;
    o.field_bits = field_bits;
    plans.push_back(o);
  }
  for (Index every = 2; every <= 64 && reader.frame_count() / every > 50; every *= 2) {
    EncodeOptions o = plans.back();
    o.every = every;
    plans.push_back(o);
  }
  const double bytes = room * 3 / 4;  // base64 makes four bytes of three
  std::unique_ptr<RunEncoder> best;
  for (std::size_t k = 0; k < plans.size(); ++k) {
    const bool last = k + 1 == plans.size();
    if (!last && reader.frame_count() > 128) {  // a look at a few groups tells the size well enough
      EncodeOptions sample = plans[k];
      sample.sample = 3;
      if (RunEncoder(reader, sample, prefix, extra).size() > 1.1 * bytes) continue;
    }
    plans[k].progress = options.progress;
    best = std::make_unique<RunEncoder>(reader, plans[k], prefix, extra);
    if (best->size() <= bytes) break;
  }
  return best;
}

PageReport write_page(const std::filesystem::path& recording, const std::filesystem::path& html,
                      const PageOptions& options) {
  PageReport report;
  std::string text;
  try {
    const ReplayReader reader(recording);
    json manifest = page_manifest("run", reader.header().scene);
    // Room for the template and the manifest, which grows with the number of frames.
    const double room =
        options.max_bytes - static_cast<double>(page_template().size()) - 2e4 - 400.0 * reader.frame_count();
    const auto run = encode_within(reader, options, std::max(room, 1e5), "a", {});
    manifest["runs"].push_back(run->manifest());
    text = page_html(manifest, {run.get()});
    report.frames = run->frames();
    report.error = run->error();
    const json& epochs = run->manifest().at("epochs");
    report.inside = !epochs.empty() && epochs.back().at("inside").get<bool>();
    report.notices = run->manifest().at("notices").get<std::vector<std::string>>();
    if (static_cast<double>(text.size()) > 1.02 * options.max_bytes)
      report.notices.push_back(fmt::format(
          "The page has {:.1f} MB, more than the {:.1f} that were wanted: what does not change from frame to "
          "frame (the mesh, a surface that it carries) takes most of it.",
          1e-6 * static_cast<double>(text.size()), 1e-6 * options.max_bytes));
  } catch (const Error& e) {
    json manifest = page_manifest("failed", recording.parent_path().filename().string());
    manifest["failure"] = report.failure = e.what();
    text = page_html(manifest, {});
  }
  report.bytes = text.size();
  write_file_atomic(html.string(), text);
  return report;
}

}  // namespace limber::view
