#include "client/labels.h"

#include <atomic>

#include "client/engine_link/handshake_client.h"
#include "client/own_memory.h"
#include "client/session.h"
#include "rt/compiler.h"

namespace heapprofd {

constinit thread_local LabelStack t_labels{};

namespace {

struct LabelText {
  char key[kLabelKeySize];
  char value[kLabelValueSize];
};

constexpr size_t kIndexSize = 2 * kMaxLabels;

// kMaxLabels of them, [0] stays empty; nullptr: there is no label yet.
constinit std::atomic<LabelText*> g_texts{};
constinit std::atomic<uint32_t> g_text_count{};         // without [0]
constinit std::atomic<uint16_t> g_index[kIndexSize]{};  // open addressing; 0: vacant

uint32_t HashText(const char* text, size_t limit, uint32_t hash) {
  for (size_t i = 0; i + 1 < limit && text[i] != 0; ++i)
    hash = (hash ^ static_cast<unsigned char>(text[i])) * 16777619u;
  return hash * 16777619u;
}

// `kept` is what a text of this limit was cut to.
bool IsText(const char* kept, const char* text, size_t limit) {
  for (size_t i = 0; i + 1 < limit; ++i) {
    if (kept[i] != text[i])
      return false;
    if (text[i] == 0)
      return true;
  }
  return true;
}

// Atomically, since several threads may publish the same text at once.
void CopyText(char* to, const char* text, size_t limit) {
  for (size_t i = 0; i + 1 < limit && text[i] != 0; ++i)
    __atomic_store_n(&to[i], text[i], __ATOMIC_RELAXED);
}

// Of one that has been given.
LabelText& TextOf(uint32_t id) {
  return g_texts.load(std::memory_order_acquire)[id];
}

bool IsLabel(uint32_t id, const char* key, const char* value) {
  return IsText(TextOf(id).key, key, kLabelKeySize) &&
         IsText(TextOf(id).value, value, kLabelValueSize);
}

// Writes the texts to an entry that nobody knows yet; 0: there is none left.
uint32_t NewText(const char* key, const char* value) {
  if (g_text_count.load(std::memory_order_relaxed) >= kMaxLabels - 1 ||
      MapOnce(g_texts, kMaxLabels * sizeof(LabelText), OnFork::kKept) == nullptr)
    return 0;
  const uint32_t id = g_text_count.fetch_add(1, std::memory_order_relaxed) + 1;
  if (id >= kMaxLabels)
    return 0;
  CopyText(TextOf(id).key, key, kLabelKeySize);
  CopyText(TextOf(id).value, value, kLabelValueSize);
  return id;
}

uint32_t FindOrAddLabel(const char* key, const char* value) {
  const uint32_t hash =
      HashText(value, kLabelValueSize, HashText(key, kLabelKeySize, 2166136261u));
  uint32_t added = 0;
  for (size_t i = 0; i < kIndexSize; ++i) {
    std::atomic<uint16_t>& place = g_index[(hash + i) % kIndexSize];
    uint16_t id = place.load(std::memory_order_acquire);
    if (id == 0) {
      added = added != 0 ? added : NewText(key, value);
      if (added == 0)
        return kTooManyLabels;
      if (place.compare_exchange_strong(id, static_cast<uint16_t>(added),
                                        std::memory_order_acq_rel))
        return added;
    }
    if (IsLabel(id, key, value))  // possibly another thread's, added just now
      return id;
  }
  return kTooManyLabels;
}

}  // namespace

void PushLabel(const char* key, const char* value) {
  constexpr unsigned kTopShift = (kMaxLabelDepth - 1) * kLabelBits;
  if (t_labels.ids >> kTopShift != 0) {
    ++t_labels.too_deep;
    return;
  }
  t_labels.ids = t_labels.ids << kLabelBits | FindOrAddLabel(key, value);
}

void PopLabel() {
  if (t_labels.too_deep != 0)
    --t_labels.too_deep;
  else
    t_labels.ids >>= kLabelBits;
}

HPD_NOINLINE void PublishLabels(uint64_t ids) {
  ClientTables* tables = SessionTables();
  if (tables == nullptr)
    return;
  for (; ids != 0; ids >>= kLabelBits) {
    const auto id = static_cast<uint32_t>(ids & kTooManyLabels);
    if (id >= kMaxLabels)
      continue;
    LabelEntry& entry = tables->labels[id];
    if (entry.is_set.load(std::memory_order_relaxed) != 0)
      continue;
    CopyText(entry.key, TextOf(id).key, kLabelKeySize);
    CopyText(entry.value, TextOf(id).value, kLabelValueSize);
    entry.is_set.store(1, std::memory_order_release);
  }
}

}  // namespace heapprofd
