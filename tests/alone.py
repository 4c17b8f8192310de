"""Scripts run in a process of their own, to see what memory they take."""

import subprocess
import sys
import textwrap

PRELUDE = """
import numpy as np
from meanmap import features, kernels

def peak():
    '''Peak resident memory in MiB. Not by getrusage, which counts the parent's memory at the time of the fork.'''
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

rng = np.random.default_rng(0)
"""


def run_alone(script: str, warm_up: str = "") -> tuple[float, float]:
    """Peak memory in MiB after `warm_up`, and after `script` as well. The script fails loudly and prints nothing."""
    parts = PRELUDE, textwrap.dedent(warm_up), "before = peak()", textwrap.dedent(script), "print(before, peak())"
    done = subprocess.run([sys.executable, "-c", "\n".join(parts)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    before, after = map(float, done.stdout.split())
    return before, after
