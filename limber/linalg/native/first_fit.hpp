// Places for pieces of memory whose times of use are known beforehand.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace limber::sparse {

class FirstFit {
 public:
  void clear() { used_.clear(); }
  // The next piece must not lie here.
  void avoid(std::int64_t begin, std::int64_t size) {
    if (size > 0) used_.push_back({begin, begin + size});
  }
  // The first gap of this size between the places to avoid.
  std::int64_t place(std::int64_t size) {
    std::sort(used_.begin(), used_.end());
    std::int64_t at = 0;
    for (const auto& [begin, end] : used_) {
      if (begin - at >= size) break;
      at = std::max(at, end);
    }
    length_ = std::max(length_, at + size);
    return at;
  }
  // Of all that was placed.
  std::int64_t length() const { return length_; }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> used_;
  std::int64_t length_ = 0;
};

}  // namespace limber::sparse
