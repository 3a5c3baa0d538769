// What tests write to a trace, and the packets that they find there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include "profile/model.h"
#include "trace/fields.h"

namespace heapprofd {

// One heap with `count` callsites of depth two; callsite i has i + 1 bytes allocated.
inline TargetProfile ProfileWith(uint32_t count) {
  TargetProfile profile;
  profile.process.pid = 7;
  Mapping mapping;
  mapping.path = "/usr/lib/lib.so";
  mapping.build_id = "0123456789";
  profile.mappings.push_back(mapping);
  profile.frames.push_back(Frame{.mapping = 0, .rel_pc = 1, .lines = {}});
  profile.callsites.push_back(Callsite{.parent = kNoId, .frame = 0});
  HeapDump dump;
  dump.heap_name = kMallocHeapName;
  dump.sampling_interval = dump.original_sampling_interval = 4096;
  for (uint32_t i = 0; i < count; ++i) {
    profile.frames.push_back(Frame{.mapping = 0, .rel_pc = i + 2, .lines = {}});
    profile.callsites.push_back(Callsite{.parent = 0, .frame = i + 1});
    dump.callsites[i + 1].allocated = {.bytes = i + 1.0, .count = 1};
  }
  profile.heaps.push_back(std::move(dump));
  return profile;
}

// Each serialized.
inline std::vector<std::string> PacketsOf(std::string_view trace) {
  std::vector<std::string> packets;
  for (protozero::pbf_reader reader(trace.data(), trace.size());
       reader.next(field::Trace::kPacket);)
    packets.push_back(reader.get_string());
  return packets;
}

}  // namespace heapprofd
