#include "report/report_page.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

std::string Base64(std::string_view bytes) {
  std::string text;
  AppendBase64(bytes, text);
  return text;
}

TEST(Base64Test, IsThatOfTheStandard) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(Base64("\xff\xfe\xfd"), "//79");
}

TEST(ReportPageTest, NoTextOfTheDataIsPartOfThePage) {
  const std::string page = ReportPage("</script><img src=x onerror=alert(1)>");
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("%DATA%"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'; connect-src 'none'; "), std::string::npos);
  EXPECT_TRUE(page.ends_with("</html>\n"));
}

TEST(ReportPageTest, AServedPageMayAskItsServerOnly) {
  EXPECT_NE(ReportPage("", {.kind = PageKind::kServed})
                .find("default-src 'none'; connect-src 'self'; script-src 'sha256-"),
            std::string::npos);
}

// What it costs everybody who keeps a report.
TEST(ReportPageTest, ItIsSmall) {
  EXPECT_LT(ReportPage("").size(), 120u * 1000);
  const size_t with_objects = ReportPage("", {.has_objects = true}).size();
  EXPECT_GT(with_objects, ReportPage("").size());
  EXPECT_LT(with_objects, 132u * 1000);
}

}  // namespace
}  // namespace heapprofd
