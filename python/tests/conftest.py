"""The models that tests run on. Each is skipped where it is absent."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import edgerunner
import pytest

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT.parent / "shared" / "fixtures" / "models"
CACHE = Path(os.environ.get("EDGERUNNER_CACHE", Path.home() / ".cache" / "edgerunner"))
SMOLLM2 = CACHE / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def tiny_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights and a working vocabulary, written by a program of the C++ tests."""
    program = ROOT / "build" / "release" / "bin" / "make_tiny_model"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    path = tmp_path_factory.mktemp("models") / "tiny.gguf"
    subprocess.run([program, path], check=True)
    return path


@pytest.fixture
def tiny(tiny_path: Path) -> Iterator[edgerunner.Model]:
    with edgerunner.Model(tiny_path) as model:
        yield model


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    if not SMOLLM2.exists():
        pytest.skip(f"{SMOLLM2} is absent; scripts/fetch_model.sh fetches it")
    return SMOLLM2


@pytest.fixture(scope="session")
def smollm2(smollm2_path: Path) -> Iterator[edgerunner.Model]:
    with edgerunner.Model(smollm2_path, precision="exact", context=512) as model:
        yield model


@pytest.fixture(scope="session")
def fixture_path() -> Path:
    """A tiny model with the logits that Hugging Face's transformers computes for it."""
    path = FIXTURES / "llama-gqa-untied.gguf"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    return path
