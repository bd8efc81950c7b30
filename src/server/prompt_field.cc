#include "server/prompt_field.h"

#include <fmt/format.h>

#include "server/sampling_fields.h"

namespace edgerunner::server {
namespace {

std::vector<TokenId> read_ids(const Fields& fields, std::string_view name, const Json& list,
                              std::uint32_t vocab_size) {
  std::vector<TokenId> ids;
  for (const Json& id : list) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocab_size) {
      fields.fail(name, "must be a string, an array of strings, or token ids of the vocabulary");
    }
    ids.push_back(id.get<TokenId>());
  }
  return ids;
}

}  // namespace

std::vector<std::vector<TokenId>> read_prompts(const Fields& fields, std::string_view name,
                                               std::size_t most, Engine& engine) {
  const Json& member = fields.require(name);
  const bool one =
      member.is_string() || (member.is_array() && !member.empty() && member.front().is_number());
  const Json list = one ? Json::array({member}) : member;
  if (!list.is_array() || list.empty() || list.size() > most) {
    fields.fail(name,
                fmt::format("must be a string, an array of up to {} strings, or token ids", most));
  }
  std::vector<std::vector<TokenId>> prompts;
  for (const Json& item : list) {
    if (item.is_string()) {
      prompts.push_back(
          engine.tokenizer().encode(item.get<std::string>(), {.parse_special = true}));
    } else {
      prompts.push_back(read_ids(fields, name, item, engine.info().vocab_size));
    }
    const std::size_t length = prompts.back().size();
    if (length == 0) fields.fail(name, "must not be empty");
    if (length > engine.info().context) {
      fail_too_long(fields, name, length, engine.info().context);
    }
  }
  return prompts;
}

}  // namespace edgerunner::server
