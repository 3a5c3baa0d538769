// Tables come back from workers that have read hostile files, and from cache files that
// anybody may have written. The checksum of cache files keeps fuzzers out of what is
// behind it, so the contents are tried as well.
#include <string_view>
#include <vector>

#include "symbolize/disk_cache.h"
#include "symbolize/module_symbolizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace heapprofd;
  const std::string text(data, data + size);
  (void)UnsealCacheFile(text);
  if (auto table = SymbolAnswers::Decode(text)) {
    if (const auto lines = table->Find(0))
      (void)table->ToSourceLines(*lines);
    std::string again;
    table->EncodeTo(again);
    HPD_CHECK(SymbolAnswers::Decode(again).has_value());
    SymbolAnswers copy;
    copy.Merge(*table);
    static_cast<void>(copy.Subset(std::vector<uint64_t>{0, 0x1000, 0x1011}));
    table->Merge(copy);
  }
  (void)ModuleAnswer::Decode(text);
  return 0;
}
