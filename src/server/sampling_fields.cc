#include "server/sampling_fields.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <random>

#include "server/api_error.h"

namespace edgerunner::server {
namespace {

constexpr std::size_t kMostStops = 16;
constexpr double kMostPenalty = 2.0;  // OpenAI's range, either way
constexpr double kMostBias = 100.0;

std::vector<std::pair<TokenId, float>> read_logit_bias(const Fields& fields,
                                                       std::uint32_t vocab_size) {
  std::vector<std::pair<TokenId, float>> biases;
  const Json* object = fields.object("logit_bias");
  if (object == nullptr) return biases;
  for (const auto& [key, value] : object->items()) {
    TokenId id = kNoToken;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc{} || end != key.data() + key.size() || id < 0 ||
        static_cast<std::uint32_t>(id) >= vocab_size) {
      fields.fail("logit_bias", fmt::format("has the key \"{}\"; keys must be token ids under {}",
                                            key, vocab_size));
    }
    const double bias = value.is_number() ? value.get<double>() : std::nan("");
    if (!(std::abs(bias) <= kMostBias)) {
      fields.fail("logit_bias", fmt::format("of {} must be a number from -100 to 100", key));
    }
    // What -100 says in OpenAI's words: the token is banned.
    biases.emplace_back(id, bias == -kMostBias ? -INFINITY : static_cast<float>(bias));
  }
  return biases;
}

std::vector<std::string> read_stops(const Fields& fields) {
  const Json* member = fields.find("stop");
  std::vector<std::string> stops;
  if (member == nullptr) return stops;
  const Json list = member->is_array() ? *member : Json::array({*member});
  if (list.size() > kMostStops) {
    fields.fail("stop", fmt::format("must hold at most {} strings", kMostStops));
  }
  for (const Json& stop : list) {
    if (!stop.is_string() || stop.get_ref<const std::string&>().empty()) {
      fields.fail("stop", "must be a string or an array of strings, none empty");
    }
    stops.push_back(stop.get<std::string>());
  }
  return stops;
}

// speculate: "lookup" or "off"; draft_tokens: most guessed at once.
void read_guessing(const Fields& fields, std::uint32_t most, GenerateOptions& options) {
  if (const auto how = fields.choice("speculate", {"lookup", "off"})) {
    options.guessing = *how == "lookup" ? Guessing::lookup : Guessing::off;
    if (options.guessing == Guessing::lookup && most == 0) {
      fields.fail("speculate",
                  "can't be lookup on this server's backend, where guesses would "
                  "change the text");
    }
  }
  // Where nothing can be guessed, any bound is kept.
  options.draft_tokens = static_cast<std::uint32_t>(
      fields.integer("draft_tokens", 1, most > 0 ? most : INT32_MAX).value_or(0));
}

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

}  // namespace

GenerateOptions read_sampling(const Fields& fields, const ModelInfo& model) {
  GenerateOptions options;
  SamplingOptions& sampling = options.sampling;
  const auto number = [&fields](std::string_view name, double low, double high, double fallback) {
    return static_cast<float>(fields.number(name, low, high).value_or(fallback));
  };
  sampling.temperature = number("temperature", 0, 2, 1);
  sampling.top_p = number("top_p", 0, 1, 1);
  sampling.min_p = number("min_p", 0, 1, 0);
  sampling.top_k = static_cast<std::int32_t>(fields.integer("top_k", 0, INT32_MAX).value_or(0));
  sampling.repeat_penalty = number("repeat_penalty", 0.01, 100, 1);
  sampling.frequency_penalty = number("frequency_penalty", -kMostPenalty, kMostPenalty, 0);
  sampling.presence_penalty = number("presence_penalty", -kMostPenalty, kMostPenalty, 0);
  sampling.logit_bias = read_logit_bias(fields, model.vocab_size);
  if (const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX)) {
    sampling.seed = static_cast<std::uint64_t>(*seed);
  } else {
    sampling.seed = random_seed();
  }
  options.stop = read_stops(fields);
  options.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  read_guessing(fields, model.draft_tokens, options);
  return options;
}

bool read_include_usage(const Fields& fields) {
  const Json* options = fields.object("stream_options");
  return options != nullptr &&
         Fields(*options, "stream_options.").boolean("include_usage").value_or(false);
}

void fail_too_long(const Fields& fields, std::string_view name, std::size_t tokens,
                   std::uint32_t context) {
  try {
    fields.fail(name, fmt::format("has {} tokens and the context holds {}; shorten it, or serve "
                                  "the model with a larger --context",
                                  tokens, context));
  } catch (ApiError& error) {
    error.code = "context_length_exceeded";
    throw;
  }
}

}  // namespace edgerunner::server
