#include "sources/ftrace_decoder.h"

#include <traceevent/event-parse.h>
extern "C" {
#include <traceevent/kbuffer.h>  // knows nothing of C++
}

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <protozero/pbf_writer.hpp>

#include "trace/fields.h"

namespace heapprofd {
namespace {

using protozero::pbf_writer;

using BundleField = field::FtraceEventBundle;
using EventField = field::FtraceEvent;
using GenericField = field::FtraceEvent::Generic;

// An event that has a message: its field in FtraceEvent, and its fields from 1 on.
struct KnownEvent {
  std::string_view name;
  uint32_t field;
  std::array<std::string_view, 7> fields;
};

constexpr KnownEvent kKnownEvents[] = {
    {"sched_switch",
     4,
     {"prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid",
      "next_prio"}},
    {"cpu_frequency", 11, {"state", "cpu_id"}},
    {"cpu_idle", 13, {"state", "cpu_id"}},
    {"sched_wakeup", 17, {"comm", "pid", "prio", "success", "target_cpu"}},
    {"sched_waking", 20, {"comm", "pid", "prio", "success", "target_cpu"}},
    {"sched_wakeup_new", 114, {"comm", "pid", "prio", "success", "target_cpu"}},
    {"task_newtask", 235, {"pid", "comm", "clone_flags", "oom_score_adj"}},
    {"task_rename", 236, {"pid", "oldcomm", "newcomm", "oom_score_adj"}},
    {"sched_process_exec", 237, {"filename", "pid", "old_pid"}},
    {"sched_process_exit", 238, {"comm", "pid", "tgid", "prio"}},
    {"sched_process_fork", 239, {"parent_comm", "parent_pid", "child_comm", "child_pid"}},
    {"sched_process_free", 240, {"comm", "pid", "prio"}},
    {"mm_page_alloc", 307, {"gfp_flags", "migratetype", "order", "page", "pfn"}},
    {"rss_stat", 313, {"member", "size", "curr", "mm_id"}},
    {"signal_deliver", 324, {"code", "sa_flags", "sig"}},
    {"signal_generate", 325, {"code", "comm", "group", "pid", "result", "sig"}},
    {"oom_score_adj_update", 326, {"comm", "oom_score_adj", "pid"}},
    {"mark_victim", 334, {"pid"}},
};

// The bytes of an event, as the kernel has written them.
struct Record {
  char* data;
  int size;
};

// Text of a field; where it lies elsewhere in the record, the field tells offset and
// length (__data_loc). Never beyond the record.
std::string_view TextOf(const tep_format_field& field, const Record& record) {
  int offset = field.offset;
  int size = field.size;
  if ((field.flags & TEP_FIELD_IS_DYNAMIC) != 0) {
    uint32_t place = 0;
    if (offset < 0 || offset + 4 > record.size)
      return {};
    memcpy(&place, record.data + offset, sizeof(place));
    const int origin =
        (field.flags & TEP_FIELD_IS_RELATIVE) != 0 ? offset + field.size : 0;
    offset = origin + static_cast<int>(place & 0xffff);
    size = static_cast<int>(place >> 16);
  }
  if (offset < 0 || offset > record.size)
    return {};
  size = std::min(size, record.size - offset);
  return {record.data + offset,
          strnlen(record.data + offset, static_cast<size_t>(std::max(size, 0)))};
}

bool IsText(const tep_format_field& field) {
  return (field.flags & TEP_FIELD_IS_STRING) != 0;
}

bool ReadNumber(tep_format_field* field, const Record& record, int64_t* number) {
  unsigned long long value = 0;
  if (field->offset + field->size > record.size ||
      tep_read_number_field(field, record.data, &value) != 0)
    return false;
  *number = static_cast<int64_t>(value);
  if ((field->flags & TEP_FIELD_IS_SIGNED) != 0 && field->size < 8) {
    const int unused_bits = 64 - 8 * field->size;
    *number = static_cast<int64_t>(value << unused_bits) >> unused_bits;
  }
  return true;
}

void AddKnown(const KnownEvent& known,
              const tep_event& event,
              const Record& record,
              pbf_writer& message) {
  pbf_writer entry(message, known.field);
  for (uint32_t i = 0; i < known.fields.size() && !known.fields[i].empty(); ++i) {
    for (tep_format_field* field = event.format.fields; field != nullptr;
         field = field->next) {
      int64_t number = 0;
      if (known.fields[i] != field->name)
        continue;
      if (IsText(*field)) {
        const std::string_view text = TextOf(*field, record);
        entry.add_bytes(i + 1, text.data(), text.size());
      } else if (ReadNumber(field, record, &number)) {
        entry.add_int64(i + 1, number);
      }
    }
  }
}

void AddGeneric(const tep_event& event, const Record& record, pbf_writer& message) {
  pbf_writer entry(message, field::FtraceEvent::kGeneric);
  entry.add_string(GenericField::kEventName, event.name);
  for (tep_format_field* field = event.format.fields; field != nullptr;
       field = field->next) {
    int64_t number = 0;
    if (IsText(*field)) {
      const std::string_view text = TextOf(*field, record);
      pbf_writer value(entry, GenericField::kField);
      value.add_string(GenericField::Field::kName, field->name);
      value.add_bytes(GenericField::Field::kStrValue, text.data(), text.size());
    } else if (ReadNumber(field, record, &number)) {
      pbf_writer value(entry, GenericField::kField);
      value.add_string(GenericField::Field::kName, field->name);
      value.add_int64(GenericField::Field::kIntValue, number);
    }
  }
}

}  // namespace

FtraceDecoder::FtraceDecoder()
    : events_(tep_alloc()),
      page_(kbuffer_alloc(KBUFFER_LSIZE_SAME_AS_HOST, KBUFFER_ENDIAN_SAME_AS_HOST)) {
  tep_set_loglevel(TEP_LOG_NONE);
  tep_set_file_bigendian(events_, TEP_LITTLE_ENDIAN);
  tep_set_local_bigendian(events_, TEP_LITTLE_ENDIAN);
  tep_set_long_size(events_, sizeof(long));
}

FtraceDecoder::~FtraceDecoder() {
  kbuffer_free(page_);
  tep_free(events_);
}

bool FtraceDecoder::AddEvent(const std::string& group,
                             const std::string& name,
                             const std::string& format) {
  // It may fail on how the kernel would print the event and have its fields none the
  // less.
  static_cast<void>(
      tep_parse_event(events_, format.data(), format.size(), group.c_str()));
  return tep_find_event_by_name(events_, group.c_str(), name.c_str()) != nullptr;
}

std::string FtraceDecoder::Decode(uint32_t cpu, std::span<char> page) {
  std::string bundle;
  if (kbuffer_load_subbuffer(page_, page.data()) != 0 ||
      kbuffer_subbuffer_size(page_) > static_cast<int>(page.size()))
    return bundle;
  pbf_writer writer(bundle);
  writer.add_uint32(BundleField::kCpu, cpu);
  if (kbuffer_missed_events(page_) != 0)
    writer.add_bool(BundleField::kLostEvents, true);
  const size_t empty_size = bundle.size();
  unsigned long long time = 0;
  for (void* data = kbuffer_read_event(page_, &time); data != nullptr;
       data = kbuffer_next_event(page_, &time)) {
    const Record record{.data = static_cast<char*>(data),
                        .size = kbuffer_event_size(page_)};
    tep_record header{};
    header.data = data;
    header.size = record.size;
    const tep_event* event = tep_find_event(events_, tep_data_type(events_, &header));
    if (event == nullptr)
      continue;
    pbf_writer message(writer, BundleField::kEvent);
    message.add_uint64(EventField::kTimestamp, time);
    message.add_uint32(EventField::kPid,
                       static_cast<uint32_t>(tep_data_pid(events_, &header)));
    const auto* known =
        std::ranges::find(kKnownEvents, std::string_view(event->name), &KnownEvent::name);
    if (known != std::end(kKnownEvents))
      AddKnown(*known, *event, record, message);
    else
      AddGeneric(*event, record, message);
  }
  if (bundle.size() == empty_size)
    bundle.clear();
  return bundle;
}

}  // namespace heapprofd
