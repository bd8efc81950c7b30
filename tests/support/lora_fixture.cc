#include "support/lora_fixture.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace edgerunner::test {

std::filesystem::path lora_file(const std::string& name) {
  return std::filesystem::path(EDGERUNNER_TESTS_DIR) / "fixtures" / "lora" / name;
}

LoraFixture::LoraFixture(const std::string& model)
    : name(model), file(gguf::File::open(lora_file(model + ".gguf"))), decoder(read_decoder(file)) {
  std::ifstream stream(lora_file(model + ".json"));
  const nlohmann::json json = nlohmann::json::parse(stream);
  prompt = json.at("prompt").get<std::vector<TokenId>>();
  for (const std::string path : json.at("adapters")) {
    adapters.emplace_back(gguf::File::open(lora_file(path)), decoder);
  }
  for (const nlohmann::json& wanted : json.at("answers")) {
    Answer& answer = answers.emplace_back();
    answer.adapters.id = answers.size();
    for (const nlohmann::json& use : wanted.at("adapters")) {
      answer.adapters.uses.push_back(
          {&adapters[use.at("id").get<std::size_t>()], use.at("scale").get<float>()});
    }
    for (const auto& [position, logits] : wanted.at("logits").items()) {
      answer.logits[static_cast<std::uint32_t>(std::stoul(position))] =
          logits.get<std::vector<double>>();
    }
    answer.peak = wanted.at("max_abs_logit");
  }
}

}  // namespace edgerunner::test
