"""Not run: what mypy --strict must accept, and the types that it must find."""

import edgerunner
import numpy as np
import numpy.typing as npt


def use(path: str) -> None:
    with edgerunner.Model(path, backend="cpu", precision="exact", context=512) as model:
        ids: list[int] = model.tokenize("Hello")
        text: str = model.detokenize(ids)
        for piece in model.generate(text, max_tokens=8, temperature=0.5, stop=["."]):
            print(piece.upper())
        with model.chat([{"role": "user", "content": "Hello"}], max_tokens=8, seed=1) as reply:
            answer: str = reply.read()
            calls: list[edgerunner.ToolCall] = reply.tool_calls
            summary: edgerunner.Summary = reply.summary()
        print(answer, calls, summary.decode_tps)
        logits: npt.NDArray[np.float32] = model.logits(ids)
        embedding: npt.NDArray[np.float32] = model.embed(["a", "b"], pooling="last")
        print(logits.argmax(), embedding.shape)
    try:
        edgerunner.Model(path, backend="gpu")  # type: ignore[arg-type]
    except edgerunner.Error as error:
        code: edgerunner.ErrorCode = error.code
        print(code)
