#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/material/evaluate.hpp>
#include <limber/material/lame.hpp>
#include <limber/scene/bone_files.hpp>
#include <limber/scene/load.hpp>
#include <limber/scene/method_spec.hpp>
#include <limber/scene/read.hpp>
#include <limber/scene/spec.hpp>
#include <limber/scene/suggest.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace limber {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOverride = "--set";
// More than a scene may have, so that the message about scenes that are too large is the one of parse_json.
constexpr std::uint64_t kMostRead = 64 << 20;

class Loader {
 public:
  std::vector<Problem> problems;
  Marks marks;
  Json scene = Json::object();

  // Merges a file over what has been merged so far, its includes first.
  void merge_file(std::string_view text, const std::string& path, bool main) {
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
      problems.push_back({{path, 1}, "", "the file is empty; a scene is an object: { \"limber\": 1, ... }"});
      broken = true;
      return;
    }
    Marks own;
    const Json document = parse_json(text, path, own, problems);
    if (document.is_discarded()) {
      broken = true;
      return;
    }
    if (!document.is_object()) {
      problems.push_back({{path, 1}, "", "a scene is an object: { \"limber\": 1, ... }"});
      broken = true;
      return;
    }
    if (const auto include = document.find("include"); include != document.end()) {
      std::vector<std::pair<std::string, std::string>> files;  // name, pointer
      if (include->is_string()) files.emplace_back(include->get<std::string>(), "/include");
      for (std::size_t i = 0; include->is_array() && i < include->size(); ++i)
        if ((*include)[i].is_string())
          files.emplace_back((*include)[i].get<std::string>(), fmt::format("/include/{}", i));
      for (const auto& [name, pointer] : files) merge_include(name, pointer, path, own);
    }
    merge("", scene, document, own, main);
  }

  void apply_override(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string pointer = text.substr(0, equals);
    const auto wrong = [&](const std::string& why) { problems.push_back({{kOverride, 0}, pointer, why}); };
    if (equals == std::string::npos || pointer.empty() || pointer[0] != '/')
      return wrong("expected a JSON pointer and a value, as in --set /method/beta=0.5");
    const std::string value_text = text.substr(equals + 1);
    std::vector<Problem> ignored;
    Marks own;
    Json value = parse_json(value_text, kOverride, own, ignored);
    if (value.is_discarded()) {
      if (!value_text.empty() && std::string_view("[{\"").find(value_text[0]) != std::string_view::npos)
        return wrong(ignored.back().message);
      value = value_text;
    }
    Json* at = &scene;
    std::string passed;
    for (std::size_t from = 1;;) {
      const std::size_t slash = pointer.find('/', from);
      std::string key = pointer.substr(from, slash == std::string::npos ? slash : slash - from);
      passed += "/" + key;
      for (std::size_t tilde = 0; (tilde = key.find('~', tilde)) != std::string::npos; ++tilde)
        key.replace(tilde, std::min<std::size_t>(2, key.size() - tilde),
                    key.substr(tilde, 2) == "~1" ? "/" : "~");
      const bool last = slash == std::string::npos;
      if (at->is_null() && key == "-") *at = Json::array();
      if (at->is_array()) {
        std::size_t i = 0;
        const auto r = std::from_chars(key.data(), key.data() + key.size(), i);
        if (key == "-")
          i = at->size();
        else if (r.ec != std::errc() || r.ptr != key.data() + key.size() || i >= at->size())
          return wrong(fmt::format("there is no {}; the list has {} items{}", passed, at->size(),
                                   at->empty() ? "" : fmt::format(", 0 to {}", at->size() - 1)));
        if (i == at->size()) at->push_back(Json::object());
        at = &(*at)[i];
      } else {
        // A missing or plain value on the way becomes an object; the checks will say if it must not be one.
        if (!at->is_object()) *at = Json::object();
        if (last && value.is_null()) {
          at->erase(key);
          return;
        }
        at = &(*at)[key];
      }
      if (last) break;
      from = slash + 1;
    }
    *at = value;
    mark_all(pointer, value);
  }

  bool broken = false;

 private:
  void merge_include(const std::string& name, const std::string& pointer, const std::string& path,
                     const Marks& own) {
    const std::string file = (fs::path(path).parent_path() / name).lexically_normal().string();
    std::error_code ec;
    const std::string identity = fs::weakly_canonical(file, ec).string();
    const auto wrong = [&](const std::string& why) {
      problems.push_back({own.find(pointer), pointer, why});
      broken = true;
    };
    if (std::find(chain_.begin(), chain_.end(), identity) != chain_.end())
      return wrong(
          fmt::format("{} includes itself, directly or through others; remove one of the includes", file));
    if (chain_.size() > 20) return wrong("includes are nested more than 20 deep");
    if (++included_ > 1000) return wrong("more than 1000 files are included");
    std::string text;
    try {
      text = read_file(file, kMostRead);
    } catch (const Error& e) {
      return wrong(e.what());
    }
    chain_.push_back(identity);
    merge_file(text, file, false);
    chain_.pop_back();
  }

  // RFC 7396, with the marks of what comes from `own`.
  void merge(const std::string& pointer, Json& target, const Json& patch, const Marks& own, bool main) {
    if (!patch.is_object()) {
      target = patch;
      marks.copy(own, pointer, patch);
      return;
    }
    if (!target.is_object()) target = Json::object();
    marks.set(pointer, own.find(pointer));
    for (const auto& [key, value] : patch.items()) {
      if (pointer.empty() && key == "include" && !main) continue;
      if (value.is_null())
        target.erase(key);
      else
        merge(pointer + "/" + escape_key(key), target[key], value, own, main);
    }
  }

  void mark_all(const std::string& pointer, const Json& value) {
    Marks none;
    marks.copy(none, pointer, value);
    marks.set(pointer, {kOverride, 0});
  }

  std::vector<std::string> chain_;
  int included_ = 0;

 public:
  void begin(const std::string& path) {
    std::error_code ec;
    chain_.push_back(fs::weakly_canonical(path, ec).string());
  }
};

bool is_setting(const Json& event) {
  return event.is_object() && event.contains("type") && event["type"] == "set";
}

constexpr const char* kNewBody = "/bodies/-";  // the pointer (RFC 6901) to the body after the last one

// What an event may set: all that does not change what nodes there are, what holds them and when. New ones
// may come.
bool may_be_set(const std::string& pointer) {
  if (pointer == kNewBody) return true;
  const auto at = [&](std::string_view root, std::size_t from = 0) {
    return pointer.compare(from, root.size(), root) == 0 &&
           (pointer.size() == from + root.size() || pointer[from + root.size()] == '/');
  };
  for (const char* root : {"/gravity", "/damping", "/method", "/contact", "/solver"})
    if (at(root)) return true;
  if (!at("/bodies")) return false;
  const std::size_t slash = pointer.find('/', 8);
  if (slash == std::string::npos) return false;
  for (const char* of_body : {"/material", "/regions", "/bending"})
    if (at(of_body, slash)) return true;
  return false;
}

// Checks between different parts of the scene, and the defaults that depend on other parts. Anything of the
// wrong form has been reported by the spec; here it is passed over.
class References {
  static constexpr std::size_t kListed = 20;  // names in a message

 public:
  References(Json& scene, const Marks& marks, std::vector<Problem>& problems)
      : scene_(scene), marks_(marks), problems_(problems) {}

  void run() {
    name_bodies();
    name_obstacles();
    method_fits();
    collect_names("/activations", activations_);
    bones_fit();
    for (const char* list : {"/constraints", "/bones", "/events", "/attachments", "/probes"})
      each(list, [&](Json& item, const std::string& pointer) {
        if (!is_setting(item)) body_of(item, pointer);
      });
    const std::unordered_set<std::string> later = bodies_to_come();
    each("/forces", [&](Json& item, const std::string& pointer) {
      const bool waits = item.is_object() && item.contains("body") && item["body"].is_string() &&
                         later.contains(item["body"].get<std::string>());
      if (!waits) body_of(item, pointer);
    });
    each("/bodies", [&](Json& body, const std::string& pointer) {
      poisson_fits(body, pointer);
      if (body.contains("material")) fibre_channel(body["material"], pointer + "/material");
      if (body.contains("regions") && body["regions"].is_array())
        for (std::size_t i = 0; i < body["regions"].size(); ++i)
          fibre_channel(body["regions"][i], fmt::format("{}/regions/{}", pointer, i));
    });
    probes_fit();
    each("/output/bodies", [&](Json& name, const std::string& pointer) { known_body(name, pointer); });
  }

 private:
  void problem(const std::string& pointer, const std::string& message) {
    problems_.push_back({marks_.find(pointer), pointer, message});
  }

  template <class F>
  void each(const std::string& pointer, F&& f) {
    const Json::json_pointer at(pointer);
    if (!scene_.contains(at) || !scene_[at].is_array()) return;
    Json& list = scene_[at];
    for (std::size_t i = 0; i < list.size(); ++i) f(list[i], fmt::format("{}/{}", pointer, i));
  }

  // Names in their order, and whether there is one: scenes may have thousands of bodies.
  struct Names {
    std::vector<std::string> list;
    std::unordered_set<std::string> set;

    bool has(const std::string& name) const { return set.count(name) > 0; }
    void add(const std::string& name) {
      list.push_back(name);
      set.insert(name);
    }
  };

  void collect_names(const std::string& pointer, Names& names) {
    each(pointer, [&](Json& item, const std::string& at) {
      if (!item.is_object() || !item.contains("name") || !item["name"].is_string()) return;
      const std::string name = item["name"].get<std::string>();
      if (names.has(name))
        problem(at + "/name", fmt::format("the name \"{}\" is taken; names must differ", name));
      names.add(name);
    });
  }

  void name_bodies() {
    collect_names("/bodies", bodies_);
    std::unordered_map<std::string, int> last;  // number given to a base name
    each("/bodies", [&](Json& body, const std::string&) {
      if (!body.is_object() || body.contains("name")) return;
      std::string base = "body";
      if (const auto mesh = body.find("mesh"); mesh != body.end()) {
        if (mesh->is_string())
          base = fs::path(mesh->get<std::string>()).stem().string();
        else if (mesh->is_object() && mesh->contains("shape") && (*mesh)["shape"].is_string())
          base = (*mesh)["shape"].get<std::string>();
      }
      for (char& c : base)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-') c = '_';
      if (base.empty()) base = "body";
      std::string name = base;
      for (int& n = last.emplace(base, 1).first->second; bodies_.has(name);)
        name = fmt::format("{}-{}", base, ++n);
      bodies_.add(name);
      Json named = Json::object();  // the name goes first
      named["name"] = name;
      named.update(body);
      body = std::move(named);
    });
  }

  // Messages and the page name obstacles: those without a name are called after their shape.
  void name_obstacles() {
    Names names;
    std::unordered_map<std::string, int> last;
    const auto unnamed = [](const Json& o) {
      return o.is_object() && o.contains("name") && o["name"].is_string() &&
             o["name"].get_ref<const std::string&>().empty();
    };
    each("/obstacles", [&](Json& o, const std::string&) {
      if (!unnamed(o) && o.is_object() && o.contains("name") && o["name"].is_string())
        names.add(o["name"].get<std::string>());
    });
    each("/obstacles", [&](Json& o, const std::string&) {
      if (!unnamed(o) || !o.contains("shape") || !o["shape"].is_string()) return;
      const std::string base = o["shape"].get<std::string>();
      std::string name = base;
      for (int& n = last.emplace(base, 1).first->second; names.has(name);)
        name = fmt::format("{}-{}", base, ++n);
      names.add(name);
      o["name"] = name;
    });
  }

  bool any(const char* list) const { return scene_.contains(list) && !scene_[list].empty(); }

  // Soft bodies, links, and a method that moves them.
  void method_fits() {
    const bool links = any("links") || any("robots");
    if (!any("bodies") && !links)
      return problem("", "\"bodies\" is missing: expected soft bodies (\"bodies\"), \"links\" or \"robots\"");
    const Json::json_pointer at("/method/type");
    if (!scene_.contains(at) || !scene_[at].is_string()) return;
    const std::string name = scene_[at].get<std::string>();
    const std::vector<const MethodSpec*> all = method_specs();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const MethodSpec* m) { return m->name == name; });
    if (found == all.end()) return;  // reported by the spec
    const MethodSpec& method = **found;
    const Capabilities& can = method.can;
    std::vector<std::string> for_links;
    for (const MethodSpec* m : all)
      if (m->can.links && !m->can.bodies) for_links.push_back(fmt::format("\"{}\"", m->name));
    if (!can.bodies && any("bodies"))
      problem(
          "/method/type",
          fmt::format("\"{}\" moves links only, but there are soft bodies; choose a method for both", name));
    if (!can.bodies && !links)
      problem("/method/type",
              fmt::format("\"{}\" moves links, but there are none; add \"links\" or \"robots\"", name));
    if (can.bodies && !any("bodies"))
      problem("/method/type",
              fmt::format("\"{}\" moves soft bodies, but there are none; links alone are moved by {}", name,
                          joined(for_links, ", ")));
    if (any("attachments") && !links)
      problem("/attachments", "there are no links to attach nodes to; add \"links\" or \"robots\"");
    if (can.bodies && !can.links && any("bodies") && links)
      problem("/method/type", fmt::format("\"{}\" does not move links together with soft bodies", name));
    bool cuts = false;
    each("/events", [&](Json& item, const std::string&) { cuts |= !is_setting(item); });
    if (!can.cuts && any("bodies") && cuts)
      problem("/events",
              fmt::format("\"{}\" does not cut bodies; remove the events, or choose another method", name));
    const Json::json_pointer fields("/output/fields");
    if (can.bending && scene_.contains(fields) && scene_[fields].is_array())
      for (std::size_t i = 0; i < scene_[fields].size(); ++i)
        if (scene_[fields][i] == "reaction")
          problem(fmt::format("/output/fields/{}", i),
                  fmt::format(
                      "the method \"{}\" has forces of bending and sliding that reactions do not see; leave "
                      "\"reaction\" out",
                      name));
    if (method.check)
      method.check(scene_,
                   [&](const std::string& pointer, const std::string& what) { problem(pointer, what); });
  }

  void known_body(const Json& name, const std::string& pointer) {
    if (!name.is_string()) return;
    const auto& text = name.get_ref<const std::string&>();
    if (!bodies_.has(text))
      problem(pointer,
              fmt::format("there is no body \"{}\"{}", text, did_you_mean_one_of(text, bodies_.list)));
  }

  // Names of those that events add; forces may act on them.
  std::unordered_set<std::string> bodies_to_come() {
    std::unordered_set<std::string> names;
    each("/events", [&](Json& event, const std::string&) {
      if (!is_setting(event) || !event.contains("path") || event["path"] != kNewBody) return;
      if (event.contains("value") && event["value"].is_object() && event["value"].contains("name") &&
          event["value"]["name"].is_string())
        names.insert(event["value"]["name"].get<std::string>());
    });
    return names;
  }

  void body_of(Json& item, const std::string& pointer) {
    if (!item.is_object()) return;
    if (item.contains("body")) return known_body(item["body"], pointer + "/body");
    const std::vector<std::string>& names = bodies_.list;
    if (names.size() == 1)
      item["body"] = names[0];
    else if (names.size() > kListed)
      problem(pointer, fmt::format("\"body\" is missing: there are {}, from \"{}\" to \"{}\"", names.size(),
                                   names.front(), names.back()));
    else if (names.size() > 1)
      problem(pointer, fmt::format("\"body\" is missing: there are several; expected one of \"{}\"",
                                   joined(names, "\", \"")));
  }

  // Values of nodes are asked of nodes, and those of elements of elements.
  void probes_fit() {
    Names names;
    collect_names("/probes", names);
    const std::vector<std::pair<std::string, std::string>> values = value_meanings("/probes/*/value");
    each("/probes", [&](Json& probe, const std::string& pointer) {
      if (!probe.is_object() || !probe.contains("value")) return;
      const auto known = std::find_if(values.begin(), values.end(),
                                      [&](const auto& v) { return probe["value"] == v.first; });
      if (known == values.end()) return;
      const char* wrong = known->second.starts_with("of nodes") ? "elements" : "nodes";
      if (probe.contains(wrong))
        problem(pointer + "/" + wrong,
                fmt::format("\"{}\" is a value {}; expected \"{}\"", known->first,
                            known->second.starts_with("of nodes") ? "of nodes" : "of elements",
                            known->second.starts_with("of nodes") ? "nodes" : "elements"));
    });
  }

  // Bones are carried by earlier ones, and the rest shape is where they are at time 0.
  void bones_fit() {
    Names names;
    each("/bones", [&](Json& bone, const std::string& pointer) {
      if (!bone.is_object()) return;
      const auto text = [&](const char* key) {
        return bone.contains(key) && bone[key].is_string() ? bone[key].get<std::string>() : std::string();
      };
      if (const std::string parent = text("parent"); !parent.empty() && !names.has(parent))
        problem(pointer + "/parent", fmt::format("there is no bone \"{}\" before this one{}", parent,
                                                 did_you_mean_one_of(parent, names.list)));
      const std::string name = text("name");
      if (!name.empty() && names.has(name))
        problem(pointer + "/name", fmt::format("the name \"{}\" is taken; names must differ", name));
      names.add(name);
      if (bone.contains("bvh") && bone.contains("gltf"))
        problem(pointer + "/gltf", "there are two files for the same motion; expected one of them");
      if (!bone.contains("motion") || !bone["motion"].is_array() || bone["motion"].empty()) return;
      for (const char* format : {"bvh", "gltf"})
        if (bone.contains(format))
          problem(fmt::format("{}/{}", pointer, format),
                  "there are keys and a file for the same motion; expected one of them");
      const Json& first = bone["motion"][0];
      const auto zero = [&](const char* key) {
        return !first.contains(key) || !first[key].is_array() ||
               std::all_of(first[key].begin(), first[key].end(),
                           [](const Json& v) { return v.is_number() && v.get<double>() == 0; });
      };
      if (first.is_object() && !(zero("rotation") && zero("translation")))
        problem(pointer + "/motion/0",
                "a bone begins in the rest shape: expected a first key without rotation and translation");
    });
  }

  // Some models allow less than the physical range (material/lame.hpp). Formulas and arrays are checked
  // element by element when the mesh is known.
  void poisson_fits(const Json& body, const std::string& pointer) {
    const Json::json_pointer at("/material/model");
    if (!body.is_object() || !body.contains(at) || !body[at].is_string()) return;
    const std::string model = body[at].get<std::string>();
    const std::vector<std::pair<std::string, std::string>> models =
        value_meanings("/bodies/*/material/model");
    if (std::none_of(models.begin(), models.end(), [&](const auto& m) { return m.first == model; })) return;
    if (body["material"].contains("energy")) {
      if (model != models.front().first)  // that one is there by default
        problem(pointer + "/material/model",
                "\"energy\" stands in the place of \"model\"; leave one of the two out");
      return;
    }
    const double least = material::least_poisson(model);
    const auto check = [&](const Json& o, const std::string& where) {
      if (!o.is_object() || !o.contains("poisson") || !o["poisson"].is_number()) return;
      const double value = o["poisson"].get<double>();
      if (value >= least || !(value > -1)) return;
      std::string others;
      for (const auto& [name, meaning] : models)
        if (material::least_poisson(name) <= value)
          others += fmt::format("{}\"{}\"", others.empty() ? "" : ", ", name);
      problem(where + "/poisson",
              fmt::format("expected a number in [{}, 0.5) for the model \"{}\", found {}; "
                          "such a body can be made of {}",
                          least, model, value, others));
    };
    check(body["material"], pointer + "/material");
    if (body.contains("regions") && body["regions"].is_array())
      for (std::size_t i = 0; i < body["regions"].size(); ++i)
        check(body["regions"][i], fmt::format("{}/regions/{}", pointer, i));
  }

  void fibre_channel(const Json& material, const std::string& pointer) {
    if (!material.is_object() || !material.contains("fibre") || !material["fibre"].is_object()) return;
    const auto channel = material["fibre"].find("activation");
    if (channel == material["fibre"].end() || !channel->is_string()) return;
    const auto& name = channel->get_ref<const std::string&>();
    if (!name.empty() && !activations_.has(name))
      problem(pointer + "/fibre/activation", fmt::format("there is no activation \"{}\"{}", name,
                                                         did_you_mean_one_of(name, activations_.list)));
  }

  Json& scene_;
  const Marks& marks_;
  std::vector<Problem>& problems_;
  Names bodies_, activations_;
};

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string name_from(const std::string& path) {
  std::string name = fs::path(path).stem().string().substr(0, 100);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '-' && c != '.') c = '_';
  return name.empty() || name[0] == '.' ? "scene" : name;
}

// `name`, meant from folder `from`, as it is called from folder `to`.
std::string rebased(const std::string& name, const std::string& from, const std::string& to) {
  if (fs::path(name).is_absolute()) return name;
  std::error_code ec;
  const fs::path a = fs::absolute(from, ec).lexically_normal(), b = fs::absolute(to, ec).lexically_normal();
  if (a == b) return name;
  return (a / name).lexically_normal().lexically_relative(b).string();
}

// File names are meant from the file they are written in (from the working folder on the command line); here
// they become relative to the scene's folder, and missing ones are reported.
void settle_files(Json& resolved, const std::string& folder, const Marks& marks,
                  std::vector<Problem>& problems) {
  for_each_file(resolved, [&](Json& value, const std::string& pointer) {
    if (!value.is_string()) return;
    const Mark mark = marks.find(pointer);
    const std::string given = value.get<std::string>();
    const std::string from = mark.file == kOverride ? "." : folder_of(mark.file);
    if (given.empty() || given.find('\0') != std::string::npos) return;
    value = rebased(given, from, folder);
    std::error_code ec;
    const fs::path path = fs::path(folder) / value.get<std::string>();
    const std::string shown = path.lexically_normal().string();
    if (!fs::exists(path, ec))
      problems.push_back({mark, pointer, fmt::format("there is no file {}", shown)});
    else if (const std::string kind = not_ordinary(shown); !kind.empty())
      problems.push_back({mark, pointer, fmt::format("{} is {}; expected an ordinary file", shown, kind)});
  });
}

// By file, in the order in which files were first mentioned, then by line.
void in_order_of_files(std::vector<Problem>& problems) {
  std::vector<std::string> files;
  const auto rank = [&](const Problem& p) {
    return std::find(files.begin(), files.end(), p.mark.file) - files.begin();
  };
  for (const Problem& p : problems)
    if (rank(p) == static_cast<std::ptrdiff_t>(files.size())) files.push_back(p.mark.file);
  std::stable_sort(problems.begin(), problems.end(), [&](const Problem& a, const Problem& b) {
    return std::pair(rank(a), a.mark.line) < std::pair(rank(b), b.mark.line);
  });
}

Scene scene_or_problems(LoadResult result) {
  if (result.problems.empty()) return std::move(result.scene);
  std::string message;
  for (const Problem& p : result.problems) message += (message.empty() ? "" : "\n") + to_string(p);
  if (result.problems.size() > 1) message += fmt::format("\n{} problems", result.problems.size());
  throw Error(ErrorKind::kInput, message);
}

// The scene with one value changed, as a scene; what its events say stays as it is.
LoadResult try_set(const Scene& scene, const std::string& pointer, const std::string& value) {
  Json document = *scene.resolved;
  Json cuts = Json::array();
  for (const Json& e : document["events"])
    if (!is_setting(e)) cuts.push_back(e);
  document["events"] = std::move(cuts);  // settings are checked one by one, by whom this is called
  document["forces"] = Json::array();    // some may act on bodies that are not there yet
  const std::string setting = pointer + "=" + value;
  LoadResult out = try_read_scene(document.dump(), scene.file, std::span(&setting, 1));
  for (const char* list : {"events", "forces"}) out.scene.resolved[list] = scene.resolved[list];
  out.scene.events = scene.events;
  out.scene.forces = scene.forces;  // some may have come during the run, and are no part of the text
  // A file that only an event names would stay behind when the scene is written to another folder.
  if (pointer == kNewBody && out.problems.empty()) {
    Json body{{"bodies", Json::array({out.scene.resolved["bodies"].back()})}};
    for_each_file(body, [&](Json& file, const std::string& where) {
      out.problems.push_back({{},
                              kNewBody + where.substr(std::string("/bodies/0").size()),
                              fmt::format("{} is a file; a body that comes during a run has none: expected a "
                                          "shape, as in {{\"shape\": \"sphere\", \"radius\": 0.1}}",
                                          file.dump())});
    });
  }
  return out;
}

// All that the scene will be set to, in the order of time.
void check_settings(const Scene& scene, const Marks& marks, std::vector<Problem>& problems) {
  std::vector<std::size_t> order;
  for (std::size_t e = 0; e < scene.events.size(); ++e)
    if (scene.events[e].type == "set") order.push_back(e);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scene.events[a].time < scene.events[b].time; });
  Scene now = scene;
  for (const std::size_t e : order) {
    const EventSpec& event = scene.events[e];
    const std::string pointer = fmt::format("/events/{}", e);
    if (!may_be_set(event.path)) {
      problems.push_back(
          {marks.find(pointer + "/path"), pointer + "/path",
           fmt::format("\"{}\" cannot be set during a run; expected a pointer into /gravity, /damping, "
                       "/method, /contact, /solver, to a body's material, regions or bending, or {} for "
                       "another body",
                       event.path, kNewBody)});
      continue;
    }
    LoadResult next = try_set(now, event.path, event.value);
    for (const Problem& p : next.problems)
      problems.push_back({marks.find(pointer), pointer, fmt::format("{}: {}", p.pointer, p.message)});
    if (next.problems.empty()) now = std::move(next.scene);
  }
}

}  // namespace

Scene set_value(const Scene& scene, const std::string& pointer, const std::string& value) {
  if (!may_be_set(pointer))
    throw Error(ErrorKind::kInput, fmt::format("{}: cannot be set during a run", pointer));
  return scene_or_problems(try_set(scene, pointer, value));
}

LoadResult try_read_scene(std::string_view text, const std::string& path,
                          std::span<const std::string> overrides) {
  LoadResult result;
  Loader loader;
  loader.begin(path);
  loader.merge_file(text, path, true);
  if (!loader.broken) {
    for (const std::string& o : overrides) loader.apply_override(o);
    const std::string folder = folder_of(path);
    if (!loader.scene.contains("name")) loader.scene["name"] = name_from(path);
    Json resolved = apply_spec(loader.scene, loader.marks, loader.problems);
    resolved.erase("include");
    References(resolved, loader.marks, loader.problems).run();
    settle_files(resolved, folder, loader.marks, loader.problems);
    if (loader.problems.empty()) {
      result.scene = read_resolved(resolved, loader.marks);
      result.scene.file = path;
      result.scene.folder = folder;
      read_bone_files(resolved, folder, result.scene, [&](const std::string& pointer, const char* message) {
        loader.problems.push_back({loader.marks.find(pointer), pointer, message});
      });
      check_settings(result.scene, loader.marks, loader.problems);
    }
  }
  result.problems = std::move(loader.problems);
  in_order_of_files(result.problems);
  return result;
}

LoadResult try_load_scene(const std::string& path, std::span<const std::string> overrides) {
  return try_read_scene(read_file_or_pipe(path, kMostRead), path, overrides);
}

std::vector<Problem> check_scene(const std::string& path, std::span<const std::string> overrides) {
  return try_load_scene(path, overrides).problems;
}

Scene load_scene(const std::string& path, std::span<const std::string> overrides) {
  return scene_or_problems(try_load_scene(path, overrides));
}

Scene read_scene(std::string_view text, const std::string& path, std::span<const std::string> overrides) {
  return scene_or_problems(try_read_scene(text, path, overrides));
}

Json rebase_files(const Scene& scene, const std::string& folder) {
  Json copy = *scene.resolved;
  for_each_file(copy, [&](Json& value, const std::string&) {
    value = rebased(value.get<std::string>(), scene.folder, folder);
  });
  return copy;
}

}  // namespace limber
