#include "hprof/lost_pages.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace heapprofd::hprof {
namespace {

struct Guarded {
  std::atomic<uintptr_t> begin;  // 0: vacant
  std::atomic<size_t> size;
  std::atomic<bool> has_lost_pages;
};

constinit std::array<Guarded, kMostGuarded> g_guarded{};

constinit struct sigaction g_previous {};

constinit uintptr_t g_page_size = 0;

uintptr_t BeginOf(std::string_view mapping) {
  return reinterpret_cast<uintptr_t>(mapping.data());
}

Guarded* Find(uintptr_t begin) {
  for (Guarded& guarded : g_guarded) {
    if (guarded.begin.load() == begin)
      return &guarded;
  }
  return nullptr;
}

void ReplaceLostPages(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Guarded& guarded : g_guarded) {
    const uintptr_t begin = guarded.begin.load();
    const uintptr_t end = begin + guarded.size.load();
    if (begin == 0 || at < begin || at >= end)
      continue;
    const uintptr_t page = at / g_page_size * g_page_size;
    if (mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      break;
    guarded.has_lost_pages.store(true);
    return;
  }
  sigaction(SIGBUS, &g_previous, nullptr);  // not ours: it comes again
}

void HandleSignal() {
  g_page_size = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));

  struct sigaction action {};

  action.sa_sigaction = ReplaceLostPages;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, &g_previous);
}

}  // namespace

bool GuardPages(std::string_view mapping) {
  if (g_page_size == 0)
    HandleSignal();
  Guarded* const vacant = Find(0);
  if (vacant == nullptr)
    return false;
  vacant->has_lost_pages.store(false);
  vacant->size.store(mapping.size());
  vacant->begin.store(BeginOf(mapping));
  return true;
}

void UnguardPages(std::string_view mapping) {
  if (Guarded* const guarded = Find(BeginOf(mapping)))
    guarded->begin.store(0);
}

bool HasLostPages(std::string_view mapping) {
  if (mapping.empty())
    return false;
  const Guarded* const guarded = Find(BeginOf(mapping));
  return guarded != nullptr && guarded->has_lost_pages.load();
}

}  // namespace heapprofd::hprof
