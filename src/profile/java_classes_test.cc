#include "profile/java_classes.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(DescribedClass, IsInTheBrackets) {
  EXPECT_EQ(DescribedClass("java.lang.Class<int[]>"), "int[]");
  EXPECT_EQ(DescribedClass("java.lang.Class<"), "");
  EXPECT_EQ(DescribedClass("java.lang.Class<>"), "");
  EXPECT_EQ(DescribedClass("java.lang.Class"), "");
  EXPECT_EQ(DescribedClass("java.lang.ClassLoader<A>"), "");
  EXPECT_EQ(DescribedClass("A<B>"), "");
}

TEST(DescribedClass, IsThatOfItsOwnName) {
  EXPECT_EQ(ClassOfClass("a.B"), "java.lang.Class<a.B>");
  EXPECT_EQ(DescribedClass(ClassOfClass("a.B[]")), "a.B[]");
}

}  // namespace
}  // namespace heapprofd
