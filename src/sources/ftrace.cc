#include "sources/ftrace.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/clock.h"
#include "sources/ftrace_decoder.h"
#include "sources/tracefs_instance.h"
#include "trace/fields.h"

namespace heapprofd {
namespace {

constexpr uint32_t kDefaultBufferKib = 2048;  // for each processor, as Perfetto's
constexpr uint32_t kMaxBufferKib = 64 * 1024;
constexpr uint32_t kDefaultDrainMs = 100;
constexpr size_t kMaxEvents = 512;
// Pages of the buffer are as large as this or smaller (buffer_subbuf_size_kb).
constexpr size_t kPageBytes = size_t{64} << 10;

class Ftrace : public DataSource {
 public:
  explicit Ftrace(FtraceOptions options) : options_(std::move(options)) {}

  const char* name() const override { return kFtraceSource.data(); }

  Status Begin() override {
    const uint32_t wanted = options_.buffer_kib;
    HPD_TRY(instance_.Create(wanted == 0 ? kDefaultBufferKib
                                         : std::min(wanted, kMaxBufferKib)));
    Status status;
    for (const std::string& event : options_.events) {
      if (Status enabled = instance_.Enable(event); status.ok())
        status = std::move(enabled);
    }
    LearnEvents(&status);
    buffers_ = instance_.OpenBuffers();
    next_ns_ = MonotonicNs();
    return status;
  }

  uint64_t next_ns() const override { return next_ns_; }

  Status Serve(const PacketSink& sink, uint64_t until_ns) override {
    if (MonotonicNs() < next_ns_)
      return {};
    for (size_t i = 0; i < buffers_.size(); ++i, ++cpu_) {
      if (cpu_ >= buffers_.size())
        cpu_ = 0;
      HPD_TRY_ASSIGN(const bool is_empty, Drain(cpu_, sink, until_ns));
      if (!is_empty)
        return {};  // out of time; the same again when the rings have had their turn
    }
    const uint32_t wanted = options_.drain_ms;
    next_ns_ =
        MonotonicNs() +
        (wanted == 0 ? kDefaultDrainMs : std::max(wanted, kMinFtraceDrainMs)) * kNsPerMs;
    return {};
  }

  // What the kernel has written until now; not what it writes meanwhile.
  Status End(const PacketSink& sink) override {
    constexpr uint64_t kMaxNs = 200 * kNsPerMs;
    next_ns_ = 0;
    Status status = Serve(sink, MonotonicNs() + kMaxNs);
    next_ns_ = UINT64_MAX;
    buffers_.clear();
    instance_.Remove();
    return status;
  }

 private:
  void LearnEvents(Status* status) {
    std::vector<std::string> events = instance_.Enabled();
    if (events.size() > kMaxEvents && status->ok())
      *status = Status(StatusCode::kInvalidArgument,
                       "cannot record all " + std::to_string(events.size()) +
                           " events: " + std::to_string(kMaxEvents) +
                           " are the most; name those that matter");
    events.resize(std::min(events.size(), kMaxEvents));
    for (const std::string& event : events) {
      const size_t slash = std::min(event.find('/'), event.size() - 1);
      if (!decoder_.AddEvent(event.substr(0, slash), event.substr(slash + 1),
                             instance_.Format(event)) &&
          status->ok())
        *status = Status(StatusCode::kUnavailable,
                         "cannot record event \"" + event +
                             "\": its description cannot be read; leave it out");
    }
  }

  // True: nothing is left in the buffer of this processor.
  Result<bool> Drain(size_t cpu, const PacketSink& sink, uint64_t until_ns) {
    page_.resize(kPageBytes);
    while (MonotonicNs() < until_ns) {
      const ssize_t size = read(buffers_[cpu].get(), page_.data(), page_.size());
      if (size <= 0)
        return true;  // EAGAIN: empty; a processor that is off has no buffer
      const std::string bundle = decoder_.Decode(
          static_cast<uint32_t>(cpu), std::span(page_).first(static_cast<size_t>(size)));
      if (!bundle.empty())
        HPD_TRY(sink(field::TracePacket::kFtraceEvents, bundle));
    }
    return false;
  }

  const FtraceOptions options_;
  TracefsInstance instance_;
  FtraceDecoder decoder_;
  std::vector<ScopedFd> buffers_;
  size_t cpu_ = 0;  // whose buffer is read next
  std::vector<char> page_;
  uint64_t next_ns_ = UINT64_MAX;
};

}  // namespace

std::unique_ptr<DataSource> MakeFtrace(FtraceOptions options) {
  return std::make_unique<Ftrace>(std::move(options));
}

}  // namespace heapprofd
