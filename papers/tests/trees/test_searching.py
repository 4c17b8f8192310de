"""Recall, growing evidence, the tree of dependence, and what a camera sees."""

import os

import numpy as np
import pytest
import scipy.sparse

from meanmap_papers.experiment import Setting
from meanmap_papers.registry import find
from meanmap_papers.trees.languages import LINGUISTIC, dependence_tree
from meanmap_papers.trees.room import frames, panorama, random_walk
from meanmap_papers.trees.rotations import nearest, trace
from meanmap_papers.trees.searching import inwards, recall


def test_recall_counts_the_candidates_before_a_querys_own():
    scores = np.array([[3.0, 2.0, 1.0], [5.0, 4.0, 6.0], [0.0, 1.0, 2.0]])  # ranks 0, 2, 0
    np.testing.assert_allclose(recall(scores)[:3], [2 / 3, 2 / 3, 1])
    np.testing.assert_allclose(recall(np.zeros((101, 101)))[[0, 49]], [0, 0])  # a tie of all is the middle, rank 50


def test_evidence_grows_from_the_leaves_to_the_target():
    steps = inwards(LINGUISTIC, "en")
    assert [len(step) for step in steps] == [4, 5, 6, 7, 8]
    assert set(steps[0]) == {"pt", "it", "nl", "sv"}
    assert set(steps[-1][-2:]) == {"fr", "de"}


def test_a_chain_of_copies_is_found_by_its_dependence():
    rng = np.random.default_rng(0)
    samples = {"a": scipy.sparse.random_array((200, 30), density=0.2, rng=rng).toarray()}
    for before, name in (("a", "b"), ("b", "c")):
        samples[name] = samples[before] + 0.1 * rng.normal(size=(200, 30))
    assert dependence_tree(samples, dict.fromkeys(samples, 2.0)) == [("a", "b"), ("b", "c")]


def test_walks_are_smooth_rotations():
    walk = random_walk(200, np.random.default_rng(1))
    np.testing.assert_allclose(walk @ walk.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (200, 3, 3)), atol=1e-12)
    assert np.linalg.det(walk).min() > 0.99
    assert trace(walk[1:], walk[:-1]).min() > 2.9  # less than 19 degrees a frame
    np.testing.assert_allclose(nearest(2.0 * walk), walk, atol=1e-10)


def test_frames_are_parts_of_the_room():
    room = panorama()
    rows, columns, _ = room.shape
    turn = 2 * np.pi * 90 / columns  # a camera that turns to the right by 90 columns of the picture
    right = np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])
    ahead, aside = frames(np.stack([np.eye(3), right]), 3, 5)
    middle = slice(rows // 2 - 6, rows // 2 + 6)
    for frame, turned in ((ahead, 0), (aside, 90)):
        column = columns // 2 + turned
        expected = room[middle, column - 6 : column + 6].mean(axis=(0, 1))
        np.testing.assert_allclose(frame[1, 2], expected, atol=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("id", ["trees-figure-1", "trees-figure-2"])
def test_experiments_run_at_their_smallest(id):
    experiment = find(id)
    if experiment.data and not os.environ.get("MEANMAP_DATA"):
        pytest.skip("MEANMAP_DATA names no folder with the documents")
    outcome = experiment.run(Setting("smoke"))
    assert {name for claim in experiment.claims for name in claim.names} <= set(outcome.numbers)
    assert len(outcome.figures) == 2
