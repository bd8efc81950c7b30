"""Models."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from . import _core
from ._generation import ChatReply, Generation
from ._options import GenerateOptions, to_core

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import Unpack


_Path: TypeAlias = "str | os.PathLike[str]"


@dataclass(frozen=True)
class ModelInfo:
    """What a model is."""

    architecture: str
    name: str
    chat_template: str
    """Its Jinja source; empty where the file has none."""
    parameters: int
    file_bytes: int
    weights_bytes: int
    cache_bytes: int
    scratch_bytes: int
    vocab_size: int
    embedding_size: int
    trained_context: int
    context: int
    """Most tokens of one sequence, as loaded."""
    backend: str
    isa: str
    """The instruction set of its kernels."""
    threads: int
    remarks: list[str]
    """What a user should know, such as a shortened context."""


class Model:
    """A model, ready to generate. Weights stay in the mapped file.

    Any thread may use it, also while others do: what runs at the same time is computed together,
    each as if it were alone. Closing it (or leaving its ``with``) cancels what still runs.

    >>> with edgerunner.Model("model.gguf") as model:
    ...     for piece in model.generate("Once upon a time", max_tokens=64):
    ...         print(piece, end="", flush=True)
    """

    def __init__(
        self,
        path: _Path,
        *,
        backend: Literal["cpu", "cuda", "reference"] = "cpu",
        precision: Literal["fast", "exact"] = "fast",
        kv: Literal["f16", "f32", "q8"] | None = None,
        threads: int = 0,
        context: int = 0,
        prefill_chunk: int = 0,
        max_sequences: int = 8,
        cache_tokens: int = 0,
        memory_limit: int = 0,
        adapters: Sequence[_Path | tuple[_Path, float]] = (),
        speculate: Literal["off", "lookup", "on_request"] = "off",
        draft: _Path | None = None,
        draft_tokens: int = 16,
        draft_confidence: float = 0.2,
        progress: Callable[[float], object] | None = None,
    ) -> None:
        """Loads a GGUF file.

        Args:
            path: The file; of a split model, its first part.
            backend: Where it runs.
            precision: ``"fast"`` rounds activations to 8 bits or bf16; ``"exact"`` is f32.
            kv: Element type of the KV cache; None: f16 where fast, f32 where exact.
            threads: 0: the cores that the process may use.
            context: Most tokens of one sequence; 0: as the model and the memory allow.
            prefill_chunk: Most prompt tokens of one forward pass; 0: as the backend likes.
            max_sequences: Generations that run at once; more wait their turn.
            cache_tokens: Of the KV cache, at least one context; 0: as is useful.
            memory_limit: In bytes; 0: what the system has available.
            adapters: LoRA adapters in GGUF, each with the scale that it has where a generation chooses
                none, 1 if not given. They are numbered from 0.
            speculate: ``"lookup"``: tokens are guessed ahead from the text itself; the text stays the
                same, and comes faster where it repeats. ``"on_request"``: where a generation asks.
            draft: Or a smaller model of the same vocabulary guesses them.
            draft_tokens: The most that are guessed at once.
            draft_confidence: The smaller model stops where the chance that its guesses are right falls
                below this; 0: never.
            progress: Called while loading with a fraction from 0 to 1; what it raises ends loading.

        Raises:
            Error: What is wrong with the file or an option, or that it would not fit.
        """
        self._core = _core.Model(
            os.fspath(path),
            backend=backend,
            precision=precision,
            kv=kv,
            threads=threads,
            context=context,
            prefill_chunk=prefill_chunk,
            max_sequences=max_sequences,
            cache_tokens=cache_tokens,
            memory_limit=memory_limit,
            adapters=[_adapter(adapter) for adapter in adapters],
            speculate=speculate,
            draft="" if draft is None else os.fspath(draft),
            draft_tokens=draft_tokens,
            draft_confidence=draft_confidence,
            progress=progress,
        )
        self._info = ModelInfo(**self._core.info())

    def __repr__(self) -> str:
        return f"<edgerunner.Model {self._info.name!r}, {self._info.architecture}>"

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def info(self) -> ModelInfo:
        """What it is."""
        return self._info

    def tokenize(
        self, text: str | bytes, *, add_special: bool = True, parse_special: bool = False
    ) -> list[int]:
        """The ids of a text.

        ``add_special``: with BOS and EOS, as the model asks. ``parse_special``: control tokens that
        are written in the text count as such; else they are plain text.
        """
        return self._core.tokenize(text, add_special, parse_special)

    def detokenize(
        self, ids: Sequence[int], *, special: bool = False, errors: str = "replace"
    ) -> str:
        """The text of ids. ``special``: control tokens are spelled out. ``errors`` as of
        ``bytes.decode``, for ids that begin or end within a character."""
        return self._core.detokenize(_ids(ids), special).decode("utf-8", errors)

    def generate(
        self, prompt: str | Sequence[int], **options: Unpack[GenerateOptions]
    ) -> Generation:
        """Starts to continue a text or ids, and returns an iterator of pieces of text.

        A text is encoded with BOS as the model asks, and its control tokens are parsed; hand over
        the ids of ``tokenize()`` to decide that yourself.
        """
        given = prompt if isinstance(prompt, str) else _ids(prompt)
        return Generation(self._core.generate(given, to_core(options)))

    def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
        **options: Unpack[GenerateOptions],
    ) -> ChatReply:
        """Starts the answer to a conversation, and returns an iterator of pieces of its text.

        ``messages`` and ``tools`` are in OpenAI's form; ``variables`` are further ones of the
        model's chat template, such as ``enable_thinking``. Hand over the whole conversation each
        time: what the model has seen of it is not computed again.
        """
        return ChatReply(
            self._core.chat(
                json.dumps(messages), _json(tools), _json(variables), to_core(options)
            )
        )

    def render_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt that ``chat()`` would make of a conversation."""
        return self._core.render_chat(json.dumps(messages), _json(tools), _json(variables))

    def logits(self, ids: Sequence[int]) -> npt.NDArray[np.float32]:
        """The logits after the last of the ids, of shape ``[vocab_size]``.

        Only what the cache has not of the sequence is computed.
        """
        return self._core.logits(_ids(ids))

    def embed(
        self, input: str | Sequence[str] | Sequence[int], *, pooling: Literal["mean", "last"] = "mean"
    ) -> npt.NDArray[np.float32]:
        """Embeddings of length 1: of one text or the ids of one, ``[embedding_size]``; of a list of
        texts, ``[texts, embedding_size]``."""
        if isinstance(input, str):
            return self._core.embed(input, pooling)
        if len(input) > 0 and isinstance(input[0], str):
            return np.stack([self.embed(str(text), pooling=pooling) for text in input])
        return self._core.embed(_ids(input), pooling)

    def cancel_all(self) -> None:
        """Ends every generation that runs or waits, with ``finish_reason`` ``"cancelled"``."""
        self._core.cancel_all()

    def trim_memory(self) -> None:
        """Forgets cached prefixes that nobody uses, and gives clean pages back to the system."""
        self._core.trim_memory()

    def close(self) -> None:
        """Cancels what still runs and frees the model. Using it later is a ValueError."""
        self._core.close()


def _adapter(adapter: _Path | tuple[_Path, float]) -> tuple[str, float]:
    path, scale = adapter if isinstance(adapter, tuple) else (adapter, 1.0)
    return os.fspath(path), float(scale)


def _ids(ids: Sequence[Any]) -> list[int]:
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"expected ids, not {type(ids).__name__}")
    return [int(token) for token in ids]


def _json(value: object) -> str:
    return "" if value is None else json.dumps(value)
