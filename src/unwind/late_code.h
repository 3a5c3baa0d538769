// Code whose file has not been opened yet: there was no time, or it did not open in time.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace heapprofd {

class LateCode {
 public:
  // At `start`.
  void Note(uint64_t start);

  // The same, since that file did not open in time.
  void NoteFile(uint64_t start, const std::string& path);

  // It is had now: whether it was late.
  bool Arrive(uint64_t start) { return starts_.erase(start) != 0; }

  // By name, those that did not open in time when they were first looked at.
  const std::vector<std::string>& files() const { return files_; }

  // Keeps the names only.
  void ForgetPlaces() { starts_ = {}; }

 private:
  std::set<uint64_t> starts_;
  std::vector<std::string> files_;
};

}  // namespace heapprofd
