// Turns pages of the kernel's trace buffers into FtraceEventBundle messages.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

struct tep_handle;
struct kbuffer;

namespace heapprofd {

class FtraceDecoder {
 public:
  FtraceDecoder();
  FtraceDecoder(const FtraceDecoder&) = delete;
  FtraceDecoder& operator=(const FtraceDecoder&) = delete;
  ~FtraceDecoder();

  // `format`: the file of that name of an event. False: it cannot be understood.
  bool AddEvent(const std::string& group,
                const std::string& name,
                const std::string& format);

  // One message for one page; empty when it holds no event that is known. Events that
  // Perfetto has a message for become it, all others GenericFtraceEvent.
  std::string Decode(uint32_t cpu, std::span<char> page);

 private:
  tep_handle* events_;
  kbuffer* page_;
};

}  // namespace heapprofd
