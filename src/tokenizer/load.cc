#include "tokenizer/load.h"

#include <fmt/format.h>

#include "edgerunner/error.h"
#include "tokenizer/byte_bpe.h"
#include "tokenizer/sentencepiece.h"
#include "tokenizer/unigram.h"
#include "tokenizer/wordpiece.h"

namespace edgerunner {

std::unique_ptr<Tokenizer> load_tokenizer(const gguf::File& file) {
  constexpr std::string_view kModel = "tokenizer.ggml.model";
  const auto model = file.get_string(kModel);
  if (!model || *model == "no_vocab" || *model == "none") {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("{}: the file has no tokenizer ({} is {}); hand over token ids instead",
                    file.name(), kModel, model ? fmt::format("\"{}\"", *model) : "missing"));
  }
  if (*model == "gpt2") return ByteBpeTokenizer::load(file);
  if (*model == "llama") return SentencePieceTokenizer::load(file);
  if (*model == "t5") return UnigramTokenizer::load(file);
  if (*model == "bert") return WordPieceTokenizer::load(file);
  throw Error(ErrorCode::unsupported,
              fmt::format("{}: the tokenizer model \"{}\" ({}) is not supported", file.name(),
                          *model, kModel));
}

}  // namespace edgerunner
