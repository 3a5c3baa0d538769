#include "hprof/threads.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "hprof/fields/field_layout.h"
#include "hprof/strings/string_texts.h"
#include "hprof/wanted_ids.h"

namespace heapprofd::hprof {
namespace {

constexpr size_t kMaxNameCharacters = 200;
constexpr std::string_view kOutOfMemory = "java.lang.OutOfMemoryError.<init>(";

void KeepOnce(std::vector<uint32_t>* objects) {
  std::ranges::sort(*objects);
  objects->erase(std::unique(objects->begin(), objects->end()), objects->end());
}

// By the serial numbers of threads.
std::map<uint32_t, HeapThread> FromRoots(const DumpFile& file, const HeapGraph& heap) {
  std::map<uint32_t, HeapThread> threads;
  for (const GraphRoot& root : heap.graph.roots()) {
    const RootRecord& record = heap.roots[root.kind];
    if (record.tag == kRootThreadObject)
      threads[record.thread].object = root.object;
  }
  for (auto& [serial, thread] : threads) {
    for (const uint64_t frame : file.names().StackOf(serial))
      thread.frames.push_back({frame, {}});
    thread.ran_out_of_memory =
        !thread.frames.empty() &&
        file.names().DescribeFrame(thread.frames[0].id).starts_with(kOutOfMemory);
  }
  for (const GraphRoot& root : heap.graph.roots()) {
    const RootRecord& record = heap.roots[root.kind];
    const auto thread = threads.find(record.thread);
    const bool is_local = record.tag == kRootJavaFrame || record.tag == kRootJniLocal ||
                          record.tag == kRootNativeStack || record.tag == kRootJniMonitor;
    if (!is_local || thread == threads.end())
      continue;
    std::vector<ThreadFrame>& frames = thread->second.frames;
    (record.frame < frames.size() ? frames[record.frame].locals
                                  : thread->second.other_locals)
        .push_back(root.object);
  }
  for (auto& [serial, thread] : threads) {
    KeepOnce(&thread.other_locals);
    for (ThreadFrame& frame : thread.frames)
      KeepOnce(&frame.locals);
  }
  return threads;
}

// The ids of what the names of threads are in: strings, until JDK 8 arrays.
class ThreadNames : public HeapVisitor {
 public:
  ThreadNames(const DumpFile& file, const HeapGraph& heap)
      : file_(file),
        classes_(heap.census.classes),
        layouts_(file, heap.census.classes),
        id_bytes_(file.id_bytes()) {}

  void Want(uint64_t thread) {
    filter_.Add(thread);
    names_.emplace(thread, 0);
  }

  // By the ids of threads; 0: it has none. A dump may have an object twice: the first one
  // with a name counts.
  const std::map<uint64_t, uint64_t>& Find(const HeapDump& dump) {
    WalkDump(file_, dump, *this);
    return names_;
  }

  void Instance(const InstanceRecord& record) {
    const uint32_t row = classes_.Find(record.class_id);
    if (row == UINT32_MAX || !filter_.MayHave(record.id))
      return;
    const auto found = names_.find(record.id);
    if (found != names_.end() && found->second == 0)
      found->second = NameOf(record, row);
  }

 private:
  uint64_t NameOf(const InstanceRecord& record, uint32_t row) const {
    uint64_t id = 0;
    layouts_.ForEachField(
        row, record.byte_count,
        [&](uint32_t at, const uint8_t* field, uint8_t type, uint32_t offset) {
          if (type == kObject && uint64_t{offset} + id_bytes_ <= record.byte_count &&
              file_.names().StringOf(GetId(field, id_bytes_)) == "name" &&
              file_.names().ClassName(classes_[at].id) == "java.lang.Thread")
            id = GetId(record.values + offset, id_bytes_);
        });
    return id;
  }

  const DumpFile& file_;
  const ClassTable& classes_;
  const FieldLayouts layouts_;
  const uint32_t id_bytes_;
  IdFilter filter_;
  std::map<uint64_t, uint64_t> names_;
};

}  // namespace

std::vector<HeapThread> ThreadsOf(const DumpFile& file,
                                  const HeapDump& dump,
                                  const HeapGraph& heap) {
  std::map<uint32_t, HeapThread> threads = FromRoots(file, heap);
  ThreadNames names(file, heap);
  for (const auto& [serial, thread] : threads)
    names.Want(heap.ids.IdOf(thread.object));
  const std::map<uint64_t, uint64_t>& found = names.Find(dump);
  std::vector<uint64_t> strings;
  for (const auto& [thread, string] : found) {
    if (string != 0)
      strings.push_back(string);
  }
  const std::map<uint64_t, std::string> texts =
      FindTexts(file, dump, heap.census.classes, strings, kMaxNameCharacters);
  std::vector<HeapThread> list;
  for (auto& [serial, thread] : threads) {
    const auto text = texts.find(found.at(heap.ids.IdOf(thread.object)));
    if (text != texts.end())
      thread.name = text->second;
    list.push_back(std::move(thread));
  }
  return list;
}

}  // namespace heapprofd::hprof
