#pragma once

#include <gmock/gmock.h>

#include <string>

#include "support/scripted_model.h"

namespace edgerunner::test {

// A model that says `length` times 'a' and "<end>" after "begin", and more: the text ends before
// the stop string, and what was computed past it is not taken for the text's by a prompt that goes
// on otherwise. `fresh` is the same model, which has computed nothing yet.
inline void expect_stop(ScriptedModel& model, ScriptedModel& fresh, std::size_t length) {
  GenerateOptions options;
  options.stop = {"<end>"};
  std::string text;
  Generation generation = model.model.generate("begin", options);
  for (const std::string& piece : generation) text += piece;
  EXPECT_EQ(text, std::string(length, 'a'));
  EXPECT_EQ(generation.summary().finish_reason, FinishReason::stop);
  EXPECT_EQ(generation.summary().generated_tokens, length + 5);
  const std::string longer = "begin" + std::string(length, 'a') + "<end>XYZ";
  EXPECT_EQ(model.model.generate(longer, options).summary().tokens,
            fresh.model.generate(longer, options).summary().tokens);
}

}  // namespace edgerunner::test
