#include "symbolize/proguard_map.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

constexpr std::string_view kMap =
    "# compiler: R8\n"
    "com.example.Store -> a.b:\n"
    "# {\"id\":\"sourceFile\",\"fileName\":\"Store.kt\"}\n"
    "    int size -> a\n"
    "    java.util.Map com.example.Store.cache -> b\r\n"
    "    1:3:void read(int,java.lang.String):17:19 -> c\n"
    "    4:4:void com.example.Log.write(java.lang.String):50:50 -> c\n"
    "    4:4:void read(int,java.lang.String):20 -> c\n"
    "    5:9:void <init>() -> <init>\n"
    "    void close() -> d\n"
    "    void abort(boolean) -> d\n"
    "    10:11:int shared(int):0:0 -> e\n"
    "      # {\"id\":\"com.android.tools.r8.outline\"}\n"
    "\n"
    "com.example.Log -> a.c:\n";

ProguardMap Parse(std::string_view text) {
  Result<ProguardMap> map = ParseProguardMap(text, "mapping.txt", "com.example");
  EXPECT_TRUE(map.ok());
  return map.ok() ? std::move(map).value() : ProguardMap();
}

TEST(ProguardMapTest, ClassesAndMembersAreRead) {
  const ProguardMap parsed = Parse(kMap);
  EXPECT_EQ(parsed.skipped_lines, 0u) << parsed.first_problem;
  EXPECT_EQ(parsed.map.package_name, "com.example");
  ASSERT_EQ(parsed.map.classes.size(), 2u);
  const ObfuscatedClass& store = parsed.map.classes[0];
  EXPECT_EQ(store.obfuscated_name, "a.b");
  EXPECT_EQ(store.deobfuscated_name, "com.example.Store");
  ASSERT_EQ(store.fields.size(), 2u);
  EXPECT_EQ(store.fields[0].obfuscated_name, "a");
  EXPECT_EQ(store.fields[0].deobfuscated_name, "size");
  EXPECT_EQ(store.fields[1].obfuscated_name, "b");
  ASSERT_EQ(store.methods.size(), 7u);
  EXPECT_EQ(store.methods[0].deobfuscated_name, "com.example.Store.read");
  EXPECT_EQ(store.methods[0].obfuscated_line_end, 3u);
  EXPECT_EQ(store.methods[0].source_line_start, 17u);
  EXPECT_EQ(store.methods[0].source_line_end, 19u);
  EXPECT_EQ(store.methods[1].deobfuscated_name, "com.example.Log.write");
  EXPECT_EQ(store.methods[2].source_line_start, 20u);
  EXPECT_EQ(store.methods[3].deobfuscated_name, "com.example.Store.<init>");
  EXPECT_EQ(store.methods[3].source_line_start, 5u);  // no others: the same lines
  EXPECT_EQ(store.methods[4].obfuscated_line_start, 0u);
}

TEST(ProguardMapTest, MethodsThatR8MadeOfSharedCodeAreOutlines) {
  const ObfuscatedClass store = Parse(kMap).map.classes[0];
  EXPECT_EQ(store.methods[6].deobfuscated_name, "com.example.Store.shared");
  EXPECT_TRUE(store.methods[6].is_outline);
  EXPECT_FALSE(store.methods[5].is_outline);
}

TEST(ProguardMapTest, CallsOfOutlinesSayWhichLineTheirCodeIsOf) {
  const ProguardMap parsed = Parse(
      "com.example.Store -> a.b:\n"
      "    4:4:int read(int):23:23 -> s\n"
      "    27:27:int read(int):0:0 -> s\n"
      "    # "
      "{\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{\"1\":4,\"2\":5},"
      "\"outline\":\"La/x;a(I)V\"}\n");
  const std::vector<ObfuscatedMember>& methods = parsed.map.classes.at(0).methods;
  ASSERT_EQ(methods.size(), 2u);
  EXPECT_TRUE(methods[0].outline_calls.empty());
  ASSERT_EQ(methods[1].outline_calls.size(), 1u);
  EXPECT_EQ(methods[1].outline_calls[0].outline, "a.x.a");
  EXPECT_EQ(methods[1].outline_calls[0].lines,
            (std::vector<std::pair<uint32_t, uint32_t>>{{1, 4}, {2, 5}}));
}

TEST(ProguardMapTest, CommentsThatAreNoGoodAreIgnored) {
  for (const char* comment :
       {"# com.android.tools.r8.outline", "# {\"id\":\"com.android.tools.r8.outline\"",
        "# {\"id\":7,\"x\":\"com.android.tools.r8.outline\"}",
        "# [\"com.android.tools.r8.outline\"]",
        "# {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":[1],"
        "\"outline\":\"La;a()I\"}",
        "# {\"id\":\"com.android.tools.r8.outlineCallsite\",\"positions\":{},"
        "\"outline\":\"(La;\"}"}) {
    const ProguardMap parsed =
        Parse(std::string("com.A -> a:\n    1:2:void f() -> b\n    ") + comment + "\n");
    const ObfuscatedMember& method = parsed.map.classes.at(0).methods.at(0);
    EXPECT_FALSE(method.is_outline) << comment;
    EXPECT_TRUE(method.outline_calls.empty()) << comment;
    EXPECT_EQ(parsed.skipped_lines, 0u) << comment;
  }
}

TEST(ProguardMapTest, LinesThatAreNoPartOfTheFormatAreCountedAndLeftOut) {
  const ProguardMap parsed = Parse(
      "    int early -> a\n"
      "com.example.A -> a:\n"
      "    int x -> b\n"
      "    int y -> b\n"       // another name for the field
      "    int x -> b\n"       // the same again: fine
      "    nonsense\n"         // no arrow
      "    void f( -> c\n"     // no ')'
      "    void f():x -> c\n"  // no line
      "    f() -> c\n"         // no result
      "    int z -> \n"        // no name
      "what is this\n"
      "    int lost -> a\n"    // of no class
      "com.example.B -> a:\n"  // there already
      "    int lost -> a\n"
      "com.example.C -> c:\n"
      "    void g() -> d\n");
  EXPECT_EQ(parsed.skipped_lines, 11u);
  EXPECT_EQ(parsed.first_problem, "line 1: a member stands in front of its class");
  ASSERT_EQ(parsed.map.classes.size(), 2u);
  EXPECT_EQ(parsed.map.classes[0].fields.size(), 1u);
  EXPECT_TRUE(parsed.map.classes[0].methods.empty());
  EXPECT_EQ(parsed.map.classes[1].methods.size(), 1u);
}

TEST(ProguardMapTest, TextWithoutAClassIsAnError) {
  const Result<ProguardMap> map = ParseProguardMap("ELF\x7f\n", "x.txt", "");
  ASSERT_FALSE(map.ok());
  EXPECT_EQ(map.status().message(),
            "cannot read mapping file x.txt: it names no class: line 1: it is neither a "
            "class nor a member of one; give it the mapping.txt of ProGuard or R8");
}

TEST(ProguardMapTest, TheEnvironmentNamesPackagesAndFiles) {
  const Result<std::vector<ProguardSource>> sources =
      ParseProguardSources("com.a=x/a.txt:com.b=b.txt:all.txt");
  ASSERT_TRUE(sources.ok());
  ASSERT_EQ(sources.value().size(), 3u);
  EXPECT_EQ(sources.value()[0].package, "com.a");
  EXPECT_EQ(sources.value()[0].path, "x/a.txt");
  EXPECT_EQ(sources.value()[1].package, "com.b");
  EXPECT_EQ(sources.value()[2].package, "");
  EXPECT_EQ(sources.value()[2].path, "all.txt");
  EXPECT_EQ(ParseProguardSources("com.a=").status().message(),
            "cannot use PERFETTO_PROGUARD_MAP: \"com.a=\" names no file; its form is "
            "package=file[:package=file...]");
  EXPECT_TRUE(ParseProguardSources("").value().empty());
}

TEST(ProguardMapTest, AMissingFileIsAnErrorWithItsName) {
  const Result<ProguardMap> map = ReadProguardMap({"", "/nonexistent/map"});
  ASSERT_FALSE(map.ok());
  EXPECT_EQ(map.status().message(),
            "cannot open mapping file /nonexistent/map: No such file or directory");
}

class DeobfuscatorTest : public testing::Test {
 protected:
  DeobfuscatorTest() { deobfuscator_.Add(Parse(kMap).map); }

  Deobfuscator deobfuscator_;
};

TEST_F(DeobfuscatorTest, ALineTellsWhichMethodsWereInlined) {
  const Deobfuscator::Answer plain = deobfuscator_.FindMethod("com.example", "a.b.c", 2);
  EXPECT_EQ(plain.name, "com.example.Store.read");
  ASSERT_EQ(plain.inlined.size(), 1u);
  EXPECT_EQ(plain.inlined[0].line, 18u);
  const Deobfuscator::Answer inlined =
      deobfuscator_.FindMethod("com.example", "a.b.c", 4);
  EXPECT_EQ(inlined.name, "com.example.Store.read");
  ASSERT_EQ(inlined.inlined.size(), 2u);
  EXPECT_EQ(inlined.inlined[0].name, "com.example.Log.write");
  EXPECT_EQ(inlined.inlined[0].line, 50u);
  EXPECT_EQ(inlined.inlined[1].line, 20u);
}

TEST_F(DeobfuscatorTest, WithoutALineTheOutermostMethodOfAChainIsTheName) {
  EXPECT_EQ(deobfuscator_.FindMethod("com.example", "a.b.c", 0).name,
            "com.example.Store.read");
}

TEST_F(DeobfuscatorTest, OverloadsThatCannotBeToldApartAreAllNamed) {
  EXPECT_EQ(deobfuscator_.FindMethod("com.example", "a.b.d", 0).name,
            "com.example.Store.abort | com.example.Store.close");
}

TEST_F(DeobfuscatorTest, AMethodThatKeptItsNameGetsItsClass) {
  EXPECT_EQ(deobfuscator_.FindMethod("com.example", "a.c.run", 0).name,
            "com.example.Log.run");
}

TEST_F(DeobfuscatorTest, OtherPackagesAreNotTouched) {
  EXPECT_EQ(deobfuscator_.FindMethod("com.other", "a.b.c", 0).name, "");
  EXPECT_EQ(deobfuscator_.FindMethod("", "a.b.c", 0).name, "com.example.Store.read");
  EXPECT_EQ(deobfuscator_.FindMethod("", "x.y", 0).name, "");
  EXPECT_EQ(deobfuscator_.FindMethod("", "main", 0).name, "");
}

TEST_F(DeobfuscatorTest, ClassesAndFieldsHaveNamesToo) {
  EXPECT_EQ(deobfuscator_.FindClass("", "a.b"), "com.example.Store");
  EXPECT_EQ(deobfuscator_.FindClass("", "a.b[][]"), "com.example.Store[][]");
  EXPECT_EQ(deobfuscator_.FindClass("", "java.lang.Class<a.b>"),
            "java.lang.Class<com.example.Store>");
  EXPECT_EQ(deobfuscator_.FindClass("", "q"), "");
  EXPECT_EQ(deobfuscator_.FindField("", "a.b.a"), "com.example.Store.size");
}

}  // namespace
}  // namespace heapprofd
