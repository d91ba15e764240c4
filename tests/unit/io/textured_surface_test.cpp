// Surfaces with materials: names of files, images that are damaged.
#include <limber/io/file.hpp>
#include <limber/io/textured_surface.hpp>

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>

namespace limber {
namespace {

namespace fs = std::filesystem;

std::string big_endian(std::uint32_t v) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(v >> shift);
  return out;
}

std::string chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto sum =
      ::crc32(0, reinterpret_cast<const unsigned char*>(body.data()), static_cast<unsigned>(body.size()));
  return big_endian(static_cast<std::uint32_t>(data.size())) + body +
         big_endian(static_cast<std::uint32_t>(sum));
}

// As far as chunks go.
std::string png() {
  return "\x89PNG\r\n\x1a\n" + chunk("IHDR", std::string(13, '\1')) + chunk("IDAT", "pixels") +
         chunk("IEND", "");
}

class Textured : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "limber_textured_XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) {
    write_file_atomic(folder_ + "/" + name, text);
  }
  TexturedSurface read(const std::string& head) {
    notices_.clear();
    return parse_textured_obj("a.obj", head + "\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl paint\nf 1 2 3\n", folder_,
                              &notices_);
  }

  std::string folder_;
  std::vector<std::string> notices_;
};

TEST_F(Textured, NamesHaveBlanksAndOptions) {
  write("old wood.png", png());
  for (const char* options : {"", "-s 1 1 1 ", "-s 2 -o 0.5 0 -clamp on ", "-mm 0 1 -bm 0.3 ", "-t\t1 2\t"}) {
    write("my mats.mtl", std::string("newmtl paint\nmap_Kd ") + options + "old wood.png\n");
    const TexturedSurface s = read("mtllib my mats.mtl");
    ASSERT_EQ(s.materials.size(), 1u) << options;
    EXPECT_EQ(s.materials[0].image_name, "old wood.png") << options;
    EXPECT_TRUE(notices_.empty()) << notices_[0];
  }
}

TEST_F(Textured, OneLineMayNameSeveralLibraries) {
  write("a.mtl", "newmtl stone\nKd 0 0 1\n");
  write("my mats.mtl", "newmtl paint\nKd 1 0 0\n");
  for (const char* line : {"mtllib a.mtl my mats.mtl", "mtllib my mats.mtl  a.mtl"}) {
    const TexturedSurface s = read(line);
    EXPECT_TRUE(notices_.empty()) << notices_[0];
    ASSERT_EQ(s.materials.size(), 2u);
    EXPECT_EQ(s.materials[at(s.face_material[0])].color, Vec3(1, 0, 0));
  }
  read("mtllib not there.mtl");
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].find("not there.mtl"), std::string::npos) << notices_[0];
}

TEST_F(Textured, DamagedImagesAreTold) {
  write("m.mtl", "newmtl paint\nKd 1 0 0\nmap_Kd p.png\n");
  const std::string good = png();
  std::string flipped = good;
  flipped[good.find("pixels")] ^= 1;
  const std::string head = good.substr(0, 8 + 25);
  for (const std::string& bytes :
       {good.substr(0, good.size() - 5), good.substr(0, good.size() - 12), good.substr(0, 40), flipped,
        good.substr(0, 8) + chunk("IDAT", "pixels") + chunk("IEND", ""), head + chunk("IEND", ""),
        good.substr(0, 8)}) {
    write("p.png", bytes);
    const TexturedSurface s = read("mtllib m.mtl");
    ASSERT_EQ(notices_.size(), 1u) << bytes.size();
    EXPECT_NE(notices_[0].find("p.png: the image "), std::string::npos) << notices_[0];
    EXPECT_TRUE(s.materials[0].image.empty());
  }
  write("p.png", good);
  EXPECT_FALSE(read("mtllib m.mtl").materials[0].image.empty());
  EXPECT_TRUE(notices_.empty());
}

TEST_F(Textured, PlyHasTextureCoordinates) {
  for (const char* names : {"s t", "u v", "texture_u texture_v"}) {
    const std::string both(names), first = both.substr(0, both.find(' ')),
                                   second = both.substr(first.size() + 1);
    write("a.ply",
          "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
          "property float " +
              first + "\nproperty uchar red\nproperty float " + second +
              "\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
              "0 0 0 0.25 9 0.5\n1 0 0 1 9 0\n0 1 0 0 9 1\n3 0 1 2\n");
    const TexturedSurface s = read_textured_surface(folder_ + "/a.ply");
    ASSERT_EQ(s.uv.size(), 3u) << names;
    EXPECT_EQ(s.uv[at(s.corner_uv[0])], Vec2(0.25, 0.5));
    EXPECT_EQ(s.uv[at(s.corner_uv[2])], Vec2(0, 1));
  }
}

}  // namespace
}  // namespace limber
