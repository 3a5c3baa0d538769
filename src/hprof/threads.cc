#include "hprof/threads.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "hprof/java_string.h"

namespace heapprofd::hprof {
namespace {

constexpr size_t kMaxNameCharacters = 200;

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
    for (const uint64_t frame : file.StackOf(serial))
      thread.frames.push_back({frame, {}});
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

// The names of threads, in three walks: from threads to strings, to arrays, to texts. A
// dump may have an object twice, or say that one is many threads: the first one counts.
class ThreadNames : public HeapVisitor {
 public:
  ThreadNames(const DumpFile& file, const HeapGraph& heap)
      : file_(file),
        classes_(heap.census.classes),
        layouts_(file, heap.census.classes),
        id_bytes_(file.id_bytes()) {}

  void Want(uint64_t thread) { wanted_[thread].threads.assign(1, {thread, {}}); }

  // By the ids of threads.
  std::map<uint64_t, std::string> Find(const HeapDump& dump) {
    constexpr int kWalks = 3;
    for (walk_ = 0; walk_ < kWalks && !wanted_.empty(); ++walk_) {
      is_wanted_.fill(false);
      for (const auto& [id, wanted] : wanted_)
        is_wanted_[SlotOf(id)] = true;
      WalkDump(file_, dump, *this);
      wanted_ = std::exchange(next_, {});
    }
    return std::move(names_);
  }

  void Instance(const InstanceRecord& record) {
    const uint32_t row = classes_.Find(record.class_id);
    Wanted* const found = row == UINT32_MAX ? nullptr : Take(record.id);
    if (found == nullptr)
      return;
    if (walk_ == 0) {
      Pass(*found, NameOf(record, row));
      return;
    }
    const StringCharacters characters =
        CharactersOf(record, StringFieldsOf(file_, layouts_, classes_, row), id_bytes_);
    for (auto& [thread, of_thread] : found->threads)
      of_thread = characters;
    Pass(*found, characters.array);
  }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    const Wanted* const found = walk_ == 0 ? nullptr : Take(record.id);
    if (found == nullptr)
      return;
    for (const auto& [thread, characters] : found->threads) {
      const StringBytes bytes = BytesOf(characters, record);
      if (bytes.data != nullptr)
        names_.emplace(thread, TextOf(bytes, kMaxNameCharacters));
    }
  }

 private:
  static constexpr size_t kSlots = 4096;

  // An object that leads to the names of threads.
  struct Wanted {
    std::vector<std::pair<uint64_t, StringCharacters>> threads;
    bool is_taken = false;
  };

  static size_t SlotOf(uint64_t id) { return (id >> 3 ^ id >> 15) % kSlots; }

  // nullptr: it is not wanted, or was there before.
  Wanted* Take(uint64_t id) {
    if (!is_wanted_[SlotOf(id)])
      return nullptr;
    const auto found = wanted_.find(id);
    if (found == wanted_.end() || std::exchange(found->second.is_taken, true))
      return nullptr;
    return &found->second;
  }

  void Pass(const Wanted& from, uint64_t id) {
    std::vector<std::pair<uint64_t, StringCharacters>>& to = next_[id].threads;
    to.insert(to.end(), from.threads.begin(), from.threads.end());
  }

  // The id of what the thread's field refers to: a String, until JDK 8 chars.
  uint64_t NameOf(const InstanceRecord& record, uint32_t row) const {
    uint64_t id = 0;
    layouts_.ForEachField(
        row, record.byte_count,
        [&](uint32_t at, const uint8_t* field, uint8_t type, uint32_t offset) {
          if (type == kObject && uint64_t{offset} + id_bytes_ <= record.byte_count &&
              file_.StringOf(GetId(field, id_bytes_)) == "name" &&
              file_.ClassName(classes_[at].id) == "java.lang.Thread")
            id = GetId(record.values + offset, id_bytes_);
        });
    return id;
  }

  const DumpFile& file_;
  const ClassTable& classes_;
  const FieldLayouts layouts_;
  const uint32_t id_bytes_;
  int walk_ = 0;
  std::map<uint64_t, Wanted> wanted_;  // by the ids that a walk looks for
  std::map<uint64_t, Wanted> next_;
  std::array<bool, kSlots> is_wanted_{};  // whether it may be in wanted_
  std::map<uint64_t, std::string> names_;
};

}  // namespace

std::vector<HeapThread> ThreadsOf(const DumpFile& file,
                                  const HeapDump& dump,
                                  const HeapGraph& heap) {
  std::map<uint32_t, HeapThread> threads = FromRoots(file, heap);
  ThreadNames names(file, heap);
  for (const auto& [serial, thread] : threads)
    names.Want(heap.ids.IdOf(thread.object));
  const std::map<uint64_t, std::string> found = names.Find(dump);
  std::vector<HeapThread> list;
  for (auto& [serial, thread] : threads) {
    const auto name = found.find(heap.ids.IdOf(thread.object));
    if (name != found.end())
      thread.name = name->second;
    list.push_back(std::move(thread));
  }
  return list;
}

}  // namespace heapprofd::hprof
