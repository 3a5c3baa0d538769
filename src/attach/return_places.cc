#include "attach/return_places.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "attach/registers.h"
#include "attach/signal_frame.h"

namespace heapprofd {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kScanned = size_t{64} << 10;  // bytes of a stack, and read at once
constexpr size_t kScannedDeep = size_t{1} << 20;
static_assert(kFrameMarkAt % sizeof(uint64_t) == 0);
constexpr size_t kMaxStacks = 8;  // of one thread

// Not under the process's number: its first thread may have ended.
bool Read(const TracedThread& thread, uint64_t address, void* to, size_t size) {
  const iovec local{.iov_base = to, .iov_len = size};
  const iovec remote{.iov_base = reinterpret_cast<void*>(address), .iov_len = size};
  return process_vm_readv(thread.tid(), &local, 1, &remote, 1, 0) ==
         static_cast<ssize_t>(size);
}

bool IsFrameAt(const TracedThread& thread, uint64_t frame) {
  return IsSignalFrame(
      [&thread](uint64_t address, auto* to) {
        return Read(thread, address, to, sizeof(*to));
      },
      frame);
}

class Finder {
 public:
  explicit Finder(const std::vector<std::pair<uint64_t, uint64_t>>& ranges)
      : ranges_(ranges),
        words_(std::make_unique_for_overwrite<uint64_t[]>(kScanned / sizeof(uint64_t))) {
    for (const auto& [begin, end] : ranges) {
      low_ = std::min(low_, begin);
      high_ = std::max(high_, end);
    }
  }

  bool LookAt(const TracedThread& thread) {
    const uint64_t at = ProgramCounter(thread.context().registers());
    if (IsInside(at))
      places_.push_back({.thread = &thread, .code = at, .stack_at = 0});
    const bool is_deep = thread.context().SignalMask().value_or(0) != 0;
    std::vector<uint64_t> stacks = {StackPointer(thread.context().registers())};
    for (size_t i = 0; i < stacks.size(); ++i) {
      if (!Scan(thread, stacks[i] & ~uint64_t{7}, is_deep ? kScannedDeep : kScanned,
                &stacks))
        return false;
    }
    return true;
  }

  std::vector<ReturnPlace> Take() { return std::move(places_); }

 private:
  bool IsInside(uint64_t address) const {
    return address >= low_ && address < high_ &&
           std::any_of(ranges_.begin(), ranges_.end(), [address](const auto& range) {
             return address >= range.first && address < range.second;
           });
  }

  // Page by page, so that the end of the stack ends the read instead of failing it.
  std::optional<std::span<const uint64_t>> ReadStack(const TracedThread& thread,
                                                     uint64_t top,
                                                     size_t size) {
    std::array<iovec, kScanned / kPage + 1> pages{};
    size_t count = 0;
    for (uint64_t at = top; at < top + size; ++count) {
      const uint64_t next = std::min((at | (kPage - 1)) + 1, top + size);
      pages[count] = {.iov_base = reinterpret_cast<void*>(at), .iov_len = next - at};
      at = next;
    }
    const iovec local{.iov_base = words_.get(), .iov_len = size};
    const ssize_t got = process_vm_readv(thread.tid(), &local, 1, pages.data(), count, 0);
    if (got < 0 && errno != EFAULT && errno != ESRCH)
      return std::nullopt;  // it has a stack, and we cannot look
    return std::span<const uint64_t>(
        words_.get(), got > 0 ? static_cast<size_t>(got) / sizeof(uint64_t) : 0);
  }

  // In parts that stay in the caches, and in few pages of ours: of a stack below a library
  // all that may be looked at is read. They overlap, as frames may lie across.
  bool Scan(const TracedThread& thread,
            uint64_t top,
            size_t size,
            std::vector<uint64_t>* stacks) {
    size_t known = 0;  // words of the next part
    for (uint64_t begin = top; begin < top + size;) {
      const size_t part = std::min(kScanned, top + size - begin);
      const auto words = ReadStack(thread, begin, part);
      if (!words)
        return false;
      for (size_t i = known; i < words->size(); ++i)
        LookAtWord(thread, *words, i, {.begin = begin, .top = top, .size = size}, stacks);
      if (words->size() * sizeof(uint64_t) < part || begin + part == top + size)
        break;
      known = kFrameMarkAt / sizeof(uint64_t);
      begin += part - kFrameMarkAt;
    }
    return true;
  }

  struct Part {
    uint64_t begin;  // address of its first word
    uint64_t top;    // of the stack
    size_t size;     // that is looked at
  };

  void LookAtWord(const TracedThread& thread,
                  std::span<const uint64_t> words,
                  size_t i,
                  const Part& part,
                  std::vector<uint64_t>* stacks) {
    const uint64_t word = words[i];
    const uint64_t at = part.begin + i * sizeof(uint64_t);
    if (IsInside(word))
      places_.push_back({.thread = &thread, .code = word, .stack_at = at});
    if (word != kFrameMark || i < kFrameMarkAt / sizeof(uint64_t) ||
        !IsFrameAt(thread, at - kFrameMarkAt))
      return;
    const uint64_t interrupted =
        words[i - (kFrameMarkAt - kStackPointerAt) / sizeof(uint64_t)];
    if (interrupted - part.top >= part.size && stacks->size() < kMaxStacks)
      stacks->push_back(interrupted);
  }

  const std::vector<std::pair<uint64_t, uint64_t>>& ranges_;
  uint64_t low_ = ~uint64_t{0};
  uint64_t high_ = 0;
  std::unique_ptr<uint64_t[]> words_;  // kScanned bytes, not filled
  std::vector<ReturnPlace> places_;
};

// Where the same instruction is in the copy; 0: nowhere, as none begins there.
uint64_t InCopy(const std::vector<ReplacedCode>& replaced, uint64_t address) {
  for (const ReplacedCode& code : replaced) {
    for (const auto& [from, to] : code.instructions) {
      if (address == code.begin + from)
        return code.copy + to;
    }
  }
  return 0;
}

bool IsReal(const ReturnPlace& place) {
  return place.stack_at == 0 || IsInSignalFrame(place);
}

// A handler that looks where it has come from has more words like that.
bool IsCopyOf(const ReturnPlace& place, const std::vector<ReturnPlace>& real) {
  return std::any_of(real.begin(), real.end(), [&place](const ReturnPlace& other) {
    return other.thread == place.thread && other.code == place.code;
  });
}

bool Lead(const RemoteProcess& process, const ReturnPlace& place, uint64_t to) {
  if (place.stack_at != 0)
    return process.WriteObject(place.stack_at, to);
  user_regs_struct registers = place.thread->context().registers();
  SetProgramCounter(to, &registers);
  return place.thread->context().SetRegisters(registers);
}

}  // namespace

std::optional<std::vector<ReturnPlace>> FindInside(
    const std::vector<TracedThread>& threads,
    const std::vector<std::pair<uint64_t, uint64_t>>& ranges) {
  Finder finder(ranges);
  for (const TracedThread& thread : threads) {
    if (!finder.LookAt(thread))
      return std::nullopt;
  }
  return finder.Take();
}

bool IsAnyInside(const std::vector<TracedThread>& threads,
                 const std::vector<std::pair<uint64_t, uint64_t>>& ranges) {
  const auto places = FindInside(threads, ranges);
  return !places || !places->empty();
}

bool IsInSignalFrame(const ReturnPlace& place) {
  return place.stack_at > kProgramCounterAt &&
         IsFrameAt(*place.thread, place.stack_at - kProgramCounterAt);
}

bool LeadOut(const RemoteProcess& process,
             const std::vector<TracedThread>& threads,
             const std::vector<ReplacedCode>& replaced) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  ranges.reserve(replaced.size());
  for (const ReplacedCode& code : replaced)
    ranges.emplace_back(code.begin + 1, code.end);
  const auto places = FindInside(threads, ranges);
  if (!places)
    return false;
  std::vector<ReturnPlace> real;
  std::copy_if(places->begin(), places->end(), std::back_inserter(real), IsReal);
  const bool may_be_led =
      std::all_of(places->begin(), places->end(),
                  [&real](const auto& place) { return IsCopyOf(place, real); }) &&
      std::all_of(real.begin(), real.end(), [&](const ReturnPlace& place) {
        return InCopy(replaced, place.code) != 0 &&
               (place.stack_at != 0 ||
                !place.thread->context().IsInRestartableSequence(process));
      });
  return may_be_led &&
         std::all_of(real.begin(), real.end(), [&](const ReturnPlace& place) {
           return Lead(process, place, InCopy(replaced, place.code));
         });
}

}  // namespace heapprofd
