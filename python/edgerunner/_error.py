"""The one exception type of the package."""

from __future__ import annotations

from typing import Literal

ErrorCode = Literal[
    "invalid_file",
    "unsupported",
    "out_of_memory",
    "invalid_argument",
    "context_full",
    "cancelled",
    "device",
    "io",
]


class Error(RuntimeError):
    """What went wrong: one sentence that names the thing and says what to do, and its kind.

    ``code`` is ``"invalid_file"`` (damaged, hostile or not what it claims to be), ``"unsupported"``
    (understood, but EdgeRunner can't run it), ``"out_of_memory"``, ``"invalid_argument"``,
    ``"context_full"`` (the sequence is longer than the context), ``"cancelled"``, ``"device"`` (a
    GPU failed, or logits were not finite) or ``"io"``.
    """

    code: ErrorCode

    def __init__(self, message: str, code: ErrorCode) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[Error], tuple[str, ErrorCode]]:
        return type(self), (str(self), self.code)
