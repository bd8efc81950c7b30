#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace edgerunner::hub {

// One file of a model: where it comes from, and where it is kept.
struct ModelSource {
  std::string url;
  std::filesystem::path file;  // below the folder of models; ends in .gguf
  bool hub = false;            // on the Hugging Face hub (HF_ENDPOINT), which HF_TOKEN is for
  std::string sha256;          // where known beforehand, else empty
};

// What a name stands for: a short name of known_models(), hf:OWNER/REPO[@REVISION]/FILE.gguf, or an
// http or https URL (a page or file of the hub counts as the hf: name of it). nullopt where it is
// none of these, which may be a path. Throws Error(invalid_argument) for an hf: name or an URL that
// can't be right.
std::optional<ModelSource> find_source(std::string_view name);

// All files of a model of which one is NAME-00002-of-00003.gguf; else the one alone. What is known
// of the one file's checksum stays with that file.
std::vector<ModelSource> shards_of(const ModelSource& source);

// The name that find_source() or resolve_model() takes for a file of the folder of models.
std::string name_of_file(const std::filesystem::path& file);

}  // namespace edgerunner::hub
