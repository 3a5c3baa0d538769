// The allocator's own accounting, when the engine asks for it (--malloc-info). Only the
// program's allocator can count its blocks, so this is done inside, on request, by a
// thread that is about to call the allocator anyway and holds none of its locks.
#pragma once

#include "client/session.h"

namespace heapprofd {

// Looks up what the program's allocator offers; once, when real functions are resolved.
void ResolveAllocatorStatistics();

// Cold part of AnswerAllocatorQuestion.
void ReportAllocator(uint32_t question);

// A program that ends normally: what its memory looks like then is asked for by some.
void ReportExit();

// Called on the slow path of a hook, before the allocator is.
inline void AnswerAllocatorQuestion() {
  const uint32_t question =
      g_session.engine()->control.allocator_question.load(std::memory_order_relaxed);
  if (HPD_UNLIKELY(question != g_session.client()->ring.allocator.answered.load(
                                   std::memory_order_relaxed)))
    ReportAllocator(question);
}

}  // namespace heapprofd
