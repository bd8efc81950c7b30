#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace edgerunner {
namespace {

// The expressions are those of the models' published tokenizer.json files; docs/tokenizers.md names
// the sources.

// Hugging Face's ByteLevel, from GPT-2's encoder.py.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Hugging Face's Digits with individual_digits: numeric characters as Rust knows them, of
// Unicode 17.
constexpr std::string_view kDigit = R"([\p{N}\x{11DE0}-\x{11DE9}\x{16FF4}-\x{16FF6}])";

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kLineBreak = R"([\r\n])";

// DeepSeek LLM spells out the cased letters of the Unicode version that it was made with.
constexpr std::string_view kDeepSeekLetters =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293})"
    R"(\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A})"
    R"(\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})"
    R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF})"
    R"(\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77}\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D})"
    R"(\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"
    R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4})"
    R"(\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB}\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4})"
    R"(\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126})"
    R"(\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E})"
    R"(\x{2183}\x{2184}\x{2C00}-\x{2C7B}\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3})"
    R"(\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-\x{A78E})"
    R"(\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A})"
    R"(\x{10400}-\x{1044F}\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2})"
    R"(\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";
constexpr std::string_view kDeepSeekPunctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr std::string_view kDeepSeekScripts =
    R"([\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";

constexpr std::string_view kDeepSeekV3Scripts =
    R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
constexpr std::string_view kDeepSeekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
    R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// A stage for each line; a pre-tokenizer has at most this many.
constexpr std::size_t kMaxStages = 6;
using Stages = std::array<std::string_view, kMaxStages>;

constexpr Stages kGpt2Stages = {kGpt2};
constexpr Stages kDigitStages = {kDigit, kGpt2};
constexpr Stages kLlama3Stages = {kLlama3};
constexpr Stages kQwen2Stages = {kQwen2};
constexpr Stages kTekkenStages = {kTekken};
constexpr Stages kDeepSeekLlmStages = {kLineBreak, kDeepSeekLetters, kDeepSeekPunctuation,
                                       R"(\s+$)",  kDeepSeekScripts, kDigit};
constexpr Stages kDeepSeekCoderStages = {kLineBreak, R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                         kDeepSeekScripts, kDigit};
constexpr Stages kDeepSeekV3Stages = {R"(\p{N}{1,3})", kDeepSeekV3Scripts, kDeepSeekV3};
// What llama.cpp does for files that name no pre-tokenizer, Falcon's among them: Punctuation,
// ByteLevel, and digits in groups of three.
constexpr Stages kDefaultStages = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)",
                                   R"([0-9][0-9][0-9])"};

struct Entry {
  std::string_view name;
  const Stages* stages;
  bool normalizes = false;
  bool ignores_merges = false;
  bool adds_bos = false;
};

constexpr Entry kEntries[] = {
    {"default", &kDefaultStages},
    {"gpt-2", &kGpt2Stages},
    {"smollm", &kDigitStages},
    {"starcoder", &kDigitStages},
    {"llama-bpe", &kLlama3Stages, false, true, true},
    {"llama3", &kLlama3Stages, false, true, true},
    {"llama-v3", &kLlama3Stages, false, true, true},
    {"dbrx", &kLlama3Stages},
    {"qwen2", &kQwen2Stages, true},
    {"tekken", &kTekkenStages, false, true, true},
    {"deepseek-llm", &kDeepSeekLlmStages},
    {"deepseek-coder", &kDeepSeekCoderStages},
    {"deepseek-v3", &kDeepSeekV3Stages},
};

}  // namespace

std::optional<PreTokenizer> PreTokenizer::named(std::string_view name) {
  const auto entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                                  [&](const Entry& candidate) { return candidate.name == name; });
  if (entry == std::end(kEntries)) return std::nullopt;
  PreTokenizer result;
  for (const std::string_view stage : *entry->stages) {
    if (!stage.empty()) result.stages_.emplace_back(stage);
  }
  result.normalizes_ = entry->normalizes;
  result.ignores_merges_ = entry->ignores_merges;
  result.adds_bos_ = entry->adds_bos;
  return result;
}

void PreTokenizer::split(std::string_view text, Scratch& scratch) const {
  auto& pieces = scratch.pieces;
  auto& next = scratch.next;
  pieces.assign(1, {0, text.size()});
  for (const Expression& stage : stages_) {
    next.clear();
    for (const Expression::Range piece : pieces) {
      // An expression sees its piece alone: a lookahead ends at the piece's end.
      const std::string_view subject = text.substr(piece.begin, piece.end - piece.begin);
      std::size_t at = 0;
      while (at < subject.size()) {
        const Expression::Range match = stage.find(scratch.matcher, subject, at);
        if (match.begin > at) next.push_back({piece.begin + at, piece.begin + match.begin});
        if (match.end > match.begin) {
          next.push_back({piece.begin + match.begin, piece.begin + match.end});
        }
        at = match.end;
      }
    }
    std::swap(pieces, next);
  }
}

std::optional<std::string_view> pre_tokenizer_name(const PublishedStages& published) {
  const auto same = [](std::string_view stage, std::string_view name) {
    if (name == "Digits") return stage == kDigit;
    return stage == (name == "ByteLevel" ? kGpt2 : name);
  };
  for (const Entry& entry : kEntries) {
    const std::span<const std::string_view> stages(*entry.stages);
    const auto end = std::find(stages.begin(), stages.end(), std::string_view());
    if (entry.normalizes == published.normalizes &&
        entry.ignores_merges == published.ignores_merges &&
        std::equal(stages.begin(), end, published.stages.begin(), published.stages.end(), same)) {
      return entry.name;
    }
  }
  return std::nullopt;
}

}  // namespace edgerunner
