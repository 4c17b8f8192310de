"""Compiled programs that are kept for the next process, each seen from a process of its own."""

import os
import subprocess
import sys

from meanmap import programs

SCRIPT = """
import meanmap as mm
{before}
folder = mm.keep_programs()
import jax, jax.numpy as jnp
hits = []
jax.monitoring.register_event_listener(lambda name, **_: name.endswith("cache_hits") and hits.append(name))
jax.jit(lambda x: jnp.linalg.solve(x + 2, x) @ x)(jnp.eye(3))
print(folder)
print(len(hits))
"""


def run(cache, before="", **settings):
    """What keeping answered, and how many programs were read, in a new process that keeps them below `cache`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "MEANMAP_"))}
    environment = {**inherited, "MEANMAP_CACHE": str(cache), **settings}
    code = [sys.executable, "-W", "error", "-c", SCRIPT.format(before=before)]
    done = subprocess.run(code, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    folder, hits = done.stdout.split()
    return folder, int(hits)


def test_the_next_process_reads_what_this_one_compiled(tmp_path):
    folder, hits = run(tmp_path)
    assert hits == 0
    assert any(tmp_path.joinpath("programs").rglob("*-cache"))
    # Also where JAX is there already, and has compiled without.
    again = run(tmp_path, before="import jax; jax.jit(lambda x: x + 1)(1)")
    assert again[0] == folder
    assert again[1] > 0


def test_a_folder_that_is_chosen_already_stays(tmp_path):
    chosen = tmp_path / "mine"
    assert run(tmp_path, JAX_COMPILATION_CACHE_DIR=str(chosen)) == (str(chosen), 0)
    assert not (tmp_path / "programs").exists()


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path):
    tmp_path.joinpath("file").touch()
    assert run(tmp_path / "file") == ("None", 0)


def test_what_was_written_first_makes_room(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "MOST_BYTES", 100)
    for age in range(11):
        file = tmp_path / f"{age}"
        file.write_bytes(bytes(10))
        os.utime(file, (1000 - age, 1000 - age))
    programs._make_room(tmp_path)
    assert sorted(int(file.name) for file in tmp_path.iterdir()) == [0, 1, 2, 3, 4]
    programs._make_room(tmp_path)
    assert len(list(tmp_path.iterdir())) == 5
