// Labels that a thread gives to what it does (a tenant, a kind of request): key and value
// are texts, known by a number from their first use on.
//
// The numbers are the process's own and survive sessions and forks; a session's engine
// learns a number's text when the first sample uses it. Texts are never forgotten, so
// their number is bounded: labels are for few values, not for request ids.
#pragma once

#include <cstdint>

#include "wire/heaps.h"

namespace heapprofd {

struct LabelStack {
  uint64_t ids;       // kMaxLabelDepth numbers of kLabelBits, the innermost lowest
  uint32_t too_deep;  // labels that found no room
};

#ifdef HPD_FLAT_CLIENT  // an attached program has no interface to give labels
inline constexpr LabelStack t_labels{};
#else
extern constinit thread_local LabelStack t_labels
    __attribute__((tls_model("initial-exec")));
#endif

// Longer texts are cut to kLabelKeySize - 1 and kLabelValueSize - 1 bytes.
void PushLabel(const char* key, const char* value);

// The innermost one of the calling thread, if there is any.
void PopLabel();

// Makes the texts of these numbers known to the session's engine.
void PublishLabels(uint64_t ids);

}  // namespace heapprofd
