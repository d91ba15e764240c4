// From a scene's obstacles and a body's mesh to a ContactModel.
#pragma once

#include <limber/contact/detect.hpp>
#include <limber/fem/elements.hpp>

#include <string>
#include <vector>

namespace limber {

struct ContactSpec;
struct ObstacleSpec;

// The obstacle that the scene describes. Mesh files are relative to `folder`; `friction` is used when the
// obstacle has none of its own. Motions turn about the obstacle's point (plane, sphere, box), the middle of
// the capsule, or the origin of the mesh file.
Obstacle make_obstacle(const ObstacleSpec& spec, const std::string& folder, double friction);

// Fills in which nodes can touch the model's obstacles, and how stiffly. `notices` receives a line about each
// obstacle that is so thin that it can slip between the nodes of a body.
void set_touching_nodes(const ContactSpec& spec, const fem::ElementInput& mesh, ContactModel& model,
                        std::vector<std::string>* notices = nullptr);

}  // namespace limber
