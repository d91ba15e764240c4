// The reader of bodies of round cones; see shape_reader.cpp for the format.
#pragma once

#include <limber/io/raw_mesh.hpp>

namespace limber::io {

RawMesh read_shape(const std::string& name, std::string_view data);

}  // namespace limber::io
