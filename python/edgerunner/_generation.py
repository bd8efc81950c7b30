"""What is being generated: iterators of text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Literal

from . import _core


@dataclass(frozen=True)
class Summary:
    """What a generation did."""

    finish_reason: Literal["stop", "length", "cancelled", "context_full"]
    prompt_tokens: int
    reused_tokens: int
    """Of the prompt, found in the KV cache."""
    generated_tokens: int
    drafted_tokens: int
    """That were guessed ahead and checked."""
    accepted_tokens: int
    """Of these, guessed right."""
    context_shifts: int
    """Times that a circular context dropped tokens."""
    prefill_seconds: float
    decode_seconds: float
    time_to_first_token: float
    """Seconds from the call, waiting for other generations included."""
    prefill_tps: float
    """Computed prompt tokens a second."""
    decode_tps: float
    """Tokens after the first a second."""
    ids: list[int]
    """What was generated, without the token that ended it."""


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool, as the model wrote it."""

    name: str
    arguments: str
    """The text of a JSON object."""


class _Pieces(Iterator[str]):
    """What a running generation and a running answer have in common."""

    _running: _core.Generation | _core.ChatReply

    def __iter__(self) -> Iterator[str]:
        return self

    def __enter__(self) -> _Pieces:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def read(self) -> str:
        """Waits for the end and returns the rest of the text."""
        return "".join(self)

    def close(self) -> None:
        """Cancels what still runs. From any thread, and more than once; leaving a ``with`` does it.

        Pieces that are ready can still be read.
        """
        self._running.cancel()

    def summary(self) -> Summary:
        """Waits for the end, dropping the pieces not read yet, and says what was done."""
        return Summary(**self._running.summary())


class Generation(_Pieces):
    """A running generation: an iterator of pieces of text, none of them empty.

    It runs ahead of its reader, and is cancelled where it is closed or forgotten. The GIL is
    released while it is waited for, and Ctrl-C interrupts the wait and cancels it.
    """

    def __init__(self, running: _core.Generation) -> None:
        self._running: _core.Generation = running

    def __enter__(self) -> Generation:
        return self

    def __next__(self) -> str:
        piece = self._running.next()
        if piece is None:
            raise StopIteration
        return piece


class ChatReply(_Pieces):
    """A running answer: an iterator of pieces of its text, none of them empty.

    The text is what the model says to its user. Its reasoning and its calls of tools are gathered
    beside it while it is read.
    """

    def __init__(self, running: _core.ChatReply) -> None:
        self._running: _core.ChatReply = running
        self._reasoning: list[str] = []

    def __enter__(self) -> ChatReply:
        return self

    def __next__(self) -> str:
        while (piece := self._running.next()) is not None:
            text, is_reasoning = piece
            if not is_reasoning:
                return text
            self._reasoning.append(text)
        raise StopIteration

    @property
    def reasoning(self) -> str:
        """What stood between <think> and </think>, as far as it was read."""
        return "".join(self._reasoning)

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of tools read so far; all of them once the text has ended."""
        return [ToolCall(name, arguments) for name, arguments in self._running.tool_calls()]
