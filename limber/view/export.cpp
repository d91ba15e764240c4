#include <limber/core/error.hpp>
#include <limber/io/file.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/io/vtu.hpp>
#include <limber/view/carried_export.hpp>
#include <limber/view/export.hpp>
#include <limber/view/fields.hpp>
#include <limber/view/npz.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace limber::view {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void wrong(const std::string& message) { throw Error(ErrorKind::kUsage, message); }

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : ", ") + n;
  return out;
}

bool wanted(const ExportOptions& o, const std::string& field) {
  return o.fields.empty() || std::find(o.fields.begin(), o.fields.end(), field) != o.fields.end();
}

// Every field that the user named must exist somewhere.
void check_fields(const ReplayReader& reader, const ExportOptions& o) {
  if (o.fields.empty() || reader.topology_count() == 0) return;
  std::vector<std::string> known{"displacement", "body"};
  const ReplayTopology t = reader.topology(0);
  for (const auto* list : {&t.node_fields, &t.element_fields})
    for (const ReplayField& f : *list) known.push_back(f.name);
  if (reader.frame_count() > 0) {
    const ReplayFrame frame = reader.frame(0);
    for (const auto* list : {&frame.node_fields, &frame.element_fields})
      for (const ReplayField& f : *list) known.push_back(f.name);
  }
  for (const std::string& f : o.fields)
    if (std::find(known.begin(), known.end(), f) == known.end())
      wrong(fmt::format("--fields {}: the recording has no such field; it has {}", f, joined(known)));
}

// The body of every element of a part, by its place in the recording.
std::vector<Index> bodies_of(const ReplayTopology& whole, const Part& part) {
  std::vector<Index> of(static_cast<std::size_t>(whole.element_count()), 0);
  for (std::size_t b = 0; b < whole.bodies.size(); ++b)
    std::fill(of.begin() + whole.bodies[b].element_begin, of.begin() + whole.bodies[b].element_end,
              static_cast<Index>(b));
  std::vector<Index> out;
  for (const Index e : part.elements) out.push_back(of[static_cast<std::size_t>(e)]);
  return out;
}

// Rows of a field (components numbers each) that belong to `items`.
std::vector<float> rows_of(const std::vector<float>& values, int components,
                           const std::vector<Index>& items) {
  std::vector<float> out;
  const auto c = static_cast<std::size_t>(components);
  out.reserve(c * items.size());
  for (Index i : items) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(c * static_cast<std::size_t>(i));
    out.insert(out.end(), at, at + components);
  }
  return out;
}

// The fields of a frame, cut to a part; with the displacement and the topology's constants.
struct PartFields {
  std::vector<ReplayField> node, element;
};
PartFields fields_of(const ReplayTopology& whole, const Part& part, const ReplayFrame& frame,
                     const ExportOptions& o) {
  PartFields out;
  auto take = [&](const std::vector<ReplayField>& from, const std::vector<Index>& items,
                  std::vector<ReplayField>& to) {
    for (const ReplayField& f : from)
      if (wanted(o, f.name))
        to.push_back({f.name, f.unit, f.components, rows_of(f.values, f.components, items)});
  };
  if (wanted(o, "displacement")) {
    ReplayField d{"displacement", "m", 3, {}};
    for (Index i : part.nodes)
      for (std::size_t k = 0; k < 3; ++k) {
        const std::size_t at = 3 * static_cast<std::size_t>(i) + k;
        d.values.push_back(frame.x[at] - whole.rest[at]);
      }
    out.node.push_back(std::move(d));
  }
  take(frame.node_fields, part.nodes, out.node);
  take(whole.node_fields, part.nodes, out.node);
  take(frame.element_fields, part.elements, out.element);
  take(whole.element_fields, part.elements, out.element);
  return out;
}

void write_surface(const fs::path& path, const Part& part, const ReplayFrame& frame) {
  TriMesh mesh;
  for (Index i : part.nodes) {
    const auto k = 3 * static_cast<std::size_t>(i);
    mesh.nodes.emplace_back(frame.x[k], frame.x[k + 1], frame.x[k + 2]);
  }
  mesh.triangles = part.topology.surface;
  const ReplayField *u = find_field(frame.node_fields, "material_u"),
                    *v = find_field(frame.node_fields, "material_v");
  if (u && v) {  // cloth: the material as texture coordinates
    Field& uv = mesh.node_fields["uv"];
    uv.components = 2;
    for (Index i : part.nodes)
      for (const ReplayField* f : {u, v}) uv.values.push_back(f->values[static_cast<std::size_t>(i)]);
  }
  write_obj(path.string(), mesh);
}

// Binary PLY with one float property per component of every node field, as Blender, MeshLab and ParaView read
// it.
void write_ply_fields(const fs::path& path, const Part& part, const ReplayFrame& frame,
                      const std::vector<ReplayField>& fields) {
  std::string out = fmt::format(
      "ply\nformat binary_little_endian 1.0\ncomment t {} s\nelement vertex {}\n"
      "property float x\nproperty float y\nproperty float z\n",
      frame.t, part.nodes.size());
  for (const ReplayField& f : fields)
    for (int c = 0; c < f.components; ++c)
      out += f.components == 1 ? fmt::format("property float {}\n", f.name)
                               : fmt::format("property float {}_{}\n", f.name, "xyz"[c % 3]);
  out += fmt::format("element face {}\nproperty list uchar int vertex_indices\nend_header\n",
                     part.topology.surface.size());
  auto put = [&](const auto& value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (std::size_t i = 0; i < part.nodes.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) put(frame.x[3 * static_cast<std::size_t>(part.nodes[i]) + k]);
    for (const ReplayField& f : fields)
      for (std::size_t c = 0; c < static_cast<std::size_t>(f.components); ++c)
        put(f.values[static_cast<std::size_t>(f.components) * i + c]);
  }
  for (const Tri& t : part.topology.surface) {
    out += '\3';
    put(t);
  }
  write_file_atomic(path.string(), out);
}

// `exact`: of a lossless recording, else empty. `body`: of every element, or empty.
void write_volume(const fs::path& path, const Part& part, const ReplayFrame& frame,
                  const ReplayReader::Exact& exact, const PartFields& fields, const std::vector<Index>& body,
                  bool compress) {
  std::vector<double> points, velocity;
  for (Index i : part.nodes)
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t at = 3 * static_cast<std::size_t>(i) + k;
      points.push_back(exact.x.empty() ? double(frame.x[at]) : exact.x[at]);
      if (!exact.v.empty()) velocity.push_back(exact.v[at]);
    }
  VtuGrid grid;
  grid.points = points;
  grid.cells = part.topology.elements;
  for (const ReplayField& f : fields.node)
    if (f.name == "velocity" && !velocity.empty())
      grid.point_data.push_back({f.name, 3, std::span<const double>(velocity)});
    else
      grid.point_data.push_back({f.name, f.components, std::span<const float>(f.values)});
  for (const ReplayField& f : fields.element)
    grid.cell_data.push_back({f.name, f.components, std::span<const float>(f.values)});
  if (!body.empty()) grid.cell_data.push_back({"body", 1, std::span<const Index>(body)});
  const double time[1] = {frame.t};
  grid.field_data.push_back({"TimeValue", 1, std::span<const double>(time)});
  VtuOptions o;
  o.compress = compress;
  o.single = exact.x.empty();
  write_vtu(path.string(), grid, o);
}

void write_npz(const ReplayReader& reader, const ExportOptions& o, const fs::path& path) {
  const std::vector<Index> frames = chosen_frames(reader, o);
  NpzWriter out(path, o.compress ? 6 : 0);
  for (Index topology = 0; topology < reader.topology_count(); ++topology) {
    const ReplayTopology whole = reader.topology(topology);
    const Part part = part_of(whole, o.body, false);
    // Later topologies (after a cut) have their own arrays: x_1, t_1, tets_1, ...
    const std::string suffix = topology == 0 ? "" : fmt::format("_{}", topology);
    std::vector<float> x;
    std::vector<double> t, exact_x, exact_v;  // the latter of a lossless recording
    std::vector<std::int64_t> step;
    std::vector<ReplayField> node, element;  // all frames one after the other
    auto append = [](std::vector<ReplayField>& to, const std::vector<ReplayField>& from,
                     std::size_t earlier) {
      for (const ReplayField& f : from) {
        auto it = std::find_if(to.begin(), to.end(), [&](const ReplayField& g) { return g.name == f.name; });
        if (it == to.end()) it = to.insert(to.end(), {f.name, f.unit, f.components, {}});
        it->values.resize(earlier * f.values.size(), 0.0f);  // frames that lacked it
        it->values.insert(it->values.end(), f.values.begin(), f.values.end());
      }
    };
    for (Index i : frames) {
      if (reader.frame_topology(i) != topology) continue;
      const ReplayFrame frame = reader.frame(i);
      const std::vector<float> positions = rows_of(frame.x, 3, part.nodes);
      x.insert(x.end(), positions.begin(), positions.end());
      if (const ReplayReader::Exact exact = reader.exact(i); !exact.x.empty())
        for (const Index n : part.nodes)
          for (std::size_t k = 3 * static_cast<std::size_t>(n); k < 3 * static_cast<std::size_t>(n) + 3;
               ++k) {
            exact_x.push_back(exact.x[k]);
            exact_v.push_back(exact.v[k]);
          }
      ReplayTopology no_constants;
      no_constants.rest = whole.rest;
      const PartFields fields = fields_of(no_constants, part, frame, o);
      append(node, fields.node, t.size());
      append(element, fields.element, t.size());
      t.push_back(frame.t);
      step.push_back(frame.step);
      if (o.progress) o.progress(static_cast<Index>(t.size()), static_cast<Index>(frames.size()));
    }
    const std::size_t f = t.size(), n = part.nodes.size(), m = part.elements.size();
    out.add("t" + suffix, {f}, std::span<const double>(t));
    out.add("step" + suffix, {f}, std::span<const std::int64_t>(step));
    const bool lossless = exact_x.size() == x.size() && !x.empty();
    if (lossless) {
      out.add("x" + suffix, {f, n, 3}, std::span<const double>(exact_x));
      std::erase_if(node, [](const ReplayField& field) { return field.name == "velocity"; });
      if (wanted(o, "velocity")) out.add("v" + suffix, {f, n, 3}, std::span<const double>(exact_v));
    } else {
      out.add("x" + suffix, {f, n, 3}, std::span<const float>(x));
    }
    auto add_fields = [&](std::vector<ReplayField>& list, std::size_t items) {
      for (ReplayField& field : list) {
        const auto c = static_cast<std::size_t>(field.components);
        field.values.resize(f * items * c, 0.0f);
        const std::string name = (field.name == "velocity" ? "v" : field.name) + suffix;
        if (c == 1)
          out.add(name, {f, items}, std::span<const float>(field.values));
        else
          out.add(name, {f, items, c}, std::span<const float>(field.values));
      }
    };
    add_fields(node, n);
    add_fields(element, m);
    if (whole.exact_rest.empty()) {
      out.add("rest" + suffix, {n, 3}, std::span<const float>(part.topology.rest));
    } else {
      std::vector<double> rest;
      for (const Index i : part.nodes)
        for (std::size_t k = 0; k < 3; ++k)
          rest.push_back(whole.exact_rest[3 * static_cast<std::size_t>(i) + k]);
      out.add("rest" + suffix, {n, 3}, std::span<const double>(rest));
    }
    std::vector<std::int32_t> flat;
    for (const Tet& e : part.topology.elements) flat.insert(flat.end(), e.begin(), e.end());
    out.add("tets" + suffix, {m, 4}, std::span<const std::int32_t>(flat));
    flat.clear();
    for (const Tri& s : part.topology.surface) flat.insert(flat.end(), s.begin(), s.end());
    out.add("surface" + suffix, {part.topology.surface.size(), 3}, std::span<const std::int32_t>(flat));
    const auto add_constants = [&](const std::vector<ReplayField>& list, std::size_t items) {
      for (const ReplayField& c : list) {
        if (!wanted(o, c.name)) continue;
        const auto width = static_cast<std::size_t>(c.components);
        out.add(c.name + suffix,
                width == 1 ? std::vector<std::size_t>{items} : std::vector<std::size_t>{items, width},
                std::span<const float>(c.values));
      }
    };
    add_constants(part.topology.node_fields, n);
    add_constants(part.topology.element_fields, m);
    if (wanted(o, "body")) {
      const std::vector<Index> body = bodies_of(whole, part);
      out.add("body" + suffix, {m}, std::span<const std::int32_t>(body));
    }
  }
  out.finish();
}

// "two words/x" -> "two_words_x"
std::string file_name(const std::string& name) {
  std::string out = name.empty() ? "run" : name;
  for (char& c : out)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  return out;
}

std::vector<fs::path> write_sequence(const ReplayReader& reader, const ExportOptions& o,
                                     const fs::path& folder, const std::string& name) {
  const std::vector<Index> frames = chosen_frames(reader, o);
  std::vector<fs::path> written;
  std::vector<std::pair<double, std::string>> series;
  ReplayTopology whole;
  Part part;
  std::vector<const ReplaySurface*> carried;  // what is written in place of the body's own surface
  Index topology = -1;
  for (std::size_t k = 0; k < frames.size(); ++k) {
    const ReplayFrame frame = reader.frame(frames[k]);
    if (frame.topology != topology) {
      topology = frame.topology;
      whole = reader.topology(topology);
      part = part_of(whole, o.body, o.format != "vtu");
      carried = o.format == "vtu" ? std::vector<const ReplaySurface*>() : chosen_surfaces(whole, o.body);
      if (o.format == "obj" && !carried.empty() && k == 0)
        write_carried_materials(folder, name + ".mtl", carried, whole);
    }
    const std::string file = fmt::format("{}_{:06}.{}", name, frame.step, o.format);
    if (o.format == "obj" && !carried.empty())
      write_carried_obj(folder / file, name + ".mtl", carried, whole, frame.x);
    else if (o.format == "ply" && !carried.empty())
      write_carried_ply(folder / file, carried, whole, frame);
    else if (o.format == "obj")
      write_surface(folder / file, part, frame);
    else if (o.format == "ply")
      write_ply_fields(folder / file, part, frame, fields_of(whole, part, frame, o).node);
    else
      write_volume(folder / file, part, frame, reader.exact(frames[k]), fields_of(whole, part, frame, o),
                   wanted(o, "body") ? bodies_of(whole, part) : std::vector<Index>(), o.compress);
    series.emplace_back(frame.t, file);
    if (k == 0) written.push_back(folder / file);
    if (o.progress) o.progress(static_cast<Index>(k + 1), static_cast<Index>(frames.size()));
  }
  if (o.format == "vtu") {
    const fs::path pvd = folder / (name + ".pvd");
    write_pvd(pvd.string(), series);
    written.insert(written.begin(), pvd);
  }
  return written;
}

}  // namespace

std::vector<Index> chosen_frames(const ReplayReader& reader, const ExportOptions& o) {
  const Index count = reader.frame_count();
  if (count == 0)
    throw Error(ErrorKind::kInput, "the recording has no frames, so there is nothing to export");
  const Index last = o.last < 0 ? count - 1 : o.last;
  if (o.first < 0 || o.first >= count || last >= count || last < o.first || o.every < 1)
    wrong(fmt::format("frames {} to {} in steps of {}: the recording has frames 0 to {}", o.first, last,
                      o.every, count - 1));
  std::vector<Index> out;
  for (Index i = o.first; i <= last; i += o.every) out.push_back(i);
  return out;
}

Part part_of(const ReplayTopology& whole, const std::string& body, bool surface_only) {
  Part part;
  Index begin = 0, end = whole.element_count();
  if (!body.empty()) {
    const auto it = std::find_if(whole.bodies.begin(), whole.bodies.end(),
                                 [&](const ReplayBody& b) { return b.name == body; });
    if (it == whole.bodies.end()) {
      std::vector<std::string> names;
      for (const ReplayBody& b : whole.bodies) names.push_back(b.name);
      wrong(fmt::format("--body {}: the recording has no such body; it has {}", body, joined(names)));
    }
    begin = it->element_begin;
    end = it->element_end;
  }
  std::vector<Index> number(static_cast<std::size_t>(whole.node_count()), -1);
  std::vector<std::size_t> faces;
  for (std::size_t k = 0; k < whole.surface.size(); ++k)
    if (whole.surface_element[k] >= begin && whole.surface_element[k] < end) faces.push_back(k);
  if (surface_only) {
    for (std::size_t k : faces)
      for (Index i : whole.surface[k]) number[static_cast<std::size_t>(i)] = 0;
  } else {
    for (Index e = begin; e < end; ++e)
      for (Index i : whole.elements[static_cast<std::size_t>(e)])
        if (i >= 0) number[static_cast<std::size_t>(i)] = 0;
  }
  for (std::size_t i = 0; i < number.size(); ++i)
    if (number[i] == 0) {
      number[i] = static_cast<Index>(part.nodes.size());
      part.nodes.push_back(static_cast<Index>(i));
    }
  for (Index e = begin; e < end; ++e) part.elements.push_back(e);

  ReplayTopology& t = part.topology;
  t.step = whole.step;
  t.rest = rows_of(whole.rest, 3, part.nodes);
  if (!surface_only)
    for (Index e : part.elements) {
      Tet n = whole.elements[static_cast<std::size_t>(e)];
      for (Index& i : n)
        if (i >= 0) i = number[static_cast<std::size_t>(i)];
      t.elements.push_back(n);
    }
  for (std::size_t k : faces) {
    Tri n = whole.surface[k];
    for (Index& i : n) i = number[static_cast<std::size_t>(i)];
    t.surface.push_back(n);
    t.surface_element.push_back(whole.surface_element[k] - begin);
  }
  t.regions = whole.regions;
  for (const ReplayField& f : whole.node_fields)
    t.node_fields.push_back({f.name, f.unit, f.components, rows_of(f.values, f.components, part.nodes)});
  for (const ReplayField& f : whole.element_fields)
    t.element_fields.push_back(
        {f.name, f.unit, f.components, rows_of(f.values, f.components, part.elements)});
  return part;
}

std::vector<fs::path> export_run(const ReplayReader& reader, const ExportOptions& options,
                                 const fs::path& target) {
  check_fields(reader, options);
  const bool sequence = options.format == "obj" || options.format == "ply" || options.format == "vtu";
  const bool cache = options.format == "pc2" || options.format == "mdd";
  if (!sequence && !cache && options.format != "glb" && options.format != "npz")
    wrong(fmt::format("--format {}: expected obj, ply, vtu, glb, pc2, mdd or npz", options.format));
  if (options.each_body && reader.topology_count() > 0) {
    std::vector<fs::path> written;
    for (const ReplayBody& b : reader.topology(0).bodies) {
      ExportOptions o = options;
      o.each_body = false;
      o.body = b.name;
      fs::path place = target;
      if (!sequence)
        place =
            target.parent_path() / (target.stem().string() + "_" + file_name(b.name) + "." + options.format);
      for (fs::path& p : export_run(reader, o, place)) written.push_back(std::move(p));
    }
    return written;
  }
  std::error_code error;
  const fs::path folder = sequence ? target : target.parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  if (error)
    throw Error(ErrorKind::kIo, fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  if (sequence)
    return write_sequence(reader, options, target,
                          file_name(options.body.empty() ? reader.header().scene : options.body));
  if (cache)
    write_point_cache(reader, options, target);
  else if (options.format == "npz")
    write_npz(reader, options, target);
  else
    write_glb(reader, options, target);
  return {target};
}

}  // namespace limber::view
