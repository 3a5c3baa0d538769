#include "symbolize/demangle.h"

#include <gtest/gtest.h>

#include <string>

namespace heapprofd {
namespace {

TEST(DemangleTest, NamesOfEachLanguageBecomeReadable) {
  EXPECT_EQ(Demangle("_ZNSt6vectorIiSaIiEE9push_backEOi"),
            "std::vector<int, std::allocator<int> >::push_back(int&&)");
  EXPECT_EQ(Demangle("_ZZ4mainENKUlvE_clEv"), "main::{lambda()#1}::operator()() const");
  EXPECT_EQ(Demangle("_ZN5alloc3vec12Vec$LT$T$GT$4push17h0123456789abcdefE"),
            "alloc::vec::Vec<T>::push");
  EXPECT_EQ(Demangle("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
  EXPECT_EQ(Demangle("_D3std5stdio7writelnFZv"), "std.stdio.writeln()");
}

TEST(DemangleTest, ClonesOfAFunctionAreTold) {
  EXPECT_EQ(Demangle("_Z3foov.cold"), "foo() [clone .cold]");
  EXPECT_EQ(Demangle("_GLOBAL__sub_I_main"), "_GLOBAL__sub_I_main");
}

TEST(DemangleTest, OtherNamesStayAsTheyAre) {
  EXPECT_EQ(Demangle("malloc"), "malloc");
  EXPECT_EQ(Demangle("i"), "i");  // would be "int" as a type
  EXPECT_EQ(Demangle("_Zebra"), "_Zebra");
  EXPECT_EQ(Demangle("_Ready"), "_Ready");
  EXPECT_EQ(Demangle("_Draw"), "_Draw");
  EXPECT_EQ(Demangle("_RC0"), "_RC0");  // stands for an empty text
  EXPECT_EQ(Demangle(""), "");
}

// f(A, B, C, ...) with A = pair<int, int>, B = pair<A, A>, C = pair<B, B>: doubles with
// each parameter.
TEST(DemangleTest, NamesThatStandForEndlessTextStayMangled) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name = "_Z1f4pairIiiE";
  for (const char last : kDigits)
    name += std::string("S_IS") + last + "_S" + last + "_E";
  EXPECT_EQ(Demangle(name), name);
  EXPECT_EQ(Demangle(name.substr(0, 13 + 10)),
            "f(pair<int, int>, pair<pair<int, int>, pair<int, int> >)");
}

TEST(DemangleTest, DeeplyNestedAndOverlongNamesStayMangled) {
  const std::string deep = "_Z1f" + std::string(100'000, 'P') + "i";
  EXPECT_EQ(Demangle(deep), deep);
  const std::string rust = "_RNv" + std::string(4000, 'B') + "_";
  EXPECT_EQ(Demangle(rust), rust);
  const std::string d = "_D" + std::string(100'000, '1');
  EXPECT_EQ(Demangle(d), d);
}

TEST(ShortNameTest, ParametersAndReturnTypeAreLeftOut) {
  EXPECT_EQ(ShortName("_ZNSt6vectorIiSaIiEE9push_backEOi"),
            "std::vector<int, std::allocator<int> >::push_back");
  EXPECT_EQ(ShortName("_Z3maxIiET_S0_S0_"), "max<int>");
  EXPECT_EQ(ShortName("_ZN5alloc3vec12Vec$LT$T$GT$4push17h0123456789abcdefE"),
            "alloc::vec::Vec<T>::push");
  EXPECT_EQ(ShortName("malloc"), "malloc");
}

TEST(ShortNameTest, TemplateArgumentsOfVeryLongNamesAreLeftOut) {
  EXPECT_EQ(
      ShortName(
          "_ZNSt8_Rb_treeINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES5_St9_"
          "IdentityIS5_ESt4lessIS5_ESaIS5_EE8_M_eraseEPSt13_Rb_tree_nodeIS5_E"),
      "std::_Rb_tree<...>::_M_erase");
}

TEST(ShortNameTest, OperatorsAreNotTakenForTemplateBrackets) {
  EXPECT_EQ(ShortName("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc"),
            "std::operator<< <std::char_traits<char> >");
  EXPECT_EQ(
      ShortName(
          "_ZN1aIN1bINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEENS2_12basic_"
          "stringIcS4_S5_EEEEEltERKS8_"),
      "a<...>::operator<");
}

}  // namespace
}  // namespace heapprofd
