#include "convert/tokenizer_json.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "hugging_face_folder.h"
#include "support/expect_error.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"
#include "tokenizer/load.h"

// Real vocabularies as the tokenizer.json that Hugging Face's library reads, converted, against the
// ids that it gives.

namespace edgerunner::convert {
namespace {

using nlohmann::json;

// The steps of the models' published tokenizer.json.
json split(const std::string& expression) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", expression}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}
json byte_level(bool use_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", use_regex}};
}
json sequence(const json& steps) { return {{"type", "Sequence"}, {"pretokenizers", steps}}; }

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

class TokenizerJson : public ::testing::Test {
 protected:
  void convert(const json& tokenizer, const json& settings, std::uint32_t vocab) {
    test::write_text(folder_ / "config.json", "{}");
    test::write_text(folder_ / "tokenizer.json", tokenizer.dump());
    test::write_text(folder_ / "tokenizer_config.json", settings.dump());
    test::write_safetensors(folder_ / "model.safetensors", {});
    const ModelFolder folder(folder_.path());
    gguf::Writer writer(out_);
    writer.set("general.architecture", std::string("llama"));
    add_tokenizer(folder, vocab, writer);
    writer.finish();
  }

  void expect_reference_ids(const std::string& name, const json& tokenizer,
                            const gguf::File& vocabulary) {
    std::ifstream stream(test::shared_dir() / "tokenizers" / name / "cases.json");
    const json cases = json::parse(stream);
    const auto tokens = vocabulary.get_strings("tokenizer.ggml.tokens").value();
    json settings = {{"add_bos_token", cases["add_bos"]}};
    if (const auto bos = vocabulary.get_uint("tokenizer.ggml.bos_token_id")) {
      settings["bos_token"] = {{"content", std::string(tokens[*bos])}};
    }
    convert(tokenizer, settings, static_cast<std::uint32_t>(tokens.size()));
    const gguf::File file = gguf::File::open(out_);
    const auto converted = load_tokenizer(file);
    EXPECT_EQ(converted->adds_bos(), cases["add_bos"].get<bool>());
    for (const auto& test_case : cases["cases"]) {
      const EncodeOptions options{.add_special = test_case["add_special"].get<bool>(),
                                  .parse_special = test_case["parse_special"].get<bool>()};
      EXPECT_EQ(converted->encode(test_case["text"].get<std::string>(), options),
                test_case["ids"].get<std::vector<TokenId>>())
          << test_case["name"];
    }
  }

  static gguf::File vocabulary(const std::string& name) {
    return gguf::File::open(test::shared_dir() / "tokenizers" / name / "vocab.gguf");
  }

  test::TemporaryFolder folder_;
  std::filesystem::path out_ = folder_ / "out.gguf";
};

TEST_F(TokenizerJson, SentencePieceVocabulariesGiveTheReferencesIds) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  for (const std::string name : {"llama2", "mistral-v3"}) {
    SCOPED_TRACE(name);
    const gguf::File file = vocabulary(name);
    expect_reference_ids(name, test::sentencepiece_json(file), file);
  }
}

TEST_F(TokenizerJson, ByteLevelVocabulariesGiveTheReferencesIds) {
  EDGERUNNER_REQUIRE_SHARED_DATA();
  const gguf::File gpt2 = vocabulary("gpt2");
  expect_reference_ids("gpt2", test::byte_level_json(gpt2, nullptr, byte_level(true)), gpt2);
  const gguf::File qwen = vocabulary("qwen3");
  expect_reference_ids(
      "qwen3",
      test::byte_level_json(qwen, {{"type", "NFC"}}, sequence({split(kQwen2), byte_level(false)})),
      qwen);
  const gguf::File llama = vocabulary("llama3.1");
  json tokenizer =
      test::byte_level_json(llama, nullptr, sequence({split(kLlama3), byte_level(false)}));
  tokenizer["model"]["ignore_merges"] = true;
  expect_reference_ids("llama3.1", tokenizer, llama);
}

// A vocabulary of a few tokens.
json tiny() {
  return {{"added_tokens", {{{"id", 3}, {"content", "<end>"}, {"special", true}}}},
          {"pre_tokenizer", byte_level(true)},
          {"model",
           {{"type", "BPE"},
            {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}},
            {"merges", json::array({"a b"})}}}};
}

TEST_F(TokenizerJson, KeepsTemplatesSpecialTokensAndPadding) {
  const json settings = {{"eos_token", "<end>"},
                         {"chat_template",
                          {{{"name", "default"}, {"template", "{{ 1 }}"}},
                           {{"name", "tool"}, {"template", "{{ 2 }}"}}}}};
  convert(tiny(), settings, 6);
  const gguf::File file = gguf::File::open(out_);
  EXPECT_EQ(file.get_string("tokenizer.chat_template"), "{{ 1 }}");
  EXPECT_EQ(file.get_string("tokenizer.chat_template.tool"), "{{ 2 }}");
  EXPECT_EQ(file.get_uint("tokenizer.ggml.eos_token_id"), 3U);
  EXPECT_EQ(file.get_strings("tokenizer.ggml.tokens")->size(), 6U);
  EXPECT_THAT(file.get_ints("tokenizer.ggml.token_type").value(),
              ::testing::ElementsAre(1, 1, 1, 3, 5, 5));
  const auto tokenizer = load_tokenizer(file);
  EXPECT_THAT(tokenizer->encode("abb", {}), ::testing::ElementsAre(2, 1));
}

TEST_F(TokenizerJson, RefusesWhatGgufHasNoNameFor) {
  const auto refused = [&](const json& tokenizer, const std::string& part,
                           ErrorCode code = ErrorCode::unsupported) {
    test::expect_error(code, part, [&] { convert(tokenizer, json::object(), 6); });
  };
  json tokenizer = tiny();
  tokenizer["model"]["type"] = "WordPiece";
  refused(tokenizer, "WordPiece");
  tokenizer = tiny();
  tokenizer["pre_tokenizer"] = sequence({split("x+"), byte_level(false)});
  refused(tokenizer, "x+");
  tokenizer = tiny();
  tokenizer["normalizer"] = {{"type", "Lowercase"}};
  refused(tokenizer, "Lowercase");
  tokenizer = tiny();
  tokenizer["model"]["vocab"]["c"] = 9;
  refused(tokenizer, "'c'", ErrorCode::invalid_file);
  tokenizer = tiny();
  tokenizer["model"]["vocab"]["c"] = 1;
  refused(tokenizer, "the same id 1", ErrorCode::invalid_file);
  tokenizer = tiny();
  tokenizer["model"]["merges"] = {"a"};
  refused(tokenizer, "merges", ErrorCode::invalid_file);
}

}  // namespace
}  // namespace edgerunner::convert
