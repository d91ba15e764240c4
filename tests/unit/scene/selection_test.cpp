#include <limber/core/error.hpp>
#include <limber/scene/selection.hpp>
#include <limber/scene/varying.hpp>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include <unistd.h>

namespace limber {
namespace {

// 0..26 of a 3x3x3 lattice with spacing 1, x fastest.
std::vector<Vec3> lattice() {
  std::vector<Vec3> points;
  for (int z = 0; z < 3; ++z)
    for (int y = 0; y < 3; ++y)
      for (int x = 0; x < 3; ++x) points.emplace_back(x, y, z);
  return points;
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

using Ids = std::vector<Index>;

TEST(Selection, EveryKind) {
  const std::vector<Vec3> points = lattice();
  const IndexSets sets{{"corner", {0, 2}}};
  Selection s;
  EXPECT_EQ(select(s, points, sets).size(), 27u);
  s.kind = "set";
  s.name = "corner";
  EXPECT_EQ(select(s, points, sets), (Ids{0, 2}));
  s = {};
  s.kind = "ids";
  s.ids = {5, 1, 5};
  EXPECT_EQ(select(s, points, sets), (Ids{1, 5}));
  s = {};
  s.kind = "box";
  s.a = Vec3(-1, -1, -1);
  s.b = Vec3(1, 0, 0);
  EXPECT_EQ(select(s, points, sets), (Ids{0, 1}));
  s = {};
  s.kind = "sphere";
  s.a = Vec3(1, 1, 1);
  s.radius = 1;
  EXPECT_EQ(select(s, points, sets), (Ids{4, 10, 12, 13, 14, 16, 22}));
  s = {};
  s.kind = "plane";
  s.a = Vec3(0, 0, 1.5);
  s.b = Vec3(0, 0, 1);
  EXPECT_EQ(select(s, points, sets).size(), 9u);
  s = {};
  s.kind = "nearest";
  s.points = {Vec3(9, 9, 9), Vec3(0.5, 0, 0)};  // the second is as near to 0 as to 1
  EXPECT_EQ(select(s, points, sets), (Ids{0, 26}));
  s = {};
  s.kind = "formula";
  s.name = "x == 2 and y == 2";
  EXPECT_EQ(select(s, points, sets), (Ids{8, 17, 26}));

  Selection low = s, all, both, either, none;
  low.name = "z < 1";
  both.kind = "every";
  both.parts = {s, low};
  EXPECT_EQ(select(both, points, sets), (Ids{8}));
  either.kind = "any";
  either.parts = {s, low};
  EXPECT_EQ(select(either, points, sets).size(), 11u);
  none.kind = "not";
  none.parts = {low};
  EXPECT_EQ(select(none, points, sets).size(), 18u);
}

TEST(Selection, ErrorsSayWhereAndHow) {
  const std::vector<Vec3> points = lattice();
  const IndexSets sets{{"left", {0}}, {"right", {2}}};
  Selection s;
  s.where = "a.json:3: /constraints/0/nodes";
  s.kind = "set";
  s.name = "lefd";
  std::string m = message([&] { select(s, points, sets); });
  EXPECT_NE(m.find("a.json:3: /constraints/0/nodes: there is no set \"lefd\", did you mean \"left\"?"),
            std::string::npos)
      << m;
  s.kind = "ids";
  s.ids = {27};
  m = message([&] { select(s, points, sets); });
  EXPECT_NE(m.find("index 27 does not exist; indices run from 0 to 26"), std::string::npos) << m;
  s.kind = "box";
  s.a = Vec3(0, 0, 5);
  s.b = Vec3(2, 2, 6);
  m = message([&] { select(s, points, sets); });
  EXPECT_NE(m.find("selects nothing"), std::string::npos) << m;
  EXPECT_NE(m.find("(0, 0, 0) and (2, 2, 2)"), std::string::npos) << m;
  EXPECT_NE(m.find("3 m away"), std::string::npos) << m;
  EXPECT_TRUE(select_or_none(s, points, sets).empty());
  s.kind = "formula";
  s.name = "sqrt(x - 1)";
  m = message([&] { select(s, points, sets); });
  EXPECT_NE(m.find("has no value at (0, 0, 0)"), std::string::npos) << m;
}

class VaryingFiles : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("limber_varying_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  std::string put(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return name;
  }
  std::filesystem::path folder_;
};

std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header += std::string(64 - (10 + header.size() + 1) % 64, ' ') + "\n";
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + data;
}

TEST_F(VaryingFiles, Sources) {
  const std::vector<Vec3> c{Vec3(0, 0, 0), Vec3(1, 2, 3), Vec3(2, 0, 0)};
  const auto values = [&](const Varying& v, const Fields& fields = {}) {
    return evaluate(v, c, fields, folder_.string());
  };
  EXPECT_EQ(values(Varying{7.0}), (std::vector<double>{7, 7, 7}));
  Varying formula;
  formula.formula = "1 + x * y";
  EXPECT_EQ(values(formula), (std::vector<double>{1, 3, 1}));
  Varying file;
  file.file = put("a.txt", "# E\n1, 2\n3 # last\n");
  EXPECT_THROW(values(file), Error) << "lines of different length";
  file.file = put("a.txt", "# E\n1\n+2e0 # two\n\n3");
  EXPECT_EQ(values(file), (std::vector<double>{1, 2, 3}));
  const double data[3] = {4, 5, 6};
  file.file = put("a.npy", npy("<f8", "(3,)", std::string(reinterpret_cast<const char*>(data), sizeof data)));
  EXPECT_EQ(values(file), (std::vector<double>{4, 5, 6}));
  Varying field;
  field.field = "E";
  EXPECT_EQ(values(field, {{"E", {1, {7, 8, 9}}}}), (std::vector<double>{7, 8, 9}));
}

TEST_F(VaryingFiles, Errors) {
  const std::vector<Vec3> c{Vec3(0, 0, 0), Vec3(1, 2, 3), Vec3(2, 0, 0)};
  const auto why = [&](const Varying& v) {
    return message([&] { evaluate(v, c, {{"EE", {1, {1, 2, 3}}}}, folder_.string()); });
  };
  Varying v;
  v.where = "s.json:9: /bodies/0/material/young";
  v.unit = "Pa";
  v.range = {0, 10, true, false};
  v.formula = "x - 1";
  EXPECT_EQ(why(v),
            "s.json:9: /bodies/0/material/young: element 0 at (0, 0, 0) gets -1 Pa; expected (0, 10]");
  v.formula = "1 / x";
  EXPECT_NE(why(v).find("finite"), std::string::npos);
  v.formula = "";
  v.file = put("two.txt", "1 \n2\n");
  EXPECT_NE(why(v).find("has 2 numbers; expected 3"), std::string::npos) << why(v);
  v.file = put("word.txt", "1\nabc\n2\n");
  EXPECT_NE(why(v).find("word.txt:2: expected a number, found \"abc\""), std::string::npos) << why(v);
  v.file = "missing.txt";
  EXPECT_NE(why(v).find("cannot open"), std::string::npos) << why(v);
  v.file = put("nan.txt", "1\nnan\n2\n");
  EXPECT_NE(why(v).find("element 1"), std::string::npos) << why(v);
  v.file = put("cut.npy", npy("<f8", "(3,)", "1234"));
  EXPECT_NE(why(v).find("cut off"), std::string::npos) << why(v);
  v.file = put("huge.npy", npy("<f8", "(999999999999999999,)", "1234"));
  EXPECT_NE(why(v).find("shorter than its shape"), std::string::npos) << why(v);
  v.file = put("text.npy", npy("<U8", "(3,)", std::string(96, 'a')));
  EXPECT_NE(why(v).find("<U8"), std::string::npos) << why(v);
  v.file = "";
  v.field = "E";
  EXPECT_NE(why(v).find("did you mean \"EE\""), std::string::npos) << why(v);
}

TEST_F(VaryingFiles, FibreDirections) {
  const std::vector<Vec3> c{Vec3(0, 0, 1), Vec3(3, 4, 0)};
  FibreSpec fibre;
  fibre.direction = Vec3(0, 0, 2);
  EXPECT_EQ(fibre_directions(fibre, c, {}, "")[1], Vec3(0, 0, 1));
  fibre.direction.reset();
  fibre.formula = {"x", "y", "z"};
  EXPECT_EQ(fibre_directions(fibre, c, {}, "")[1], Vec3(0.6, 0.8, 0));
  fibre.formula = {"x", "y", "0"};
  EXPECT_NE(message([&] { fibre_directions(fibre, c, {}, ""); }).find("element 0"), std::string::npos);
  fibre.formula = {};
  fibre.file = put("f.txt", "1 0 0\n0 5 0\n");
  EXPECT_EQ(fibre_directions(fibre, c, {}, folder_.string())[1], Vec3(0, 1, 0));
}

}  // namespace
}  // namespace limber
