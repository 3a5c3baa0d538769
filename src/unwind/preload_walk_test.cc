// From a program's files to the stacks that it walks by itself: rules that are derived
// from its unwind information make the client in it find the frames that the C library's
// own unwinder finds at the same moment. Whatever emulator it runs under.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "client/preload/test_session.h"
#include "unwind/cfi_rules.h"
#include "unwind/module.h"
#include "walk/step.h"

namespace heapprofd {
namespace {

struct Object {
  uint64_t base = 0;
  uint64_t begin = 0;  // of its code
  uint64_t end = 0;
  std::shared_ptr<Module> module = nullptr;
};

struct Said {
  uint64_t block = 0;
  std::vector<uint64_t> keys;  // innermost first, that of the function which asked
};

class PreloadWalkTest : public PreloadSession {
 protected:
  Said Allocate(const char* command = "go\n") {
    Tell(command);
    char line[4096];
    while (fgets(line, sizeof(line), output_) != nullptr) {
      std::istringstream words(line);
      words >> std::hex;
      std::string first;
      words >> first;
      if (first != "frames") {
        AddObject(first, &words);
        continue;
      }
      Said said;
      words >> said.block;
      for (uint64_t key = 0; words >> key;)
        said.keys.push_back(key);
      return said;
    }
    ADD_FAILURE() << "the program has ended";
    return {};
  }

  void AddObject(const std::string& base, std::istringstream* words) {
    Object object{.base = std::stoull(base, nullptr, 16)};
    std::string path;
    *words >> object.begin >> object.end >> path;
    if (!path.starts_with(HPD_TEST_ROOT) && path != HPD_TEST_PROGRAM &&
        path != HPD_TEST_PRELOAD)
      path.insert(0, HPD_TEST_ROOT);
    object.module = Module::Open(ScopedFd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    objects_.push_back(object);
  }

  Rule RuleFor(uint64_t key) {
    for (const Object& object : objects_) {
      if (object.module == nullptr || key - 1 < object.begin || key - 1 >= object.end)
        continue;
      const Rule rule = RuleForAddress(*object.module, key - 1 - object.base);
      return rule.kind == RuleKind::kUnknown &&
                     object.module->IsEntryCode(key - 1 - object.base)
                 ? Rule{.kind = RuleKind::kEnd}
                 : rule;
    }
    // In no file: the code that handlers return to (of an emulator it is its own).
    return {.kind = RuleKind::kSignal};
  }

  // Walks what the record has copied, and publishes the rules of all frames but one.
  std::vector<uint64_t> Learn(const TestSample& sample, uint64_t unlearnt = 0) {
    const CopiedTestStack stack{.start = sample.from.sp & ~uint64_t{7},
                                .bytes = sample.copy};
    Cursor cursor =
        WithLink({.key = sample.from.key, .sp = sample.from.sp, .bp = sample.from.bp},
                 sample.from.link);
    std::vector<uint64_t> keys;
    StepResult result = StepResult::kOk;
    while (result == StepResult::kOk && keys.size() < kMaxFrames) {
      keys.push_back(cursor.key);
      const Rule rule = RuleFor(cursor.key);
      EXPECT_TRUE(IsEncodable(rule)) << std::hex << cursor.key;
      if (cursor.key != unlearnt)
        rules_->Insert(cursor.key, rule);
      result = Step(rule, cursor, stack);
    }
    EXPECT_EQ(result, StepResult::kEnd);
    return keys;
  }

  static constexpr size_t kMaxFrames = 64;
  std::vector<Object> objects_;
};

TEST_F(PreloadWalkTest, TheProgramFindsTheFramesThatTheCLibrarysUnwinderFinds) {
  const Said said = Allocate();
  ASSERT_GE(said.keys.size(), 10u);
  const std::optional<TestSample> first = TakeSample(said.block);
  ASSERT_TRUE(first.has_value());
  ASSERT_NE(first->record.flags & kSampleHasStackCopy, 0);
  std::vector<uint64_t> expected = said.keys;
  expected[0] = first->from.key;  // the same function, at another call
  EXPECT_EQ(Learn(*first), expected);
  const Said again = Allocate();
  const std::optional<TestSample> second = TakeSample(again.block);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->record.flags & kSampleHasStackCopy, 0);
  EXPECT_EQ(second->keys, expected);
}

// Its return address may be in a register alone, which then goes with the copy.
TEST_F(PreloadWalkTest, ALeafThatASignalHasInterruptedBeginsACopy) {
  const Said said = Allocate("signal\n");
  const std::optional<TestSample> first = TakeSample(said.block);
  ASSERT_TRUE(first.has_value());
  std::vector<uint64_t> expected = said.keys;
  expected[0] = first->from.key;
  const auto handlers_return = std::find_if(
      expected.begin(), expected.end(),
      [this](uint64_t key) { return RuleFor(key).kind == RuleKind::kSignal; });
  ASSERT_GE(expected.end() - handlers_return, 4);
  const auto leaf = handlers_return + 1;
  ++*leaf;  // not a return address
  EXPECT_EQ(Learn(*first, /*unlearnt=*/*leaf), expected);
  const Said again = Allocate("signal\n");
  const std::optional<TestSample> second = TakeSample(again.block);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->keys, std::vector<uint64_t>(expected.begin(), leaf));
  EXPECT_EQ(Learn(*second), std::vector<uint64_t>(leaf, expected.end()));
}

}  // namespace
}  // namespace heapprofd
