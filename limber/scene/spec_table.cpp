// The scene format. One row per key; everything else about the format is derived from these rows.
#include <limber/scene/spec.hpp>

namespace limber {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Range above(double min) { return {min, kInf, true, false}; }
constexpr Range at_least(double min) { return {min, kInf, false, false}; }
constexpr Range within(double min, double max) { return {min, max, false, false}; }
constexpr Range inside(double min, double max) { return {min, max, true, true}; }

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

    // Methods. A new method adds its name to the tag and its rows below.
    {.path = "/method", .type = kObject, .fallback = "{}", .aliases = "integrator stepper", .text = "How the motion is computed."},
    {.path = "/method/type", .type = kTag, .fallback = "\"vanilla\"", .values = "vanilla conjac static implicit", .aliases = "name", .text = "vanilla: all nodes are unknowns; conjac: a few dynamic nodes move the rest; static: the equilibrium only; implicit: nonlinear integrators with a choice of solvers."},
    {.path = "/method[vanilla]/beta", .type = kNumber, .fallback = "1", .range = above(0), .text = "Weight of the stiffness in M + hD + beta h^2 K; 1 is linearly implicit Euler."},
    {.path = "/method[static]/tolerance", .type = kNumber, .fallback = "1e-10", .range = inside(0, 1), .text = "Force residual relative to the largest force at which Newton's method stops."},
    {.path = "/method[static]/max_iterations", .type = kInteger, .fallback = "200", .range = within(1, 100000), .text = "Newton iterations after which the solve counts as failed."},
    {.path = "/method[conjac]/dynamic", .type = kList, .required = true, .text = "The dynamic nodes; all other free nodes follow quasistatically. An empty list makes the whole body quasistatic."},
    {.path = "/method[conjac]/dynamic/*", .type = kRef, .ref = "dynamic", .text = "A selection of nodes, or how many to choose."},
    {.path = "/method[conjac]/beta", .type = kNumber, .fallback = "0.5", .range = above(0), .text = "Weight of the stiffness in the reduced system, for the linear-implicit time rule (Eq. 11)."},
    {.path = "/method[conjac]/gamma", .type = kNumber, .fallback = "0.3333333333333333", .range = within(0, 1), .text = "Share of the quasistatic correction taken in each step."},
    {.path = "/method[conjac]/time_rule", .type = kEnum, .fallback = "\"guarded\"", .values = "guarded linear-implicit trapezoidal modal midpoint", .text = "Time integration of the dynamic nodes."},
    {.path = "/method[conjac]/newton_steps", .type = kInteger, .fallback = "0", .range = within(0, 1000), .text = "Extra quasi-Newton steps that pull the quasistatic nodes to equilibrium."},
    {.path = "/method[conjac]/static_start", .type = kBoolean, .fallback = "false", .text = "Begin in the static equilibrium instead of the initial shape."},
    {.path = "/method[conjac]/adaptive", .type = kObject, .aliases = "adaptivity liveliness", .text = "Makes the nodes of dynamic representative ones: each is dynamic only while the region around it is lively."},
    {.path = "/method[conjac]/adaptive/threshold", .type = kNumber, .unit = "1/s", .fallback = "0.02", .range = above(0), .text = "A node becomes dynamic in the step in which the mean stretching speed of its region would be above this."},
    {.path = "/method[conjac]/adaptive/hysteresis", .type = kNumber, .fallback = "0.5", .range = within(0, 1), .text = "It becomes quasistatic again when the stretching speed, averaged over the window, is below this share of the threshold."},
    {.path = "/method[conjac]/adaptive/window", .type = kInteger, .fallback = "10", .range = within(1, 10000), .text = "Steps over which the stretching speed is averaged, and for which a node stays dynamic at least."},
    {.path = "/method[conjac]/adaptive/start_dynamic", .type = kBoolean, .fallback = "false", .text = "Begin with all representative nodes dynamic instead of quasistatic."},
    {.path = "/method[conjac]/adaptive/regions", .type = kArray, .fallback = "[]", .text = "The region of each node of dynamic, in their order (nodes of one entry by index); empty: every element belongs to the nearest node."},
    {.path = "/method[conjac]/adaptive/regions/*", .type = kObject, .text = "One region."},
    {.path = "/method[conjac]/adaptive/regions/*/name", .type = kName, .text = "For steps.csv and the page; its number from 1 when absent."},
    {.path = "/method[conjac]/adaptive/regions/*/body", .type = kString, .text = "Name of the body of elements; may be absent when there is only one."},
    {.path = "/method[conjac]/adaptive/regions/*/elements", .type = kRef, .ref = "selection", .text = "Its elements, by centroid; those nearest to the node when absent. Later regions win."},
    {.path = "/method[implicit]/integrator", .type = kEnum, .fallback = "\"bdf2\"", .values = "bdf1 baraff bdf2 sdirk2 quasistatic", .text = "bdf1: implicit Euler; baraff: its first Newton iteration only; bdf2, sdirk2: second order; quasistatic: equilibrium at every step."},
    {.path = "/method[implicit]/solver", .type = kEnum, .fallback = "\"auto\"", .values = "newton-direct newton-pcg newton-l0 newton-l1 quasi-newton-l0 quasi-newton-l1 hybrid-l0 hybrid-l1 qlb auto", .text = "How often the matrix is factored; every choice reaches the same solution."},
    {.path = "/method[implicit]/matrix", .type = kEnum, .fallback = "\"exact\"", .values = "exact projected", .text = "exact: the derivative of the forces where it is positive definite, with projected elements elsewhere; projected: always projected."},
    {.path = "/method[implicit]/strain_damping", .type = kNumber, .unit = "s", .fallback = "0", .range = at_least(0), .text = "Green-strain damping: times Young's modulus, the energy lost per volume and squared strain rate."},
    {.path = "/method[implicit]/body_contact", .type = kBoolean, .fallback = "false", .text = "Bodies touch each other and themselves."},
    {.path = "/method[implicit]/contact_damping", .type = kNumber, .unit = "s", .fallback = "0", .range = at_least(0), .text = "Damping of contact, as a time: resists going deeper with this times the penalty stiffness."},
    {.path = "/method[implicit]/slip_speed", .type = kNumber, .unit = "m/s", .fallback = "0.005", .range = above(0), .text = "Speed below which friction is viscous instead of Coulomb's."},
    {.path = "/method[implicit]/tolerance_relative", .type = kNumber, .fallback = "1e-6", .range = inside(0, 1), .text = "Residual, relative to that of the initial guess, at which a solve ends."},
    {.path = "/method[implicit]/tolerance_absolute", .type = kNumber, .unit = "N", .fallback = "1e-6", .range = above(0), .text = "Norm of the residual force at which a solve ends."},
    {.path = "/method[implicit]/max_iterations", .type = kInteger, .fallback = "200", .range = within(1, 100000), .text = "Search directions after which a solve counts as failed."},
    {.path = "/method[implicit]/quasi_iterations", .type = kInteger, .fallback = "20", .range = within(1, 100000), .text = "Quasi-Newton iterations after which a factor counts as stale."},
    {.path = "/method[implicit]/pcg_tolerance", .type = kNumber, .fallback = "0.01", .range = inside(0, 1), .text = "Relative residual of conjugate gradients inside Newton's method."},
    {.path = "/method[implicit]/history", .type = kInteger, .fallback = "8", .range = within(0, 100), .text = "Pairs that L-BFGS keeps (qlb, auto)."},
    {.path = "/method[implicit]/keep", .type = kInteger, .fallback = "0", .range = within(0, 1000000), .text = "Steps that a factor serves; 0: one with l0 and l1, as long as it pays with qlb and auto."},
    {.path = "/method[implicit]/max_halvings", .type = kInteger, .fallback = "4", .range = within(0, 20), .text = "How often a step that fails is halved before the run stops."},

    {.path = "/solver", .type = kObject, .fallback = "{}", .text = "The sparse Cholesky factorisation."},
    {.path = "/solver/backend", .type = kEnum, .fallback = "\"auto\"", .values = "auto native cholmod", .text = "Which implementation."},
    {.path = "/solver/ordering", .type = kEnum, .fallback = "\"auto\"", .values = "auto amd metis", .text = "Elimination order; auto keeps the cheaper of the two."},

    {.path = "/bodies", .type = kArray, .required = true, .least = 1, .most = 10000, .aliases = "objects body meshes", .text = "The soft bodies."},
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
    {.path = "/bodies/*/mesh[sphere,capsule,cylinder,torus]/radius", .type = kNumber, .unit = "m", .fallback = "0.05", .range = above(0), .text = "Radius; of a torus, from its centre to the middle of the tube."},
    {.path = "/bodies/*/mesh[torus]/tube_radius", .type = kNumber, .unit = "m", .fallback = "0.02", .range = above(0), .text = "Radius of the tube."},
    {.path = "/bodies/*/mesh[capsule,cylinder]/length", .type = kNumber, .unit = "m", .fallback = "0.1", .range = above(0), .aliases = "height", .text = "Length of the straight part."},
    {.path = "/bodies/*/mesh[sphere,capsule,cylinder,torus]/edge", .type = kNumber, .unit = "m", .fallback = "0.01", .range = above(0), .aliases = "resolution edge_length", .text = "Edge length to aim for."},
    {.path = "/bodies/*/fit", .type = kNumber, .unit = "m", .range = above(0), .text = "Scale the mesh uniformly so that the longest side of its bounding box has this length; before scale."},
    {.path = "/bodies/*/scale", .type = kScale, .fallback = "[1, 1, 1]", .range = above(0), .text = "Scaling about the origin: one number, or one per axis."},
    {.path = "/bodies/*/rotation", .type = kNumbers, .unit = "rad", .fallback = "[0, 0, 0]", .aliases = "orientation angle", .text = "Rotation vector (axis times angle), after scaling."},
    {.path = "/bodies/*/translation", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .aliases = "position offset", .text = "Displacement, last."},
    {.path = "/bodies/*/thickness", .type = kNumber, .unit = "m", .fallback = "0.01", .range = above(0), .text = "Of a plane-strain body; without effect on tetrahedra."},
    {.path = "/bodies/*/material", .type = kObject, .fallback = "{}", .text = "What the body is made of."},
    {.path = "/bodies/*/material/model", .type = kEnum, .fallback = "\"stable-neo-hookean\"", .values = "stable-neo-hookean stable-neo-hookean-log corotational fixed-corotated arap st-venant-kirchhoff",
     .meanings = "mu/2 (Ic - 3) + L/2 (J - a)^2; survives inversion; the default\n"
                 "the same with -mu/2 log(Ic + 1), as published in 2018\n"
                 "mu |S - I|^2 + lambda/2 tr(S - I)^2; linear stress and strain without the rotation\n"
                 "mu |S - I|^2 + lambda/2 (J - 1)^2; keeps volume better under large strain\n"
                 "mu |F - R|^2; as rigid as possible, little resistance to volume change\n"
                 "mu |E|^2 + lambda/2 tr(E)^2 with Green strain; softens in compression, may collapse",
     .aliases = "type", .text = "Elastic energy."},
    {.path = "/bodies/*/material/young", .type = kRef, .unit = "Pa", .fallback = "1e5", .range = above(0), .ref = "varying", .aliases = "E youngs_modulus stiffness", .text = "Young's modulus."},
    {.path = "/bodies/*/material/poisson", .type = kRef, .fallback = "0.4", .range = inside(-1, 0.5), .ref = "varying", .aliases = "nu poissons_ratio", .text = "Poisson's ratio."},
    {.path = "/bodies/*/material/density", .type = kRef, .unit = "kg/m^3", .fallback = "1000", .range = above(0), .ref = "varying", .aliases = "rho mass", .text = "Mass per volume."},
    {.path = "/bodies/*/material/fibre", .type = kRef, .ref = "fibre", .aliases = "fiber fibers fibres muscle", .text = "Fibres, added to the base material."},
    {.path = "/bodies/*/regions", .type = kArray, .fallback = "[]", .aliases = "layers materials", .text = "Parts of the body with other material; later ones win."},
    {.path = "/bodies/*/regions/*", .type = kObject, .text = "One part."},
    {.path = "/bodies/*/regions/*/name", .type = kString, .text = "The part becomes an element set of this name."},
    {.path = "/bodies/*/regions/*/elements", .type = kRef, .required = true, .ref = "selection", .aliases = "where selection", .text = "Which elements, by centroid."},
    {.path = "/bodies/*/regions/*/young", .type = kRef, .unit = "Pa", .range = above(0), .ref = "varying", .aliases = "E youngs_modulus stiffness", .text = "Young's modulus there."},
    {.path = "/bodies/*/regions/*/poisson", .type = kRef, .range = inside(-1, 0.5), .ref = "varying", .aliases = "nu poissons_ratio", .text = "Poisson's ratio there."},
    {.path = "/bodies/*/regions/*/density", .type = kRef, .unit = "kg/m^3", .range = above(0), .ref = "varying", .aliases = "rho", .text = "Mass per volume there."},
    {.path = "/bodies/*/regions/*/fibre", .type = kRef, .ref = "fibre", .aliases = "fiber", .text = "Fibres there."},
    {.path = "/bodies/*/node_sets", .type = kMap, .fallback = "{}", .text = "Further named sets of nodes, beside those of the mesh file."},
    {.path = "/bodies/*/node_sets/*", .type = kRef, .ref = "selection", .text = "Which nodes."},
    {.path = "/bodies/*/element_sets", .type = kMap, .fallback = "{}", .text = "Further named sets of elements."},
    {.path = "/bodies/*/element_sets/*", .type = kRef, .ref = "selection", .text = "Which elements, by centroid."},
    {.path = "/bodies/*/velocity", .type = kNumbers, .unit = "m/s", .fallback = "[0, 0, 0]", .text = "Initial velocity."},
    {.path = "/bodies/*/angular_velocity", .type = kNumbers, .unit = "rad/s", .fallback = "[0, 0, 0]", .aliases = "spin omega", .text = "Initial angular velocity about the centre of mass."},
    {.path = "/bodies/*/initial", .type = kFile, .text = "Mesh file with the same nodes whose positions the body begins in; the rest shape stays that of mesh."},

    {.path = "/constraints", .type = kArray, .fallback = "[]", .aliases = "pins boundary_conditions dirichlet", .text = "Nodes that are pinned or moved by script."},
    {.path = "/constraints/*", .type = kObject, .text = "One group of held nodes."},
    {.path = "/constraints/*/name", .type = kString, .fallback = "\"\"", .text = "For messages."},
    {.path = "/constraints/*/body", .type = kString, .text = "Name of the body; may be absent when there is only one."},
    {.path = "/constraints/*/nodes", .type = kRef, .required = true, .ref = "selection", .aliases = "where selection set", .text = "Which nodes."},
    {.path = "/constraints/*/axes", .type = kEnum, .fallback = "\"xyz\"", .values = "xyz x y z xy xz yz", .text = "Which components are held."},
    {.path = "/constraints/*/from", .type = kNumber, .unit = "s", .fallback = "0", .range = at_least(0), .aliases = "start begin", .text = "Held from this time on."},
    {.path = "/constraints/*/until", .type = kNumber, .unit = "s", .range = above(0), .aliases = "end to release", .text = "Released at this time; never when absent."},
    {.path = "/constraints/*/motion", .type = kArray, .fallback = "[]", .aliases = "keys keyframes script", .text = "Keys of the motion, relative to where the nodes were when the constraint began; empty: pinned."},
    {.path = "/constraints/*/motion/*", .type = kRef, .ref = "motion-key", .text = "One key."},
    {.path = "/constraints/*/center", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .aliases = "centre pivot", .text = "Centre of rotation and scaling."},
    {.path = "/constraints/*/interpolation", .type = kEnum, .fallback = "\"smooth\"", .values = "smooth linear", .text = "Between keys: smooth has zero speed at the keys."},

    {.path = "/forces", .type = kArray, .fallback = "[]", .aliases = "loads", .text = "Forces besides gravity."},
    {.path = "/forces/*", .type = kObject, .text = "One force."},
    {.path = "/forces/*/name", .type = kString, .fallback = "\"\"", .text = "For messages."},
    {.path = "/forces/*/body", .type = kString, .text = "Name of the body; may be absent when there is only one."},
    {.path = "/forces/*/nodes", .type = kRef, .fallback = "\"all\"", .ref = "selection", .text = "Which nodes."},
    {.path = "/forces/*/force", .type = kNumbers, .unit = "N", .fallback = "[0, 0, 0]", .aliases = "value f", .text = "Total force, shared among the nodes by mass."},
    {.path = "/forces/*/acceleration", .type = kNumbers, .unit = "m/s^2", .fallback = "[0, 0, 0]", .aliases = "a", .text = "Force per mass; added to force."},
    {.path = "/forces/*/from", .type = kNumber, .unit = "s", .fallback = "0", .range = at_least(0), .aliases = "start begin", .text = "Acts from this time on."},
    {.path = "/forces/*/until", .type = kNumber, .unit = "s", .range = above(0), .aliases = "end to", .text = "Acts until this time; for ever when absent."},
    {.path = "/forces/*/ramp", .type = kNumber, .unit = "s", .fallback = "0", .range = at_least(0), .text = "Time over which it grows from zero."},

    {.path = "/activations", .type = kArray, .fallback = "[]", .aliases = "muscles activation", .text = "How strongly fibres contract over time."},
    {.path = "/activations/*", .type = kObject, .text = "One channel, which fibres name."},
    {.path = "/activations/*/name", .type = kString, .required = true, .text = "Name of the channel."},
    {.path = "/activations/*/keys", .type = kArray, .required = true, .least = 1, .text = "Activation over time, linear between keys and constant outside."},
    {.path = "/activations/*/keys/*", .type = kTimeValue, .range = within(0, 0.9), .text = "[time in s, activation]; 0.2 makes fibres want to be a fifth shorter."},

    {.path = "/events", .type = kArray, .fallback = "[]", .text = "Changes of the mesh during the run."},
    {.path = "/events/*", .type = kObject, .text = "One event."},
    {.path = "/events/*/type", .type = kTag, .fallback = "\"cut\"", .values = "cut", .text = "cut: separate the faces nearest to a plane, or given ones."},
    {.path = "/events/*/name", .type = kString, .fallback = "\"\"", .text = "For messages."},
    {.path = "/events/*/time", .type = kNumber, .unit = "s", .required = true, .range = at_least(0), .aliases = "t at", .text = "When it happens."},
    {.path = "/events/*/body", .type = kString, .text = "Name of the body; may be absent when there is only one."},
    {.path = "/events/*[cut]/point", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .text = "A point of the cutting plane, in the rest shape."},
    {.path = "/events/*[cut]/normal", .type = kNumbers, .fallback = "[1, 0, 0]", .text = "The plane's normal."},
    {.path = "/events/*[cut]/face_set", .type = kFile, .text = "Text file with three node ids per line: the faces to separate, instead of a plane."},

    {.path = "/obstacles", .type = kArray, .fallback = "[]", .aliases = "colliders", .text = "Rigid things that bodies touch."},
    {.path = "/obstacles/*", .type = kObject, .text = "One obstacle."},
    {.path = "/obstacles/*/name", .type = kString, .fallback = "\"\"", .text = "For messages."},
    {.path = "/obstacles/*/shape", .type = kTag, .required = true, .values = "plane sphere capsule box mesh", .aliases = "type", .text = "What it is."},
    {.path = "/obstacles/*[plane,sphere,capsule,box]/point", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .aliases = "center centre position", .text = "A point of the plane, the centre of the sphere or box, one end of the capsule."},
    {.path = "/obstacles/*[plane]/normal", .type = kNumbers, .fallback = "[0, 1, 0]", .text = "Points to where bodies may be."},
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
    {.path = "/contact/alpha", .type = kNumber, .fallback = "0.1", .range = within(0, 1), .text = "Tangential share of the penalty: friction holds a node with alpha times the stiffness."},
    {.path = "/contact/friction", .type = kNumber, .fallback = "0.3", .range = at_least(0), .aliases = "mu", .text = "Friction coefficient."},
    {.path = "/contact/rule", .type = kEnum, .fallback = "\"anchored\"", .values = "anchored filter", .text = "Friction as springs that slip at the limit of friction, or the ConJac paper's: velocities are filtered after the step."},

    {.path = "/output", .type = kObject, .fallback = "{}", .text = "What is written to the run folder."},
    {.path = "/output/every", .type = kInteger, .fallback = "1", .range = within(1, 1e9), .aliases = "skip stride", .text = "Record a frame every this many steps."},
    {.path = "/output/checkpoint_every", .type = kInteger, .fallback = "100", .range = within(1, 1e9), .text = "Write a checkpoint every this many steps."},
    {.path = "/output/vtu", .type = kBoolean, .fallback = "true", .aliases = "paraview vtk", .text = "Write frames/*.vtu and run.pvd for ParaView."},
    {.path = "/output/surface", .type = kBoolean, .fallback = "false", .aliases = "obj ply", .text = "Write the surface of each body as surface/*.ply."},
    {.path = "/output/fields", .type = kArray, .fallback = "[\"displacement\", \"velocity\", \"energy_density\"]", .text = "Fields of the VTU files; those of the method are always there."},
    {.path = "/output/fields/*", .type = kEnum, .values = "displacement velocity energy_density volume_ratio mass force material", .text = "displacement [m], velocity [m/s], energy_density [J/m^3], volume_ratio det F, mass [kg], force (external) [N], material (young, poisson, density)."},
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

    {.path = "#dynamic", .type = kObject, .values = "all", .least = 1, .ref = "selection", .otherwise = kEnum, .text = "Which nodes are dynamic: a selection, or how many to choose automatically."},
    {.path = "#dynamic/body", .type = kString, .text = "Name of the body; all bodies when absent."},
    {.path = "#dynamic/auto", .type = kInteger, .range = within(1, 1000000), .text = "Choose this many, spread over the body away from held nodes."},

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

    {.path = "#motion-key", .type = kObject, .text = "Where things are at one time: rotated about the centre, scaled about it, then translated."},
    {.path = "#motion-key/t", .type = kNumber, .unit = "s", .required = true, .range = at_least(0), .aliases = "time", .text = "Time."},
    {.path = "#motion-key/translation", .type = kNumbers, .unit = "m", .fallback = "[0, 0, 0]", .text = "Displacement."},
    {.path = "#motion-key/rotation", .type = kNumbers, .unit = "rad", .fallback = "[0, 0, 0]", .text = "Rotation vector (axis times angle); several turns are allowed."},
    {.path = "#motion-key/scale", .type = kNumber, .fallback = "1", .range = above(0), .text = "Uniform scaling."},
};
// clang-format on

}  // namespace

std::span<const Entry> spec_entries() { return kEntries; }

}  // namespace limber
