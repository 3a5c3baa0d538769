// Hostile mapping files, and questions about what they say.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "symbolize/proguard_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  heapprofd::Result<heapprofd::ProguardMap> map =
      heapprofd::ParseProguardMap(text, "fuzz", "");
  if (!map.ok())
    return 0;
  heapprofd::Deobfuscator deobfuscator;
  const heapprofd::DeobfuscationMap copy = map.value().map;
  deobfuscator.Add(std::move(map).value().map);
  for (const heapprofd::ObfuscatedClass& type : copy.classes) {
    for (const heapprofd::ObfuscatedMember& method : type.methods) {
      const std::string name = type.obfuscated_name + "." + method.obfuscated_name;
      static_cast<void>(deobfuscator.FindMethod("", name, 0));
      static_cast<void>(deobfuscator.FindMethod("", name, method.obfuscated_line_start));
    }
    static_cast<void>(deobfuscator.FindClass("", type.obfuscated_name));
  }
  return 0;
}
