// A JSON value behind a pointer, copied with its owner: headers that only hand one on do not compile the JSON
// library. Who looks into it includes <nlohmann/json.hpp>.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>

namespace limber {

template <class J>
class Boxed {
 public:
  Boxed();  // null
  explicit Boxed(J value);
  Boxed(const Boxed& other);
  Boxed(Boxed&& other);
  Boxed& operator=(const Boxed& other);
  Boxed& operator=(Boxed&& other);
  ~Boxed();

  J& operator*() { return *value_; }
  const J& operator*() const { return *value_; }
  J* operator->() { return value_.get(); }
  const J* operator->() const { return value_.get(); }
  J& operator[](const std::string& key);              // added when it is not there
  const J& operator[](const std::string& key) const;  // must be there

 private:
  std::unique_ptr<J> value_;  // never null
};

using BoxedJson = Boxed<nlohmann::json>;
using BoxedOrderedJson = Boxed<nlohmann::ordered_json>;  // keeps the order of keys

}  // namespace limber
