#include <limber/io/xml.hpp>

#include <fmt/format.h>

namespace limber::io {
namespace {

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == ':' || c == '.';
}

std::string unescape(std::string_view text) {
  static constexpr std::pair<std::string_view, char> kEntities[] = {
      {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
  std::string out;
  while (!text.empty()) {
    char c = text[0];
    std::size_t used = 1;
    for (const auto& [entity, plain] : kEntities)
      if (text.starts_with(entity)) {
        c = plain;
        used = entity.size();
      }
    out += c;
    text.remove_prefix(used);
  }
  return out;
}

// Skips past `mark`, or fails.
void skip_past(Cursor& in, std::string_view mark) {
  const std::size_t found = in.rest().find(mark);
  if (found == std::string_view::npos) in.fail(fmt::format("the file ends here, expected \"{}\"", mark));
  in.bytes(found + mark.size(), "text");
}

std::string name(Cursor& in) {
  std::size_t n = 0;
  while (n < in.remaining() && is_name(in.rest()[n])) ++n;
  if (n == 0) in.fail("expected a name in this XML tag");
  return std::string(in.bytes(n, "a name"));
}

char peek(Cursor& in) {
  if (in.at_end()) in.fail("the file ends inside an XML tag");
  return in.rest()[0];
}

}  // namespace

std::string XmlTag::get(const std::string& key, const std::string& otherwise) const {
  const auto it = attributes.find(key);
  return it == attributes.end() ? otherwise : it->second;
}

bool next_tag(Cursor& in, XmlTag& tag) {
  for (;;) {
    const std::size_t open = in.rest().find('<');
    if (open == std::string_view::npos) return false;
    in.bytes(open, "text");
    if (in.rest().starts_with("<!--")) {
      skip_past(in, "-->");
    } else if (in.rest().starts_with("<?")) {
      skip_past(in, "?>");
    } else if (in.rest().starts_with("<!")) {
      skip_past(in, ">");
    } else {
      break;
    }
  }
  in.bytes(1, "<");
  tag = {};
  if (peek(in) == '/') {
    tag.closing = true;
    in.bytes(1, "/");
  }
  tag.name = name(in);
  for (;;) {
    in.skip_space();
    const char c = peek(in);
    if (c == '>') break;
    if (c == '/') {
      tag.empty = true;
      in.bytes(1, "/");
      if (peek(in) != '>') in.fail("found \"/\" inside an XML tag, expected \"/>\"");
      break;
    }
    const std::string key = name(in);
    in.skip_space();
    if (peek(in) != '=') in.fail(fmt::format("expected \"=\" after attribute \"{}\"", key));
    in.bytes(1, "=");
    in.skip_space();
    const char quote = peek(in);
    if (quote != '"' && quote != '\'')
      in.fail(fmt::format("expected a quoted value of attribute \"{}\"", key));
    in.bytes(1, "quote");
    const std::size_t n = in.rest().find(quote);
    if (n == std::string_view::npos) in.fail(fmt::format("the value of attribute \"{}\" has no end", key));
    tag.attributes[key] = unescape(in.bytes(n, "a value"));
    in.bytes(1, "quote");
  }
  in.bytes(1, ">");
  tag.end = in.position();
  return true;
}

const XmlElement* XmlElement::child(const std::string& name) const {
  for (const XmlElement& e : children)
    if (e.tag.name == name) return &e;
  return nullptr;
}

std::vector<const XmlElement*> XmlElement::all(const std::string& name) const {
  std::vector<const XmlElement*> out;
  for (const XmlElement& e : children)
    if (e.tag.name == name) out.push_back(&e);
  return out;
}

XmlElement read_xml(Cursor& in) {
  const std::string_view text = in.rest();
  const std::size_t start = in.position();
  std::vector<XmlElement> open(1);  // the path from the root to here
  XmlTag tag;
  std::size_t counted = 0;
  int line = 1;
  while (next_tag(in, tag)) {
    for (; counted < tag.end - start; ++counted) line += text[counted] == '\n';
    if (!tag.closing) {
      if (open.size() > 100) in.fail("XML elements are nested more than 100 deep");
      open.push_back({tag, line, {}});
      if (!tag.empty) continue;
    } else if (open.size() == 1 || open.back().tag.name != tag.name) {
      in.fail(fmt::format("found </{}>, expected {}", tag.name,
                          open.size() == 1 ? "no closing tag" : "</" + open.back().tag.name + ">"));
    }
    XmlElement done = std::move(open.back());
    open.pop_back();
    open.back().children.push_back(std::move(done));
  }
  if (open.size() > 1)
    in.fail(fmt::format("the file ends before </{}>, which belongs to line {}", open.back().tag.name,
                        open.back().line));
  return std::move(open.front());
}

}  // namespace limber::io
