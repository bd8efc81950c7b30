"""The Python of docs/api.md runs as it stands there, with `path` as its model."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "api.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_finds_the_examples() -> None:
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("block", BLOCKS)
def test_runs_the_examples(block: str, tiny_path: Path) -> None:
    exec(compile(block, str(PAGE), "exec"), {"path": tiny_path})
