#include "trace/unsampled_children.h"

#include <cstdint>
#include <iterator>

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"
#include "trace/message_reader.h"

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

void ImportUnsampledChildren(TraceBuilder& builder, std::string_view message) {
  constexpr size_t kMaxRows = size_t{1} << 20;  // a hostile file's
  if (builder.trace().unsampled_children.size() >= kMaxRows)
    return;
  int64_t pid = 0;
  int64_t profiling_start = 0;
  ImportedChildren row;
  uint64_t* const counts[] = {&row.counts.count, &row.counts.uncounted,
                              &row.counts.alloc_calls, &row.counts.alloc_bytes};
  MessageReader reader(message);
  while (reader.Next()) {
    const uint32_t count = reader.field() - field::kChildrenCount;
    if (reader.field() == field::kChildrenPid)
      pid = reader.Int();
    else if (reader.field() == field::kChildrenProfilingStart)
      profiling_start = reader.Int();
    else if (count < std::size(counts))
      *counts[count] = reader.Uint();
  }
  row.upid = builder.ImageOf(pid, profiling_start);
  builder.trace().unsampled_children.push_back(row);
}

}  // namespace heapprofd
