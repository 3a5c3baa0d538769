// One profiled process image: everything the engine knows and does about it, from Welcome
// to the last record. One thread.
//
// Order of events is ring order. The target is hostile: every record is checked,
// everything it can make grow is bounded, and the worst a lying target gets is a wrong
// profile of itself.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/files/guarded_read.h"
#include "base/flat_map.h"
#include "base/scoped_fd.h"
#include "engine/ended_owners.h"
#include "engine/left_memory.h"
#include "engine/session_config.h"
#include "engine/target/allocation_events.h"
#include "engine/target/called_functions.h"
#include "engine/target/heap_table.h"
#include "engine/target/labels.h"
#include "engine/target/shared_memory.h"
#include "engine/target/thread_table.h"
#include "engine/tsc_clock.h"
#include "engine/user_budget.h"
#include "profile/callsite_interner.h"
#include "profile/live_heap.h"
#include "profile/model.h"
#include "unwind/address_space.h"
#include "unwind/stack_unwinder.h"
#include "wire/ring_reader.h"

namespace heapprofd {

class Target {
 public:
  // Reads the process's maps: the process waits in its handshake meanwhile.
  static Result<std::unique_ptr<Target>> Create(pid_t pid,
                                                const SessionConfig& config,
                                                ModuleCache* modules,
                                                const TscClock* clock);

  // The same with memory that the process has mapped already.
  static Result<std::unique_ptr<Target>> CreateWith(std::unique_ptr<SharedMemory> memory,
                                                    pid_t pid,
                                                    const SessionConfig& config,
                                                    ModuleCache* modules,
                                                    const TscClock* clock);

  SharedMemory& memory() { return *memory_; }

  pid_t pid() const { return profile_.process.pid; }

  static constexpr uint64_t kDrainNs = 50'000'000;

  // Reads what is in the ring, at most `max_records` and for about `turn_ns`, and returns
  // how many there were. `writers_gone`: the process has ended, nothing can be pending.
  size_t Drain(size_t max_records, bool writers_gone, uint64_t turn_ns = kDrainNs);

  // The last Drain has left something in the ring.
  bool is_behind() const { return is_behind_; }

  // Once through the ring from here: a target that goes on writing cannot hold whoever
  // waits for what is in it now.
  uint64_t RestEnd() const;

  uint64_t position() const { return reader_->position(); }

  // A turn of reading up to there; true: done. What is not read may be given up: it
  // counts as lost then.
  bool DrainRest(uint64_t end, bool writers_gone, uint64_t turn_ns = kDrainNs);
  void LoseRest(bool writers_gone);

  // Of the engine's heart: it moves.
  void Beat();

  // The same, and upkeep of the shared parameters; every loop. What takes longer is done
  // before `end_ns` (CLOCK_MONOTONIC), or later.
  void Tick(uint64_t end_ns);

  // Slots of forked children that have ended are used again: a step of looking for those,
  // until `end_ns` (CLOCK_MONOTONIC) at most. How long it takes is the target's choice.
  void FreeForkSlots(uint64_t end_ns);

  // It is under way, and takes memory and descriptors.
  bool looks_for_owners() const { return ended_owners_ != nullptr; }

  // The session is over for this target: the client goes dormant at its next sampled
  // call.
  void Stop(TargetEnd end);

  // Brings profile().heaps and profile().quality up to now. May be called any number of
  // times.
  void UpdateDump();

  // Brings profile().memory up to now, the allocator's answer included.
  void ReadMemory();

  // The cheap part of it, to have something when the process ends unseen.
  void ObserveMemory();

  // Has the client ask the program's allocator for its accounting; it answers from within
  // an allocation.
  void AskAllocator();
  bool HasAllocatorAnswer() const;

  // Outlives this object. nullptr: nobody wants them.
  void set_events(AllocationEvents* events) { events_ = events; }

  // For the dumps that the program asks for, in call sites: its user's other programs
  // share it. Outlives this object; without one there is a bound for this target alone.
  void set_dump_budget(UserBudget* budget) {
    dump_account_.emplace(budget, account_.user());
  }

  // Children of the process, which has ended, may still count; then a descriptor is kept
  // for them.
  bool awaits_children() const { return left_memory_ != nullptr; }

  // Looks whether they do.
  void LookAfterChildren();

  // Brings profile().forked up to now, for the last time.
  void LeaveChildren();

  // Drops what is only needed while recording (live samples, shared memory, unwinder).
  void ReleaseRecorder();

  const TargetProfile& profile() const { return profile_; }

  TargetProfile& profile() { return profile_; }

  const AddressSpace& address_space() const { return *address_space_; }

  // The process's root directory, also when it is gone and has left code that only its
  // files can name; -1 when there is none.
  int root_fd() const { return root_ != nullptr ? root_->get() : -1; }

  // The user whose limits it counts against.
  uid_t user() const { return account_.user(); }

  // The same, for what is waited for when the process is gone.
  const GuardedUser& held_to_account() const { return held_to_account_; }

  // The process's id as it knows it itself.
  pid_t own_pid() const { return own_pid_; }

  // False after ReleaseRecorder: LiveBytes() and ring_fill() are gone.
  bool is_recording() const { return memory_ != nullptr; }

  // Of all recorded heaps together; no more than the exact totals allow.
  double LiveBytes() const;

  const Quality& quality() const { return profile_.quality; }

  // False: the process was welcomed, and its client has not begun, which it does at once
  // if it can map the shared memory.
  bool has_client() const;

  // Children that went unprofiled because a seccomp filter was in force; bounded.
  uint64_t confined_children() const;

  double ring_fill() const;  // 0..1

  uint64_t lost_records() const;

 private:
  static constexpr size_t kMaxCallsites = 8'000'000;

  Target(pid_t pid, const SessionConfig& config, const TscClock* clock);

  // What it takes of our memory; cheap, about right.
  uint64_t EstimatedBytes() const;

  // Of records that took long to handle; only the difference means something.
  uint64_t DearSteps() const { return dear_records_ + address_space_->refreshes(); }

  void PublishConfig();
  void ReadAllocatorReport();
  void CountChildren(const ClientBlock& client);
  void KeepForChildren();
  void UpdateQuality();
  void LookAtExit(uint64_t turn_ns);
  void Prefetch(RecordType type, std::span<const uint64_t> words);
  void HandleRecord(const RingReader::Record& record);
  void HandleSample(std::span<const std::byte> payload);
  void ReportAllocation(const struct SampleRecord& record);
  void HandleFree(std::span<const std::byte> payload, bool is_undo);
  void HandleModulesChanged();
  void HandleMark(std::span<const std::byte> payload, bool is_dump);
  void KeepMark(Mark mark);
  void ChargeRequests();
  bool MayRequestDump() const;
  bool HasRoom(uint8_t heap_id);
  size_t GrowthBytes(uint8_t heap_id);
  void AllocateIn(uint8_t heap_id, SampledAllocation allocation);
  void PublishHeapRules();
  // With nothing but its exact totals.
  HeapDump CountedMalloc() const;
  HeapDump DumpOfMalloc() const;
  CallsiteId CallsiteOfSample(const struct SampleParts& parts);
  CallsiteId CallsiteInside(uint64_t outer_hash, std::span<const uint64_t> keys);
  CallsiteId InternStack(std::span<const uint64_t> keys);
  CallsiteId ExtendStack(CallsiteId outer, std::span<const uint64_t> keys);
  CallsiteId ExtendKnownStack(CallsiteId outer,
                              uint64_t outer_hash,
                              std::span<const uint64_t> keys);
  bool IsSettled() const;
  CallsiteId UnwindCopy(const struct SampleParts& parts);
  void CheckAgreement(const struct SampleParts& parts);
  FrameId FrameOfKey(uint64_t key);
  CallsiteId NamedStack(const std::string& name);
  void ReleaseSpace();
  void PublishStackRegions();
  void ForgetReplacedCode();
  void ForgetCode();
  void ForgetStacks();
  void AdaptInterval();
  bool IsStuck();

  SessionConfig config_;  // without what is the session's alone
  const TscClock* clock_;
  TargetProfile profile_;
  UserBudget::Account account_;
  GuardedUser held_to_account_;
  std::shared_ptr<const ScopedFd> root_;
  pid_t own_pid_;
  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<LeftMemory> left_memory_;  // of what was memory_
  bool follows_children_ = false;
  std::unique_ptr<EndedOwners> ended_owners_;  // while they are looked for
  uint64_t fork_slots_next_ns_ = 0;            // to be looked at
  std::unique_ptr<RingReader> reader_;
  std::unique_ptr<AddressSpace> address_space_;
  std::unique_ptr<StackUnwinder> unwinder_;
  std::unique_ptr<CallsiteInterner> interner_;
  std::unique_ptr<LiveHeap> heap_;  // malloc's
  HeapTable custom_heaps_;
  std::unique_ptr<CalledFunctions> called_;
  std::unique_ptr<LabelledCallsites> labels_;
  std::unique_ptr<ThreadTable> threads_;
  uint64_t malloc_interval_ = 0;  // of the session; 0: malloc is not recorded
  // By hash (walk/stack_hash.h): every stack there was, and the outer parts of each.
  FlatMap<CallsiteId> stacks_;
  FlatMap<CallsiteId> previous_stacks_;  // before ForgetStacks
  uint64_t previous_stacks_end_ = 0;  // ring position: records before it may mean these
  std::vector<uint64_t> prefix_hashes_;  // of ExtendKnownStack, to keep its memory
  FlatMap<FrameId> frames_;              // by key
  bool is_behind_ = false;
  uint64_t stuck_position_ = UINT64_MAX;  // none yet
  uint64_t stuck_since_ns_ = 0;
  std::optional<uint64_t> stuck_cpu_ns_;  // of the process when it was noticed
  uint64_t replacements_seen_ = 0;        // of the address space
  uint64_t removals_seen_ = 0;            // when modules were last reported as changed
  bool is_modules_change_late_ = false;   // reported, and the maps were not to be read
  uint64_t regions_published_ns_ = 0;
  uint64_t interval_changed_ns_ = 0;
  bool has_room_ = true;    // for more live samples
  bool has_memory_ = true;  // its user, for more of anything
  uint64_t bad_records_ = 0;
  uint64_t unread_records_ = 0;
  uint64_t skipped_at_end_ = 0;  // when the process was gone
  uint64_t dear_records_ = 0;
  uint64_t lost_seen_ = 0;
  uint64_t previous_dump_ns_ = 0;
  uint64_t last_event_ns_ = 0;
  uint32_t allocator_question_ = 0;
  std::optional<uint64_t> exit_end_;  // of what the program had written when it ended
  size_t requested_dumps_ = 0;
  uint64_t requested_cost_ = 0;  // of these dumps, in call sites
  std::optional<UserBudget::Account> dump_account_;
  AllocationEvents* events_ = nullptr;
};

}  // namespace heapprofd
