#!/usr/bin/env python3
"""Random JSON schemas, the worst allowed tokens forced, what finished validated by another's code.

  check_schemas.py FORCE_SCHEMA VOCABULARY.gguf [--count 300] [--seed 0]

Needs the package jsonschema."""

import argparse
import json
import random
import subprocess
import sys

import jsonschema


def number(rng):
    schema = {"type": rng.choice(["integer", "number"])}
    low, high = sorted([rng.choice([-1000, -12.5, -3, 0, 0.25, 7, 99, 1e6]) for _ in range(2)])
    if rng.random() < 0.5:
        schema[rng.choice(["minimum", "exclusiveMinimum"])] = low
    if rng.random() < 0.5:
        schema[rng.choice(["maximum", "exclusiveMaximum"])] = high + 1
    return schema


def string(rng):
    kind = rng.randrange(4)
    if kind == 0:
        return {"type": "string"}
    if kind == 1:
        low = rng.randrange(4)
        return {"type": "string", "minLength": low, "maxLength": low + rng.randrange(9)}
    if kind == 2:
        return {"type": "string", "pattern": rng.choice([
            "^[a-z]{2,4}$", "^\\d{3}-\\d{4}$", "a.c", "^(foo|ba[rz])+$", "^[^\"\\\\]*$", "^\\w+@\\w+\\.com$", "x|^y",
            "^\\S+\\s\\S+$", "[\u00e4-\u00fc]$", "^(?:\"|\\\\){1,3}$", "^[^a-y]?$"])}
    return {"type": "string", "format": rng.choice(["date", "uuid", "date-time"])}


def leaf(rng):
    return rng.choice([
        lambda: {"type": "boolean"}, lambda: {"type": "null"}, lambda: number(rng), lambda: number(rng), lambda: string(rng),
        lambda: string(rng), lambda: {"enum": rng.sample(["a", "b\n\"", 1, 2.5, None, True, [1, "x"], {"k": []}], 3)},
        lambda: {"const": rng.choice(["\u00e9", 3, {"a": {"b": 1}}])}, lambda: {"type": ["string", "null", "integer"]}, lambda: {}])()


def schema(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        return leaf(rng)
    kind = rng.randrange(7)
    if kind <= 2:
        names = rng.sample(["a", "ab", "abc", "id", "n\u00e4me", "x y", "q\"", "list", "value"], rng.randrange(1, 5))
        made = {"type": "object", "properties": {n: schema(rng, depth - 1) for n in names}}
        if rng.random() < 0.7:
            made["required"] = rng.sample(names, rng.randrange(len(names) + 1))
        if rng.random() < 0.6:
            made["additionalProperties"] = rng.choice([False, True, schema(rng, 0)])
        return made
    if kind == 3:
        low = rng.randrange(3)
        made = {"type": "array", "items": schema(rng, depth - 1), "minItems": low}
        if rng.random() < 0.6:
            made["maxItems"] = low + rng.randrange(4)
        return made
    if kind == 4:
        return {"anyOf": [schema(rng, depth - 1) for _ in range(rng.randrange(1, 4))]}
    if kind == 5:
        return {"oneOf": [{"type": "integer"}, string(rng), {"type": "object", "properties": {"k": {"const": 1}, "v": schema(rng, depth - 1)},
                                                         "required": ["k"]}, {"type": "object", "properties": {"k": {"const": 2}}, "required": ["k"]}]}
    return {"allOf": [{"type": "object", "properties": {"a": schema(rng, depth - 1)}, "required": ["a"]},
                      {"properties": {"b": schema(rng, depth - 1)}}]}


def whole(rng):
    made = schema(rng, 3)
    if rng.random() < 0.3:
        made = {"$defs": {"t": made, "list": {"type": "object", "properties": {"head": {"$ref": "#/$defs/t"}, "tail": {
            "anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}}, "required": ["head", "tail"]}}, "$ref": "#/$defs/list"}
    if rng.random() < 0.1:
        made = {"type": "object", "properties": {"x": made}, rng.choice(["not", "patternProperties", "minProperties", "if"]): {}}
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("vocabulary")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    schemas = [whole(rng) for _ in range(arguments.count)]
    run = subprocess.run([arguments.program, arguments.vocabulary, str(arguments.seed)], capture_output=True, text=True,
                         input="".join(json.dumps(s) + "\n" for s in schemas))
    results = [json.loads(line) for line in run.stdout.splitlines()]
    wrong = finished = refused = 0
    for made, result in zip(schemas, results):
        if "error" in result:
            refused += 1
            print("refused: %s" % result["error"])
        elif result["finished"]:
            finished += 1
            try:
                jsonschema.validate(json.loads(result["text"]), made)
            except (ValueError, jsonschema.ValidationError) as error:
                wrong += 1
                print("WRONG %s\n  %r\n  %s" % (json.dumps(made), result["text"], str(error).splitlines()[0]))
    print("%d schemas: %d finished, %d refused, %d unfinished, %d wrong; exit status %d" % (
        len(schemas), finished, refused, len(results) - finished - refused, wrong, run.returncode))
    return 1 if wrong or run.returncode != 0 or len(results) != len(schemas) else 0


if __name__ == "__main__":
    sys.exit(main())
