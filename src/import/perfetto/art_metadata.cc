#include "import/perfetto/art_metadata.h"

#include <algorithm>
#include <optional>

#include "trace/fields.h"
#include "trace/message_reader.h"

namespace heapprofd {
namespace {

struct ArtMetadata {
  int64_t pid = 0;
  std::optional<int64_t> uid;
  std::string_view process_name;
  std::string_view package_name;
  std::optional<int64_t> allocation_size;  // memory was out
  OutOfMemoryDetails details;
};

ArtMetadata Read(TraceBuilder& builder, std::string_view message) {
  ArtMetadata read;
  MessageReader reader(message);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::ArtProcessMetadata::kPid:
        read.pid = reader.Int();
        break;
      case field::ArtProcessMetadata::kUid:
        read.uid = reader.Int();
        break;
      case field::ArtProcessMetadata::kProcessName:
        read.process_name = reader.Bytes();
        break;
      case field::ArtProcessMetadata::kPackageName:
        read.package_name = reader.Bytes();
        break;
      case field::ArtProcessMetadata::kOomAllocationSize:
        read.allocation_size = reader.Int();
        break;
      case field::ArtProcessMetadata::kOomTotalBytesFree:
        read.details.total_bytes_free = reader.Int();
        break;
      case field::ArtProcessMetadata::kOomFreeBytesUntilOom:
        read.details.free_bytes_until_oom = reader.Int();
        break;
      case field::ArtProcessMetadata::kOomErrorMsg:
        read.details.error_message = builder.Intern(reader.Bytes());
        break;
      default:
        break;
    }
  }
  return read;
}

// Unless it is listed: a file may say it with every heap.
void AddPackage(TraceBuilder& builder, std::string_view name, int64_t uid) {
  constexpr size_t kMaxPackages = 1000;
  ImportedPackage package;
  package.name = builder.Intern(name);
  package.uid = uid;
  std::vector<ImportedPackage>& packages = builder.trace().packages;
  const bool is_known = packages.size() >= kMaxPackages ||
                        std::ranges::any_of(packages, [&](const ImportedPackage& other) {
                          return other.name == package.name && other.uid == uid;
                        });
  if (!is_known)
    packages.push_back(package);
}

}  // namespace

void ImportArtMetadata(TraceBuilder& builder,
                       HeapGraphQueue& graphs,
                       std::string_view message,
                       int64_t ts) {
  ArtMetadata read = Read(builder, message);
  const uint32_t upid = builder.processes().ProcessOf(read.pid);
  ImportedTrace& trace = builder.trace();
  if (upid != 0 && !read.process_name.empty() && trace.processes[upid].name == kNoId)
    trace.processes[upid].name = builder.Intern(read.process_name);
  if (upid != 0 && read.uid) {
    trace.processes[upid].uid = read.uid;
    if (!read.package_name.empty())
      AddPackage(builder, read.package_name, *read.uid);
  }
  ImportedHeapGraph& graph = graphs.RowAt(upid, ts);
  if (!read.allocation_size)
    return;
  graph.dump_reason = builder.Intern("OOME");
  read.details.graph = static_cast<uint32_t>(&graph - trace.heap_graph.graphs.data());
  read.details.allocation_size = *read.allocation_size;
  trace.heap_graph.out_of_memory.push_back(read.details);
}

}  // namespace heapprofd
