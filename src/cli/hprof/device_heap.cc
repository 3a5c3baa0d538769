#include "cli/hprof/device_heap.h"

#include <cstdio>
#include <optional>
#include <utility>

#include "base/files/write_all.h"
#include "base/format.h"
#include "base/print.h"
#include "cli/kept_dump.h"
#include "cli/record/status_line.h"

namespace heapprofd {

Status ShowDeviceHeap(DeviceDumpRequest request,
                      const std::string& keep,
                      const HprofView& view) {
  // What cannot be answered anyway must not stop a virtual machine.
  HPD_TRY_ASSIGN(std::optional<OpenedDump> older, OpenOlder(view));
  std::optional<KeptDump> kept;
  if (!keep.empty()) {
    HPD_TRY_ASSIGN(KeptDump created, KeptDump::Create(keep));
    kept.emplace(std::move(created));
  }
  const std::string name =
      (request.existing.empty() ? request.process : request.existing) + " on the device";
  StatusLine line(/*is_wanted=*/true);
  request.show = [&](const std::string& stage) { line.Show(name + ": " + stage); };
  HPD_TRY_ASSIGN(DeviceDump fetched, FetchDeviceDump(request));
  line.Clear();
  if (kept) {
    if (const int error = WriteAll(kept->fd(), fetched.input.bytes()); error != 0)
      return Status::FromErrno("cannot keep the dump as " + keep, error);
    HPD_TRY_ASSIGN([[maybe_unused]] const ScopedFd file, kept->Keep());
  }
  Print(stderr, "%s: a dump of %s%s%s\n", name.c_str(),
        FormatBytes(static_cast<double>(fetched.input.bytes().size())).c_str(),
        kept ? ", which is in " : "", keep.c_str());
  HPD_TRY_ASSIGN(OpenedDump dump, OpenDump(std::move(fetched.input), name, 0));
  dump.notes.insert(dump.notes.begin(), fetched.notes.begin(), fetched.notes.end());
  return PrintView(dump, std::move(older), view);
}

}  // namespace heapprofd
