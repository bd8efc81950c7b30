// Memory taken for a file grows with the bytes that are there, not with what they claim, and in few
// pieces. A program of its own, because it replaces the allocator.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "edgerunner/error.h"
#include "gguf/file.h"
#include "support/file_builder.h"
#include "support/mutate.h"
#include "support/shared_data.h"

namespace {

std::atomic<std::size_t> largest_allocation = 0;
std::atomic<std::size_t> allocations = 0;

void* allocate(std::size_t size) {
  ++allocations;
  std::size_t seen = largest_allocation.load();
  while (seen < size && !largest_allocation.compare_exchange_weak(seen, size)) {
  }
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return allocate(size); }
void* operator new[](std::size_t size) { return allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace edgerunner {
namespace {

using gguf::File;
using gguf::ValueType;
using test::FileBuilder;

// The least key takes 14 bytes of a file and 88 of memory, in a vector that doubles; messages and
// names take some hundred bytes.
constexpr std::size_t kBytesPerFileByte = 13;
constexpr std::size_t kBytesApart = 4096;

std::size_t largest_while_opening(const std::vector<std::byte>& bytes) {
  largest_allocation = 0;
  try {
    File::view(bytes);
  } catch (const Error&) {  // whether it opens is the other tests' business
  }
  return largest_allocation;
}

void expect_justified(const std::vector<std::byte>& bytes, const char* what) {
  EXPECT_LE(largest_while_opening(bytes), bytes.size() * kBytesPerFileByte + kBytesApart) << what;
}

TEST(Allocation, IsBoundedByTheFileWhateverItClaims) {
  for (const std::uint64_t count : {1000ULL, 70000ULL, 1ULL << 31, 1ULL << 48, ~0ULL}) {
    const std::string zeros(1 << 20, '\0');
    expect_justified(FileBuilder().header(count, 0).raw(zeros).bytes(), "tensors");
    expect_justified(FileBuilder().header(0, count).raw(zeros).bytes(), "keys");
    expect_justified(FileBuilder().header(0, 1).u64(count).raw(zeros).bytes(), "length of a key");
    for (const ValueType type : {ValueType::string, ValueType::u8, ValueType::f64}) {
      expect_justified(FileBuilder().header(0, 1).array("k", type, count).raw(zeros).bytes(),
                       "array");
    }
  }
}

TEST(Allocation, IsBoundedByTheFileForManyEntries) {
  constexpr int kEntries = 5000;
  FileBuilder keys;
  FileBuilder tensors;
  keys.header(0, kEntries);
  tensors.header(kEntries, 0);
  for (int i = 0; i < kEntries; ++i) {
    const std::string name = std::to_string(i);
    keys.key(name, ValueType::boolean).raw("\1");
    tensors.tensor(name, {1}, 24, static_cast<std::uint64_t>(i) * 32);
  }
  tensors.pad().data(kEntries * 32);
  EXPECT_EQ(File::view(keys.bytes()).metadata().size(), kEntries);
  EXPECT_EQ(File::view(tensors.bytes()).tensors().size(), kEntries);
  expect_justified(keys.bytes(), "many keys");
  expect_justified(tensors.bytes(), "many tensors");
}

// What makes opening fast, counted: nothing is taken for a string of an array.
TEST(Allocation, IsByTheKeyForALargeVocabulary) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const std::filesystem::path path = test::shared_dir() / "tokenizers" / "gemma3" / "vocab.gguf";
  const std::size_t before = allocations;
  const File file = File::open(path);
  const std::size_t count = allocations - before;
  EXPECT_GT(file.get_strings("tokenizer.ggml.tokens")->size(), 260000U);
  EXPECT_LE(count, 10 * file.metadata().size() + 100);
}

TEST(Allocation, IsBoundedByTheFileForMutatedFiles) {
  FileBuilder builder;
  builder.header(1, 3).text_key("general.architecture", "llama");
  builder.array("words", ValueType::string, 2).string("one").string("two");
  builder.array("numbers", ValueType::u32, 2).u32(1).u32(2).tensor("t", {32}, 8, 0).pad();
  const std::size_t header = builder.size();
  builder.data(34);
  test::MutationRandom random(20260103);
  for (int i = 0; i < 5000; ++i) {
    const std::vector<std::byte> bytes = test::mutate(builder.bytes(), header, random);
    expect_justified(bytes, "mutated");
  }
}

}  // namespace
}  // namespace edgerunner
