#include "support/model_fixture.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "arch/beyond_plain.h"
#include "support/shared_data.h"

namespace edgerunner::test {
namespace {

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream stream(path);
  return nlohmann::json::parse(stream);
}

const std::filesystem::path& own_folder() {
  static const std::filesystem::path folder =
      std::filesystem::path(EDGERUNNER_TESTS_DIR) / "fixtures";
  return folder;
}

std::filesystem::path folder_of(const std::string& name) {
  if (std::filesystem::exists(own_folder() / (name + ".json"))) return own_folder();
  return shared_dir() / "fixtures" / "models";
}

}  // namespace

ModelFixture load_fixture(const std::string& name) {
  const std::filesystem::path folder = folder_of(name);
  const nlohmann::json json = read_json(folder / (name + ".json"));
  gguf::File file = gguf::File::open(folder / (name + ".gguf"));
  Decoder decoder = read_decoder(file);
  ModelFixture fixture{name,
                       json.at("weight_type"),
                       json.at("prompt"),
                       {},
                       json.at("greedy"),
                       json.at("max_abs_logit"),
                       json.at("n_ctx_for_engine"),
                       std::move(file),
                       std::move(decoder)};
  for (const auto& [position, logits] : json.at("logits").items()) {
    fixture.logits[static_cast<std::uint32_t>(std::stoul(position))] =
        logits.get<std::vector<double>>();
  }
  fixture.logits[static_cast<std::uint32_t>(fixture.prompt.size() - 1)] =
      json.at("logits_last").get<std::vector<double>>();
  return fixture;
}

std::vector<std::string> all_fixtures() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(own_folder())) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  if (!has_shared_data()) return names;
  const nlohmann::json manifest = read_json(shared_dir() / "fixtures" / "manifest.json");
  for (const auto& model : manifest.at("models")) {
    names.push_back(model.at("name"));
  }
  return names;
}

std::vector<std::string> plain_fixtures() {
  std::vector<std::string> names = all_fixtures();
  std::erase_if(names, [](const std::string& name) {
    return !beyond_plain(load_fixture(name).decoder).empty();
  });
  return names;
}

SequenceRunner::SequenceRunner(Executor& executor, std::uint32_t vocab_size, PageId first_page)
    : executor_(&executor), vocab_size_(vocab_size) {
  const std::uint32_t pages = pages_for(executor.options().max_context);
  for (PageId page = 0; page < pages; ++page) pages_.push_back(first_page + page);
}

std::vector<std::vector<float>> SequenceRunner::feed(std::span<const TokenId> tokens,
                                                     std::uint32_t chunk) {
  std::vector<std::vector<float>> result;
  while (!tokens.empty()) {
    const auto rows = static_cast<std::uint32_t>(std::min<std::size_t>(tokens.size(), chunk));
    const SequenceSlice slice{rows, length_, pages_};
    std::vector<std::uint32_t> wanted(rows);
    for (std::uint32_t i = 0; i < rows; ++i) wanted[i] = i;
    std::vector<float> logits(std::size_t{rows} * vocab_size_);
    executor_->forward({tokens.first(rows), {&slice, 1}, wanted}, logits);
    for (std::uint32_t i = 0; i < rows; ++i) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(i) * vocab_size_;
      result.emplace_back(begin, begin + vocab_size_);
    }
    length_ += rows;
    tokens = tokens.subspan(rows);
  }
  return result;
}

double largest_error(Executor& executor, const ModelFixture& fixture, std::uint32_t chunk) {
  SequenceRunner runner(executor, fixture.decoder.spec.vocab_size);
  const auto logits = runner.feed(fixture.prompt, chunk);
  double largest = 0;
  for (const auto& [position, expected] : fixture.logits) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double error = std::abs(static_cast<double>(logits[position][i]) - expected[i]);
      largest = std::max(largest, std::isnan(error) ? INFINITY : error);
    }
  }
  return largest / fixture.peak;
}

std::vector<TokenId> greedy_continuation(Executor& executor, const ModelFixture& fixture) {
  SequenceRunner runner(executor, fixture.decoder.spec.vocab_size);
  std::vector<float> logits = runner.feed(fixture.prompt, executor.options().max_rows).back();
  std::vector<TokenId> tokens;
  while (tokens.size() < fixture.greedy.size()) {
    const auto best = std::max_element(logits.begin(), logits.end()) - logits.begin();
    tokens.push_back(static_cast<TokenId>(best));
    logits = runner.feed({&tokens.back(), 1}, 1).back();
  }
  return tokens;
}

}  // namespace edgerunner::test
