// Writes the seed corpora of the fuzz targets: make_fuzz_corpus FOLDER.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "gguf/writer.h"
#include "tiny_models.h"

namespace {

using edgerunner::ElementType;
using edgerunner::gguf::Writer;
using edgerunner::gguf::WriterOptions;
using Shape = std::vector<std::uint64_t>;

void add_scalars(Writer& writer) {
  writer.set("u8", std::uint8_t{200});
  writer.set("i8", std::int8_t{-100});
  writer.set("u16", std::uint16_t{60000});
  writer.set("i16", std::int16_t{-30000});
  writer.set("u32", std::uint32_t{4000000000});
  writer.set("i32", std::int32_t{-2000000000});
  writer.set("u64", std::uint64_t{1} << 63);
  writer.set("i64", std::int64_t{-1} << 62);
  writer.set("f32", 0.1F);
  writer.set("f64", 0.1);
  writer.set("bool", true);
  writer.set("string", std::string("text"));
}

void add_arrays(Writer& writer) {
  writer.set("u8s", std::vector<std::uint8_t>{1, 2});
  writer.set("i16s", std::vector<std::int16_t>{-1, 2});
  writer.set("u32s", std::vector<std::uint32_t>{1, 2});
  writer.set("i64s", std::vector<std::int64_t>{-1, 2});
  writer.set("f32s", std::vector<float>{0.5F, -2});
  writer.set("f64s", std::vector<double>{0.5, -2});
  writer.set("bools", std::vector<bool>{true, false});
  writer.set("strings", std::vector<std::string>{"x", "", "yz"});
  writer.set("none", std::vector<std::uint32_t>{});
}

struct Seed {
  std::string name;
  ElementType type;
  Shape shape;
};

void add_tensors(Writer& writer, const std::vector<Seed>& tensors) {
  for (const Seed& tensor : tensors) writer.declare(tensor.name, tensor.type, tensor.shape);
  for (const Seed& tensor : tensors) {
    std::uint64_t elements = 1;
    for (const std::uint64_t dimension : tensor.shape) elements *= dimension;
    writer.write(tensor.name, std::vector<std::byte>(edgerunner::row_bytes(tensor.type, elements)));
  }
}

void write_gguf_corpus(const std::filesystem::path& folder) {
  const auto write = [&](const char* name, WriterOptions options, auto fill) {
    Writer writer(folder / name, options);
    fill(writer);
    writer.finish();
  };
  write("nothing.gguf", {}, [](Writer&) {});
  write("version-2.gguf", {.version = 2}, add_scalars);
  write("scalars.gguf", {}, add_scalars);
  write("arrays.gguf", {}, add_arrays);
  write("ranks.gguf", {}, [](Writer& writer) {
    writer.set("general.architecture", std::string("llama"));
    add_tensors(writer, {{"one", ElementType::f32, {3}},
                         {"two", ElementType::f16, {3, 2}},
                         {"three", ElementType::bf16, {3, 1, 2}},
                         {"four", ElementType::i8, {1, 2, 1, 2}}});
  });
  write("blocks.gguf", {}, [](Writer& writer) {
    add_tensors(writer, {{"q4_0", ElementType::q4_0, {32}},
                         {"q8_0", ElementType::q8_0, {32, 2}},
                         {"q4_k", ElementType::q4_k, {256}},
                         {"mxfp4", ElementType::mxfp4, {32}}});
  });
  write("aligned.gguf", {.version = 2}, [](Writer& writer) {
    writer.set("general.alignment", std::uint32_t{8});
    add_arrays(writer);
    add_tensors(writer, {{"a", ElementType::f32, {1}}, {"b", ElementType::f32, {1}}});
  });
  write("split.gguf", {.max_shard_bytes = 32}, [](Writer& writer) {
    add_tensors(writer, {{"a", ElementType::f32, {8}}, {"b", ElementType::f32, {8}}});
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    for (const char* corpus : {"gguf", "model", "lora"}) {
      std::filesystem::create_directories(folder / corpus);
    }
    write_gguf_corpus(folder / "gguf");
    edgerunner::fuzz::write_tiny_models(folder / "model");
    edgerunner::fuzz::write_tiny_adapters(folder / "lora");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
