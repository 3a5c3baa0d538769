#include "trace/unsampled_children.h"

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"

namespace heapprofd {

std::string UnsampledChildrenMessage(const TargetProfile& profile) {
  const ForkedChildren& forked = profile.forked;
  std::string message;
  protozero::pbf_writer children(message);
  children.add_int32(field::kChildrenPid, profile.process.pid);
  children.add_uint64(field::kChildrenProfilingStart, profile.process.start_ns);
  children.add_uint64(field::kChildrenCount, forked.count);
  children.add_uint64(field::kChildrenUncounted, forked.uncounted);
  children.add_uint64(field::kChildrenAllocCalls, forked.alloc_calls);
  children.add_uint64(field::kChildrenAllocBytes, forked.alloc_bytes);
  return message;
}

}  // namespace heapprofd
