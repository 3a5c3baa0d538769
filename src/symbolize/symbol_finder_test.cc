#include "symbolize/symbol_finder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "symbolize/test_programs.h"

namespace heapprofd {
namespace {

namespace fs = std::filesystem;

constexpr char kPath[] = "/system/lib/base.apk!foo.so";

class SymbolFinderTest : public testing::Test {
 protected:
  SymbolFinderTest()
      : root_(fs::path(testing::TempDir()) /
              ("finder_" + std::to_string(getpid()) + "_" +
               testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::create_directories(root_);
  }

  ~SymbolFinderTest() override { fs::remove_all(root_); }

  std::string Put(const TestProgram& program, const std::string& place) {
    const fs::path path = root_ / place;
    fs::create_directories(path.parent_path());
    fs::copy_file(program.path, path, fs::copy_options::overwrite_existing);
    return path.string();
  }

  std::string Find(LookupMode mode, WantedSymbols wanted = WantedSymbols::kAny) {
    SymbolFinder finder({(root_ / "empty").string(), root_.string()}, mode,
                        DiskCache((root_ / "cache").string()));
    rejected_.clear();
    const auto found = finder.Find(kPath, shapes_.build_id, wanted, &rejected_);
    return found ? fs::relative(found->path, root_).string() : "";
  }

  fs::path root_;
  const TestProgram shapes_{"shapes"};
  const TestProgram other_{"shapes_dwarf4"};
  std::vector<RejectedFile> rejected_;
};

TEST_F(SymbolFinderTest, TheFivePlacesAreTriedInTheirOrder) {
  const std::string id = HexEncode(shapes_.build_id);
  const std::vector<std::string> places = {
      "system/lib/base.apk!foo.so", "system/lib/foo.so", "base.apk!foo.so", "foo.so",
      ".build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug"};
  for (size_t i = places.size(); i-- > 0;) {
    Put(shapes_, places[i]);
    EXPECT_EQ(Find(LookupMode::kFind), places[i]);
  }
}

TEST_F(SymbolFinderTest, NamesOfATraceStayBelowTheRoot) {
  EXPECT_EQ(PlacesBelow("/s", "/lib/../../etc/shadow", "").size(), 0u);
  EXPECT_EQ(PlacesBelow("/s", "lib/..", "").size(), 0u);
  EXPECT_EQ(PlacesBelow("/s", "../x", "").size(), 0u);
  EXPECT_EQ(PlacesBelow("/s", "/lib..x/..y", "").front(), "/s/lib..x/..y");
}

TEST_F(SymbolFinderTest, NothingButARegularFileIsOpened) {
  fs::create_directories(root_ / "system/lib");
  ASSERT_EQ(mkfifo((root_ / "system/lib/foo.so").c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", root_ / "foo.so");
  EXPECT_EQ(Find(LookupMode::kFind), "");
  EXPECT_TRUE(rejected_.empty()) << rejected_[0].path;
}

TEST_F(SymbolFinderTest, AFileWithAnotherBuildIdIsNeverTaken) {
  Put(other_, "system/lib/foo.so");
  std::ofstream(root_ / "foo.so") << "no ELF file";
  EXPECT_EQ(Find(LookupMode::kFindThenIndex), "");
  ASSERT_EQ(rejected_.size(), 2u);
  EXPECT_EQ(rejected_[0].reason, RejectedFile::Reason::kBuildIdMismatch);
  EXPECT_EQ(rejected_[0].build_id, other_.build_id);
  EXPECT_EQ(rejected_[1].reason, RejectedFile::Reason::kNotElf);
}

TEST_F(SymbolFinderTest, FilesWithoutDebugInformationAreNotTakenForIt) {
  Put(TestProgram("separate/shapes_by_id"), "foo.so");
  EXPECT_EQ(Find(LookupMode::kFind, WantedSymbols::kAny), "foo.so");
  EXPECT_EQ(Find(LookupMode::kFind, WantedSymbols::kDebugInfo), "");
  Put(shapes_, "anywhere/else");
  EXPECT_EQ(Find(LookupMode::kFindThenIndex, WantedSymbols::kDebugInfo), "anywhere/else");
}

TEST_F(SymbolFinderTest, TheIndexFindsAnyNameBelowTheRootByBuildId) {
  Put(other_, "system/lib/foo.so");
  Put(shapes_, "deep/down/renamed.bin");
  EXPECT_EQ(Find(LookupMode::kIndex), "deep/down/renamed.bin");
  EXPECT_EQ(Find(LookupMode::kFindThenIndex), "deep/down/renamed.bin");
  EXPECT_EQ(Find(LookupMode::kFind), "");
}

TEST_F(SymbolFinderTest, TheIndexPrefersDebugInformation) {
  Put(TestProgram("separate/shapes_by_id"), "a/stripped");
  Put(shapes_, "b/full");
  EXPECT_EQ(Find(LookupMode::kIndex), "b/full");
}

TEST_F(SymbolFinderTest, DirectoriesThatLeadInCirclesAreIndexedOnce) {
  Put(shapes_, "a/file");
  fs::create_directory_symlink(root_, root_ / "a/up");
  EXPECT_EQ(Find(LookupMode::kIndex), "a/file");
}

TEST_F(SymbolFinderTest, ASecondIndexOpensChangedFilesOnly) {
  const std::string tree = (root_ / "tree").string();
  Put(shapes_, "tree/one");
  Put(other_, "tree/two");
  const DiskCache cache((root_ / "cache").string());
  const BuildIdIndex first({tree}, cache);
  EXPECT_EQ(first.opened_files(), 2u);
  EXPECT_EQ(BuildIdIndex({tree}, cache).opened_files(), 0u);
  EXPECT_EQ(BuildIdIndex({tree}, cache).Find(shapes_.build_id),
            std::vector<std::string>{fs::canonical(tree) / "one"});
  fs::remove(root_ / "tree/one");
  Put(other_, "tree/one");
  const BuildIdIndex second({tree}, cache);
  EXPECT_EQ(second.opened_files(), 1u);
  EXPECT_TRUE(second.Find(shapes_.build_id).empty());
  EXPECT_EQ(second.Find(other_.build_id).size(), 2u);
}

}  // namespace
}  // namespace heapprofd
