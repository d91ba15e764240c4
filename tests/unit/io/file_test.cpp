// Whole files: what is an ordinary one, and how much of it is read.
#include <limber/core/error.hpp>
#include <limber/io/file.hpp>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

namespace limber {
namespace {

namespace fs = std::filesystem;

class WholeFiles : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            ("limber_file_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::remove_all(root_);
    fs::create_directories(root_);
    ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
    std::ofstream(root_ / "file") << "12345678";
  }
  void TearDown() override { fs::remove_all(root_); }
  std::string path(const char* name) const { return (root_ / name).string(); }
  static std::string refusal(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kIo);
      return e.what();
    }
    return "";
  }
  fs::path root_;
};

TEST_F(WholeFiles, OrdinaryOnesOnly) {
  EXPECT_EQ(read_file(path("file")), "12345678");
  // Nobody writes into the pipe: a reader that opened it as usual would wait here for ever.
  EXPECT_EQ(refusal([&] { read_file(path("pipe")); }),
            path("pipe") + ": is a pipe; expected an ordinary file");
  EXPECT_NE(refusal([&] { read_file("/dev/zero"); }).find("is a device"), std::string::npos);
  EXPECT_NE(refusal([&] { read_file(root_.string()); }).find("is a folder"), std::string::npos);
  EXPECT_NE(refusal([&] { read_file(path("nothing")); }).find("cannot open"), std::string::npos);
  EXPECT_EQ(not_ordinary(path("file")), "");
  EXPECT_EQ(not_ordinary(path("nothing")), "");
  EXPECT_EQ(not_ordinary(path("pipe")), "a pipe");
  EXPECT_NE(refusal([&] { require_ordinary(path("pipe")); }), "");
  EXPECT_EQ(refusal([&] { require_ordinary(path("file")); }), "");
}

TEST_F(WholeFiles, PipesWhereTheyAreAllowed) {
  std::thread writer([&] { std::ofstream(path("pipe")) << "through a pipe"; });
  EXPECT_EQ(read_file_or_pipe(path("pipe"), 100), "through a pipe");
  writer.join();
  EXPECT_NE(refusal([&] { read_file_or_pipe("/dev/zero", 1 << 20); }).find("is larger than 1 MiB"),
            std::string::npos);
  EXPECT_NE(refusal([&] { read_file_or_pipe(root_.string()); }).find("is a folder"), std::string::npos);
}

TEST_F(WholeFiles, TheLimitIsSaid) {
  EXPECT_EQ(read_file(path("file"), 8), "12345678");
  EXPECT_EQ(refusal([&] { read_file(path("file"), 7); }),
            path("file") + ": is larger than 7 bytes, the most that is read here");
}

}  // namespace
}  // namespace limber
