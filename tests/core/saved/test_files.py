"""Writing: whole files whoever writes beside, and never anything but a file."""

import os
import socket
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

import meanmap as mm
from meanmap.core.errors import KindError, ParameterError
from meanmap.core.saved.files import to_write, write_whole


def test_a_device_a_pipe_a_socket_and_a_folder_are_left_as_they_are(tmp_path):
    pipe, door = tmp_path / "pipe", tmp_path / "door"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(door))
        for path, what in (("/dev/null", "a device"), (pipe, "a pipe"), (door, "a socket"), (tmp_path, "a folder")):
            before = os.stat(path).st_mode
            with pytest.raises(ParameterError, match=rf"^{path} is .*{what[2:]}.*; expected the name of a file\.$"):
                write_whole(path, "text")
            assert os.stat(path).st_mode == before
    assert sorted(os.listdir(tmp_path)) == ["door", "pipe"]


def test_a_link_stays_a_link_to_what_is_written(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for name in ("there", "not yet"):
        (tmp_path / name).symlink_to(tmp_path / "elsewhere" / name)
    (tmp_path / "elsewhere" / "there").write_text("old")
    for name in ("there", "not yet"):
        assert write_whole(tmp_path / name, "new") == tmp_path / name
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "elsewhere" / name).read_text() == "new"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(OSError, match="loop"):
        write_whole(tmp_path / "loop", "new")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_an_old_file_keeps_its_mode(tmp_path, mode):
    path = tmp_path / "secret"
    path.write_text("old")
    path.chmod(mode)
    write_whole(path, "new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_a_new_file_has_the_mode_that_others_have(tmp_path):
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "locked"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # the superuser may write everything
    with pytest.raises(PermissionError, match="locked"):
        write_whole(path, "new")
    assert path.read_text() == "old"


def test_long_names_and_paths_that_are_none(tmp_path):
    assert write_whole(tmp_path / ("n" * 255), "text").read_text() == "text"
    with pytest.raises(KindError, match="path is 3; expected the name of a file"):
        mm.save(1, 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ParameterError, match=r"\. is a folder"):
        mm.save(1, ".")
    with pytest.raises(FileNotFoundError, match="nowhere/a"):
        write_whole(tmp_path / "nowhere" / "a", "text")
    assert to_write(tmp_path / "a") == (tmp_path / "a").resolve()


def test_a_failed_write_leaves_nothing_behind(tmp_path, monkeypatch):
    path = write_whole(tmp_path / "a", "old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/a'"):
        write_whole(path, "new")
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["a"])


WRITING = """
import sys, threading
import numpy as np
import meanmap as mm

def write(number):
    for i in range(ROUNDS):
        mm.save(np.full(20_000, 100 * number + i), sys.argv[1])

first = 10 * int(sys.argv[2])
writers = [threading.Thread(target=write, args=(first + i,)) for i in range(8)]
for each in writers: each.start()
for each in writers: each.join()
"""


def read_while(path, running) -> int:
    """How many files were read, each of them whole, while others write."""
    reads = 0
    while running():
        if path.exists():
            assert len(set(mm.load(path).tolist())) == 1
            reads += 1
    return reads


def test_eight_threads_save_to_one_path_and_no_reader_sees_a_cut_file(tmp_path):
    path, problems = tmp_path / "value", []

    def write(number):
        try:
            for i in range(12):
                mm.save(np.full(20_000, 100 * number + i), path)
        except Exception as problem:
            problems.append(problem)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for each in writers:
        each.start()
    reads = read_while(path, lambda: any(each.is_alive() for each in writers))
    assert problems == []
    assert reads > 5
    assert os.listdir(tmp_path) == ["value"]


@pytest.mark.slow
def test_four_processes_of_eight_threads_save_to_one_path(tmp_path):
    path = tmp_path / "value"
    code = WRITING.replace("ROUNDS", "50")
    writers = [subprocess.Popen([sys.executable, "-c", code, str(path), str(number)]) for number in range(4)]
    assert read_while(path, lambda: any(each.poll() is None for each in writers)) > 20
    assert [each.returncode for each in writers] == [0] * 4
    assert os.listdir(tmp_path) == ["value"]
