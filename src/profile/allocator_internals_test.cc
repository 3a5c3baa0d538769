#include "profile/allocator_internals.h"

#include <gtest/gtest.h>

namespace heapprofd {
namespace {

TEST(AllocatorInternalsTest, ReturnTypesAndParametersDoNotMatter) {
  for (const char* name :
       {"std::vector<int>::push_back(int&&)",
        "void std::vector<int>::_M_realloc_insert<int>(int*, int&&)",
        "unsigned long* std::__copy<unsigned long*>(unsigned long*)", "malloc",
        "operator new(unsigned long)", "alloc::raw_vec::finish_grow", "zmalloc",
        "Perl_safesysmalloc", "_obstack_newchunk", "MemoryContextAllocZero", "palloc0",
        "os::malloc(unsigned long, MEMFLAGS)", "AllocateHeap(unsigned long, MEMFLAGS)"})
    EXPECT_TRUE(IsAllocatorInternal(name)) << name;
  for (const char* name :
       {"std::unique_ptr<Row> MakeRow<int>(int)", "cache::Insert(std::string const&)",
        "void* operator_table(std::string)", "(anonymous namespace)::Load(std::string)",
        "main", "", "AllocSetReset", "Perl_newSV", "Row::operator std::string() const"})
    EXPECT_FALSE(IsAllocatorInternal(name)) << name;
}

}  // namespace
}  // namespace heapprofd
