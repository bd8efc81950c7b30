#include "quantize/quantize_file.h"

#include <fmt/format.h>

#include <vector>

#include "edgerunner/error.h"
#include "gguf/writer.h"
#include "quantize/row_importance.h"
#include "quantize/row_writer.h"

namespace edgerunner {
namespace {

void require_another_file(const gguf::File& model, const std::filesystem::path& out) {
  std::error_code ignored;
  if (!std::filesystem::equivalent(model.name(), out, ignored)) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("'{}' is the model itself; choose another name for the quantised file",
                          out.string()));
}

RowSource rows_of(const gguf::Tensor& tensor, std::span<const float> importance) {
  RowSource source;
  source.type = tensor.type;
  source.cols = tensor.shape[0];
  source.rows = tensor.elements() / source.cols;
  source.row = [&tensor, bytes = row_bytes(tensor.type, source.cols)](std::uint64_t row) {
    return tensor.data.subspan(row * bytes, bytes);
  };
  weigh_rows(source, importance);
  return source;
}

}  // namespace

QuantizeReport quantize_file(const gguf::File& model, const std::filesystem::path& out,
                             const Recipe& recipe, const QuantizeOptions& options) {
  require_another_file(model, out);
  const TypeChooser chooser(ModelOutline::of(model), recipe);
  gguf::Writer writer(out, {.version = 3, .max_shard_bytes = options.max_shard_bytes});
  writer.copy_metadata(model);
  writer.set("general.file_type", recipe.file_type);
  writer.set("general.quantization_version", kQuantizationVersion);

  QuantizeReport report;
  for (const gguf::Tensor& tensor : model.tensors()) {
    const ElementType type = chooser.choose(tensor);
    writer.declare(tensor.name, type, {tensor.shape.data(), tensor.rank});
    report.elements += tensor.elements();
    report.bytes_in += tensor.data.size();
    report.bytes_out += row_bytes(type, tensor.elements());
    ++report.tensors[type];
  }
  RowWriter rows(writer, options.threads);
  std::uint64_t done = 0;
  for (const gguf::Tensor& tensor : model.tensors()) {
    if (options.progress) options.progress(tensor.name, done, report.bytes_in);
    const ElementType type = chooser.choose(tensor);
    const auto importance = importance_of(tensor, recipe.fits(type), options.importance);
    try {
      rows.write(tensor.name, rows_of(tensor, importance), type);
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", model.name(), error.what()));
    }
    done += tensor.data.size();
  }
  writer.finish();
  return report;
}

}  // namespace edgerunner
