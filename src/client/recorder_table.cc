#include "client/recorder_table.h"

#include "client/labels.h"
#include "client/nesting.h"

namespace heapprofd {

const RecorderTable& OwnRecorder() {
  static constexpr RecorderTable kTable = {
      .is_recording = IsRecording,
      .join_heap = JoinHeap,
      .heap_interval = HeapInterval,
      .report_allocation = ReportHeapAllocation,
      .report_free = ReportHeapFree,
      .begin_nested = BeginNested,
      .end_nested = EndNested,
      .push_label = PushLabel,
      .pop_label = PopLabel,
      .report_mark = ReportMark,
  };
  return kTable;
}

}  // namespace heapprofd
