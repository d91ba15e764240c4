// Shapes of links as obstacles that move, for soft bodies and cloth that touch them.
#pragma once

#include <limber/contact/obstacle.hpp>
#include <limber/rigid/mechanism.hpp>

#include <vector>

namespace limber::rigid {

struct LinkObstacle {
  Obstacle obstacle;
  Index link = 0;
  Pose pose;  // of the shape in the frame of the link
};

// One for each shape that is there for contact ("contact": true), with this friction.
std::vector<LinkObstacle> link_obstacles(const Mechanism& mechanism, double friction);
Index count_link_obstacles(const Mechanism& mechanism);

// The shape goes from `from` at the time t to `to` at t + h (poses in the world).
void set_motion(const Pose& from, const Pose& to, double t, double h, Obstacle& obstacle);

}  // namespace limber::rigid
