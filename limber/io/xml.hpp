// As much XML as VTK files use: tags with attributes, text between them, comments. No entities beyond the
// five.
#pragma once

#include <limber/io/cursor.hpp>

#include <map>
#include <string>

namespace limber::io {

struct XmlTag {
  std::string name;
  std::map<std::string, std::string> attributes;
  bool closing = false;  // </name>
  bool empty = false;    // <name/>
  std::size_t end = 0;   // position after '>'

  // The value of an attribute, or `otherwise`.
  std::string get(const std::string& key, const std::string& otherwise = "") const;
};

// Reads up to and including the next tag; false at the end of the file.
bool next_tag(Cursor& in, XmlTag& tag);

}  // namespace limber::io
