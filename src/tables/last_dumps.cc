#include "tables/last_dumps.h"

#include <algorithm>
#include <utility>

namespace heapprofd {
namespace {

// The last row by key.
template <typename Key>
class LastRows {
 public:
  void Add(const Key& key, int64_t ts, uint32_t row) {
    const auto [entry, is_new] = last_.try_emplace(key, ts, row);
    if (!is_new && entry->second.first <= ts)
      entry->second = {ts, row};
  }

  std::map<Key, uint32_t> Take() const {
    std::map<Key, uint32_t> rows;
    for (const auto& [key, last] : last_)
      rows[key] = last.second;
    return rows;
  }

 private:
  std::map<Key, std::pair<int64_t, uint32_t>> last_;  // with its time
};

}  // namespace

std::vector<uint32_t> LastDumps(const ImportedTrace& trace) {
  LastRows<std::pair<uint32_t, StringId>> last;
  for (uint32_t id = 0; id < trace.dumps.size(); ++id) {
    const ImportedDump& dump = trace.dumps[id];
    last.Add({dump.upid, dump.heap_name}, dump.ts, id);
  }
  std::vector<uint32_t> dumps;
  for (const auto& [heap, id] : last.Take())
    dumps.push_back(id);
  std::ranges::sort(dumps);
  return dumps;
}

std::map<uint32_t, uint32_t> LastDumpsWithQuality(const ImportedTrace& trace) {
  LastRows<uint32_t> last;
  for (uint32_t id = 0; id < trace.dumps.size(); ++id) {
    if (trace.dumps[id].quality != kNoId)
      last.Add(trace.dumps[id].upid, trace.dumps[id].ts, id);
  }
  return last.Take();
}

std::map<uint32_t, uint32_t> LastGraphs(const ImportedTrace& trace) {
  LastRows<uint32_t> last;
  const auto& graphs = trace.heap_graph.graphs;
  for (uint32_t row = 0; row < graphs.size(); ++row)
    last.Add(graphs[row].upid, graphs[row].ts, row);
  return last.Take();
}

}  // namespace heapprofd
