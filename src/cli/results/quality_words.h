// What a reader must know before he trusts a profile's figures: what happened, why as far
// as something has counted it, and what to do. One text for the terminal and the page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "profile/model.h"

namespace heapprofd {

// What a process's words are made of.
struct ProfileFaults {
  Quality quality = {};
  bool from_startup = true;
  bool has_waited = false;         // for space in the buffer, in vain
  uint64_t block_timeout_us = 0;   // as in SessionConfig
  uint64_t sampling_interval = 0;  // bytes
  uint64_t original_sampling_interval = 0;
  std::vector<std::string> late_files = {};  // paths; quality may know more of them
};

// A line each; empty: nothing. Each figure that is a fault (profile/figures.h) has one.
std::vector<std::string> WordsOf(const ProfileFaults& faults);

// Of one that was attached to: live memory is less than what the process holds, and that is
// not the profiler's error. `live`: bytes, as far as known; `resident_kib`: 0: unknown.
std::string AttachedWords(std::optional<double> live, uint64_t resident_kib);

// Of what forked children of an attached process had allocated before they could be
// recorded; `whose` may be several.
std::string UnsampledWords(const std::string& whose, const Quality& quality);

// Of profiles that end where something went wrong, as those of others do.
std::string GuardrailWords();
std::string FullBufferWords(bool has_waited);
std::string DamagedBufferWords();
std::string ForeignStackWords();

// "1 record", "7 records".
std::string CountedExactly(uint64_t count, const char* one, const char* many);

}  // namespace heapprofd
