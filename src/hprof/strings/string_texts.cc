#include "hprof/strings/string_texts.h"

#include <array>
#include <utility>

#include "hprof/strings/java_string.h"
#include "hprof/wanted_ids.h"

namespace heapprofd::hprof {
namespace {

// In two walks: from strings to arrays, and to the characters in them.
class StringTexts : public HeapVisitor {
 public:
  StringTexts(const DumpFile& file, const ClassTable& classes, size_t most)
      : file_(file),
        classes_(classes),
        layouts_(file, classes),
        id_bytes_(file.id_bytes()),
        most_(most) {}

  std::map<uint64_t, std::string> Find(const HeapDump& dump,
                                       const std::vector<uint64_t>& ids) {
    for (const uint64_t id : ids)
      wanted_[id].assign(1, {id, {}});
    constexpr int kWalks = 2;
    for (int walk = 0; walk < kWalks && !wanted_.empty(); ++walk) {
      for (const auto& [id, askers] : wanted_)
        filter_.Add(id);
      WalkDump(file_, dump, *this);
      wanted_ = std::exchange(next_, {});
    }
    return std::move(texts_);
  }

  void Instance(const InstanceRecord& record) {
    const uint32_t row = classes_.Find(record.class_id);
    if (row == UINT32_MAX || !filter_.MayHave(record.id))
      return;
    const Askers askers = Take(record.id);
    if (askers.empty())
      return;
    const StringCharacters characters =
        CharactersOf(record, StringFieldsOf(layouts_, row), id_bytes_);
    for (const auto& [asker, whole] : askers)
      next_[characters.array].emplace_back(asker, characters);
  }

  void PrimitiveArray(const PrimitiveArrayRecord& record) {
    if (!filter_.MayHave(record.id))
      return;
    for (const auto& [asker, characters] : Take(record.id)) {
      const StringBytes bytes = BytesOf(characters, record);
      if (bytes.data != nullptr)
        texts_.emplace(asker, TextOf(bytes, most_));
    }
  }

 private:
  // Ids of strings with what they say of the array that is looked for.
  using Askers = std::vector<std::pair<uint64_t, StringCharacters>>;

  // Once.
  Askers Take(uint64_t id) {
    const auto found = wanted_.find(id);
    return found == wanted_.end() ? Askers() : std::exchange(found->second, {});
  }

  const DumpFile& file_;
  const ClassTable& classes_;
  const FieldLayouts layouts_;
  const uint32_t id_bytes_;
  const size_t most_;
  IdFilter filter_;
  std::map<uint64_t, Askers> wanted_;  // by the ids that a walk looks for
  std::map<uint64_t, Askers> next_;
  std::map<uint64_t, std::string> texts_;
};

}  // namespace

std::map<uint64_t, std::string> FindTexts(const DumpFile& file,
                                          const HeapDump& dump,
                                          const ClassTable& classes,
                                          const std::vector<uint64_t>& ids,
                                          size_t most) {
  return StringTexts(file, classes, most).Find(dump, ids);
}

}  // namespace heapprofd::hprof
