// An index of a small dump in which bytes are replaced: (place, byte) each, three bytes.
// The checks of the header and of the small sections are made right again.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>

#include "hprof/index/heap_index.h"
#include "hprof/test_dump.h"
#include "object_graph/paths.h"
#include "object_graph/suspects.h"

namespace heapprofd::hprof {
namespace {

std::string MakeIndex(const DumpFile& file) {
  const HeapGraph heap = LoadGraph(file, file.dumps()[0]).value();
  std::string index;
  const Status status = WriteIndex(
      {}, file, heap, FindRetention(heap.graph, std::atomic<bool>(false)).value(),
      [&index](std::string_view part) {
        index += part;
        return Status();
      });
  HPD_CHECK(status.ok());
  return index;
}

void MakeCheckRight(std::string* index) {
  IndexHeader header;
  memcpy(&header, index->data(), sizeof(header));
  std::array<std::string_view, kIndexSections> sections;
  for (size_t i = 0; i < kIndexSections; ++i) {
    const IndexPlace& place = header.sections[i];
    if (place.offset > index->size() || place.bytes > index->size() - place.offset)
      return;
    sections[i] = std::string_view(*index).substr(place.offset, place.bytes);
  }
  header.check = CheckOf(header, sections);
  memcpy(index->data(), &header, sizeof(header));
}

void Ask(const DumpFile& file, const HeapGraph& heap) {
  const ObjectGraph& graph = heap.graph;
  const Retention retention = FindRetention(graph, std::atomic<bool>(false)).value();
  std::vector<uint32_t> all;
  for (uint32_t object = 0; object < graph.object_count(); ++object) {
    HPD_CHECK(graph.TypeOf(object) < graph.types().size());
    const uint32_t found = heap.ids.Find(heap.ids.IdOf(object));
    HPD_CHECK(found == kNoObject || found < graph.object_count());
    all.push_back(object);
  }
  for (const ObjectPath& path : NearestPaths(graph, all))
    HPD_CHECK(path.size() <= graph.object_count());
  for (const std::vector<uint32_t>& way : WaysDown(graph, retention, all))
    HPD_CHECK(way.back() < graph.object_count());
  FindSuspects(graph, retention, 1);
  RetainedByGroup(graph, retention, std::vector<uint32_t>(graph.types().size(), 0));
  MergeNearestPaths(
      graph, [](uint32_t) { return true; },
      [&](uint32_t object) { return graph.TypeOf(object); });
  std::vector<NamedReference> references = {{100, 110, ""}, {400, 200, ""}};
  NameReferences(file, file.dumps()[0], heap.census, &references);
}

}  // namespace
}  // namespace heapprofd::hprof

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heapprofd;
  using namespace heapprofd::hprof;
  static const std::string dump = Lists(8).bytes();
  static const DumpFile file = DumpFile::Read(dump, "fuzz").value();
  static const std::string index = MakeIndex(file);
  std::string changed = index;
  for (size_t i = 0; i + 3 <= size; i += 3)
    changed[(size_t{data[i]} << 8 | data[i + 1]) % changed.size()] =
        static_cast<char>(data[i + 2]);
  MakeCheckRight(&changed);
  ScopedFd fd(memfd_create("index", MFD_CLOEXEC));
  HPD_CHECK(write(fd.get(), changed.data(), changed.size()) ==
            static_cast<ssize_t>(changed.size()));
  auto mapped = std::make_shared<const MappedInput>(
      MappedInput::Map(std::move(fd), "fuzz").value());
  const Result<HeapGraph> heap = ReadIndex(std::move(mapped), {}, file, dump);
  if (heap.ok())
    Ask(file, heap.value());
  return 0;
}
