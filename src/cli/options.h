#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "edgerunner/generation.h"
#include "edgerunner/model.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace edgerunner::cli {

// The options that every command which runs a model takes.
struct ModelArguments {
  std::string path;
  std::string shape;  // of random weights instead of a file; for commands that measure speed
  std::string type = "Q8_0";
  std::string backend = "cpu";
  std::string precision = "fast";
  std::string kv;  // empty: as the precision asks
  int threads = 0;
  std::uint32_t context = 0;
  std::uint64_t seed = 0;
  bool lookup = false;
  std::string draft;
  std::uint32_t draft_tokens = SpeculationOptions().draft_tokens;
  double draft_confidence = SpeculationOptions().draft_confidence;
  std::vector<std::string> lora;  // PATH[:SCALE] each

  void add_to(CLI::App& command);
  // The same with --shape in place of MODEL.
  void add_to_with_shape(CLI::App& command);
  // --speculate, --draft and what bounds their guesses, for commands that generate.
  void add_speculation(CLI::App& command);
  // MODEL, or "llama3-8b, Q4_K, random weights".
  std::string title() const;
  // Throws Error(unsupported) for a choice that this build doesn't have, UsageError for others.
  ModelOptions options() const;

 private:
  void add_running_options(CLI::App& command);
};

// The positional MODEL alone, for commands that run nothing.
void add_model_path(CLI::App& command, std::string& path);

// Lets an option that takes a model's path take the name of a fetched model too: by the time that
// the command runs, it is a path.
void accept_model_name(CLI::Option& option);

// How the next token is chosen and when a generation ends.
struct SamplingArguments {
  GenerateOptions options;
  std::vector<std::string> logit_bias;

  void add_to(CLI::App& command);
  // Throws UsageError for a logit bias that is not ID=VALUE, or an empty stop string.
  GenerateOptions resolve(std::uint64_t seed) const;
};

// An option that may be repeated and takes its values as they are, brackets and commas included.
CLI::Option* add_repeatable(CLI::App& command, const std::string& name,
                            std::vector<std::string>& values, const std::string& help);

}  // namespace edgerunner::cli
