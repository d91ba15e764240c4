#include <limber/io/boxed_json.hpp>

#include <nlohmann/json.hpp>

#include <utility>

namespace limber {

template <class J>
Boxed<J>::Boxed() : value_(std::make_unique<J>()) {}
template <class J>
Boxed<J>::Boxed(J value) : value_(std::make_unique<J>(std::move(value))) {}
template <class J>
Boxed<J>::Boxed(const Boxed& other) : value_(std::make_unique<J>(*other.value_)) {}
template <class J>
Boxed<J>::Boxed(Boxed&& other) : value_(std::make_unique<J>(std::move(*other.value_))) {}
template <class J>
Boxed<J>& Boxed<J>::operator=(const Boxed& other) {
  *value_ = *other.value_;
  return *this;
}
template <class J>
Boxed<J>& Boxed<J>::operator=(Boxed&& other) {
  *value_ = std::move(*other.value_);
  return *this;
}
template <class J>
Boxed<J>::~Boxed() = default;

template <class J>
J& Boxed<J>::operator[](const std::string& key) {
  return (*value_)[key];
}
template <class J>
const J& Boxed<J>::operator[](const std::string& key) const {
  return value_->at(key);
}

template class Boxed<nlohmann::json>;
template class Boxed<nlohmann::ordered_json>;

}  // namespace limber
