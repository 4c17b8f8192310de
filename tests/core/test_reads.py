"""What a function reads besides its arguments."""

import numpy as np

from meanmap.core.reads import reads


class Simulator:
    def __init__(self):
        self.scale, self.calls, self.known = 2.0, 0, {}

    def __call__(self, z):
        self.calls += 1
        self.known[float(z)] = self.calls
        return self.scale * z


def test_what_a_function_reads_is_found_piece_by_piece():
    before, simulator = reads(simulator_of := Simulator()), simulator_of
    assert before.complete
    simulator(0.5)
    after = reads(simulator)
    changed = {
        path for path in before.pieces.keys() | after.pieces.keys() if before.pieces.get(path) != after.pieces.get(path)
    }
    assert changed == {".calls", ".known entries", ".known[0.5]"}
    simulator.scale = 3.0
    assert reads(simulator).pieces[".scale"] != after.pieces[".scale"]
    assert not reads(lambda: open_file).complete
    assert reads(np.sin) == reads(np.sin)
    assert reads(np.sin).digest() != reads(np.cos).digest()


open_file = open(__file__)  # noqa: SIM115


def test_helpers_that_share_helpers_are_read_once_each():
    def web(scale):
        def joined(one, other):
            return lambda z: one(z) + other(z)

        pair = (lambda z: scale * z), (lambda z: z)
        for _ in range(60):  # more than 10¹² paths lead to the first two
            pair = pair[1], joined(*pair)
        return reads(pair[1])

    assert web(2.0).complete
    assert web(2.0).digest() == web(2.0).digest() != web(3.0).digest()
