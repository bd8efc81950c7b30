#pragma once

#include <memory>
#include <string_view>

#include "chat/output_parser.h"
#include "constraint/grammar.h"
#include "server/fields.h"
#include "server/tool_fields.h"

namespace edgerunner::server {

// The JSON Schema that a text must hold for, by a field in the form of chat's response_format
// ("text", "json_object" or "json_schema"); null: any text. `format` may be null. `holder`: what
// the schema is a member of; empty: of the format itself. Throws ApiError(400) laid to `field` for
// anything else, and naming the keyword that can't be enforced.
Json read_answer_schema(const Json* format, const char* holder, std::string_view field);

// What the answer is held to, or null where it may be anything. Where a call is demanded of a model
// whose template shows no way to write one, `format` becomes that of Hermes.
std::shared_ptr<const Grammar> make_answer_grammar(const ToolFields& tools, const Json& schema,
                                                   OutputFormat& format);

}  // namespace edgerunner::server
