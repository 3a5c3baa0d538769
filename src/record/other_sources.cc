#include "record/other_sources.h"

#include <algorithm>

#include "base/clock.h"

namespace heapprofd {
namespace {

constexpr uint64_t kTurnNs = 5'000'000;       // of one source; the rings wait meanwhile
constexpr uint64_t kFlushNs = 1'000'000'000;  // what they tell is on disk after this

}  // namespace

OtherSources::OtherSources(TraceWriter* writer)
    : writer_(writer), sink_([writer](uint32_t field, const std::string& message) {
        return writer->WritePacket(field, message);
      }) {}

void OtherSources::Begin(const std::string& trace_config) {
  sources_ = MakeDataSources(trace_config).sources;
  for (const std::unique_ptr<DataSource>& source : sources_) {
    if (const Status status = source->Begin(); !status.ok())
      notes_.push_back("data source \"" + std::string(source->name()) +
                       "\": " + status.message());
  }
}

Status OtherSources::Serve(uint64_t now) {
  for (const std::unique_ptr<DataSource>& source : sources_) {
    if (source->next_ns() <= now)
      HPD_TRY(source->Serve(sink_, MonotonicNs() + kTurnNs));
  }
  if (sources_.empty() || now - flushed_ns_ < kFlushNs)
    return {};
  flushed_ns_ = now;
  return writer_->Finish();
}

uint64_t OtherSources::next_ns() const {
  uint64_t next = UINT64_MAX;
  for (const std::unique_ptr<DataSource>& source : sources_)
    next = std::min(next, source->next_ns());
  return next;
}

Status OtherSources::End() {
  Status status;
  for (const std::unique_ptr<DataSource>& source : sources_) {
    if (Status ended = source->End(sink_); status.ok())
      status = std::move(ended);
  }
  sources_.clear();
  return status;
}

}  // namespace heapprofd
