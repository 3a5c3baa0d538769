// The code that a process has had: each piece with an id for good, its image, and where
// it lies or lay last.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/scoped_fd.h"
#include "profile/model.h"
#include "unwind/module.h"
#include "unwind/proc_maps.h"

namespace heapprofd {

struct PlacedCode {
  MapEntry entry;
  MappingId mapping = kNoId;
  // While it is mapped: its file is in use. nullptr: it has none, or is not known to be.
  std::shared_ptr<const Module> use = nullptr;
};

class KnownCode {
 public:
  // New code is appended to `mappings`, which outlives this object.
  explicit KnownCode(std::vector<Mapping>* mappings) : mappings_(mappings) {}

  // A target can map and unmap code for ever; what is beyond is not added.
  bool is_full() const;

  // Code that comes back to its place, or a part of it, keeps its id; none: it is new.
  std::optional<PlacedCode> CameBack(const MapEntry& entry, const Module* module) const;

  // Forgets what lay where `entry` lies now; gives how much of that was other code.
  uint64_t Clear(const MapEntry& entry);

  // Where nothing lies; none: it is full. `module`: nullptr for code without an image.
  std::optional<PlacedCode> Add(const MapEntry& entry, std::shared_ptr<Module> module);

  // Whether there is, or was last, code.
  bool HasCodeAt(uint64_t pc) const;

  // The image of a mapping, also when it is unmapped by now; nullptr when there is none.
  Module* ModuleOf(MappingId mapping) const { return modules_[mapping].get(); }

  // The file behind an element of `mappings`, invalid when there is none.
  ScopedFd OpenFileOf(const Mapping& mapping) const;

  // For PlacedCode::use.
  std::shared_ptr<const Module> UseOf(MappingId mapping) const;

  uint64_t ToRelPc(MappingId mapping, uint64_t pc) const {
    return (*mappings_)[mapping].ToRelPc(pc);
  }

  // Whether there has been some that no file holds, as compilers at run time make it.
  bool has_any_without_file() const { return has_any_without_file_; }

  // What is kept of it in memory, about.
  uint64_t bytes() const { return bytes_; }

  // Keeps the images and their files only.
  void ForgetPlaces() { places_ = {}; }

 private:
  uint64_t LoadBiasOf(const MapEntry& entry, const Module& module) const;

  std::vector<Mapping>* mappings_;
  std::vector<std::shared_ptr<Module>> modules_;  // by MappingId
  // The latest code at each place, still mapped or not. By start, disjoint.
  std::map<uint64_t, PlacedCode> places_;
  uint64_t bytes_ = 0;
  bool has_any_without_file_ = false;
};

}  // namespace heapprofd
