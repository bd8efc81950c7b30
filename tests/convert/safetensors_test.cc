#include "convert/safetensors.h"

#include <gmock/gmock.h>

#include <cstring>
#include <fstream>

#include "support/expect_error.h"
#include "support/temporary_folder.h"

namespace edgerunner::convert {
namespace {

class SafetensorsFile : public ::testing::Test {
 protected:
  // A file with that header and `data` bytes after it.
  void write(const std::string& header, std::size_t data = 64) {
    write(header, header.size(), data);
  }
  void write(const std::string& header, std::uint64_t claimed, std::size_t data) {
    std::ofstream out(path_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&claimed), sizeof(claimed));
    out << header << std::string(data, '\1');
  }
  void expect_refused(const std::string& part, ErrorCode code = ErrorCode::invalid_file) {
    test::expect_error(code, part, [&] { const Safetensors file(path_); });
  }
  // One tensor "w" of that description.
  void expect_refused_tensor(const std::string& description, const std::string& part,
                             ErrorCode code = ErrorCode::invalid_file) {
    SCOPED_TRACE(description);
    write("{\"w\":{" + description + "}}");
    expect_refused(part, code);
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "model.safetensors";
};

TEST_F(SafetensorsFile, GivesEachTensorItsBytes) {
  write(R"({"__metadata__":{"format":"pt"},
            "a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},
            "b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},
            "c":{"dtype":"I64","shape":[],"data_offsets":[32,40]}})");
  const Safetensors file(path_);
  ASSERT_EQ(file.tensors().size(), 3U);
  EXPECT_EQ(file.tensors()[0].name, "a");
  EXPECT_EQ(file.tensors()[0].type, ElementType::f32);
  EXPECT_THAT(file.tensors()[0].shape, ::testing::ElementsAre(2, 3));
  EXPECT_EQ(file.tensors()[1].data.data(), file.tensors()[0].data.data() + 24);
  EXPECT_FALSE(file.tensors()[2].type);
}

TEST_F(SafetensorsFile, RefusesAHeaderThatTheFileCannotHold) {
  write("{}", std::uint64_t{1} << 63, 0);
  expect_refused("header");
  write("{}", 100'000'001, 0);
  expect_refused("header");
  write("{}", 3, 0);
  expect_refused("header");
  std::ofstream(path_, std::ios::binary) << "1234567";
  expect_refused("too short");
}

TEST_F(SafetensorsFile, RefusesAHeaderThatIsNoObject) {
  for (const char* header : {"", "[]", "{", "{\"a\":}", "\"a\"", "\xFF"}) {
    write(header);
    expect_refused("header");
  }
}

TEST_F(SafetensorsFile, RefusesPlacesOutsideTheData) {
  const std::string head = R"("dtype":"F32","shape":[2],"data_offsets":)";
  for (const char* place : {"[60,68]", "[8,0]", "[0,8,16]", "[0]", "[-8,0]", "8", "[0.5,8]",
                            "[18446744073709551608,18446744073709551615]"}) {
    expect_refused_tensor(head + place, "'w'");
  }
}

TEST_F(SafetensorsFile, RefusesShapesThatAreNotThoseOfTheBytes) {
  for (const char* shape : {"[3]", "[4294967296,4294967296]", "[9223372036854775808,2]", "[-1]",
                            "[0]", "[[2]]", "2", "[18446744073709551615]"}) {
    expect_refused_tensor(std::string(R"("dtype":"F32","data_offsets":[0,8],"shape":)") + shape,
                          "'w'");
  }
}

TEST_F(SafetensorsFile, RefusesUnknownTypesByName) {
  expect_refused_tensor(R"("dtype":"Q9","shape":[2],"data_offsets":[0,8])", "Q9",
                        ErrorCode::unsupported);
  expect_refused_tensor(R"("dtype":7,"shape":[2],"data_offsets":[0,8])", "dtype");
  expect_refused_tensor(R"("shape":[2],"data_offsets":[0,8])", "dtype");
}

TEST_F(SafetensorsFile, RefusesTensorsThatShareBytesOrNames) {
  write(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
            "b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})");
  expect_refused("shares bytes");
  write(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
            "a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})");
  expect_refused("twice");
}

}  // namespace
}  // namespace edgerunner::convert
