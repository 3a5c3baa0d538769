// A path of the preload library that LD_PRELOAD can hold, for programs of every kind that
// a program starts.
#pragma once

#include <string>

#include "base/status.h"

namespace heapprofd {

// The loader takes blanks and colons for separators and $ for one of its own variables; a
// library below such a path is reached by a link to its folder, in a private directory,
// which goes with this object. The one variable in the path is $PLATFORM: 32-bit loaders
// find an empty library in the same place, where they would otherwise complain to the
// program's standard error.
class PreloadPath {
 public:
  // `library`: absolute path. Errors: no directory for the link can be made.
  static Result<PreloadPath> For(const std::string& library);

  PreloadPath(PreloadPath&& other) noexcept;
  PreloadPath& operator=(PreloadPath&&) = delete;
  ~PreloadPath();

  const std::string& text() const { return text_; }

  // The link stays: processes that will start others still run.
  void Keep() { directory_.clear(); }

 private:
  static constexpr char kLink[] = "/heapprofd";

  PreloadPath(std::string text, std::string directory)
      : text_(std::move(text)), directory_(std::move(directory)) {}

  std::string text_;
  std::string directory_;  // of the link; empty: nothing to remove
};

}  // namespace heapprofd
