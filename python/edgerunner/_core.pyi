# The extension module: what the Python files of this package stand on. Not for users.
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

class GenerateOptions:
    max_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    frequency_penalty: float
    presence_penalty: float
    penalty_last_n: int
    logit_bias: list[tuple[int, float]]
    seed: int
    stop: list[str]
    stop_tokens: list[int]
    ignore_eos: bool
    json_schema: str
    grammar: str
    circular_context: bool
    keep_tokens: int
    draft_tokens: int
    adapters: Sequence[tuple[int, float]]
    speculate: str
    def __init__(self) -> None: ...

class Generation:
    def next(self) -> str | None: ...
    def cancel(self) -> None: ...
    def summary(self) -> dict[str, Any]: ...

class ChatReply:
    def next(self) -> tuple[str, bool] | None: ...
    def cancel(self) -> None: ...
    def summary(self) -> dict[str, Any]: ...
    def tool_calls(self) -> list[tuple[str, str]]: ...

class Model:
    def __init__(
        self,
        path: str,
        *,
        backend: str,
        precision: str,
        kv: str | None,
        threads: int,
        context: int,
        prefill_chunk: int,
        max_sequences: int,
        cache_tokens: int,
        memory_limit: int,
        adapters: Sequence[tuple[str, float]],
        speculate: str,
        draft: str,
        draft_tokens: int,
        draft_confidence: float,
        progress: Callable[[float], object] | None,
    ) -> None: ...
    def info(self) -> dict[str, Any]: ...
    def tokenize(self, text: str | bytes, add_special: bool, parse_special: bool, /) -> list[int]: ...
    def detokenize(self, ids: Sequence[int], special: bool, /) -> bytes: ...
    def generate(self, prompt: str | Sequence[int], options: GenerateOptions, /) -> Generation: ...
    def chat(
        self, messages: str, tools: str, variables: str, options: GenerateOptions, /
    ) -> ChatReply: ...
    def render_chat(self, messages: str, tools: str, variables: str, /) -> str: ...
    def logits(self, ids: Sequence[int], /) -> npt.NDArray[np.float32]: ...
    def embed(self, input: str | Sequence[int], pooling: str, /) -> npt.NDArray[np.float32]: ...
    def cancel_all(self) -> None: ...
    def trim_memory(self) -> None: ...
    def close(self) -> None: ...
