#include "progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace limber {
namespace {

constexpr std::size_t kWindow = 50;  // steps that averages are taken over
constexpr double kRedraw = 0.1;      // [s]
constexpr double kPlainLine = 5;     // [s]

std::string clock_text(double seconds) {
  const auto s = static_cast<std::int64_t>(std::llround(std::min(seconds, 1e9)));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

}  // namespace

Progress::Progress(bool shown, std::int64_t target, double h, std::int64_t all_dofs)
    : shown_(shown),
      terminal_(::isatty(STDERR_FILENO) == 1),
      target_(target),
      all_dofs_(all_dofs),
      decimals_(std::clamp(static_cast<int>(std::ceil(-std::log10(h))), 3, 9)) {}

void Progress::step(std::int64_t step, double t, const StepReport& report, double seconds) {
  if (!shown_) return;
  window_.push_back({seconds, report.phases});
  if (window_.size() > kWindow) window_.pop_front();
  const double since = std::chrono::duration<double>(Clock::now() - last_).count();
  if (since < (terminal_ ? kRedraw : kPlainLine) && !(terminal_ && step == target_)) return;
  draw(line(step, t, report));
}

void Progress::page(double share) {
  if (!shown_) return;
  const double since = std::chrono::duration<double>(Clock::now() - last_).count();
  if (since < (terminal_ ? kRedraw : kPlainLine)) return;
  draw(fmt::format("writing the page: {:.0f} %", 100 * share));
}

void Progress::draw(std::string text) {
  last_ = Clock::now();
  if (terminal_) {
    winsize size{};
    // A line that wraps cannot be redrawn.
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 10)
      text = text.substr(0, static_cast<std::size_t>(size.ws_col) - 1);
    fmt::print(stderr, "\r{}\x1b[K", text);
    drawn_ = true;
  } else {
    fmt::print(stderr, "{}\n", text);
  }
  std::fflush(stderr);
}

std::string Progress::line(std::int64_t step, double t, const StepReport& report) const {
  double total = 0;
  std::map<std::string, double> phases;
  for (const Sample& s : window_) {
    total += s.seconds;
    for (const auto& [name, time] : s.phases)
      if (name.find('/') == std::string::npos) phases[name] += time;
  }
  std::vector<std::pair<double, std::string>> most;
  for (const auto& [name, time] : phases) most.emplace_back(time, name);
  std::sort(most.rbegin(), most.rend());
  std::string shares;
  for (std::size_t i = 0; i < most.size() && i < 3; ++i)
    if (total > 0 && most[i].first > 0.01 * total)
      shares +=
          fmt::format("{}{} {:.0f}%", shares.empty() ? "" : " ", most[i].second, 100 * most[i].first / total);
  const double mean = total / static_cast<double>(window_.size());
  return fmt::format("step {}/{}  t {:.{}f}  {:.3g} ms{}  dof {}/{}  it {}  eta {}", step, target_, t,
                     decimals_, 1e3 * mean, shares.empty() ? "" : " (" + shares + ")", report.dofs, all_dofs_,
                     report.iterations, clock_text(mean * static_cast<double>(target_ - step)));
}

void Progress::say(const std::string& text) {
  if (!shown_) return;
  clear();
  fmt::print(stderr, "{}\n", text);
}

void Progress::clear() {
  if (drawn_) fmt::print(stderr, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace limber
