#pragma once

#include <nlohmann/json_fwd.hpp>

#include "constraint/grammar.h"
#include "constraint/json_grammar.h"

namespace edgerunner {

// A grammar whose texts are JSON that a schema (JSON Schema 2020-12) holds for. It need not give
// all of them: properties stand in the order in which the schema names them, an object that names
// properties has no others unless the schema says so, and numbers and nesting have limits (see
// JsonGrammar). Throws Error(invalid_argument) naming the keyword where one can't be enforced:
// nothing is left unchecked.
//
// Enforced: type, enum, const, properties, required, additionalProperties, items, prefixItems,
// minItems, maxItems, minLength, maxLength, pattern, format (date, time, date-time, uuid), minimum,
// maximum, exclusiveMinimum, exclusiveMaximum, anyOf, allOf where the parts can be made one, oneOf
// where the parts exclude one another, $ref within the document.
Grammar compile_json_schema(const nlohmann::ordered_json& schema);

// The same as a part of a larger grammar, which goes on at `next`.
NodeId add_json_schema(GrammarBuilder& builder, JsonGrammar& json,
                       const nlohmann::ordered_json& schema, NodeId next);

// Any JSON object: the format "json_object".
Grammar any_json_object();

}  // namespace edgerunner
