// The scene format. One row per key; everything else about the format is derived from these rows.
#include <limber/material/own_energy.hpp>
#include <limber/scene/method_spec.hpp>
#include <limber/scene/spec.hpp>

#include <fmt/format.h>

#include <memory>
#include <mutex>

namespace limber {
namespace {

using namespace ranges;
using enum Type;

// clang-format off
constexpr Entry kEntries[] = {
    {.path = "/$schema", .type = kString, .text = "Where an editor finds the JSON Schema; not used by limber."},
    {.path = "/limber", .type = kInteger, .required = true, .range = within(1, 1), .aliases = "version format",
     .text = "Version of the scene format; 1 is the only one so far."},
    {.path = "/name", .type = kName, .text = "Name of the scene and of its run folder; the file's name when absent."},
    {.path = "/description", .type = kString, .fallback = "\"\"", .text = "One or two sentences for listings."},
    {.path = "/include", .type = kList, .text = "Scene files that this one builds on, merged in order (RFC 7396: objects merge key by key, other values replace, null removes); what this file says wins."},
    {.path = "/include/*", .type = kFile, .text = "A scene file."},

    {.path = "/time", .type = kObject, .fallback = "{}", .text = "Time step and duration."},
    {.path = "/time/step", .type = kNumber, .unit = "s", .fallback = "0.005", .range = above(0), .aliases = "h dt timestep time_step", .text = "Time step h."},
    {.path = "/time/end", .type = kNumber, .unit = "s", .fallback = "1", .range = above(0), .aliases = "duration until tend t_end", .text = "Time at which the run ends."},
    {.path = "/gravity", .type = kNumbers, .unit = "m/s^2", .fallback = "[0, -9.81, 0]", .aliases = "g", .text = "Gravitational acceleration; y is up by default."},

    {.path = "/damping", .type = kObject, .fallback = "{}", .aliases = "rayleigh", .text = "Rayleigh damping D = mass M + stiffness K; off by default."},
    {.path = "/damping/mass", .type = kNumber, .unit = "1/s", .fallback = "0", .range = at_least(0), .aliases = "alpha", .text = "Share of the mass matrix: slows every motion, rigid ones too."},
    {.path = "/damping/stiffness", .type = kNumber, .unit = "s", .fallback = "0", .range = at_least(0), .aliases = "beta", .text = "Share of the stiffness matrix: slows deformation, the faster the more."},

    // What is below "/method" comes from the methods themselves (method_spec.hpp).
    {.path = "/method", .type = kObject, .fallback = "{}", .aliases = "integrator stepper", .text = "How the motion is computed."},
    {.path = "/method/type", .type = kTag, .fallback = "\"vanilla\"", .aliases = "name", .text = "Which method."},

    {.path = "/solver", .type = kObject, .fallback = "{}", .text = "The sparse Cholesky factorisation."},
    {.path = "/solver/backend", .type = kEnum, .fallback = "\"auto\"", .values = "auto native cholmod", .text = "Which implementation."},
    {.path = "/solver/ordering", .type = kEnum, .fallback = "\"auto\"", .values = "auto amd metis", .text = "Elimination order; auto keeps the cheaper of the two."},

    {.path = "/bodies", .type = kArray, .fallback = "[]", .most = 10000, .aliases = "objects body meshes", .text = "The soft bodies; needed unless there are links or robots."},
    {.path = "/bodies/*", .type = kObject, .text = "One soft body."},
    {.path = "/bodies/*/name", .type = kName, .text = "Unique name; made from the mesh's name when absent."},
    {.path = "/bodies/*/mesh", .type = kObject, .required = true, .otherwise = kFile, .aliases = "file geometry", .text = "A mesh file (msh, mesh, vtu, vtk, node/ele; tetrahedra, or triangles in the xy plane), or a shape to generate."},
    {.path = "/bodies/*/mesh/shape", .type = kTag, .required = true, .values = "box bar sphere capsule cylinder torus rectangle",
     .meanings = "block from the origin, six tetrahedra per cube; node sets x0 x1 y0 y1 z0 z1\n"
                 "the same as box\n"
                 "ball around the origin; node set surface\n"
                 "cylinder along z with half a ball at each end; node set surface\n"
                 "along z, around the origin; node sets surface z0 z1\n"
                 "ring around z; node set surface\n"
                 "plane-strain body of triangles in the xy plane, from the origin; node sets x0 x1 y0 y1",
     .aliases = "type", .text = "Shape to generate; rectangle is a plane-strain body of triangles."},
    {.path = "/bodies/*/mesh[box,bar]/size", .type = kNumbers, .unit = "m", .fallback = "[1, 1, 1]", .range = above(0), .aliases = "dimensions extents", .text = "Edge lengths, from the origin."},
    {.path = "/bodies/*/mesh[box,bar]/nodes", .type = kIntegers, .fallback = "[2, 2, 2]", .range = within(2, 1000), .aliases = "resolution divisions", .text = "Nodes along each edge."},
    {.path = "/bodies/*/mesh[rectangle]/size", .type = kNumbers, .unit = "m", .fallback = "[1, 1]", .range = above(0), .count = 2, .text = "Edge lengths, from the origin."},
    {.path = "/bodies/*/mesh[rectangle]/nodes", .type = kIntegers, .fallback = "[2, 2]", .range = within(2, 10000), .count = 2, .text = "Nodes along each edge."},
    {.path = "/bodies/*/mesh[rectangle]/pattern", .type = kEnum, .fallback = "\"regular\"", .values = "regular crossed irregular",
     .meanings = "two triangles per cell with alternating diagonals; the default\n"
                 "four triangles per cell around a node in its middle\n"
                 "the nodes inside moved at random (always the same way), and Delaunay triangles",
     .text = "How the rectangle is divided."},
    {.path = "/bodies/*/mesh[sphere,capsule,cylinder,torus]/radius", .type = kNumber, .unit = "m", .fallback = "0.05", .range = above(0), .text = "Radius; of a torus, from its centre to the middle of the tube."},
    {.path = "/bodies/*/mesh[torus]/tube_radius", .type = kNumber, .unit = "m", .fallback = "0.02", .range = above(0), .text = "Radius of the tube."},
    {.path = "/bodies/*/mesh[capsule,cylinder]/length", .type = kNumber, .unit = "m", .fallback = "0.1", .range = above(0), .aliases = "height", .text = "Length of the straight part."},
    {.path = "/bodies/*/mesh[sphere,capsule,cylinder,torus]/edge", .type = kNumber, .unit = "m", .fallback = "0.01", .range = above(0), .aliases = "resolution edge_length", .text = "Edge length to aim for."},
    {.path = "/bodies/*/refine", .type = kInteger, .fallback = "0", .range = within(0, 4), .aliases = "subdivide subdivision refinement", .text = "Times that every tetrahedron is cut into eight of the same shape (a triangle into four); sets and fields come along."},
    {.path = "/bodies/*/fit", .type = kNumber, .unit = "m", .range = above(0), .text = "Scale the mesh uniformly so that the longest side of its bounding box has this length; before scale."},
    {.path = "/bodies/*/scale", .type = kScale, .fallback = "[1, 1, 1]", .range = above(0), .text = "Scaling about the origin: one number, or one per axis."},
    {.path = "/bodies/*/rotation", .type = kNumbers, .unit = "rad", .fallback = "[0, 0, 0]", .aliases = "orientation angle", .text = "Rotation vector (axis times angle), after scaling."},
    {.path = "/bodies/*/translation", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .aliases = "position offset", .text = "Displacement, last."},
    {.path = "/bodies/*/elements", .type = kEnum, .fallback = "\"auto\"", .values = "auto cloth cloth-uv",
     .meanings = "triangles in a plane z = constant are a plane-strain body, which stays in it; the default\n"
                 "triangles anywhere are a membrane in space; with the method cloth they bend as well\n"
                 "the same, flat at rest: texture coordinates of the mesh file [m] are its rest shape, in which nodes are selected, and it begins where the file has its nodes",
     .aliases = "element kind", .text = "What the triangles of a mesh are."},
    {.path = "/bodies/*/thickness", .type = kNumber, .unit = "m", .fallback = "0.01", .range = above(0), .text = "Of a body of triangles; without effect on tetrahedra."},
    {.path = "/bodies/*/bending", .type = kNumber, .unit = "N m", .fallback = "0", .range = at_least(0), .text = "Cloth: bending stiffness beta of its hinges, 3/4 beta |e|^2/(A0 + A1) |n0 - n1|^2; for the method cloth."},
    {.path = "/bodies/*/area_density", .type = kNumber, .unit = "kg/m^2", .range = above(0), .text = "Of a body of triangles: mass per area, in place of material/density times thickness."},
    {.path = "/bodies/*/material", .type = kObject, .fallback = "{}", .text = "What the body is made of."},
    {.path = "/bodies/*/material/model", .type = kEnum, .fallback = "\"stable-neo-hookean\"", .values = "stable-neo-hookean stable-neo-hookean-log corotational fixed-corotated arap st-venant-kirchhoff",
     .meanings = "mu/2 (Ic - 3) + L/2 (J - a)^2; survives inversion; the default\n"
                 "the same with -mu/2 log(Ic + 1), as published in 2018\n"
                 "mu |S - I|^2 + lambda/2 tr(S - I)^2; linear stress and strain without the rotation\n"
                 "mu |S - I|^2 + lambda/2 (J - 1)^2; keeps volume better under large strain\n"
                 "mu |F - R|^2; as rigid as possible, little resistance to volume change\n"
                 "mu |E|^2 + lambda/2 tr(E)^2 with Green strain; softens in compression, may collapse",
     .aliases = "type", .text = "Elastic energy."},
    {.path = "/bodies/*/material/energy", .type = kEnergy, .aliases = "formula psi", .text = "Energy density in place of model, a formula of the invariants I1 = |F|^2, I2 = (I1^2 - |FᵀF|^2)/2, J = det F and of mu, lambda [Pa], e.g. \"mu/2*(I1 - 3) - mu*log(J) + lambda/2*log(J)^2\"; log, exp, sqrt, ^. The rest shape must be free of stress. Not for cloth, nor for the method mixed."},
    {.path = "/bodies/*/material/young", .type = kRef, .unit = "Pa", .fallback = "1e5", .range = above(0), .ref = "varying", .aliases = "E youngs_modulus stiffness", .text = "Young's modulus."},
    {.path = "/bodies/*/material/poisson", .type = kRef, .fallback = "0.4", .range = inside(-1, 0.5), .ref = "varying", .aliases = "nu poissons_ratio", .text = "Poisson's ratio; at least 0 for stable-neo-hookean and fixed-corotated, at least -0.8 for stable-neo-hookean-log."},
    {.path = "/bodies/*/material/density", .type = kRef, .unit = "kg/m^3", .fallback = "1000", .range = above(0), .ref = "varying", .aliases = "rho mass", .text = "Mass per volume."},
    {.path = "/bodies/*/material/fibre", .type = kRef, .ref = "fibre", .aliases = "fiber fibers fibres muscle", .text = "Fibres, added to the base material."},
    {.path = "/bodies/*/regions", .type = kArray, .fallback = "[]", .aliases = "layers materials", .text = "Parts of the body with other material; later ones win."},
    {.path = "/bodies/*/regions/*", .type = kObject, .text = "One part."},
    {.path = "/bodies/*/regions/*/name", .type = kString, .text = "The part becomes an element set of this name."},
    {.path = "/bodies/*/regions/*/elements", .type = kRef, .required = true, .ref = "selection", .aliases = "where selection", .text = "Which elements, by centroid."},
    {.path = "/bodies/*/regions/*/young", .type = kRef, .unit = "Pa", .range = above(0), .ref = "varying", .aliases = "E youngs_modulus stiffness", .text = "Young's modulus there."},
    {.path = "/bodies/*/regions/*/poisson", .type = kRef, .range = inside(-1, 0.5), .ref = "varying", .aliases = "nu poissons_ratio", .text = "Poisson's ratio there; the same holds as for the body's."},
    {.path = "/bodies/*/regions/*/density", .type = kRef, .unit = "kg/m^3", .range = above(0), .ref = "varying", .aliases = "rho", .text = "Mass per volume there."},
    {.path = "/bodies/*/regions/*/fibre", .type = kRef, .ref = "fibre", .aliases = "fiber", .text = "Fibres there."},
    {.path = "/bodies/*/node_sets", .type = kMap, .fallback = "{}", .text = "Further named sets of nodes, beside those of the mesh file."},
    {.path = "/bodies/*/node_sets/*", .type = kRef, .ref = "selection", .text = "Which nodes."},
    {.path = "/bodies/*/element_sets", .type = kMap, .fallback = "{}", .text = "Further named sets of elements."},
    {.path = "/bodies/*/element_sets/*", .type = kRef, .ref = "selection", .text = "Which elements, by centroid."},
    {.path = "/bodies/*/velocity", .type = kRef, .unit = "m/s", .fallback = "[0, 0, 0]", .ref = "node-vectors", .text = "Initial velocity, of all nodes or of each."},
    {.path = "/bodies/*/angular_velocity", .type = kNumbers, .unit = "rad/s", .fallback = "[0, 0, 0]", .aliases = "spin omega", .text = "Initial angular velocity about the centre of mass, in world coordinates; added to velocity."},
    {.path = "/bodies/*/embed", .type = kFile, .aliases = "skin render surface", .text = "A surface (obj with texture coordinates and materials, ply, stl, off) that the tetrahedra carry along: it is shown and exported in place of theirs. It is placed as the mesh is."},
    {.path = "/bodies/*/initial", .type = kFile, .text = "Mesh file with the same nodes whose positions the body begins in; the rest shape stays that of mesh."},

    {.path = "/constraints", .type = kArray, .fallback = "[]", .aliases = "pins boundary_conditions dirichlet", .text = "Nodes that are pinned or moved by script."},
    {.path = "/constraints/*", .type = kObject, .text = "One group of held nodes."},
    {.path = "/constraints/*/name", .type = kString, .fallback = "\"\"", .text = "For messages."},
    {.path = "/constraints/*/body", .type = kString, .text = "Name of the body; may be absent when there is only one."},
    {.path = "/constraints/*/nodes", .type = kRef, .required = true, .ref = "selection", .aliases = "where selection set", .text = "Which nodes."},
    {.path = "/constraints/*/axes", .type = kEnum, .fallback = "\"xyz\"", .values = "xyz x y z xy xz yz", .text = "Which components are held."},
    {.path = "/constraints/*/from", .type = kNumber, .unit = "s", .fallback = "0", .range = at_least(0), .aliases = "start begin", .text = "Held from this time on."},
    {.path = "/constraints/*/until", .type = kNumber, .unit = "s", .range = above(0), .aliases = "end to release", .text = "Released at this time; never when absent."},
    {.path = "/constraints/*/motion", .type = kArray, .fallback = "[]", .aliases = "keys keyframes script", .text = "Keys of the motion, relative to where the nodes were when the constraint began; empty: pinned. Nodes do not jump: a motion that is away from rest when the constraint begins moves them only by what changes from there on."},
    {.path = "/constraints/*/motion/*", .type = kRef, .ref = "motion-key", .text = "One key."},
    {.path = "/constraints/*/center", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .aliases = "centre pivot", .text = "Centre of rotation and scaling."},
    {.path = "/constraints/*/interpolation", .type = kEnum, .fallback = "\"smooth\"", .values = "smooth linear", .text = "Between keys: smooth has zero speed at the keys."},

    {.path = "/bones", .type = kArray, .fallback = "[]", .most = 10000, .aliases = "skeleton", .text = "Bones that move nodes of a body by script: held nodes for every method, and the skeleton of condense."},
    {.path = "/bones/*", .type = kObject, .text = "One bone."},
    {.path = "/bones/*/name", .type = kString, .required = true, .text = "Unique name."},
    {.path = "/bones/*/body", .type = kString, .text = "Name of the body; may be absent when there is only one."},
    {.path = "/bones/*/parent", .type = kString, .text = "Name of the bone that carries it, which comes before it; none when absent."},
    {.path = "/bones/*/head", .type = kNumbers, .unit = "m", .required = true, .aliases = "start", .text = "Where it begins in the rest shape."},
    {.path = "/bones/*/joint", .type = kNumbers, .unit = "m", .text = "The point of the rest shape that it turns about; its head when absent. Bones that end before the joint leave flesh between them that can bend."},
    {.path = "/bones/*/tail", .type = kNumbers, .unit = "m", .required = true, .aliases = "end", .text = "Where it ends in the rest shape."},
    {.path = "/bones/*/radius", .type = kNumber, .unit = "m", .required = true, .range = above(0), .text = "Nodes that are this near to it in the rest shape are fixed to it; those near to several, to the last of them."},
    {.path = "/bones/*/motion", .type = kArray, .fallback = "[]", .aliases = "keys keyframes", .text = "Keys of its motion against the bone that carries it, from the rest shape at time 0 on; empty: it moves with that bone."},
    {.path = "/bones/*/motion/*", .type = kRef, .ref = "motion-key", .text = "One key."},
    {.path = "/bones/*/bvh", .type = kObject, .text = "A motion file instead of keys: the turns of one of its joints against the joint that carries it, about the axes of the file, are those of the bone against its parent. Use linear interpolation for frames that are close."},
    {.path = "/bones/*/bvh/file", .type = kFile, .required = true, .text = "The file (.bvh)."},
    {.path = "/bones/*/bvh/joint", .type = kString, .text = "Name of the joint; that of the bone when absent."},
    {.path = "/bones/*/bvh/start", .type = kNumber, .unit = "s", .fallback = "0.5", .range = at_least(0), .text = "Time of the first frame; until then the bone goes there from the rest shape."},
    {.path = "/bones/*/bvh/scale", .type = kNumber, .fallback = "1", .range = above(0), .text = "Metres for the file's unit of length, of joints that change their place; counted from the first frame."},
    {.path = "/bones/*/bvh/every", .type = kInteger, .fallback = "1", .range = within(1, 100000), .text = "A key for every frame (1), every second one (2), and so on."},
    {.path = "/bones/*/gltf", .type = kObject, .text = "A glTF 2.0 file instead of keys: the node animation in it, about the axes of its rest shape. Turns and places are against the node of the bone that carries it where that has one in the same file; of a bone without parent, against the ground. Use linear interpolation."},
    {.path = "/bones/*/gltf/file", .type = kFile, .required = true, .text = "The file (.gltf, .glb)."},
    {.path = "/bones/*/gltf/node", .type = kString, .aliases = "joint", .text = "Name of the node, or its number where it has none; the name of the bone when absent."},
    {.path = "/bones/*/gltf/animation", .type = kString, .text = "Name of the animation, or its number where it has none; the first when absent."},
    {.path = "/bones/*/gltf/start", .type = kNumber, .unit = "s", .fallback = "0.5", .range = at_least(0), .text = "Time at which the animation begins; until then the bone goes there from the rest shape."},
    {.path = "/bones/*/gltf/scale", .type = kNumber, .fallback = "1", .range = above(0), .text = "Metres for the file's unit of length."},
    {.path = "/bones/*/gltf/rate", .type = kNumber, .unit = "1/s", .fallback = "30", .range = above(0), .text = "Keys for each second of the animation."},
    {.path = "/bones/*/interpolation", .type = kEnum, .fallback = "\"smooth\"", .values = "smooth linear", .text = "Between keys: smooth has zero speed at the keys."},

    {.path = "/forces", .type = kArray, .fallback = "[]", .aliases = "loads", .text = "Forces besides gravity."},
    {.path = "/forces/*", .type = kObject, .text = "One force."},
    {.path = "/forces/*/name", .type = kString, .fallback = "\"\"", .text = "For messages."},
    {.path = "/forces/*/body", .type = kString, .text = "Name of the body; may be absent when there is only one."},
    {.path = "/forces/*/nodes", .type = kRef, .fallback = "\"all\"", .ref = "selection", .text = "Which nodes."},
    {.path = "/forces/*/force", .type = kNumbers, .unit = "N", .fallback = "[0, 0, 0]", .aliases = "value f", .text = "Total force, shared among the nodes by mass."},
    {.path = "/forces/*/acceleration", .type = kRef, .unit = "m/s^2", .fallback = "[0, 0, 0]", .ref = "node-vectors", .aliases = "a", .text = "Force per mass, of all nodes or of each; added to force."},
    {.path = "/forces/*/force_per_node", .type = kRef, .unit = "N", .fallback = "[0, 0, 0]", .ref = "node-vectors", .aliases = "nodal nodal_force", .text = "Force on each of the nodes; added to force. Copies that a cut makes of a node share it."},
    {.path = "/forces/*/spring", .type = kObject, .aliases = "grip handle", .text = "A spring from the centre of mass of the nodes to a point that moves: what a hand does (`limber live` writes it). Its force is shared by mass and added to force. It is taken with the nodes' positions and velocities at the start of a step: stable where stiffness is well below what the nodes' surroundings have (young times the size of the patch)."},
    {.path = "/forces/*/spring/stiffness", .type = kNumber, .unit = "N/m", .required = true, .range = above(0), .aliases = "k", .text = "Stiffness."},
    {.path = "/forces/*/spring/damping", .type = kNumber, .unit = "N s/m", .fallback = "0", .range = at_least(0), .text = "Resistance to the velocity of the nodes."},
    {.path = "/forces/*/spring/keys", .type = kArray, .required = true, .least = 1, .aliases = "motion", .text = "Where it pulls to: linear between keys, constant outside. A step takes the point at its end."},
    {.path = "/forces/*/spring/keys/*", .type = kObject, .text = "One key."},
    {.path = "/forces/*/spring/keys/*/t", .type = kNumber, .unit = "s", .required = true, .range = at_least(0), .aliases = "time", .text = "Time."},
    {.path = "/forces/*/spring/keys/*/position", .type = kNumbers, .unit = "m", .required = true, .aliases = "point", .text = "Point."},
    {.path = "/forces/*/from", .type = kNumber, .unit = "s", .fallback = "0", .range = at_least(0), .aliases = "start begin", .text = "Acts from this time on."},
    {.path = "/forces/*/until", .type = kNumber, .unit = "s", .range = above(0), .aliases = "end to", .text = "Acts until this time; for ever when absent."},
    {.path = "/forces/*/ramp", .type = kNumber, .unit = "s", .fallback = "0", .range = at_least(0), .text = "Time over which it grows linearly from zero, counted from `from`: full at from + ramp, whatever until says. A step takes the value at its end."},

    {.path = "/activations", .type = kArray, .fallback = "[]", .aliases = "muscles activation", .text = "How strongly fibres contract over time."},
    {.path = "/activations/*", .type = kObject, .text = "One channel, which fibres name."},
    {.path = "/activations/*/name", .type = kString, .required = true, .text = "Name of the channel."},
    {.path = "/activations/*/keys", .type = kArray, .required = true, .least = 1, .text = "Activation over time, linear between keys and constant outside."},
    {.path = "/activations/*/keys/*", .type = kTimeValue, .range = within(0, 0.9), .text = "[time in s, activation]; 0.2 makes fibres want to be a fifth shorter."},

    // Articulated bodies. Places and axes are those of a drawing, in world coordinates, in which every joint is at zero.
    {.path = "/links", .type = kArray, .fallback = "[]", .most = 100000, .aliases = "rigid_bodies", .text = "Rigid links of articulated bodies."},
    {.path = "/links/*", .type = kObject, .text = "One link."},
    {.path = "/links/*/name", .type = kString, .required = true, .text = "Unique name; \"world\" is taken."},
    {.path = "/links/*/shapes", .type = kList, .required = true, .least = 1, .aliases = "shape geometry", .text = "The solids it is made of, which give its mass and what is drawn."},
    {.path = "/links/*/shapes/*", .type = kObject, .text = "One solid."},
    {.path = "/links/*/shapes/*/shape", .type = kTag, .required = true, .values = "box sphere cylinder capsule mesh", .aliases = "type", .text = "What it is; the axis of round ones is z."},
    {.path = "/links/*/shapes/*[box]/size", .type = kNumbers, .unit = "m", .required = true, .range = above(0), .text = "Edge lengths."},
    {.path = "/links/*/shapes/*[sphere,cylinder,capsule]/radius", .type = kNumber, .unit = "m", .required = true, .range = above(0), .text = "Radius."},
    {.path = "/links/*/shapes/*[cylinder,capsule]/length", .type = kNumber, .unit = "m", .required = true, .range = above(0), .text = "Length; of a capsule without its round ends."},
    {.path = "/links/*/shapes/*[mesh]/mesh", .type = kFile, .required = true, .text = "A closed surface (obj, ply, stl, off)."},
    {.path = "/links/*/shapes/*[mesh]/scale", .type = kScale, .fallback = "[1, 1, 1]", .range = above(0), .text = "Scaling about the origin."},
    {.path = "/links/*/shapes/*/position", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .aliases = "center centre translation", .text = "Where its centre (of a mesh, its origin) is in the drawing."},
    {.path = "/links/*/shapes/*/rotation", .type = kNumbers, .unit = "rad", .fallback = "[0, 0, 0]", .text = "Rotation vector."},
    {.path = "/links/*/shapes/*/density", .type = kNumber, .unit = "kg/m^3", .fallback = "1000", .range = at_least(0), .text = "Mass per volume; 0: only drawn and touched."},
    {.path = "/links/*/shapes/*/contact", .type = kBoolean, .fallback = "false", .text = "Whether it touches obstacles, with its corners, rim or round ends, and soft bodies (vanilla, conjac) and cloth."},
    {.path = "/links/*/mass", .type = kNumber, .unit = "kg", .range = above(0), .text = "Mass; scales what the shapes give."},
    {.path = "/links/*/damping", .type = kNumber, .unit = "N s/m, N m s", .fallback = "0", .range = at_least(0), .text = "Resistance to velocity and angular velocity."},

    {.path = "/joints", .type = kArray, .fallback = "[]", .most = 100000, .text = "What holds the links: one joint carries each link."},
    {.path = "/joints/*", .type = kObject, .text = "One joint."},
    {.path = "/joints/*/type", .type = kTag, .fallback = "\"revolute\"", .values = "fixed revolute prismatic universal spherical planar free",
     .meanings = "no motion\nangle about axis\ndistance along axis\nangle about axis, then about the turned axis2\nany rotation; without singular positions\ntwo distances across axis and the angle about it\nany motion",
     .text = "How the child moves against the parent."},
    {.path = "/joints/*/name", .type = kString, .text = "Unique name; CHILD-joint when absent."},
    {.path = "/joints/*/parent", .type = kString, .fallback = "\"world\"", .text = "The link it is fixed to, or \"world\"."},
    {.path = "/joints/*/child", .type = kString, .required = true, .aliases = "link", .text = "The link that it carries."},
    {.path = "/joints/*/position", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .text = "Where it is in the drawing."},
    {.path = "/joints/*[revolute,prismatic,universal,spherical,planar]/axis", .type = kNumbers, .fallback = "[0, 0, 1]", .text = "Its axis in the drawing, of any length."},
    {.path = "/joints/*[universal]/axis2", .type = kNumbers, .fallback = "[0, 1, 0]", .text = "The second axis, perpendicular to the first."},
    {.path = "/joints/*[revolute,prismatic]/q", .type = kNumber, .unit = "rad, m", .fallback = "0", .aliases = "angle", .text = "Initial position."},
    {.path = "/joints/*[universal]/q", .type = kNumbers, .unit = "rad", .fallback = "[0, 0]", .count = 2, .text = "Initial angles."},
    {.path = "/joints/*[planar]/q", .type = kNumbers, .unit = "m, m, rad", .fallback = "[0, 0, 0]", .text = "Initial distances and angle."},
    {.path = "/joints/*[revolute,prismatic]/v", .type = kNumber, .unit = "rad/s, m/s", .fallback = "0", .text = "Initial velocity."},
    {.path = "/joints/*[universal]/v", .type = kNumbers, .unit = "rad/s", .fallback = "[0, 0]", .count = 2, .text = "Initial velocities."},
    {.path = "/joints/*[planar]/v", .type = kNumbers, .unit = "m/s, m/s, rad/s", .fallback = "[0, 0, 0]", .text = "Initial velocities."},
    {.path = "/joints/*[free]/translation", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .text = "Initial displacement from the drawing."},
    {.path = "/joints/*[spherical,free]/rotation", .type = kNumbers, .unit = "rad", .fallback = "[0, 0, 0]", .text = "Initial rotation vector, in the axes of the drawing as they are on the parent."},
    {.path = "/joints/*[free]/velocity", .type = kNumbers, .unit = "m/s", .fallback = "[0, 0, 0]", .text = "Initial velocity of the joint's origin against the parent, in the parent's axes (which in the drawing are those of the world)."},
    {.path = "/joints/*[spherical,free]/angular_velocity", .type = kNumbers, .unit = "rad/s", .fallback = "[0, 0, 0]", .text = "Initial angular velocity against the parent, in the parent's axes (which in the drawing are those of the world), not in those of the turned child."},
    {.path = "/joints/*[revolute,prismatic]/limits", .type = kNumbers, .unit = "rad, m", .count = 2, .text = "Lowest and highest position."},
    {.path = "/joints/*[universal]/limits", .type = kArray, .least = 2, .most = 2, .text = "Lowest and highest value of both angles."},
    {.path = "/joints/*[universal]/limits/*", .type = kNumbers, .unit = "rad", .count = 2, .text = "[lowest, highest]."},
    {.path = "/joints/*[planar]/limits", .type = kArray, .least = 3, .most = 3, .text = "Lowest and highest value of both distances and of the angle."},
    {.path = "/joints/*[planar]/limits/*", .type = kNumbers, .unit = "m, m, rad", .count = 2, .text = "[lowest, highest]."},
    {.path = "/joints/*[spherical]/cone", .type = kNumber, .unit = "rad", .range = above(0), .text = "How far the axis may lean from where it is in the drawing; any way when absent."},
    {.path = "/joints/*[spherical]/twist", .type = kNumbers, .unit = "rad", .count = 2, .text = "Lowest and highest turn about the axis."},
    {.path = "/joints/*[revolute,prismatic,universal,spherical,planar]/stiffness", .type = kNumber, .unit = "N m/rad, N/m", .fallback = "0", .range = at_least(0), .text = "Spring towards rest."},
    {.path = "/joints/*[revolute,prismatic]/rest", .type = kNumber, .unit = "rad, m", .text = "Where its spring is slack; the initial position when absent."},
    {.path = "/joints/*[universal]/rest", .type = kNumbers, .unit = "rad", .count = 2, .text = "Where its spring is slack; the initial position when absent."},
    {.path = "/joints/*[planar]/rest", .type = kNumbers, .unit = "m, m, rad", .text = "Where its spring is slack; the initial position when absent."},
    {.path = "/joints/*[spherical]/rest", .type = kNumbers, .unit = "rad", .text = "Rotation vector where its spring is slack; the initial one when absent."},
    {.path = "/joints/*[revolute,prismatic,universal,spherical,planar]/damping", .type = kNumber, .unit = "N m s/rad, N s/m", .fallback = "0", .range = at_least(0), .text = "Viscous resistance."},
    {.path = "/joints/*[revolute,prismatic]/dry_friction", .type = kNumber, .unit = "N m, N", .fallback = "0", .range = at_least(0), .text = "Friction that does not depend on the load, as data sheets give it."},
    {.path = "/joints/*[revolute,prismatic]/motor", .type = kRef, .ref = "motor", .text = "Drives the joint."},
    {.path = "/joints/*[revolute,prismatic,spherical]/friction", .type = kRef, .ref = "bearing", .text = "The surfaces inside it that rub; none when absent."},

    {.path = "/loops", .type = kArray, .fallback = "[]", .text = "Loop closures: what the tree of joints leaves open."},
    {.path = "/loops/*", .type = kObject, .text = "One loop closure."},
    {.path = "/loops/*/type", .type = kTag, .fallback = "\"pin\"", .values = "pin point hinge",
     .meanings = "a point of a stays on an axis of b: 2 rows, for linkages in a plane\ntwo points coincide: 3 rows\npoints and axes coincide: 5 rows", .text = "What is held together."},
    {.path = "/loops/*/name", .type = kString, .fallback = "\"\"", .text = "For messages; A-B when empty."},
    {.path = "/loops/*/a", .type = kString, .required = true, .text = "A link."},
    {.path = "/loops/*/b", .type = kString, .fallback = "\"world\"", .text = "Another link, or \"world\"."},
    {.path = "/loops/*/position", .type = kNumbers, .unit = "m", .required = true, .text = "Where the two meet in the drawing."},
    {.path = "/loops/*[pin,hinge]/axis", .type = kNumbers, .fallback = "[0, 0, 1]", .text = "The pin's axis in the drawing."},
    {.path = "/loops/*[pin,hinge]/friction", .type = kRef, .ref = "bearing", .text = "The surfaces of the pin; none when absent."},

    {.path = "/springs", .type = kArray, .fallback = "[]", .text = "Straight springs between links."},
    {.path = "/springs/*", .type = kObject, .text = "One spring."},
    {.path = "/springs/*/name", .type = kString, .fallback = "\"\"", .text = "For messages."},
    {.path = "/springs/*/a", .type = kString, .required = true, .text = "A link."},
    {.path = "/springs/*/b", .type = kString, .fallback = "\"world\"", .text = "Another link, or \"world\"."},
    {.path = "/springs/*/point_a", .type = kNumbers, .unit = "m", .required = true, .text = "Its end on a, in the drawing."},
    {.path = "/springs/*/point_b", .type = kNumbers, .unit = "m", .required = true, .text = "Its end on b, in the drawing."},
    {.path = "/springs/*/stiffness", .type = kNumber, .unit = "N/m", .required = true, .range = at_least(0), .text = "Stiffness."},
    {.path = "/springs/*/damping", .type = kNumber, .unit = "N s/m", .fallback = "0", .range = at_least(0), .text = "Viscous resistance along it."},
    {.path = "/springs/*/length", .type = kNumber, .unit = "m", .range = at_least(0), .text = "Where it is slack; the initial length when absent."},

    {.path = "/gears", .type = kArray, .fallback = "[]", .text = "Joints that move together: q of a is ratio times q of b, plus offset."},
    {.path = "/gears/*", .type = kObject, .text = "One pair of revolute or prismatic joints."},
    {.path = "/gears/*/name", .type = kString, .fallback = "\"\"", .text = "For messages; A-B when empty."},
    {.path = "/gears/*/a", .type = kString, .required = true, .text = "The joint that follows."},
    {.path = "/gears/*/b", .type = kString, .required = true, .text = "The joint that it follows. Forces go both ways."},
    {.path = "/gears/*/ratio", .type = kNumber, .fallback = "1", .text = "Motion of a per motion of b; -1: two equal gear wheels that mesh."},
    {.path = "/gears/*/offset", .type = kNumber, .unit = "rad, m", .text = "Position of a where b is at zero; as at the start when absent."},

    {.path = "/attachments", .type = kArray, .fallback = "[]", .text = "Nodes of soft bodies that move with links: muscles on bones. For vanilla, conjac, rigidify, cloth, and condense, for which such links are bones."},
    {.path = "/attachments/*", .type = kObject, .text = "Some nodes of one body on one link."},
    {.path = "/attachments/*/link", .type = kString, .required = true, .text = "Name of the link."},
    {.path = "/attachments/*/body", .type = kString, .text = "Name of the body; may be absent when there is only one."},
    {.path = "/attachments/*/nodes", .type = kRef, .required = true, .ref = "selection", .text = "Which nodes; they keep their place on the link as it is at the start."},

    {.path = "/robots", .type = kArray, .fallback = "[]", .aliases = "urdf", .text = "Articulated bodies from URDF files. Their links and joints are called NAME/LINK and NAME/JOINT."},
    {.path = "/robots/*", .type = kObject, .text = "One robot."},
    {.path = "/robots/*/name", .type = kName, .required = true, .text = "Unique name."},
    {.path = "/robots/*/file", .type = kFile, .required = true, .aliases = "urdf", .text = "The URDF file."},
    {.path = "/robots/*/base", .type = kEnum, .fallback = "\"fixed\"", .values = "fixed free", .text = "Whether its root is fixed to the world or floats."},
    {.path = "/robots/*/position", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .aliases = "translation", .text = "Where its root is."},
    {.path = "/robots/*/rotation", .type = kNumbers, .unit = "rad", .fallback = "[0, 0, 0]", .text = "Rotation vector; robots are drawn with z up, [-1.5708, 0, 0] makes y up."},
    {.path = "/robots/*/density", .type = kNumber, .unit = "kg/m^3", .range = above(0), .text = "Links without <inertial> get the mass of their shapes; without it they are frames."},
    {.path = "/robots/*/joints", .type = kMap, .fallback = "{}", .text = "What the file does not say, by the joint's name in the file."},
    {.path = "/robots/*/joints/*", .type = kObject, .text = "One joint."},
    {.path = "/robots/*/joints/*/q", .type = kNumber, .unit = "rad, m", .text = "Initial position."},
    {.path = "/robots/*/joints/*/damping", .type = kNumber, .unit = "N m s/rad, N s/m", .range = at_least(0), .text = "Viscous resistance."},
    {.path = "/robots/*/joints/*/dry_friction", .type = kNumber, .unit = "N m, N", .range = at_least(0), .text = "Friction that does not depend on the load."},
    {.path = "/robots/*/joints/*/stiffness", .type = kNumber, .unit = "N m/rad, N/m", .range = at_least(0), .text = "Spring towards rest."},
    {.path = "/robots/*/joints/*/rest", .type = kNumber, .unit = "rad, m", .text = "Where its spring is slack; the initial position when absent."},
    {.path = "/robots/*/joints/*/motor", .type = kRef, .ref = "motor", .text = "Drives the joint."},
    {.path = "/robots/*/joints/*/friction", .type = kRef, .ref = "bearing", .text = "The surfaces inside it that rub."},

    {.path = "/events", .type = kArray, .fallback = "[]", .text = "Changes of the mesh, or of what the scene says, during the run."},
    {.path = "/events/*", .type = kObject, .text = "One event."},
    {.path = "/events/*/type", .type = kTag, .fallback = "\"cut\"", .values = "cut set",
     .meanings = "separate the faces nearest to a plane, or given ones\n"
                 "give a value of the scene another one from then on; what the method remembers is kept only where gravity and damping change",
     .text = "What happens."},
    {.path = "/events/*/name", .type = kString, .fallback = "\"\"", .text = "For messages."},
    {.path = "/events/*/time", .type = kNumber, .unit = "s", .required = true, .range = at_least(0), .aliases = "t at", .text = "When it happens."},
    {.path = "/events/*[cut]/body", .type = kString, .text = "Name of the body; may be absent when there is only one."},
    {.path = "/events/*[cut]/point", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .text = "A point of the cutting plane, in the rest shape."},
    {.path = "/events/*[cut]/normal", .type = kNumbers, .fallback = "[1, 0, 0]", .text = "The plane's normal."},
    {.path = "/events/*[cut]/face_set", .type = kFile, .text = "Text file with three node ids per line: the faces to separate, instead of a plane."},
    {.path = "/events/*[set]/path", .type = kString, .required = true, .aliases = "pointer key", .text = "Which value: a JSON pointer to or into /gravity, /damping, /method, /contact, /solver, or to a body's material, regions or bending (/bodies/0/material/young); /bodies/- adds a body."},
    {.path = "/events/*[set]/value", .type = kAny, .required = true, .text = "Its new value; it goes through the same checks. A body that is added has a mesh with a shape, no file, and begins as bodies do at time 0."},

    {.path = "/obstacles", .type = kArray, .fallback = "[]", .aliases = "colliders", .text = "Rigid things that bodies touch."},
    {.path = "/obstacles/*", .type = kObject, .text = "One obstacle."},
    {.path = "/obstacles/*/name", .type = kString, .fallback = "\"\"", .text = "For messages and the page; made from its shape when empty."},
    {.path = "/obstacles/*/shape", .type = kTag, .required = true, .values = "plane sphere capsule box mesh wire points",
     .meanings = "a half-space\na ball\na cylinder with round ends\na box\na closed surface\n"
                 "a polyline without thickness, for the method cloth\ntips of nails, for the method cloth",
     .aliases = "type", .text = "What it is."},
    {.path = "/obstacles/*[plane,sphere,capsule,box]/point", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .aliases = "center centre position", .text = "A point of the plane, the centre of the sphere or box, one end of the capsule."},
    {.path = "/obstacles/*[wire,points]/points", .type = kArray, .required = true, .least = 1, .most = 10000, .text = "Corners of the wire in order; tips of the nails."},
    {.path = "/obstacles/*[wire,points]/points/*", .type = kNumbers, .unit = "m", .text = "One point."},
    {.path = "/obstacles/*[plane,points]/normal", .type = kNumbers, .fallback = "[0, 1, 0]", .text = "Points to where bodies may be; of nails: where they point."},
    {.path = "/obstacles/*[capsule]/end", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .text = "The other end."},
    {.path = "/obstacles/*[sphere,capsule]/radius", .type = kNumber, .unit = "m", .fallback = "0.1", .range = above(0), .text = "Radius."},
    {.path = "/obstacles/*[box]/size", .type = kNumbers, .unit = "m", .fallback = "[1, 1, 1]", .range = above(0), .text = "Edge lengths."},
    {.path = "/obstacles/*[mesh]/mesh", .type = kFile, .required = true, .text = "A closed surface (obj, ply, stl, off)."},
    {.path = "/obstacles/*[mesh]/scale", .type = kScale, .fallback = "[1, 1, 1]", .range = above(0), .text = "Scaling about the origin."},
    {.path = "/obstacles/*[box,mesh]/rotation", .type = kNumbers, .unit = "rad", .fallback = "[0, 0, 0]", .text = "Rotation vector."},
    {.path = "/obstacles/*[mesh]/translation", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .text = "Displacement, last."},
    {.path = "/obstacles/*/motion", .type = kArray, .fallback = "[]", .text = "Keys of its motion."},
    {.path = "/obstacles/*/motion/*", .type = kRef, .ref = "motion-key", .text = "One key."},
    {.path = "/obstacles/*/interpolation", .type = kEnum, .fallback = "\"smooth\"", .values = "smooth linear", .text = "Between keys: smooth has zero speed at the keys."},
    {.path = "/obstacles/*/friction", .type = kNumber, .range = at_least(0), .aliases = "mu", .text = "Friction coefficient; that of contact when absent."},

    {.path = "/contact", .type = kObject, .fallback = "{}", .text = "Contact of nodes with obstacles."},
    {.path = "/contact/stiffness", .type = kNumber, .unit = "N/m", .fallback = "0", .range = at_least(0), .text = "Penalty stiffness per node; 0: chosen from the material."},
    {.path = "/contact/alpha", .type = kNumber, .range = within(0, 1), .text = "Tangential share of the penalty: friction holds a node with alpha times the stiffness. Left out: 0.1; with the rule filter, where it is a drag on everything that slides, 0."},
    {.path = "/contact/friction", .type = kNumber, .fallback = "0.3", .range = at_least(0), .aliases = "mu", .text = "Friction coefficient."},
    {.path = "/contact/rule", .type = kEnum, .fallback = "\"anchored\"", .values = "anchored filter", .text = "Friction as springs that slip at the limit of friction, or the ConJac paper's: velocities are filtered after the step."},
    {.path = "/contact/overlap", .type = kEnum, .fallback = "\"refuse\"", .values = "refuse accept", .text = "Bodies that start deep inside an obstacle, or inside each other where they can touch: an error that names them, or left to contact, which pushes them out as it can."},

    {.path = "/probes", .type = kArray, .fallback = "[]", .most = 1000, .aliases = "sensors measure", .text = "Values over time: columns of steps.csv in the rows that are measured, and plots on the page."},
    {.path = "/probes/*", .type = kObject, .text = "One probe."},
    {.path = "/probes/*/name", .type = kName, .required = true, .text = "Unique name; its columns are probe/NAME, or probe/NAME/x and so on."},
    {.path = "/probes/*/value", .type = kEnum, .required = true, .values = "position displacement velocity force reaction contact_force energy_density volume_ratio von_mises principal_stress cauchy_stress strain principal_stretches",
     .meanings = "of nodes [m]\nof nodes, from the rest shape [m]\nof nodes [m/s]\nof nodes, external other than gravity [N]\nof nodes: what holds them [N]\nof nodes [N]\n"
                 "of elements [J/m^3]\nof elements, det F\nof elements [Pa]\nof elements, three, descending [Pa]\nof elements, xx yy zz xy yz xz [Pa]\nof elements, Green's, the same order\nof elements, three, descending",
     .aliases = "field what", .text = "What is measured; the first six of nodes, the others of elements."},
    {.path = "/probes/*/body", .type = kString, .text = "Name of the body; may be absent when there is only one."},
    {.path = "/probes/*/nodes", .type = kRef, .ref = "selection", .text = "Which nodes, for values of nodes; all when absent."},
    {.path = "/probes/*/elements", .type = kRef, .ref = "selection", .text = "Which elements, by centroid, for values of elements; all when absent."},
    {.path = "/probes/*/reduce", .type = kEnum, .values = "mean sum min max", .text = "How many values become one, each component by itself. Means over elements go by rest volume, sums over elements are integrals over it. Left out: the sum of forces, the mean of everything else."},

    {.path = "/output", .type = kObject, .fallback = "{}", .text = "What is written to the run folder."},
    {.path = "/output/every", .type = kInteger, .fallback = "1", .range = within(1, 1e9), .aliases = "skip stride", .text = "Record a frame every this many steps, and one at the end."},
    {.path = "/output/measure_every", .type = kInteger, .fallback = "0", .range = within(0, 1000000000), .text = "Measure energies, momenta, extremes and hash for steps.csv every this many steps and at the end; they are empty in the rows between. 0: in every step, with a method that does not move the nodes in every step at frames."},
    {.path = "/output/checkpoint_every", .type = kInteger, .fallback = "100", .range = within(1, 1e9), .text = "Write a checkpoint every this many steps."},
    {.path = "/output/vtu", .type = kBoolean, .fallback = "false", .aliases = "paraview vtk", .text = "Write frames/*.vtu and run.pvd for ParaView while the run goes on; limber export --format vtu makes the same from the recording, which is a sixth of the size."},
    {.path = "/output/surface", .type = kBoolean, .fallback = "false", .aliases = "obj ply", .text = "Write the surface of each body as surface/*.ply."},
    {.path = "/output/lossless", .type = kBoolean, .fallback = "false", .aliases = "exact double", .text = "The recording keeps positions and velocities of all nodes as 64-bit numbers, beside the 32-bit ones (7 digits) that it always has; `limber export` then writes vtu and npz with them. About three times as large."},
    {.path = "/output/fields", .type = kArray, .fallback = "[\"displacement\", \"velocity\", \"energy_density\"]", .text = "Fields of the frames: recording, page, VTU files and exports; those of the method are always there."},
    {.path = "/output/fields/*", .type = kEnum, .values = "displacement velocity energy_density volume_ratio von_mises principal_stress cauchy_stress strain principal_stretches reaction contact_force mass force material",
     .text = "displacement [m], velocity [m/s], energy_density [J/m^3], volume_ratio det F; von_mises, principal_stress (3, descending) and cauchy_stress (xx yy zz xy yz xz) [Pa]; strain (Green's, the same order), principal_stretches (3); reaction of pins, scripted sets and links, and contact_force [N], with sums per constraint and obstacle in steps.csv; mass [kg], force (external) [N], material (young, poisson, density)."},
    {.path = "/output/bodies", .type = kArray, .fallback = "[]", .text = "Bodies to write; all when empty."},
    {.path = "/output/bodies/*", .type = kString, .text = "Name of a body."},

    {.path = "/tests", .type = kObject, .fallback = "{}", .aliases = "test expect", .text = "What the scene expects of itself; `limber check --run` compares."},
    {.path = "/tests/steps", .type = kInteger, .range = within(1, 1e9), .text = "Steps to run before comparing; to the end when absent."},
    {.path = "/tests/max_displacement", .type = kExpected, .unit = "m", .text = "Largest displacement of a node from the rest shape."},
    {.path = "/tests/max_speed", .type = kExpected, .unit = "m/s", .text = "Largest speed of a node."},
    {.path = "/tests/kinetic_energy", .type = kExpected, .unit = "J", .text = "Kinetic energy."},
    {.path = "/tests/elastic_energy", .type = kExpected, .unit = "J", .text = "Elastic energy."},
    {.path = "/tests/energy_drift", .type = kNumber, .range = at_least(0), .text = "Largest change of the total energy, relative to the largest kinetic plus elastic energy of the run."},
    {.path = "/tests/fallbacks", .type = kInteger, .range = within(0, 1e9), .text = "Most fallbacks that may have been taken."},
    {.path = "/tests/inverted", .type = kInteger, .range = within(0, 1e9), .text = "Most inverted elements in any step."},

    // Definitions that several places share.
    {.path = "#varying", .type = kObject, .least = 1, .most = 1, .otherwise = kNumberOrFormula, .text = "A number, or one per element: a formula of the element's centroid, layers, or an array."},
    {.path = "#varying/formula", .type = kFormula, .text = "Formula of x, y, z [m]; the same as giving the text alone."},
    {.path = "#varying/file", .type = kFile, .text = "Text or .npy file with one number per element."},
    {.path = "#varying/field", .type = kString, .text = "Element field of the mesh file."},
    {.path = "#varying/layers", .type = kObject, .text = "Slabs across one axis."},
    {.path = "#varying/layers/axis", .type = kEnum, .required = true, .values = "x y z", .text = "The axis."},
    {.path = "#varying/layers/bounds", .type = kArray, .required = true, .text = "Where one slab ends and the next begins, ascending."},
    {.path = "#varying/layers/bounds/*", .type = kNumber, .unit = "m", .text = "Position along the axis."},
    {.path = "#varying/layers/values", .type = kArray, .required = true, .least = 1, .text = "One number per slab: one more than bounds."},
    {.path = "#varying/layers/values/*", .type = kNumber, .text = "Value in the slab."},

    {.path = "#node-vectors", .type = kObject, .least = 1, .most = 1, .otherwise = kNodeVector, .text = "Three numbers or formulas of the node's rest position, or an array with one vector for each node of the body, in the order of the mesh (all nodes, also where fewer are selected)."},
    {.path = "#node-vectors/values", .type = kArray, .least = 1, .text = "One vector per node."},
    {.path = "#node-vectors/values/*", .type = kNumbers, .text = "Of one node."},
    {.path = "#node-vectors/file", .type = kFile, .text = "Text or .npy file with three numbers per node."},
    {.path = "#node-vectors/field", .type = kString, .text = "Node field of the mesh file with three components."},

    {.path = "#selection", .type = kObject, .values = "all", .least = 1, .otherwise = kEnum, .text = "\"all\", or an object; several keys must all hold. Positions are rest positions after the body's transform."},
    {.path = "#selection/set", .type = kString, .text = "A named set of the mesh or of the body."},
    {.path = "#selection/ids", .type = kArray, .least = 1, .text = "Indices in the body, from 0."},
    {.path = "#selection/ids/*", .type = kInteger, .range = within(0, 2147483647), .text = "An index."},
    {.path = "#selection/box", .type = kObject, .text = "Inside an axis-aligned box."},
    {.path = "#selection/box/min", .type = kNumbers, .unit = "m", .required = true, .text = "Lowest corner."},
    {.path = "#selection/box/max", .type = kNumbers, .unit = "m", .required = true, .text = "Highest corner."},
    {.path = "#selection/sphere", .type = kObject, .text = "Inside a sphere."},
    {.path = "#selection/sphere/center", .type = kNumbers, .unit = "m", .required = true, .aliases = "centre point", .text = "Centre."},
    {.path = "#selection/sphere/radius", .type = kNumber, .unit = "m", .required = true, .range = at_least(0), .text = "Radius."},
    {.path = "#selection/capsule", .type = kObject, .text = "Near a straight line between two points."},
    {.path = "#selection/capsule/point", .type = kNumbers, .unit = "m", .required = true, .text = "One end of the line."},
    {.path = "#selection/capsule/end", .type = kNumbers, .unit = "m", .required = true, .text = "Its other end."},
    {.path = "#selection/capsule/radius", .type = kNumber, .unit = "m", .required = true, .range = at_least(0), .text = "Greatest distance from it."},
    {.path = "#selection/plane", .type = kObject, .text = "On the side of a plane that its normal points to."},
    {.path = "#selection/plane/point", .type = kNumbers, .unit = "m", .required = true, .text = "A point of the plane."},
    {.path = "#selection/plane/normal", .type = kNumbers, .required = true, .text = "Its normal, of any length."},
    {.path = "#selection/nearest", .type = kArray, .least = 1, .text = "The one nearest to each point."},
    {.path = "#selection/nearest/*", .type = kNumbers, .unit = "m", .text = "A point."},
    {.path = "#selection/formula", .type = kFormula, .text = "Where the formula is true (not 0), e.g. \"z > 0.1 and x < 0\"."},
    {.path = "#selection/any", .type = kArray, .least = 1, .aliases = "or", .text = "At least one of these."},
    {.path = "#selection/any/*", .type = kRef, .ref = "selection", .text = "A selection."},
    {.path = "#selection/every", .type = kArray, .least = 1, .aliases = "and all", .text = "All of these."},
    {.path = "#selection/every/*", .type = kRef, .ref = "selection", .text = "A selection."},
    {.path = "#selection/not", .type = kRef, .ref = "selection", .text = "All but these."},


    {.path = "#fibre", .type = kObject, .text = "Fibres that resist stretch along one direction and may contract."},
    {.path = "#fibre/model", .type = kEnum, .fallback = "\"st-venant-kirchhoff\"", .values = "st-venant-kirchhoff fung",
     .meanings = "k/2 (I5 - 1)^2: linear in the Green strain of the fibre\n"
                 "k (exp(I5 - 1) - I5): stiffens with stretch", .aliases = "type", .text = "Energy: k/2 (I5 - 1)^2, or k (exp(I5 - 1) - I5)."},
    {.path = "#fibre/stiffness", .type = kRef, .unit = "Pa", .required = true, .range = at_least(0), .ref = "varying", .aliases = "k young", .text = "Stiffness k."},
    {.path = "#fibre/direction", .type = kRef, .required = true, .ref = "direction", .aliases = "axis", .text = "Direction in the rest shape, of any length."},
    {.path = "#fibre/activation", .type = kString, .fallback = "\"\"", .aliases = "channel", .text = "Name of the activation channel; none when empty."},

    {.path = "#direction", .type = kObject, .least = 1, .most = 1, .otherwise = kDirection, .text = "A direction, or one per element."},
    {.path = "#direction/field", .type = kString, .text = "Element field of the mesh file with three components."},
    {.path = "#direction/file", .type = kFile, .text = "Text or .npy file with three numbers per element."},

    {.path = "#motor", .type = kObject, .text = "A torque or force, or a speed that is reached exactly and whose torque is reported."},
    {.path = "#motor/type", .type = kTag, .required = true, .values = "torque speed", .text = "What is given."},
    {.path = "#motor/value", .type = kNumber, .unit = "N m, N, rad/s, m/s", .text = "A constant; keys give values that change."},
    {.path = "#motor/keys", .type = kArray, .least = 1, .text = "Values over time, linear between keys and constant outside."},
    {.path = "#motor/keys/*", .type = kTimeValue, .text = "[time in s, value]."},

    {.path = "#bearing", .type = kObject, .text = "Where surfaces touch inside a joint: a pin for revolute joints and loops, a ball for spherical ones, a slider for prismatic ones."},
    {.path = "#bearing/mu", .type = kNumber, .required = true, .range = at_least(0), .aliases = "friction", .text = "Friction coefficient; 0: none."},
    {.path = "#bearing/radius", .type = kNumber, .unit = "m", .fallback = "0", .range = at_least(0), .text = "Of the pin or ball."},
    {.path = "#bearing/height", .type = kNumber, .unit = "m", .fallback = "0", .range = at_least(0), .aliases = "length", .text = "Of the pin along its axis."},
    {.path = "#bearing/box", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .range = at_least(0), .aliases = "size", .text = "Of the slider: its sides along the axis and across it. An axis x has the sides in the order x, y, z; an axis y: y, x, z; an axis z: z, x, y; others start from the coordinate axis that is most across."},
    {.path = "#bearing/side", .type = kNumbers, .fallback = "[0, 0, 0]", .text = "Direction from the axis to the first contact point of a pin, in the drawing (for a robot's joint: in the frame of its child link); what it has along the axis does not count. Zero: chosen from the axis."},
    {.path = "#bearing/points", .type = kInteger, .fallback = "4", .range = within(3, 64), .text = "Contact points around each end of a pin."},

    {.path = "#motion-key", .type = kObject, .text = "Where things are at one time: rotated about the centre, scaled about it, then translated."},
    {.path = "#motion-key/t", .type = kNumber, .unit = "s", .required = true, .range = at_least(0), .aliases = "time", .text = "Time."},
    {.path = "#motion-key/translation", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .text = "Displacement."},
    {.path = "#motion-key/rotation", .type = kNumbers, .unit = "rad", .fallback = "[0, 0, 0]", .text = "Rotation vector (axis times angle); several turns are allowed."},
    {.path = "#motion-key/scale", .type = kNumber, .fallback = "1", .range = above(0), .text = "Uniform scaling."},
};
// clang-format on

// The table with the rows of all methods in it. One for every set of methods there has been, because nodes of
// the tree point to rows.
struct JoinedTable {
  int version;
  std::string names, text, materials, meanings;
  std::vector<Entry> entries;
};

}  // namespace

int spec_version() { return methods_version() + static_cast<int>(material::own_energies().size()); }

std::span<const Entry> spec_entries() {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<JoinedTable>> tables;
  const std::lock_guard lock(mutex);
  if (!tables.empty() && tables.back()->version == spec_version()) return tables.back()->entries;
  auto& table = *tables.emplace_back(std::make_unique<JoinedTable>());
  table.version = spec_version();
  for (const MethodSpec* m : method_specs()) {
    table.names += fmt::format("{}{}", table.names.empty() ? "" : " ", m->name);
    table.text += fmt::format("{}{}: {}", table.text.empty() ? "" : "; ", m->name, m->summary);
  }
  table.text += ".";
  for (const Entry& entry : kEntries) {
    table.entries.push_back(entry);
    if (entry.path == "/bodies/*/material/model") {
      table.materials = entry.values;
      table.meanings = entry.meanings;
      for (const material::OwnEnergy& own : material::own_energies()) {
        table.materials += " " + own.name;
        table.meanings += "\n" + own.summary;
      }
      table.entries.back().values = table.materials;
      table.entries.back().meanings = table.meanings;
    }
    if (entry.path != "/method/type") continue;
    table.entries.back().values = table.names;
    table.entries.back().text = table.text;
    for (const MethodSpec* m : method_specs())
      for (const Entry& own : m->entries)
        if (own.path.starts_with('/')) table.entries.push_back(own);
  }
  for (const MethodSpec* m : method_specs())
    for (const Entry& own : m->entries)
      if (!own.path.starts_with('/')) table.entries.push_back(own);
  return table.entries;
}

}  // namespace limber
