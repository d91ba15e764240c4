#include <limber/core/parallel.hpp>
#include <limber/view/raster.hpp>

#include <Eigen/Geometry>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace limber::view {
namespace {

constexpr int kBand = 16;                                // rows that are drawn together
constexpr int kShadowSize = 2048;                        // texels of the shadow map
constexpr int kTile = 16, kTiles = kShadowSize / kTile;  // coarse map of the highest texels
constexpr float kShadowReach = 1.2f;                     // half its width, stage units
constexpr float kOcclusionRadius = 0.13f;
const Vec3f kSun = Vec3f(1.1f, 2.2f, 1.3f).normalized();
const Vec3f kRim = Vec3f(-1.5f, 0.8f, -1.2f).normalized();

// A projected vertex: position in samples, and 1/w (perspective) or minus the depth (orthographic). Larger is
// nearer; 0 or less is behind the eye.
struct Projected {
  float x, y, near;
};

struct Hit {
  float near = 0;  // 0: nothing
  int triangle = -1;
  float b1 = 0, b2 = 0;  // screen barycentrics of corners 1 and 2
};

// Calls keep(x, y, near, b1, b2) for every sample of rows [y0, y1) that the triangle covers.
template <class Keep>
void scan(const Projected& a, const Projected& b, const Projected& c, int width, int y0, int y1,
          Keep&& keep) {
  const float area = (b.x - a.x) * (c.y - a.y) - (c.x - a.x) * (b.y - a.y);
  if (area == 0 || !std::isfinite(area)) return;
  const int left = std::max(0, static_cast<int>(std::ceil(std::min({a.x, b.x, c.x}) - 0.5f)));
  const int right = std::min(width - 1, static_cast<int>(std::floor(std::max({a.x, b.x, c.x}) - 0.5f)));
  const int top = std::max(y0, static_cast<int>(std::ceil(std::min({a.y, b.y, c.y}) - 0.5f)));
  const int bottom = std::min(y1 - 1, static_cast<int>(std::floor(std::max({a.y, b.y, c.y}) - 0.5f)));
  const float inverse = 1 / area;
  for (int y = top; y <= bottom; ++y) {
    const float py = static_cast<float>(y) + 0.5f;
    for (int x = left; x <= right; ++x) {
      const float px = static_cast<float>(x) + 0.5f;
      const float b1 = ((px - a.x) * (c.y - a.y) - (c.x - a.x) * (py - a.y)) * inverse;
      const float b2 = ((b.x - a.x) * (py - a.y) - (px - a.x) * (b.y - a.y)) * inverse;
      if (b1 < 0 || b2 < 0 || b1 + b2 > 1) continue;
      keep(x, y, a.near + b1 * (b.near - a.near) + b2 * (c.near - a.near), b1, b2);
    }
  }
}

Vec3f to_vec(const Rgb& c) { return {c[0], c[1], c[2]}; }
Vec3f linear_vec(const Rgb& c) { return to_vec(to_linear(c)); }

float smoothstep(float a, float b, float x) {
  const float t = std::clamp((x - a) / (b - a), 0.0f, 1.0f);
  return t * t * (3 - 2 * t);
}

float power_32(float x) {
  for (int k = 0; k < 5; ++k) x *= x;
  return x;
}

// A number in 0..1 that looks random and depends on the place only.
float noise(int x, int y) {
  std::uint32_t h = static_cast<std::uint32_t>(x) * 374761393u + static_cast<std::uint32_t>(y) * 668265263u;
  h = (h ^ (h >> 13)) * 1274126177u;
  return static_cast<float>((h ^ (h >> 16)) & 0xffffff) / 16777216.0f;
}

// Points of a spiral on the unit disc (x, y), the k-th of n at radius sqrt((k + 1/2) / n), turned by a table
// angle.
constexpr int kTaps = 12, kTurns = 64;
struct Spiral {
  std::array<std::array<float, 2 * kTaps>, kTurns> points;
  Spiral() {
    for (int t = 0; t < kTurns; ++t)
      for (int k = 0; k < kTaps; ++k) {
        const double a = 2 * std::numbers::pi * t / kTurns + 2.39996 * k;
        points[static_cast<std::size_t>(t)][static_cast<std::size_t>(2 * k)] =
            static_cast<float>(std::cos(a));
        points[static_cast<std::size_t>(t)][static_cast<std::size_t>(2 * k + 1)] =
            static_cast<float>(std::sin(a));
      }
  }
  const float* turned(float share) const {
    return points[static_cast<std::size_t>(share * kTurns) % kTurns].data();
  }
};
const Spiral kSpiral;

// Any two directions that are perpendicular to n and to each other.
void tangents(const Vec3f& n, Vec3f& u, Vec3f& v) {
  u = (std::abs(n.y()) < 0.9f ? Vec3f::UnitY() : Vec3f::UnitX()).cross(n).normalized();
  v = n.cross(u);
}

class Renderer {
 public:
  Renderer(const Triangles& t, const std::vector<Paint>& paints, const Camera& camera,
           const std::vector<Floor>& floors, const Lighting& light, int width, int height, int samples)
      : t_(t),
        paints_(paints),
        floors_(floors),
        light_(light),
        s_(samples),
        w_(width * samples),
        h_(height * samples) {
    eye_ = camera.eye;
    forward_ = (camera.target - camera.eye).normalized();
    right_ = forward_.cross(Vec3f::UnitY());
    right_ = right_.norm() < 1e-4f ? Vec3f::UnitX() : right_.normalized();
    up_ = right_.cross(forward_);
    focal_ = static_cast<float>(h_ / 2.0 / std::tan(camera.fov * std::numbers::pi / 360));
    for (int i = 0; i < 256; ++i) map_[static_cast<std::size_t>(i)] = linear_vec(sequential_color(i / 255.0));
    for (std::size_t i = 0; i < 256; ++i) {
      Rgb c;
      for (std::size_t d = 0; d < 3; ++d)
        c[d] = light.background_inner[d] +
               static_cast<float>(i) / 255 * (light.background_outer[d] - light.background_inner[d]);
      background_[i] = linear_vec(c);
    }
    for (std::size_t k = 0; k < kTaps; ++k)
      spiral_radius_[k] = std::sqrt((static_cast<float>(k) + 0.5f) / kTaps);
    for (const Vec3f& p : t.position) {
      low_ = low_.cwiseMin(p);
      high_ = high_.cwiseMax(p);
    }
    floor_color_ = linear_vec(light.floor);
    floor_line_ = linear_vec(light.floor_line);
  }

  Image run() {
    cast_shadows();
    find_tiles();
    find_visible();
    Image image(w_ / s_, h_ / s_);
    parallel_for(image.height, 4, [&](std::ptrdiff_t row) {
      const int y = static_cast<int>(row);
      for (int x = 0; x < image.width; ++x) {
        Vec3f sum = Vec3f::Zero();
        for (int j = 0; j < s_; ++j)
          for (int i = 0; i < s_; ++i) sum += shade(x * s_ + i, y * s_ + j).cwiseMin(1.0f);
        sum /= static_cast<float>(s_ * s_);
        for (int d = 0; d < 3; ++d)
          image.at(x, y)[d] =
              static_cast<std::uint8_t>(std::lround(255 * std::clamp(linear_to_srgb(sum[d]), 0.0f, 1.0f)));
      }
    });
    return image;
  }

 private:
  Projected project(const Vec3f& p) const {
    const Vec3f q = p - eye_;
    const float depth = q.dot(forward_);
    if (depth < 1e-3f) return {0, 0, 0};
    return {0.5f * static_cast<float>(w_) + focal_ * q.dot(right_) / depth,
            0.5f * static_cast<float>(h_) - focal_ * q.dot(up_) / depth, 1 / depth};
  }

  Projected project_sun(const Vec3f& p) const {
    const float scale = kShadowSize / (2 * kShadowReach);
    return {(p.dot(sun_u_) + kShadowReach) * scale, (p.dot(sun_v_) + kShadowReach) * scale, p.dot(kSun) + 10};
  }

  void cast_shadows() {
    tangents(kSun, sun_u_, sun_v_);
    shadow_.assign(static_cast<std::size_t>(kShadowSize) * kShadowSize, 0.0f);
    std::vector<Projected> p(t_.position.size());
    for (std::size_t i = 0; i < p.size(); ++i) p[i] = project_sun(t_.position[i]);
    parallel_ranges(kShadowSize, 64, [&](std::ptrdiff_t y0, std::ptrdiff_t y1) {
      for (std::size_t k = 0; k < t_.size(); ++k) {
        if (!paints_[t_.paint[k]].shadow) continue;
        scan(p[3 * k], p[3 * k + 1], p[3 * k + 2], kShadowSize, static_cast<int>(y0), static_cast<int>(y1),
             [&](int x, int y, float near, float, float) {
               float& texel =
                   shadow_[static_cast<std::size_t>(y) * kShadowSize + static_cast<std::size_t>(x)];
               texel = std::max(texel, near);
             });
      }
    });
  }

  void find_visible() {
    screen_.resize(t_.position.size());
    for (std::size_t i = 0; i < screen_.size(); ++i) screen_[i] = project(t_.position[i]);
    hits_.assign(static_cast<std::size_t>(w_) * static_cast<std::size_t>(h_), {});
    parallel_ranges(h_, kBand, [&](std::ptrdiff_t y0, std::ptrdiff_t y1) {
      for (std::size_t k = 0; k < t_.size(); ++k) {
        const Projected &a = screen_[3 * k], &b = screen_[3 * k + 1], &c = screen_[3 * k + 2];
        if (a.near <= 0 || b.near <= 0 || c.near <= 0) continue;  // reaches behind the eye
        const float nearer = 1 - paints_[t_.paint[k]].behind;
        scan(a, b, c, w_, static_cast<int>(y0), static_cast<int>(y1),
             [&](int x, int y, float near, float b1, float b2) {
               Hit& hit = at(x, y);
               if (nearer * near > hit.near) hit = {nearer * near, static_cast<int>(k), b1, b2};
             });
      }
      // Floors by rays; they are marked with -2, -3, ...
      for (int y = static_cast<int>(y0); y < y1; ++y)
        for (int x = 0; x < w_; ++x)
          for (std::size_t f = 0; f < floors_.size(); ++f) {
            const Vec3f d = direction(x, y);
            const float facing = d.dot(floors_[f].normal);
            if (facing > -1e-4f) continue;
            const float depth = (floors_[f].point - eye_).dot(floors_[f].normal) / facing;
            if (depth > 1e-3f && depth < 30 && 1 / depth > at(x, y).near)
              at(x, y) = {1 / depth, -2 - static_cast<int>(f)};
          }
    });
  }

  Hit& at(int x, int y) {
    return hits_[static_cast<std::size_t>(y) * static_cast<std::size_t>(w_) + static_cast<std::size_t>(x)];
  }

  // Through a sample; its component along the view is 1, so that multiples are depths.
  Vec3f direction(int x, int y) const {
    return forward_ + right_ * ((static_cast<float>(x) + 0.5f - 0.5f * static_cast<float>(w_)) / focal_) -
           up_ * ((static_cast<float>(y) + 0.5f - 0.5f * static_cast<float>(h_)) / focal_);
  }

  // Share of the sun's light that arrives: texels around the point on a disc.
  float sunlight(const Vec3f& p, const Vec3f& n, int x, int y) const {
    const Projected q = project_sun(p + 0.006f * n);
    constexpr float kRadius = 5.5f;  // texels
    if (!(q.x > -kRadius && q.y > -kRadius && q.x < kShadowSize + kRadius && q.y < kShadowSize + kRadius))
      return 1;
    if (tile_max(q.x, q.y) < q.near) return 1;  // nothing near here is higher
    const float* spiral = kSpiral.turned(noise(x, y));
    float lit = 0;
    for (int k = 0; k < kTaps; ++k) {
      const float r = kRadius * spiral_radius_[static_cast<std::size_t>(k)];
      const int i = static_cast<int>(q.x + r * spiral[2 * k]),
                j = static_cast<int>(q.y + r * spiral[2 * k + 1]);
      const bool inside = i >= 0 && j >= 0 && i < kShadowSize && j < kShadowSize;
      const float blocker =
          inside ? shadow_[static_cast<std::size_t>(j) * kShadowSize + static_cast<std::size_t>(i)] : 0.0f;
      lit += 1 - smoothstep(0.003f, 0.008f, blocker - q.near);
    }
    return lit / kTaps;
  }

  // The highest texel in a neighbourhood that holds the disc around (x, y).
  float tile_max(float x, float y) const {
    const int i = std::clamp(static_cast<int>(x) / kTile, 0, kTiles - 1),
              j = std::clamp(static_cast<int>(y) / kTile, 0, kTiles - 1);
    return tiles_[static_cast<std::size_t>(j * kTiles + i)];
  }

  void find_tiles() {
    std::vector<float> own(tiles_.size(), 0.0f);
    for (int y = 0; y < kShadowSize; ++y)
      for (int x = 0; x < kShadowSize; ++x) {
        float& t = own[static_cast<std::size_t>(y / kTile * kTiles + x / kTile)];
        t = std::max(t, shadow_[static_cast<std::size_t>(y) * kShadowSize + static_cast<std::size_t>(x)]);
      }
    for (int j = 0; j < kTiles; ++j)
      for (int i = 0; i < kTiles; ++i)
        for (int dj = -1; dj <= 1; ++dj)
          for (int di = -1; di <= 1; ++di) {
            const int u = std::clamp(i + di, 0, kTiles - 1), v = std::clamp(j + dj, 0, kTiles - 1);
            float& t = tiles_[static_cast<std::size_t>(j * kTiles + i)];
            t = std::max(t, own[static_cast<std::size_t>(v * kTiles + u)]);
          }
  }

  // Share of the surroundings that a point sees, from the depths around it on the screen.
  float openness(const Vec3f& p, const Vec3f& n, int x, int y) {
    if (((p - low_).array() < -kOcclusionRadius).any() || ((p - high_).array() > kOcclusionRadius).any())
      return 1;
    Vec3f u, v;
    tangents(n, u, v);
    const float* spiral = kSpiral.turned(noise(x + 7919, y));
    const float shift = noise(x, y + 104729);
    float open = 0;
    for (int k = 0; k < kTaps; ++k) {
      const float e = (static_cast<float>(k) + shift) / kTaps, r = std::sqrt(e);
      const Vec3f d = r * spiral[2 * k] * u + r * spiral[2 * k + 1] * v + std::sqrt(1 - e) * n;
      const float reach = kOcclusionRadius * (0.15f + 0.85f * noise(x + k, y - k));
      const Projected s = project(p + 0.004f * n + reach * d);
      const int i = static_cast<int>(s.x), j = static_cast<int>(s.y);
      if (s.near <= 0 || i < 0 || j < 0 || i >= w_ || j >= h_) {
        ++open;
        continue;
      }
      const float there = at(i, j).near;
      const float in_front = there > 0 ? 1 / s.near - 1 / there : -1.0f;  // > 0: something hides the point
      open += in_front > 0.002f && in_front < 2.5f * kOcclusionRadius ? 0.0f : 1.0f;
    }
    return open / kTaps;
  }

  Vec3f background(int x, int y) const {
    const float u = (static_cast<float>(x) / static_cast<float>(w_) - 0.5f) / 0.85f,
                v = (static_cast<float>(y) / static_cast<float>(h_) - 0.42f) / 0.75f;
    const float r = std::min(1.0f, std::sqrt(u * u + v * v)) * 255;
    const auto i = static_cast<std::size_t>(std::min(254.0f, r));
    return background_[i] + (r - static_cast<float>(i)) * (background_[i + 1] - background_[i]);
  }

  Vec3f lit(const Vec3f& albedo, const Vec3f& p, const Vec3f& n, const Vec3f& to_eye, float gloss, int x,
            int y) {
    const float sun = std::max(0.0f, n.dot(kSun));
    const float shade = sun > 0 ? sunlight(p, n, x, y) : 0.0f;
    const float open = openness(p, n, x, y);
    // Light from above is stronger and cooler than what the floor reflects.
    const float sky = 0.5f + 0.5f * n.y();
    const Vec3f around =
        light_.ambient * (sky * Vec3f(0.60f, 0.62f, 0.65f) + (1 - sky) * Vec3f(0.32f, 0.31f, 0.30f));
    const float rim = 0.16f * std::max(0.0f, n.dot(kRim));
    const Vec3f half = (kSun + to_eye).normalized();
    const float grazing = 1 - std::max(0.0f, n.dot(to_eye));
    const float shine = gloss * (0.25f * shade * power_32(std::max(0.0f, n.dot(half))) +
                                 0.10f * grazing * grazing * grazing * grazing * open * sky);
    return albedo.cwiseProduct(around * (0.25f + 0.75f * open) * open +
                               Vec3f::Constant(light_.sun * 0.62f * sun * shade + rim)) +
           Vec3f::Constant(shine);
  }

  Vec3f shade(int x, int y) {
    const Hit hit = at(x, y);
    if (hit.near <= 0) return background(x, y);
    const Vec3f d = direction(x, y), p = eye_ + d / hit.near, to_eye = -d.normalized();
    return hit.triangle >= 0 ? shade_surface(hit, p, to_eye, x, y) : shade_floor(hit, p, to_eye, x, y);
  }

  Vec3f shade_floor(const Hit& hit, const Vec3f& p, const Vec3f& to_eye, int x, int y) {
    const Floor& floor = floors_[static_cast<std::size_t>(-2 - hit.triangle)];
    const Vec3f q = p - floor.point;
    const float far = q.norm() / 4;
    const float fade = 1 - smoothstep(0.25f, 0.95f, far);
    const Vec3f behind = background(x, y);
    if (fade <= 0) return behind;
    Vec3f u, v;
    tangents(floor.normal, u, v);
    // Width of a sample on the floor, in cells; lines grow thinner than a sample and vanish.
    const float grid = static_cast<float>(floor.grid);
    const float cell =
        static_cast<float>(s_) / (focal_ * hit.near * grid * std::max(0.05f, to_eye.dot(floor.normal)));
    auto line = [&](float c) {
      const float r = std::abs(c / grid - std::round(c / grid));
      return 1 - smoothstep(0.35f * cell, 1.0f * cell, r);
    };
    const float on_line = std::max(line(q.dot(u)), line(q.dot(v))) * (1 - smoothstep(0.1f, 0.4f, cell));
    const Vec3f &a = floor_color_, &b = floor_line_;
    return behind + fade * (lit(a + 0.5f * on_line * (b - a), p, floor.normal, to_eye, 0, x, y) - behind);
  }

  Vec3f shade_surface(const Hit& hit, const Vec3f& p, const Vec3f& to_eye, int x, int y) {
    const auto k = 3 * static_cast<std::size_t>(hit.triangle);
    const Paint& paint = paints_[t_.paint[static_cast<std::size_t>(hit.triangle)]];
    const std::array<float, 3> screen{1 - hit.b1 - hit.b2, hit.b1, hit.b2};
    // Barycentrics in space: divided by the depth.
    std::array<float, 3> b;
    for (std::size_t c = 0; c < 3; ++c) b[c] = screen[c] * screen_[k + c].near / hit.near;
    Vec3f n = b[0] * t_.normal[k] + b[1] * t_.normal[k + 1] + b[2] * t_.normal[k + 2];
    n = n.squaredNorm() > 0 ? n.normalized() : to_eye;
    if (n.dot(to_eye) < 0) n = n - 2 * n.dot(to_eye) * to_eye;  // seen from behind, or bent over the horizon
    const float value = b[0] * t_.value[k] + b[1] * t_.value[k + 1] + b[2] * t_.value[k + 2];
    Vec3f albedo = color(paint, value, k, x, y);
    if (paint.edges) {
      const float area = std::abs((screen_[k + 1].x - screen_[k].x) * (screen_[k + 2].y - screen_[k].y) -
                                  (screen_[k + 2].x - screen_[k].x) * (screen_[k + 1].y - screen_[k].y));
      float nearest = 1e9f;
      for (std::size_t c = 0; c < 3; ++c) {
        if (t_.hidden[static_cast<std::size_t>(hit.triangle)] >> c & 1) continue;
        const Projected &e = screen_[k + (c + 1) % 3], &f = screen_[k + (c + 2) % 3];
        nearest = std::min(nearest, screen[c] * area / std::max(1e-6f, std::hypot(f.x - e.x, f.y - e.y)));
      }
      const float small = smoothstep(6.0f, 2.0f, std::sqrt(area) / static_cast<float>(s_));
      const float line = (1 - smoothstep(0.4f, 1.1f, nearest / static_cast<float>(s_))) * (1 - small);
      albedo += 0.75f * line * (Vec3f(0.01f, 0.012f, 0.016f) - albedo);
    }
    return lit(albedo, p, n, to_eye, paint.gloss, x, y);
  }

  Vec3f color(const Paint& paint, float value, std::size_t k, int x, int y) const {
    if (paint.mode == Paint::kPlain) return linear_vec(paint.base);
    if (paint.highlight) return linear_vec(value > 0.5f ? highlight_color() : paint.base);
    if (paint.mode == Paint::kCategories) {
      const auto c = static_cast<std::size_t>(std::max(0.0f, std::round(value)));
      Vec3f base = linear_vec(category_color(c));
      // Hatching, as on the page: neighbours differ by more than their colour.
      const float sx = static_cast<float>(x) / static_cast<float>(s_),
                  sy = static_cast<float>(y) / static_cast<float>(s_);
      const std::size_t pattern = c % 4;
      const float along = pattern == 1 ? (sx - sy) * 0.7071f : pattern == 2 ? (sx + sy) * 0.7071f : sy;
      const float stripe = std::abs(along / 11 - std::floor(along / 11) - 0.5f);
      if (pattern > 0) base *= 1 - 0.25f * smoothstep(0.18f, 0.08f, stripe);
      return base;
    }
    const auto scaled = [&](float v) { return paint.log ? std::log10(std::max(v, 1e-30f)) : v; };
    const float v = scaled(value);
    const float u = std::clamp(
        (v - static_cast<float>(paint.low)) / static_cast<float>(std::max(paint.high - paint.low, 1e-30)),
        0.0f, 1.0f);
    const float place = u * 255;
    const auto i = static_cast<std::size_t>(std::min(254.0f, place));
    Vec3f base = map_[i] + (place - static_cast<float>(i)) * (map_[i + 1] - map_[i]);
    if (paint.tick > 0) {
      // How fast the value changes on the screen, from the triangle's corners.
      const Projected &a = screen_[k], &b = screen_[k + 1], &c = screen_[k + 2];
      const float v0 = scaled(t_.value[k]), d1 = scaled(t_.value[k + 1]) - v0,
                  d2 = scaled(t_.value[k + 2]) - v0;
      const float area = (b.x - a.x) * (c.y - a.y) - (c.x - a.x) * (b.y - a.y);
      const float gx = (d1 * (c.y - a.y) - d2 * (b.y - a.y)) / area,
                  gy = (d2 * (b.x - a.x) - d1 * (c.x - a.x)) / area;
      const float tick = static_cast<float>(paint.tick);
      const float rate =
          std::max(1e-6f, std::hypot(gx, gy) * static_cast<float>(s_) / tick);  // ticks per pixel
      const float s = v / tick, off = std::abs(s - std::round(s)) / rate;
      base *= 1 - 0.45f * (1 - smoothstep(0.4f, 1.2f, off)) * (1 - smoothstep(0.12f, 0.35f, rate));
    }
    return base;
  }

  const Triangles& t_;
  const std::vector<Paint>& paints_;
  const std::vector<Floor>& floors_;
  const Lighting& light_;
  int s_, w_, h_;  // samples per pixel and direction; size in samples
  Vec3f eye_, forward_, right_, up_, sun_u_, sun_v_;
  float focal_ = 1;
  std::array<Vec3f, 256> map_, background_;
  std::array<float, kTaps> spiral_radius_;
  Vec3f low_ = Vec3f::Constant(1e9f), high_ = Vec3f::Constant(-1e9f);  // of the triangles
  Vec3f floor_color_, floor_line_;
  std::vector<float> tiles_ = std::vector<float>(kTiles * kTiles, 0.0f);
  std::vector<float> shadow_;
  std::vector<Projected> screen_;
  std::vector<Hit> hits_;
};

}  // namespace

void Triangles::add(const std::array<Vec3f, 3>& p, const std::array<Vec3f, 3>& n,
                    const std::array<float, 3>& v, std::uint8_t paint_index, std::uint8_t hidden_edges) {
  position.insert(position.end(), p.begin(), p.end());
  normal.insert(normal.end(), n.begin(), n.end());
  value.insert(value.end(), v.begin(), v.end());
  paint.push_back(paint_index);
  hidden.push_back(hidden_edges);
}

Lighting lighting(bool dark) {
  if (dark)
    return {from_hex(0x343c46), from_hex(0x15181d), from_hex(0x3a424c), from_hex(0x77838f), 1.0f, 0.92f};
  return {from_hex(0xffffff), from_hex(0xd9dfe6), from_hex(0xdce1e6), from_hex(0x97a2ae), 1.05f, 1.05f};
}

Image render(const Triangles& triangles, const std::vector<Paint>& paints, const Camera& camera,
             const std::vector<Floor>& floors, const Lighting& light, int width, int height, int samples) {
  return Renderer(triangles, paints, camera, floors, light, width, height, samples).run();
}

}  // namespace limber::view
