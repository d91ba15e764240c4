// Damaged scenes: thousands of small, reproducible changes to the fuzzer's corpus.
#include <limber/io/file.hpp>
#include <limber/scene/load.hpp>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

namespace limber {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> corpus() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(LIMBER_SOURCE_DIR) / "tests/fuzz/corpus/scene"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const fs::path& file : files) texts.push_back(read_file(file.string()));
  return texts;
}

// Pieces that are likely to mean something where they land.
const std::vector<std::string> kPieces{"{",          "}",
                                       "[",          "]",
                                       ",",          ":",
                                       "\"",         "null",
                                       "true",       "-1",
                                       "0",          "1e308",
                                       "1e999",      "\"all\"",
                                       "\"set\"",    "{}",
                                       "[]",         "//",
                                       "/*",         "\\u",
                                       "\xff",       "\"type\":",
                                       "NaN",        "9007199254740993",
                                       "\"limber\"", "\"shape\": 3",
                                       "[0, 0, 0]",  "\"dynamic\": {}",
                                       "\"x^\"",     "\n",
                                       "-"};

std::string mutate(std::string text, std::mt19937& random, const std::vector<std::string>& others) {
  for (unsigned n = 1 + random() % 4; n > 0; --n) {
    const std::size_t at = text.empty() ? 0 : random() % text.size();
    const std::size_t length = std::min<std::size_t>(text.size() - at, random() % 12);
    switch (random() % 7) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, kPieces[random() % kPieces.size()]);
        break;
      case 2:
        text.replace(at, length, kPieces[random() % kPieces.size()]);
        break;
      case 3:
        text.insert(at, text.substr(at, 3 * length));
        break;
      case 4:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      case 6: {  // another number: often still a scene
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) text[digit] = static_cast<char>('0' + random() % 10);
        break;
      }
      case 5: {
        const std::string& other = others[random() % others.size()];
        const std::size_t from = random() % other.size();
        text.insert(at, other.substr(from, random() % 40));
        break;
      }
    }
  }
  return text;
}

TEST(Mutation, DamagedScenesGiveProblemsOrScenes) {
  const std::vector<std::string> texts = corpus();
  ASSERT_GE(texts.size(), 4u);
  std::mt19937 random(20240607);
  int good = 0, bad = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = mutate(texts[random() % texts.size()], random, texts);
    LoadResult result;
    ASSERT_NO_THROW(result = try_read_scene(text, "mutated.json")) << text;
    if (!result.problems.empty()) {
      ++bad;
      for (const Problem& p : result.problems) ASSERT_FALSE(p.message.empty());
      continue;
    }
    ++good;
    const std::string resolved = result.scene.resolved->dump();
    const LoadResult again = try_read_scene(resolved, "mutated.json");
    ASSERT_TRUE(again.problems.empty()) << text << "\n" << to_string(again.problems[0]);
    ASSERT_EQ(again.scene.resolved->dump(), resolved) << text;
  }
  // Both outcomes must be common, or the test looks at nothing.
  EXPECT_GT(good, 50);
  EXPECT_GT(bad, 1000);
}

TEST(Mutation, OverridesNeverEscape) {
  const std::vector<std::string> texts = corpus();
  std::mt19937 random(7);
  const std::string alphabet = "/-~01=[]{}\"abz.limberodsty";
  for (int round = 0; round < 1000; ++round) {
    std::string text = "/";
    for (unsigned n = random() % 20; n > 0; --n) text += alphabet[random() % alphabet.size()];
    const std::vector<std::string> overrides{text};
    ASSERT_NO_THROW(try_read_scene(texts.back(), "mutated.json", overrides)) << text;
  }
}

}  // namespace
}  // namespace limber
