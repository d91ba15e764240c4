// Files that are generated from the spec table, and JSON in the documentation.
#include <limber/io/file.hpp>
#include <limber/scene/load.hpp>
#include <limber/scene/spec.hpp>

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace limber {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = LIMBER_SOURCE_DIR;

TEST(Generated, CommittedFilesAreUpToDate) {
  EXPECT_EQ(read_file(kRoot / "limber.schema.json"), json_schema())
      << "run: bin/limber schema > limber.schema.json";
  EXPECT_EQ(read_file(kRoot / "docs/scene-reference.md"), scene_reference())
      << "run: bin/limber schema --reference > docs/scene-reference.md";
}

// Every row of the table has a description, a default that passes its own checks, and a place to hang on.
TEST(Generated, TableIsSound) {
  for (const Entry& entry : spec_entries()) {
    EXPECT_FALSE(entry.text.empty()) << entry.path;
    EXPECT_TRUE(entry.text.ends_with('.')) << entry.path << ": " << entry.text;
    EXPECT_TRUE(entry.fallback.empty() || !entry.required) << entry.path << " is required and has a default";
    if (!entry.fallback.empty()) {
      EXPECT_FALSE(Json::parse(entry.fallback, nullptr, false).is_discarded()) << entry.path;
    }
    if (entry.type == Type::kEnum || entry.type == Type::kTag) {
      EXPECT_FALSE(entry.values.empty()) << entry.path;
    }
    if (!entry.meanings.empty()) {
      EXPECT_EQ(split_words(entry.values).size(), split_words(entry.meanings, '\n').size()) << entry.path;
    }
    if (!entry.ref.empty()) {
      EXPECT_NO_THROW(spec_definition(entry.ref)) << entry.path;
    }
  }
}

// JSON blocks of the documentation: scenes must be good scenes, anything else at least JSON.
TEST(Docs, JsonBlocksAreGood) {
  std::vector<fs::path> pages{kRoot / "README.md"};
  if (fs::exists(kRoot / "docs"))
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / "docs"))
      if (entry.path().extension() == ".md") pages.push_back(entry.path());
  int blocks = 0;
  for (const fs::path& page : pages) {
    if (!fs::exists(page)) continue;
    const std::string text = read_file(page);
    const std::string open = "```json\n";
    for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
      at += open.size();
      const std::string block = text.substr(at, text.find("```", at) - at);
      const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
      std::vector<Problem> problems;
      if (block.find("\"limber\"") != std::string::npos) {
        problems = try_read_scene(block, (kRoot / page.filename()).string()).problems;
      } else {
        Marks marks;
        parse_json(block, page.string(), marks, problems);
      }
      for (const Problem& p : problems)
        ADD_FAILURE() << page << " block at line " << line << ": " << to_string(p);
      ++blocks;
    }
  }
  EXPECT_GE(blocks, 2);
}

}  // namespace
}  // namespace limber
