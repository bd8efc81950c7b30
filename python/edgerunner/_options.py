"""How tokens are chosen, and when a generation ends."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from . import _core


class GenerateOptions(TypedDict, total=False):
    """The options of ``generate()`` and ``chat()``, all of them optional.

    Without any, the likeliest token is taken until the model ends its text.
    """

    max_tokens: int
    """The most tokens; 0: as many as the model and the context allow."""
    temperature: float
    """0: greedy, the likeliest token."""
    top_k: int
    """Only the k likeliest; 0: off."""
    top_p: float
    """Only the fewest likeliest whose probabilities add up to it; 1: off."""
    min_p: float
    """Only those at least this many times as likely as the likeliest; 0: off."""
    repeat_penalty: float
    """Divides the logits of tokens that were there; 1: off."""
    frequency_penalty: float
    """Subtracted from a token's logit for each time that it was there; 0: off."""
    presence_penalty: float
    """Subtracted once from the logit of a token that was there; 0: off."""
    penalty_last_n: int
    """The tokens that penalties look back; -1: all."""
    logit_bias: Mapping[int, float]
    """Added to the logits of tokens by id; ``-math.inf`` bans one."""
    seed: int
    """The same seed gives the same text, whatever else the process does."""
    stop: str | Sequence[str]
    """Strings that end the text, before them."""
    stop_tokens: Sequence[int]
    """Ids that end the text, beside the model's own end."""
    ignore_eos: bool
    """The model's end is a token like any other."""
    json_schema: str | Mapping[str, Any] | bool
    """The text is JSON that this schema holds for."""
    grammar: str
    """The text is one of this grammar in GBNF."""
    circular_context: bool
    """Where the context is full, its oldest half is dropped, and it goes on."""
    keep_tokens: int
    """The tokens that a circular context never drops, from the first on."""
    adapters: Mapping[int, float]
    """The scales of the LoRA adapters that apply, by their place among the model's; those not listed
    don't. Without it all do, as they were loaded."""
    speculate: Literal["off", "lookup"]
    """Whether tokens are guessed ahead from the text itself; as loaded without it. ``"lookup"`` needs a
    model that was loaded to guess, be it on request. The text stays the same."""
    draft_tokens: int
    """The most tokens guessed at once; 0: as loaded."""


def to_core(options: GenerateOptions) -> _core.GenerateOptions:
    result = _core.GenerateOptions()
    for name, given in options.items():
        if name not in GenerateOptions.__annotations__:
            raise TypeError(f"unexpected option {name!r}; see edgerunner.GenerateOptions")
        try:
            setattr(result, name, _convert(name, given))
        except TypeError:
            raise TypeError(f"{name}: {given!r} is of the wrong type, or out of its range") from None
    return result


def _convert(name: str, value: Any) -> Any:
    if name == "stop":
        return [value] if isinstance(value, str) else list(value)
    if name in ("logit_bias", "adapters"):
        return [(int(number), float(weight)) for number, weight in value.items()]
    if name == "json_schema" and not isinstance(value, str):
        return json.dumps(value)
    if name == "stop_tokens":
        return [int(token) for token in value]
    return value
