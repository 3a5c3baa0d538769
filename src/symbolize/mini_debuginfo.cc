#include "symbolize/mini_debuginfo.h"

#include <gelf.h>
#include <lzma.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace heapprofd {
namespace {

constexpr size_t kMaxImageBytes = size_t{256} << 20;
constexpr uint64_t kMaxDecoderBytes = uint64_t{128} << 20;

Elf_Data* FindSection(Elf* elf, const char* name) {
  size_t names = 0;
  if (elf_getshdrstrndx(elf, &names) != 0)
    return nullptr;
  for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_PROGBITS)
      continue;
    const char* section_name = elf_strptr(elf, names, header.sh_name);
    if (section_name != nullptr && strcmp(section_name, name) == 0)
      return elf_rawdata(section, nullptr);
  }
  return nullptr;
}

// False when the stream is corrupt or stands for more than kMaxImageBytes.
bool Unpack(lzma_stream& stream, std::vector<char>& image) {
  while (true) {
    const size_t used = image.size();
    if (used == kMaxImageBytes)
      return false;
    image.resize(std::min(kMaxImageBytes, std::max<size_t>(64 << 10, used * 2)));
    stream.next_out = static_cast<uint8_t*>(static_cast<void*>(image.data() + used));
    stream.avail_out = image.size() - used;
    const lzma_ret result = lzma_code(&stream, LZMA_FINISH);
    image.resize(image.size() - stream.avail_out);
    if (result == LZMA_STREAM_END)
      return true;
    if (result != LZMA_OK)
      return false;
  }
}

}  // namespace

MiniDebugInfo MiniDebugInfo::Read(Elf* elf) {
  MiniDebugInfo result;
  const Elf_Data* packed = FindSection(elf, ".gnu_debugdata");
  if (packed == nullptr || packed->d_buf == nullptr)
    return result;
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMaxDecoderBytes, 0) != LZMA_OK)
    return result;
  stream.next_in = static_cast<const uint8_t*>(packed->d_buf);
  stream.avail_in = packed->d_size;
  auto image = std::make_unique<std::vector<char>>();
  const bool complete = Unpack(stream, *image);
  lzma_end(&stream);
  if (!complete)
    return result;
  result.image_ = std::move(image);
  result.elf_.reset(elf_memory(result.image_->data(), result.image_->size()));
  return result;
}

}  // namespace heapprofd
