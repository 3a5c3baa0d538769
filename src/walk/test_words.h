// Memory of a walked thread, for tests: a list of words.
#pragma once

#include <cstdint>
#include <map>

namespace heapprofd {

struct Words {
  std::map<uint64_t, uint64_t> at;  // by address

  // False: nothing is there.
  bool Read(uint64_t address, uint64_t* value) const {
    const auto found = at.find(address);
    if (found == at.end())
      return false;
    *value = found->second;
    return true;
  }
};

}  // namespace heapprofd
