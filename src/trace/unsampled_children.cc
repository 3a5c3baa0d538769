#include "trace/unsampled_children.h"

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"

namespace heapprofd {

std::string UnsampledChildrenMessage(const TargetProfile& profile) {
  const ForkedChildren& forked = profile.forked;
  std::string message;
  protozero::pbf_writer children(message);
  children.add_int32(field::UnsampledChildren::kPid, profile.process.pid);
  children.add_uint64(field::UnsampledChildren::kProfilingStart,
                      profile.process.start_ns);
  children.add_uint64(field::UnsampledChildren::kCount, forked.count);
  children.add_uint64(field::UnsampledChildren::kUncounted, forked.uncounted);
  children.add_uint64(field::UnsampledChildren::kAllocCalls, forked.alloc_calls);
  children.add_uint64(field::UnsampledChildren::kAllocBytes, forked.alloc_bytes);
  return message;
}

}  // namespace heapprofd
