// A copied stack and its registers may be anything: unwinds made-up stacks of this
// process.
//
// Input: key, sp and bp (8 bytes each), then the stack. So that random words mean
// something, a word whose top byte is 0xc0 becomes a code address of this process, and
// one whose top byte is 0x50 an address in the stack.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "unwind/stack_unwinder.h"

namespace heapprofd {
namespace {

constexpr size_t kMaxFrames = 64;

uint64_t Meaning(uint64_t word, uint64_t sp) {
  static const auto kLibc = reinterpret_cast<uint64_t>(dlsym(RTLD_DEFAULT, "qsort"));
  static const auto kOwn = reinterpret_cast<uint64_t>(&Meaning);
  if (word >> 56 == 0xc0)
    return (word % 2 == 0 ? kLibc : kOwn) + (word & 0xffff);
  return word >> 56 == 0x50 ? sp + (word & 0x3ff) : word;
}

struct Process {
  ModuleCache modules;
  std::vector<Mapping> mappings;
  AddressSpace space{getpid(), &modules, &mappings};
  StackUnwinder unwinder{&space};

  Process() {
    if (!space.Refresh().ok())
      abort();
  }
};

void UnwindWords(std::vector<uint64_t> words) {
  static Process process;
  const uint64_t sp = words[1];
  for (uint64_t& word : words)
    word = Meaning(word, sp);
  const StackCopy copy{.cursor = {.key = words[0], .sp = sp, .bp = words[2]},
                       .bytes = std::as_bytes(std::span(words).subspan(3))};
  for (const UnwindMode mode : {UnwindMode::kFresh, UnwindMode::kCached}) {
    const UnwoundStack stack = process.unwinder.Unwind(copy, kMaxFrames, mode);
    if (stack.keys.size() > kMaxFrames)
      abort();
    for (const auto& [key, rule] : stack.rules) {
      if (!IsEncodable(rule) || rule.kind == RuleKind::kUnknown)
        abort();
    }
  }
}

}  // namespace
}  // namespace heapprofd

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint64_t> words(size / 8);
  if (words.size() < 3)
    return 0;
  memcpy(words.data(), data, words.size() * 8);
  heapprofd::UnwindWords(std::move(words));
  return 0;
}
