#include "convert/convert_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "arch/decoder.h"
#include "convert/config_metadata.h"
#include "convert/model_folder.h"
#include "convert/tensor_plan.h"
#include "convert/tokenizer_json.h"
#include "edgerunner/error.h"
#include "gguf/writer.h"
#include "quantize/row_importance.h"
#include "tokenizer/load.h"

namespace edgerunner::convert {
namespace {

[[noreturn]] void refuse(const ModelFolder& folder, std::string_view what) {
  throw Error(ErrorCode::invalid_file, fmt::format("{}: {}", folder.path().string(), what));
}

const SourceTensor& embedding_of(const ModelFolder& folder) {
  constexpr std::string_view kName = "model.embed_tokens.weight";
  const SourceTensor* embedding = folder.find(kName);
  if (embedding == nullptr) refuse(folder, fmt::format("tensor '{}' is missing", kName));
  if (!embedding->type || embedding->shape.size() != 2) {
    refuse(folder, fmt::format("tensor '{}' is no matrix of F32, F16 or BF16", kName));
  }
  return *embedding;
}

// The rows of the embedding are there, so that lists of as many tokens are justified.
Dimensions read_dimensions(const ModelFolder& folder) {
  const Config config = folder.config();
  Dimensions dimensions = Dimensions::of(config);
  if (embedding_of(folder).shape[0] != dimensions.vocab) {
    config.refuse("vocab_size", fmt::format("is {}, but the embedding has {} rows",
                                            dimensions.vocab, embedding_of(folder).shape[0]));
  }
  const bool has_head = folder.find("lm_head.weight") != nullptr;
  dimensions.tied_head = config.find_bool("tie_word_embeddings").value_or(!has_head);
  if (!dimensions.tied_head && !has_head) refuse(folder, "tensor 'lm_head.weight' is missing");
  return dimensions;
}

void add_general(const ModelFolder& folder, const Family& family, const Recipe& recipe,
                 gguf::Writer& writer) {
  writer.set("general.architecture", std::string(family.architecture));
  writer.set("general.type", std::string("model"));
  const std::string name = std::filesystem::absolute(folder.path() / "").parent_path().filename();
  writer.set("general.name", name);
  writer.set("general.file_type", recipe.file_type);
  writer.set("general.quantization_version", kQuantizationVersion);
}

// A tensor's name, type and shape.
gguf::Tensor outline(const PlannedTensor& planned) {
  gguf::Tensor tensor{planned.name,
                      planned.natural,
                      static_cast<std::uint32_t>(planned.shape.size()),
                      {1, 1, 1, 1},
                      {}};
  std::copy(planned.shape.begin(), planned.shape.end(), tensor.shape.begin());
  return tensor;
}

// What EdgeRunner itself would refuse to run is refused here, naming the same thing.
void check(const std::filesystem::path& written) {
  const gguf::File file = gguf::File::open(written);
  static_cast<void>(read_decoder(file));
  static_cast<void>(load_tokenizer(file));
}

}  // namespace

QuantizeReport convert_folder(const std::filesystem::path& path, const std::filesystem::path& out,
                              const std::optional<Recipe>& wanted, const QuantizeOptions& options) {
  const ModelFolder folder(path);
  const Config config = folder.config();
  const Family& family = family_of(config);
  const Dimensions dimensions = read_dimensions(folder);
  const Recipe recipe =
      wanted ? *wanted : find_recipe(traits(*embedding_of(folder).type).name).value();

  gguf::Writer writer(out, {.version = 3, .max_shard_bytes = options.max_shard_bytes});
  add_general(folder, family, recipe, writer);
  MetadataKeys keys(writer, family.architecture);
  const auto factors = add_config_metadata(config, family, dimensions, keys);
  add_tokenizer(folder, dimensions.vocab, writer);

  const TypeChooser chooser(ModelOutline{.layers = dimensions.layers,
                                         .query_groups = dimensions.heads / dimensions.kv_heads,
                                         .experts = dimensions.experts,
                                         .tied_head = dimensions.tied_head},
                            recipe);
  QuantizeReport report;
  std::vector<std::pair<PlannedTensor, ElementType>> tensors;
  for (PlannedTensor& planned : plan_tensors(folder, family, dimensions, factors)) {
    const gguf::Tensor tensor = outline(planned);
    const ElementType type = chooser.choose(tensor);
    writer.declare(planned.name, type, planned.shape);
    report.elements += tensor.elements();
    report.bytes_in += row_bytes(planned.source.type, tensor.elements());
    report.bytes_out += row_bytes(type, tensor.elements());
    ++report.tensors[type];
    tensors.emplace_back(std::move(planned), type);
  }

  RowWriter rows(writer, options.threads);
  std::uint64_t done = 0;
  for (auto& [planned, type] : tensors) {
    if (options.progress) options.progress(planned.name, done, report.bytes_in);
    const auto importance = importance_of(outline(planned), recipe.fits(type), options.importance);
    weigh_rows(planned.source, importance);
    rows.write(planned.name, planned.source, type);
    done += row_bytes(planned.source.type, planned.source.rows * planned.source.cols);
  }
  writer.finish(check);
  return report;
}

}  // namespace edgerunner::convert
