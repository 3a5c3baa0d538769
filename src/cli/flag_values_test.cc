#include "cli/flag_values.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

using std::chrono::milliseconds;

TEST(DurationValueTest, HasAUnit) {
  milliseconds value{-1};
  const ApplyValue apply = DurationValue("--idle", &value);
  for (const auto& [text, ms] : {std::pair("500ms", 500L),
                                 {"90s", 90'000},
                                 {"0", 0},
                                 {"30min", 1'800'000},
                                 {"2h", 7'200'000},
                                 {"0h", 0},
                                 {"8784h", 31'622'400'000}}) {
    EXPECT_TRUE(apply(text).ok()) << text;
    EXPECT_EQ(value, milliseconds(ms)) << text;
  }
  for (const char* const wrong : {"", "5", "-1s", "s", "1m", "1 s", "1.5h", "1sx",
                                  "99999999999999999999h", "1000000000h", "8785h"}) {
    const Status status = apply(wrong);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << wrong;
    EXPECT_NE(status.message().find("a time like 500ms, 90s, 30min or 2h"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace heapprofd
