// Text that many objects hold and none changes: one copy for all of them.
//
// The names and files of a profile repeat by the thousand (each inlined call of one
// function has its name), and copies of them were most of a symbolized profile.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace heapprofd {

class SharedText {
 public:
  SharedText() = default;

  // NOLINTBEGIN(google-explicit-constructor): stands where a std::string would.
  SharedText(std::string_view text) {
    if (!text.empty())
      text_ = std::make_shared<const std::string>(text);
  }

  SharedText(const std::string& text) : SharedText(std::string_view(text)) {}

  SharedText(const char* text) : SharedText(std::string_view(text)) {}

  operator std::string_view() const {
    return text_ == nullptr ? std::string_view() : std::string_view(*text_);
  }

  // NOLINTEND(google-explicit-constructor)

  std::string str() const { return std::string(std::string_view(*this)); }

  bool empty() const { return text_ == nullptr; }

  friend bool operator==(const SharedText& a, const SharedText& b) {
    return std::string_view(a) == std::string_view(b);
  }

 private:
  std::shared_ptr<const std::string> text_;  // null: ""
};

}  // namespace heapprofd
