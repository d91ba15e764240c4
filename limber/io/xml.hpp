// As much XML as VTK files use: tags with attributes, text between them, comments. No entities beyond the
// five.
#pragma once

#include <limber/io/cursor.hpp>

#include <map>
#include <string>
#include <vector>

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

// A whole file as a tree, for formats that are small and deeply nested.
struct XmlElement {
  XmlTag tag;
  int line = 0;  // of the tag's end, from 1
  std::vector<XmlElement> children;

  const XmlElement* child(const std::string& name) const;  // the first of that name, or nullptr
  std::vector<const XmlElement*> all(const std::string& name) const;
  bool has(const std::string& attribute) const { return tag.attributes.count(attribute) > 0; }
};

// Reads all elements; the result is their nameless parent. Fails on tags that do not match.
XmlElement read_xml(Cursor& in);

}  // namespace limber::io
