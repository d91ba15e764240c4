// The public interface of Limber, in one include: read or write a scene, simulate it, look at it, record it.
// docs/cpp.md walks through it; examples/ has programs that use nothing else. All other headers are installed
// as well, for methods of one's own (docs/your-own-method.md) and for the parts by themselves, and may change
// more freely.
//
//   load_scene, try_load_scene, try_read_scene     scenes from files and from text (scene/load.hpp)
//   read_mesh, write_mesh, make_box, make_sphere   meshes (io/mesh_io.hpp, mesh/generate.hpp)
//   Simulation                                     step, state, forces and held nodes of one's own
//   (sim/simulation.hpp) measure, hash_state                            energies and momenta, the fingerprint
//   of a state RunFolder, Recorder, describe_run              what `limber run` leaves behind
//   (docs/run-folder.md) write_checkpoint, read_checkpoint              a state in a file register_method a
//   method that lives outside the library Error, ErrorKind, StepFailure                  what all of them
//   throw set_threads, version                           of the whole process
#pragma once

#include <limber/core/build_info.hpp>
#include <limber/core/error.hpp>
#include <limber/core/parallel.hpp>
#include <limber/core/types.hpp>
#include <limber/io/mesh_io.hpp>
#include <limber/material/own_energy.hpp>
#include <limber/mesh/generate.hpp>
#include <limber/scene/load.hpp>
#include <limber/sim/checkpoint.hpp>
#include <limber/sim/describe_run.hpp>
#include <limber/sim/hash.hpp>
#include <limber/sim/method.hpp>
#include <limber/sim/recorder.hpp>
#include <limber/sim/run_folder.hpp>
#include <limber/sim/simulation.hpp>
