// A method as the rest of Limber sees it, and the table of all of them. limber/methods/NAME/ is a method;
// docs/your-own-method.md walks through one.
#pragma once

#include <limber/scene/method_spec.hpp>
#include <limber/sim/stepper.hpp>

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace limber {

// What a method is given to prepare itself with.
struct Preparation {
  // Called with what is being done and how much of it, from 0 to 1. May be empty.
  std::function<void(std::string_view what, double share)> progress = {};
  // Folder where a method may keep what takes long to make, by a name that holds a hash of all that it was
  // made from. Empty: nowhere.
  std::filesystem::path cache = {};
  // False: what takes long and is not in the cache is left out. make() then says what is wrong with model and
  // options; its stepper is not asked for steps.
  bool train = true;

  void say(std::string_view what, double share) const {
    if (progress) progress(what, share);
  }
};

struct Method {
  MethodSpec spec;
  // Reads the options (as the spec's entries leave them: checked and defaulted) and prepares everything that
  // the first step needs. Called again after every change of topology. Throws Error(kInput) when model and
  // options do not fit together.
  std::unique_ptr<Stepper> (*make)(const Model& model, const nlohmann::json& options,
                                   const Preparation& preparation) = nullptr;
  // An empty memory, to read a checkpoint into; null: the method remembers nothing.
  MethodMemory (*memory)() = nullptr;
  // make() looks at gravity or damping: it is called again when an event of the scene sets them.
  bool prepared_with_loads = false;
};

// All methods: those of limber/methods/methods.cpp, then those that a program has added.
std::span<const Method* const> methods();
// Adds a method that lives outside the library; it must exist until the program ends. Call it before scenes
// are loaded, and not while another thread uses the table. Throws Error(kUsage) when the name is taken.
void register_method(const Method& method);
// Throws Error(kInput) when there is no such method.
const Method& method_named(std::string_view name);

// The library's own (methods/methods.cpp).
std::span<const Method* const> built_in_methods();

}  // namespace limber
