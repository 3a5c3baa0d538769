#include "engine/target/target_dumper.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "engine/target/exact_totals.h"
#include "profile/whole_figures.h"

namespace heapprofd {

void TargetDumper::Update() {
  LookAtHeaps();
  AddIdle();
  MakeFiguresWhole();
  Stamp(MonotonicNs());
  LookAtQuality();
}

void TargetDumper::Finish() {
  Update();
  parts_.profile->quality.unshaped_blocks =
      parts_.heaps->SnapshotShapes(previous_ns_, parts_.profile->heaps);
  if (parts_.lists_blocks)
    parts_.profile->quality.unlisted_blocks =
        parts_.heaps->SnapshotBlocks(parts_.profile->heaps);
  MakeFiguresWhole();
}

void TargetDumper::UpdateAt(uint64_t time_ns) {
  LookAtHeaps();
  MakeFiguresWhole();
  Stamp(time_ns);
  LookAtQuality();
}

void TargetDumper::LookAtHeaps() {
  TargetProfile& profile = *parts_.profile;
  const ClientBlock& client = parts_.memory->client();
  profile.unrecorded_heaps = parts_.heaps->FindUnrecorded();
  profile.hooks_malloc = client.ring.lacks_malloc.load(std::memory_order_relaxed) == 0;
  profile.heaps = parts_.heaps->Snapshot();
  parts_.children->Count(client);
}

// As it was when that was looked at last.
void TargetDumper::AddIdle() {
  std::vector<HeapDump>& heaps = parts_.profile->heaps;
  if (parts_.idle == nullptr || heaps.empty() || heaps[0].heap_name != kMallocHeapName)
    return;
  heaps[0].idle = parts_.idle->found();
}

void TargetDumper::MakeFiguresWhole() {
  for (HeapDump& dump : parts_.profile->heaps)
    MakeWhole(&dump);
}

void TargetDumper::Stamp(uint64_t end_ns) {
  for (HeapDump& dump : parts_.profile->heaps) {
    dump.start_ns = previous_ns_;
    dump.end_ns = end_ns;
  }
  previous_ns_ = end_ns;
}

void TargetDumper::LookAtQuality() {
  const RingHeader& header = parts_.memory->client().ring;
  TargetProfile& profile = *parts_.profile;
  Quality& quality = profile.quality;
  quality.postponed_frames = parts_.code->postponed();
  profile.late_files = parts_.code->late_files();
  quality.late_files = profile.late_files.size();
  quality.gone_files = parts_.code->gone_files();
  quality.map_reparses = parts_.code->refreshes();
  parts_.ring->CountDamage(std::min<uint64_t>(header.slot_count.load(), kMaxThreadSlots),
                           &quality);
  quality.lost_records =
      parts_.ring->unread_records() +
      BoundedCounter(header.lost_records.load(std::memory_order_relaxed));
  quality.lost_samples =
      BoundedCounter(header.lost_samples.load(std::memory_order_relaxed));
  quality.threads_without_slot =
      header.threads_without_slot.load(std::memory_order_relaxed);
  quality.reports_without_slot =
      header.reports_without_slot.load(std::memory_order_relaxed);
  quality.deepbind_opens = header.unseen_opens.deepbind.load(std::memory_order_relaxed);
  quality.namespace_opens =
      header.unseen_opens.namespaces.load(std::memory_order_relaxed);
  quality.unsampled_calls =
      BoundedCounter(header.unsampled_calls.load(std::memory_order_relaxed));
  quality.unsampled_bytes =
      BoundedCounter(header.unsampled_bytes.load(std::memory_order_relaxed));
  if (quality.unsampled_calls > 0)
    profile.from_startup = false;
  if (header.client_error.load(std::memory_order_relaxed) ==
      static_cast<uint32_t>(ClientError::kBlockTimeout))
    profile.client_fault = ClientFault::kHitTimeout;
}

}  // namespace heapprofd
