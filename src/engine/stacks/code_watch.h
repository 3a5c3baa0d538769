// Whether code that something was derived from (rules, frames, stacks) is still there.
//
// The client says when it has unloaded a module; everything else is noticed when the maps
// are read, whoever had that done. Frames of what came to lie there must not be taken for
// those of what was there before.
//
// One thread: the session's.
#pragma once

#include <cstdint>
#include <optional>

#include "unwind/address_space.h"
#include "wire/shared_memory.h"

namespace heapprofd {

class CodeWatch {
 public:
  // All outlive it.
  CodeWatch(const ClientBlock* client, SessionControl* control, AddressSpace* code)
      : client_(client), control_(control), code_(code) {}

  // The client has unloaded modules: looks at the maps. The epoch that the rules are
  // valid for, once all is forgotten that WasUnloaded and WasReplaced ask for; nullopt:
  // they have been looked at already, or could not be read.
  std::optional<uint32_t> LookAtUnloading();

  // For Drain to be asked again: modules were unloaded, and the maps were not to be read.
  bool is_late() const { return is_late_; }

  // What was derived from the code in use is valid for this epoch.
  void Confirm(uint32_t epoch);

  // Code has gone from its place since LookAtUnloading was here last; other code may come
  // there before anybody looks again.
  bool WasUnloaded();

  // Other code lies where code was, since this was asked last.
  bool WasReplaced();

 private:
  const ClientBlock* client_;
  SessionControl* control_;
  AddressSpace* code_;
  uint32_t confirmed_ = 0;  // the epoch that was published last
  uint64_t replacements_seen_ = 0;
  uint64_t removals_seen_ = 0;
  bool is_late_ = false;
};

}  // namespace heapprofd
