"""EdgeRunner runs language models from GGUF files.

>>> import edgerunner
>>> model = edgerunner.Model("model.gguf")
>>> model.chat([{"role": "user", "content": "Who are you?"}], max_tokens=64).read()
"""

from importlib.metadata import version as _version

from ._error import Error, ErrorCode
from ._generation import ChatReply, Generation, Summary, ToolCall
from ._model import Model, ModelInfo
from ._options import GenerateOptions

__version__ = _version("edgerunner")

__all__ = [
    "ChatReply",
    "Error",
    "ErrorCode",
    "GenerateOptions",
    "Generation",
    "Model",
    "ModelInfo",
    "Summary",
    "ToolCall",
]
