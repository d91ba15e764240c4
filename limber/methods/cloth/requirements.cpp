#include <limber/methods/cloth/requirements.hpp>

#include <limber/core/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace limber::cloth {

void require_cloth(const Model& model) {
  for (std::size_t b = 0; b < model.bodies.size(); ++b) {
    const Body& body = model.bodies[b];
    if (!is_sheet(body.kind))
      throw Error(
          ErrorKind::kInput,
          fmt::format("/method/type: \"cloth\" moves cloth only, and \"{}\" is none; give it triangles "
                      "and \"elements\": \"cloth\", or take another method",
                      body.name));
  }
}

void require_surface(const Model& model, const std::vector<Tri>& triangles,
                     const std::vector<Hinge>& hinges) {
  const auto refuse = [&](Index i, const std::string& what) {
    throw Error(ErrorKind::kInput,
                fmt::format("/bodies: \"{}\": {}", model.bodies[at(model.body_of_node[at(i)])].name, what));
  };
  for (std::size_t k = 0; k + 1 < hinges.size(); ++k) {
    const auto &a = hinges[k].vertex, &b = hinges[k + 1].vertex;
    if (a[0] == b[0] && a[1] == b[1])
      refuse(a[0], fmt::format("the edge between nodes {} and {} has more than two triangles; cloth must be "
                               "a surface",
                               a[0], a[1]));
  }
  std::vector<std::array<Index, 2>> directed;
  for (const Tri& t : triangles)
    for (std::size_t k = 0; k < 3; ++k) directed.push_back({t[k], t[(k + 1) % 3]});
  std::sort(directed.begin(), directed.end());
  for (std::size_t k = 1; k < directed.size(); ++k)
    if (directed[k] == directed[k - 1])
      refuse(directed[k][0],
             fmt::format("the triangles beside the edge between nodes {} and {} turn opposite "
                         "ways, or lie twice; all triangles of cloth must have the same side up",
                         directed[k][0], directed[k][1]));
}

void require_flat(const Model& model, const std::vector<Tri>& triangles,
                  const std::vector<std::optional<Chart>>& charts) {
  for (std::size_t b = 0; b < model.bodies.size(); ++b) {
    const Body& body = model.bodies[b];
    if (!charts[b])
      throw Error(
          ErrorKind::kInput,
          fmt::format("/method/mesh: cloth that is remeshed (adaptive, conformal, eol) must be flat at "
                      "rest, and \"{}\" is not, or its triangles turn both ways; take \"static\", or a "
                      "flat mesh with \"initial\" positions",
                      body.name));
    const BodySpec& spec = model.scene->bodies[b];
    if (!spec.regions.empty() || !spec.material.young.value || !spec.material.density.value ||
        !spec.material.poisson.value)
      throw Error(ErrorKind::kInput,
                  fmt::format("/bodies/{}: cloth that is remeshed has one material, found regions or numbers "
                              "that vary; take \"mesh\": \"static\"",
                              b));
  }
  std::vector<Vec2> X;
  for (std::size_t i = 0; i < model.mesh.rest.size(); ++i)
    X.push_back(charts[at(model.body_of_node[i])]->material(model.mesh.rest[i]));
  Sheet sheet = make_sheet(model.mesh.rest, std::move(X), triangles);
  for (std::size_t i = 0; i < sheet.patch.size(); ++i) sheet.patch[i] = model.body_of_node[i];
  check_sheet(sheet, "/bodies: cloth that is remeshed");
}

}  // namespace limber::cloth
