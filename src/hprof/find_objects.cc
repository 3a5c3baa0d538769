#include "hprof/find_objects.h"

#include <fnmatch.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "hprof/fields/field_layout.h"
#include "hprof/histogram.h"
#include "hprof/strings/text_search.h"
#include "profile/java_classes.h"

namespace heapprofd::hprof {
namespace {

template <typename Number>
std::optional<Number> NumberFrom(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && at == end ? std::optional(number) : std::nullopt;
}

std::optional<uint64_t> AddressIn(const std::string& text) {
  uint64_t address = 0;
  if (text == "null")
    return address;
  const char* const end = text.data() + text.size();
  if (!text.starts_with("0x"))
    return std::nullopt;
  const auto [at, error] = std::from_chars(text.data() + 2, end, address, 16);
  return error == std::errc() && at == end ? std::optional(address) : std::nullopt;
}

// What the value of a field is compared with.
class WantedValue {
 public:
  explicit WantedValue(const FieldCondition& condition) {
    if (condition.is_part)
      return;
    const std::string& text = condition.value;
    integer_ = NumberFrom<int64_t>(text);
    real_ = NumberFrom<double>(text);
    address_ = AddressIn(text);
    if (text == "true" || text == "false")
      boolean_ = text == "true";
    if (text.size() == 1)
      character_ = static_cast<uint8_t>(text[0]);
  }

  // `at` has as many bytes as the type needs.
  bool IsNumber(uint8_t type, const uint8_t* at) const {
    switch (type) {
      case kBoolean:
        return boolean_ == (*at != 0);
      case kChar:
        return IsInteger(Get16(at)) || character_ == Get16(at);
      case kByte:
        return IsInteger(static_cast<int8_t>(*at));
      case kShort:
        return IsInteger(static_cast<int16_t>(Get16(at)));
      case kInt:
        return IsInteger(static_cast<int32_t>(Get32(at)));
      case kLong:
        return IsInteger(static_cast<int64_t>(Get64(at)));
      case kFloat:  // one is shown by fewer digits than it has as a double
        return real_ &&
               IsSame(std::bit_cast<float>(Get32(at)), static_cast<float>(*real_));
      case kDouble:
        return real_ && IsSame(std::bit_cast<double>(Get64(at)), *real_);
      default:
        return false;
    }
  }

  bool is_address() const { return address_.has_value(); }

  bool IsAddress(uint64_t id) const { return address_ == id; }

 private:
  bool IsInteger(int64_t number) const { return integer_ == number; }

  template <typename Real>
  static bool IsSame(Real a, Real b) {
    return a == b || (std::isnan(a) && std::isnan(b));
  }

  std::optional<int64_t> integer_;
  std::optional<double> real_;
  std::optional<uint64_t> address_;
  std::optional<bool> boolean_;
  std::optional<uint16_t> character_;
};

// Where a condition looks in the instances of a class.
struct Place {
  uint32_t offset = 0;
  uint8_t type = kObject;
  bool is_own_text = false;  // the object is a string, and it is about its text
};

// Only * is special, and not what is so for fnmatch too: "Node[]".
std::string PatternOf(const std::string& classes) {
  std::string pattern;
  for (const char c : classes) {
    if (c == '[' || c == '?' || c == '\\')
      pattern += '\\';
    pattern += c;
  }
  return pattern;
}

class ObjectFinder : public HeapVisitor {
 public:
  ObjectFinder(const DumpFile& file,
               const HeapDump& dump,
               const HeapCensus& census,
               const ObjectQuery& query,
               const std::function<void(FoundObject)>& use)
      : file_(file),
        dump_(dump),
        census_(census),
        classes_(census.classes),
        query_(query),
        use_(use),
        id_bytes_(file.id_bytes()),
        places_(census.classes.size()) {}

  Status Prepare() {
    const ClassPattern pattern(query_.classes);
    const auto is_meant = [&pattern](const std::string& name) {
      return pattern.Matches(name);
    };
    for (uint32_t row = 0; row < classes_.size(); ++row)
      is_meant_.push_back(is_meant(file_.names().ClassName(classes_[row].id)));
    for (uint8_t type = 0; type < kBasicTypeCount; ++type)
      is_meant_.push_back(is_meant(PrimitiveArrayName(type)));
    are_classes_meant_ = is_meant(std::string(kClassClass));
    if (!are_classes_meant_ &&
        std::find(is_meant_.begin(), is_meant_.end(), true) == is_meant_.end())
      return NoSuchClass(query_.classes);
    for (const FieldCondition& condition : query_.conditions)
      HPD_TRY(PrepareCondition(condition));
    return {};
  }

  FoundObjects Find() {
    WalkDump(file_, dump_, *this);
    return found_;
  }

  void Class(const ClassRecord& record) {
    const uint32_t row = classes_.Find(record.id);
    if (are_classes_meant_ && query_.conditions.empty() && row != UINT32_MAX)
      Use(record.id, std::string(kClassClass),
          classes_.ClassObjectBytes(row, census_.class_class, census_.layout));
  }

  void Instance(const InstanceRecord& record) {
    const uint32_t row = classes_.Find(record.class_id);
    if (row == UINT32_MAX || !is_meant_[row])
      return;
    texts_.clear();
    for (size_t i = 0; i < query_.conditions.size(); ++i) {
      if (!Meets(record, row, i))
        return;
    }
    Use(record.id, file_.names().ClassName(record.class_id),
        classes_.InstanceBytes(row, census_.layout));
  }

  void ObjectArray(const ObjectArrayRecord& record) {
    const uint32_t row = classes_.Find(record.class_id);
    if (row == UINT32_MAX || !is_meant_[row] || !query_.conditions.empty())
      return;
    const uint64_t bytes = uint64_t{record.length} * census_.layout.reference_bytes;
    Use(record.id, file_.names().ClassName(record.class_id),
        ArrayBytes(bytes, census_.layout));
  }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    if (!is_meant_[classes_.size() + record.type] || !query_.conditions.empty())
      return;
    const uint64_t bytes = uint64_t{record.length} * ValueBytes(record.type, id_bytes_);
    Use(record.id, PrimitiveArrayName(record.type), ArrayBytes(bytes, census_.layout));
  }

 private:
  using Places = std::vector<Place>;  // a class may have hidden a field of this name

  Status PrepareCondition(const FieldCondition& condition) {
    const size_t at = wanted_.size();
    wanted_.emplace_back(condition);
    const FieldLayouts layouts(file_, classes_);
    bool is_known = false;
    bool has_instances = false;
    bool is_text = false;
    for (uint32_t row = 0; row < classes_.size(); ++row) {
      places_[row].resize(at + 1);
      if (is_meant_[row])
        FindPlaces(layouts, condition, row, &places_[row][at]);
      // Of a class without instances it is not known what fields they would have.
      has_instances = has_instances || (is_meant_[row] && classes_[row].instances > 0);
      for (const Place& place : places_[row][at]) {
        is_known = true;
        is_text = is_text || place.type == kObject;
      }
    }
    strings_.emplace_back();
    if (!is_known && has_instances)
      return Status(StatusCode::kNotFound,
                    "cannot find objects by " + condition.field + ": no class that " +
                        query_.classes +
                        " names has a field of this name; heap_profile hprof object "
                        "shows the fields of one of its objects");
    if (is_text && !wanted_.back().is_address())
      strings_.back() = MatchingStrings::Find(file_, dump_, census_,
                                              {condition.value, condition.is_part});
    found_.is_whole =
        found_.is_whole && (!strings_.back() || strings_.back()->is_whole());
    return {};
  }

  void FindPlaces(const FieldLayouts& layouts,
                  const FieldCondition& condition,
                  uint32_t row,
                  Places* places) {
    const bool is_string = IsStringClass(file_, classes_, row);
    layouts.ForEachField(
        row, classes_[row].most_bytes,
        [&](uint32_t declaring, const uint8_t* field, uint8_t type, uint32_t offset) {
          const std::string_view name = file_.names().StringOf(GetId(field, id_bytes_));
          const std::string& wanted = condition.field;
          const bool is_meant =
              wanted == name || (wanted.size() > name.size() && wanted.ends_with(name) &&
                                 wanted == file_.names()
                                               .ClassName(classes_[declaring].id)
                                               .append(1, '.')
                                               .append(name));
          if (is_meant && places->size() == kMostNamesakes)
            found_.has_all_fields = false;
          else if (is_meant)
            places->push_back({offset, type, is_string && name == "value"});
        });
  }

  bool Meets(const InstanceRecord& record, uint32_t row, size_t condition) {
    for (const Place& place : places_[row][condition]) {
      const uint32_t bytes = ValueBytes(place.type, id_bytes_);
      if (uint64_t{place.offset} + bytes > record.byte_count)
        return false;  // the other places are behind it
      const uint8_t* const at = record.values + place.offset;
      if (place.type != kObject ? wanted_[condition].IsNumber(place.type, at)
                                : RefersTo(record, place, condition))
        return true;
    }
    return false;
  }

  bool RefersTo(const InstanceRecord& record, const Place& place, size_t condition) {
    const uint64_t id = GetId(record.values + place.offset, id_bytes_);
    const StringBytes* const text =
        strings_[condition]
            ? strings_[condition]->BytesOf(place.is_own_text ? record.id : id)
            : nullptr;
    if (text != nullptr)
      texts_.push_back(*text);
    return text != nullptr || wanted_[condition].IsAddress(id);
  }

  void Use(uint64_t id, std::string class_name, uint64_t bytes) {
    ++found_.count;
    found_.bytes += bytes;
    use_({id, bytes, std::move(class_name), std::exchange(texts_, {})});
  }

  const DumpFile& file_;
  const HeapDump& dump_;
  const HeapCensus& census_;
  const ClassTable& classes_;
  const ObjectQuery& query_;
  const std::function<void(FoundObject)>& use_;
  const uint32_t id_bytes_;
  std::vector<bool> is_meant_;  // by class, and behind them the arrays of numbers
  bool are_classes_meant_ = false;
  std::vector<std::vector<Places>> places_;              // by class, of each condition
  std::vector<WantedValue> wanted_;                      // by condition
  std::vector<std::optional<MatchingStrings>> strings_;  // by condition, where needed
  std::vector<StringBytes> texts_;                       // of the object at hand
  FoundObjects found_;
};

}  // namespace

ClassPattern::ClassPattern(const std::string& classes) : pattern_(PatternOf(classes)) {}

bool ClassPattern::Matches(const std::string& name) const {
  return fnmatch(pattern_.c_str(), name.c_str(), 0) == 0;
}

Status NoSuchClass(const std::string& classes) {
  return Status(StatusCode::kNotFound,
                "cannot find objects of " + classes +
                    ": the dump has no such class; heap_profile hprof histogram "
                    "--top 0 lists the classes");
}

Result<FieldCondition> ParseCondition(const std::string& text) {
  const size_t at = text.find_first_of("=~");
  if (at == std::string::npos || at == 0)
    return Invalid("cannot find objects by " + text +
                   ": it is neither FIELD=VALUE nor FIELD~TEXT");
  return FieldCondition{text.substr(0, at), text.substr(at + 1), text[at] == '~'};
}

Result<FoundObjects> FindObjects(const DumpFile& file,
                                 const HeapDump& dump,
                                 const HeapCensus& census,
                                 const ObjectQuery& query,
                                 const std::function<void(FoundObject)>& use) {
  ObjectFinder finder(file, dump, census, query, use);
  HPD_TRY(finder.Prepare());
  return finder.Find();
}

}  // namespace heapprofd::hprof
