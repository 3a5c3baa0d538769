// What a reader must know before he trusts a profile's figures: what happened, why as far
// as something has counted it, and what to do. One text for the terminal and the page.
#pragma once

#include <cstdint>
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

// Of profiles that end where something went wrong, as those of others do.
std::string GuardrailWords();
std::string FullBufferWords(bool has_waited);
std::string DamagedBufferWords();
std::string ForeignStackWords();

// "1 record", "7 records".
std::string CountedExactly(uint64_t count, const char* one, const char* many);

}  // namespace heapprofd
