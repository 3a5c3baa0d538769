#include "attach/thread/thread_context.h"

#include <sys/ptrace.h>

#include "attach/registers.h"
#include "attach/thread/seccomp_filters.h"

namespace heapprofd {

bool ThreadContext::Fetch() {
  if (!GetRegisters(tid_, &registers_))
    return false;
  RestartInterruptedCall();
  return true;
}

// The signals, too, are blocked as they are outside of the call: one that arrives while
// the thread is stopped and that only the call lets in must find it inside again, or the
// program waits for ever.
void ThreadContext::RestartInterruptedCall() {
  const std::optional<user_regs_struct> restarted =
      RestartedCall(tid_, waiting_in_, registers_);
  const std::optional<uint64_t> mask = restarted ? SignalMask() : std::nullopt;
  if (mask && SetSignalMask(*mask) && SetRegisters(*restarted))
    registers_ = *restarted;
}

rt::ResumeRegisters ThreadContext::ResumeState() const {
  return ResumedElsewhere(waiting_in_, registers_, IsUnderSeccomp(tid_));
}

bool ThreadContext::SetRegisters(const user_regs_struct& registers) const {
  return heapprofd::SetRegisters(tid_, registers);
}

std::optional<uint64_t> ThreadContext::SignalMask() const {
  uint64_t mask = 0;
  if (ptrace(PTRACE_GETSIGMASK, tid_, sizeof(mask), &mask) != 0)
    return std::nullopt;
  return mask;
}

bool ThreadContext::SetSignalMask(uint64_t mask) const {
  return ptrace(PTRACE_SETSIGMASK, tid_, sizeof(mask), &mask) == 0;
}

bool ThreadContext::IsInRestartableSequence(const RemoteProcess& process) const {
  struct {  // of <linux/ptrace.h>, which cannot be included beside <sys/ptrace.h>
    uint64_t area;
    uint32_t size;
    uint32_t signature;
    uint32_t flags;
    uint32_t pad;
  } configuration{};

  struct {  // of <linux/rseq.h>
    uint32_t version;
    uint32_t flags;
    uint64_t start;
    uint64_t length;
    uint64_t abort;
  } sequence{};

  constexpr auto kGetConfiguration = static_cast<__ptrace_request>(0x420f);
  constexpr uint64_t kSequenceOffset = 8;  // of rseq_cs in the area
  uint64_t address = 0;
  return ptrace(kGetConfiguration, tid_, sizeof(configuration), &configuration) > 0 &&
         configuration.area != 0 &&
         process.ReadObject(configuration.area + kSequenceOffset, &address) &&
         address != 0 && process.ReadObject(address, &sequence) &&
         ProgramCounter(registers_) - sequence.start < sequence.length;
}

}  // namespace heapprofd
