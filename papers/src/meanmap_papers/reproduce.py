"""Run experiments in separate processes, store each outcome in a file, and compare them with the papers' claims."""

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread

from meanmap.core.executors import check_executor
from meanmap.core.progress import track
from meanmap.core.threads import one_blas_thread
from meanmap_papers.experiment import Experiment, Setting
from meanmap_papers.parts import Parts
from meanmap_papers.record import Record, read_record, record_of, record_path, write_record
from meanmap_papers.registry import find

__all__ = ["Failure", "reproduce", "run_one"]


@dataclass(frozen=True)
class Failure:
    """An experiment that could not be run, and why."""

    id: str
    reason: str


def run_one(id: str, setting: Setting, folder: Path) -> Record:
    """Run one experiment, or read what an earlier run with the same setting left: its record, or parts of one."""
    experiment, path = find(id), record_path(folder, id, setting)
    kept = read_record(path)
    # One that lacks a claim's number is from an earlier version of the experiment.
    if kept is not None and _is_whole(kept, experiment):
        return kept
    parts, start = Parts(path.with_suffix(".parts")), time.process_time()
    with one_blas_thread():  # the processes are as many as the processors
        outcome = experiment.run(replace(setting, parts=parts))
    record = record_of(experiment, setting, outcome, parts.seconds + time.process_time() - start)
    write_record(path, record)
    parts.path.unlink(missing_ok=True)
    return record


def _is_whole(record: Record, experiment: Experiment) -> bool:
    """Whether a record has the numbers of all claims that its scale is able to show."""
    shown = [claim for claim in experiment.claims if record.setting.scale in claim.scales]
    return all(name in record.numbers for claim in shown for name in claim.names)


def reproduce(
    experiments: Sequence[Experiment],
    setting: Setting,
    folder: str | Path,
    workers: int = 2,
    executor: Executor | None = None,
) -> list[Record | Failure]:
    """The records of several experiments, in their order.

    Each runs in a process of its own and is written to `folder` as soon as it is done, so that a run that was stopped
    goes on where it was: records for the same version, scale and seed are read and not run again. An experiment that
    raises, for example because its data are not available, becomes a `Failure` and does not affect the others.

    Parameters
    ----------
    experiments : sequence of Experiment
        What to run.
    setting : Setting
        Scale and seed.
    folder : path
        The folder of records, created if necessary.
    workers : int
        Processes at a time.
    executor : concurrent.futures.Executor, optional
        Who runs them instead, such as Dask's workers (`client.get_executor()`); these need the same folder.
    """
    check_executor(executor)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    longest_first = sorted(experiments, key=lambda each: -each.minutes[setting.scale])
    found: dict[str, Record | Failure] = {}
    with _pool(workers) if executor is None else nullcontext(executor) as pool:
        waiting = {pool.submit(run_one, each.id, setting, folder): each.id for each in longest_first}
        for done in track(as_completed(waiting), "experiments", total=len(waiting)):
            id = waiting[done]
            try:
                found[id] = done.result()
            except Exception as problem:  # its own failure; the report says so
                found[id] = Failure(id, f"{type(problem).__name__}: {problem}")
    return [found[each.id] for each in experiments]


@contextmanager
def _pool(workers: int) -> Iterator[Executor]:
    """A fresh interpreter for each: a forked JAX hangs, and the memory of one experiment is not the next one's."""
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _watch_over_parent, max_tasks_per_child=1)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _watch_over_parent() -> None:
    """End this worker when the process that started it was killed: it would go on for hours."""
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
