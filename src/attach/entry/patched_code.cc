#include "attach/entry/patched_code.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include "attach/prologue.h"

namespace heapprofd {
namespace {

using Bytes = std::array<uint8_t, kMaxPatchLength>;

bool Read(const RemoteProcess& process, const PatchRecord& record, Bytes* bytes) {
  return record.length > 0 && record.length <= bytes->size() &&
         process.Read(record.address, bytes->data(), record.length);
}

bool Equal(const Bytes& bytes, const uint8_t* expected, size_t length) {
  return memcmp(bytes.data(), expected, length) == 0;
}

// Bytes that have neither become ours nor stayed the file's, of a breakpoint's size.
size_t BreakpointAt(const Bytes& bytes, const PatchRecord& record, size_t at) {
  const std::span<const uint8_t> rest = std::span(bytes).first(record.length).subspan(at);
  return BreakpointLength(rest);
}

// A probe inside of our jump changes one byte of it. What differs more is of somebody who
// has replaced the function, and who may put back what was there before: ours, whole.
PatchBytes ClassifyChanged(const Bytes& bytes, const PatchRecord& record) {
  constexpr size_t kFewest = 3;  // bytes by which a jump of ours is known
  size_t ours = 0;
  size_t left = 0;
  for (size_t i = 0; i < record.length;) {
    const bool is_written = bytes[i] == record.written[i];
    const bool is_original = bytes[i] == record.original[i];
    if (!is_written && !is_original) {
      const size_t breakpoint = BreakpointAt(bytes, record, i);
      if (breakpoint == 0)
        return PatchBytes::kForeign;
      i += breakpoint;
      continue;
    }
    ours += is_written && !is_original ? 1u : 0u;
    left += is_original && !is_written ? 1u : 0u;
    ++i;
  }
  if (ours >= kFewest && ours > left)
    return PatchBytes::kBroken;
  return ours == 0 ? PatchBytes::kOriginal : PatchBytes::kForeign;
}

// Byte by byte: what is not ours may be a probe's, which may go meanwhile.
void WriteOriginals(const RemoteProcess& process,
                    const PatchRecord& record,
                    const Bytes& bytes) {
  for (size_t i = 0; i < record.length; ++i) {
    if (bytes[i] == record.written[i] && bytes[i] != record.original[i])
      process.Write(record.address + i, &record.original[i], 1);
  }
}

}  // namespace

PatchBytes LookAtPatch(const RemoteProcess& process, const PatchRecord& record) {
  Bytes bytes{};
  if (!Read(process, record, &bytes))
    return PatchBytes::kGone;
  if (Equal(bytes, record.original, record.length))
    return PatchBytes::kOriginal;
  return Equal(bytes, record.written, record.length) ? PatchBytes::kWritten
                                                     : ClassifyChanged(bytes, record);
}

bool IsUntouched(const RemoteProcess& process, const PatchRecord& record) {
  Bytes bytes{};
  return Read(process, record, &bytes) && Equal(bytes, record.original, record.length);
}

bool IsPatched(const RemoteProcess& process, const PatchRecord& record) {
  const PatchBytes bytes = LookAtPatch(process, record);
  return bytes == PatchBytes::kWritten || bytes == PatchBytes::kBroken;
}

bool WritePatch(const RemoteProcess& process, const PatchRecord& record) {
  return record.kept > 0 && process.Write(record.address, record.written, record.length);
}

bool TakePatchBack(const RemoteProcess& process, const PatchRecord& record) {
  const PatchBytes found = LookAtPatch(process, record);
  Bytes bytes{};
  if (found == PatchBytes::kWritten)
    process.Write(record.address, record.original, record.length);
  else if (found == PatchBytes::kBroken && Read(process, record, &bytes))
    WriteOriginals(process, record, bytes);
  const PatchBytes now = LookAtPatch(process, record);
  return now == PatchBytes::kOriginal || now == PatchBytes::kGone;
}

bool IsProbed(const RemoteProcess& process, const PatchRecord& record) {
  std::array<uint8_t, kMaxKeptLength> bytes{};
  const size_t length = record.kept;
  if (length == 0 || length > bytes.size() ||
      !process.Read(record.address - length, bytes.data(), length))
    return false;
  return memcmp(bytes.data(), record.begin, length) != 0;
}

}  // namespace heapprofd
