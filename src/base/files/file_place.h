// Where a file is, or is to be, and what its user calls that: a path leads elsewhere once
// somebody renames what is on the way, a descriptor does not.
#pragma once

#include <string>
#include <utility>

namespace heapprofd {

struct FilePlace {
  // By its path alone.
  // NOLINTNEXTLINE(google-explicit-constructor)
  FilePlace(std::string its_path) : at(std::move(its_path)), path(at) {}

  // NOLINTNEXTLINE(google-explicit-constructor)
  FilePlace(const char* its_path) : FilePlace(std::string(its_path)) {}

  FilePlace(std::string reached_at, std::string its_path)
      : at(std::move(reached_at)), path(std::move(its_path)) {}

  // Of another file in the same directory.
  FilePlace Beside(const std::string& name) const {
    return {at.substr(0, at.rfind('/') + 1) + name,
            path.substr(0, path.rfind('/') + 1) + name};
  }

  std::string at;    // to reach it
  std::string path;  // for messages, and what is printed
};

}  // namespace heapprofd
