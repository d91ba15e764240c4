// What is inside something else before the first step: a penalty that starts deep down throws a body out,
// holds it inside for ever or turns its elements over, and nobody means that.
#pragma once

#include <limber/sim/model.hpp>

#include <string>
#include <vector>

namespace limber {

struct Overlap {
  Index body = -1;            // index into Model::bodies: parts of it are inside ...
  Index other = -1;           // ... another body, or the same when it has several pieces; -1: an obstacle
  Index obstacle = -1;        // index into Scene::obstacles, or -1
  Index nodes = 0;            // so many nodes are inside; 0: edges pass through
  double depth = 0;           // [m]
  double allowed = 0;         // less than this contact brings back gently [m]
  Vec3 where = Vec3::Zero();  // of the greatest depth [m]
};

// Bodies inside each other where they can touch (`bodies`), and inside obstacles, with nodes at x at time t.
// One entry for each pair, those that touch only are left out. Nodes that are held do not count.
std::vector<Overlap> find_overlaps(const Model& model, const VecX& x, bool bodies, double t = 0);

// Notices about all overlaps of bodies that begin at time t, those from `first_body` on; throws Error(kInput)
// that names those that are deeper than allowed, unless the scene accepts them (/contact/overlap).
std::vector<std::string> check_start(const Model& model, const VecX& x, double t = 0, Index first_body = 0);

}  // namespace limber
