"""Compiled programs that are kept for the next process, each seen from a process of its own."""

import os
import stat
import subprocess
import sys

import pytest

from meanmap import programs

SCRIPT = """
import meanmap as mm
{before}
import jax
hits = []
jax.monitoring.register_event_listener(lambda name, **_: name.endswith("cache_hits") and hits.append(name))
mm.kernels.RBF(1.0)([[0.0] * 3] * 300, [[1.0] * 3] * 700)
print(jax.config.values["jax_compilation_cache_dir"])
print(len(hits))
"""


def run(cache, before="", script=SCRIPT, **settings):
    """Where programs are kept, and how many were read, in a new process whose cache is below `cache`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "MEANMAP_"))}
    environment = {**inherited, "MEANMAP_CACHE": str(cache), **settings}
    code = [sys.executable, "-W", "error", "-c", script.format(before=before)]
    done = subprocess.run(code, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    folder, hits = done.stdout.split()
    return folder, int(hits)


def test_the_next_process_reads_what_this_one_compiled(tmp_path):
    folder, hits = run(tmp_path)
    assert hits == 0
    assert any(tmp_path.joinpath("programs").rglob("*-cache"))
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    # Also where JAX has compiled something before.
    again = run(tmp_path, before="import jax; jax.jit(lambda x: x + 1)(1)")
    assert again[0] == folder
    assert again[1] > 0


def test_a_folder_that_is_chosen_already_stays(tmp_path):
    chosen = tmp_path / "mine"
    assert run(tmp_path, JAX_COMPILATION_CACHE_DIR=str(chosen)) == (str(chosen), 0)
    assert not (tmp_path / "programs").exists()


def test_one_variable_turns_it_off(tmp_path):
    assert run(tmp_path, JAX_ENABLE_COMPILATION_CACHE="false") == ("None", 0)
    assert not (tmp_path / "programs").exists()


def test_where_nothing_can_be_written_nothing_is_kept(tmp_path):
    tmp_path.joinpath("file").touch()
    assert run(tmp_path / "file") == ("None", 0)


def test_expectation_propagation_keeps_its_programs(tmp_path):
    script = """
import meanmap as mm
{before}
p = mm.ep.Variable("p", mm.ep.Beta(1.0, 1.0))
mm.ep.infer(mm.ep.FactorGraph(mm.ep.Bernoulli(p, observed=1)))
import jax
print(jax.config.values["jax_compilation_cache_dir"], 0)
"""
    assert run(tmp_path, script=script)[0].startswith(str(tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps the caches of its users apart")
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, monkeypatch):
    assert programs._is_private(tmp_path)
    tmp_path.chmod(0o777)
    assert not programs._is_private(tmp_path)
    tmp_path.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    assert not programs._is_private(tmp_path)


def test_programs_of_another_processor_lie_in_another_folder(monkeypatch):
    here = programs._machine()
    monkeypatch.setattr(programs.platform, "machine", lambda: "another")
    assert programs._machine() != here


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
