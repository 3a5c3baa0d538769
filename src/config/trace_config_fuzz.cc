// Trace configurations come from files and from clients of the service.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "config/recording_config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using heapprofd::ConfigForm;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const ConfigForm form : {ConfigForm::kBinary, ConfigForm::kTextLossy}) {
    const heapprofd::Result<heapprofd::RecordingConfig> config =
        heapprofd::ParseTraceConfig(bytes, form);
    if (!config.ok())
      continue;
    const std::string once = heapprofd::SerializeTraceConfig(config.value());
    const heapprofd::Result<heapprofd::RecordingConfig> again =
        heapprofd::ParseTraceConfig(once, ConfigForm::kBinary);
    if (!again.ok() || heapprofd::SerializeTraceConfig(again.value()) != once)
      abort();
  }
  return 0;
}
