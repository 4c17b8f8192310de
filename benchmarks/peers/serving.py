"""The other end of the pipe, for scripts that run in a peer's Python."""

import json
import sys

import numpy as np

__all__ = ["serve"]


def serve(prepare):
    """Read the model, say that it is ready, and answer each question, a line of JSON, with an array."""
    out = sys.stdout.buffer
    sys.stdout = sys.stderr

    def send(array):
        array = np.ascontiguousarray(array)
        out.write((json.dumps({"shape": array.shape, "dtype": array.dtype.str}) + "\n").encode())
        out.write(array.tobytes())
        out.flush()

    with np.load(sys.argv[1]) as file:
        answer = prepare(dict(file))
    send(np.zeros(0))
    for line in sys.stdin:
        send(answer(**json.loads(line)))
