// What one method remembers from step to step, held in the State without the State knowing what it is.
//
// A method's memory is a struct of its own with a visit() that names every member, as State's does:
//
//   struct LeapfrogMemory {
//     VecX x_prev;
//     template <class M, class Visitor>
//     static void visit(M& m, Visitor&& visitor) { visitor("x_prev", m.x_prev); }
//   };
//
// Members may be of the types of FieldRef. Checkpoint, hash and comparison go over them by name.
#pragma once

#include <limber/core/types.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

namespace limber {

// A member of a memory: a number, or a list of numbers.
template <template <class> class P>
using FieldOf =
    std::variant<P<double>, P<std::int64_t>, P<VecX>, P<std::vector<double>>, P<std::vector<std::int64_t>>,
                 P<std::vector<std::int32_t>>, P<std::vector<std::uint8_t>>>;
template <class T>
using PointerTo = T*;
template <class T>
using PointerToConst = const T*;
using FieldRef = FieldOf<PointerTo>;
using ConstFieldRef = FieldOf<PointerToConst>;

class MethodMemory {
 public:
  MethodMemory() = default;
  MethodMemory(const MethodMemory& other) : epoch_(other.epoch_), held_(other.clone()) {}
  MethodMemory(MethodMemory&&) noexcept = default;
  MethodMemory& operator=(const MethodMemory& other) {
    if (this == &other) return *this;
    epoch_ = other.epoch_;
    if (!(held_ && other.held_ && held_->assign(*other.held_))) held_ = other.clone();
    return *this;
  }
  MethodMemory& operator=(MethodMemory&&) noexcept = default;

  // A memory that holds `value`, made in topology `epoch`.
  template <class T>
  static MethodMemory of(T value, std::int64_t epoch) {
    MethodMemory out;
    out.held_ = std::make_unique<Held<T>>(std::move(value));
    out.epoch_ = epoch;
    return out;
  }

  bool empty() const { return !held_; }
  // The topology that it belongs to. What is of an older one is never used: memory_of() begins anew.
  std::int64_t epoch() const { return epoch_; }
  void set_epoch(std::int64_t epoch) { epoch_ = epoch; }

  // Null when it is empty or of another type.
  template <class T>
  T* get() {
    return held_ && held_->type() == typeid(T) ? &static_cast<Held<T>&>(*held_).value : nullptr;
  }
  template <class T>
  const T* get() const {
    return held_ && held_->type() == typeid(T) ? &static_cast<const Held<T>&>(*held_).value : nullptr;
  }

  // Calls visitor(name, reference) for every member; nothing when it is empty.
  void visit(const std::function<void(const char*, FieldRef)>& visitor) {
    if (held_) held_->visit(visitor);
  }
  void visit(const std::function<void(const char*, ConstFieldRef)>& visitor) const {
    if (held_) std::as_const(*held_).visit(visitor);
  }

 private:
  struct Base {
    virtual ~Base() = default;
    virtual std::unique_ptr<Base> clone() const = 0;
    virtual bool assign(const Base& other) = 0;  // false: of another type
    virtual const std::type_info& type() const = 0;
    virtual void visit(const std::function<void(const char*, FieldRef)>&) = 0;
    virtual void visit(const std::function<void(const char*, ConstFieldRef)>&) const = 0;
  };
  template <class T>
  struct Held final : Base {
    explicit Held(T v) : value(std::move(v)) {}
    std::unique_ptr<Base> clone() const override { return std::make_unique<Held>(value); }
    bool assign(const Base& other) override {
      if (other.type() != typeid(T)) return false;
      value = static_cast<const Held&>(other).value;
      return true;
    }
    const std::type_info& type() const override { return typeid(T); }
    void visit(const std::function<void(const char*, FieldRef)>& visitor) override {
      T::visit(value, [&](const char* name, auto& member) { visitor(name, FieldRef(&member)); });
    }
    void visit(const std::function<void(const char*, ConstFieldRef)>& visitor) const override {
      T::visit(value, [&](const char* name, const auto& member) { visitor(name, ConstFieldRef(&member)); });
    }
    T value;
  };
  std::unique_ptr<Base> clone() const { return held_ ? held_->clone() : nullptr; }

  std::int64_t epoch_ = 0;
  std::unique_ptr<Base> held_;
};

}  // namespace limber
