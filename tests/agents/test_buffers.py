"""The ring of the newest rows, and the even sample of all (B30)."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch

from agents.buffers import Replay, Reservoir

NUMBER = np.dtype([("number", "<i4"), ("bits", "u1", 3)])


def rows(first: int, last: int) -> np.ndarray:
    made = np.zeros(last - first, NUMBER)
    made["number"] = np.arange(first, last)
    made["bits"] = made["number"][:, None] % 251
    return made


def numbers(buffer: Replay | Reservoir) -> list[int]:
    assert (buffer.rows["bits"] == buffer.rows["number"][:, None] % 251).all()  # rows stay whole
    return buffer.rows["number"].tolist()


# -- replay ----------------------------------------------------------------------------------------------------------


def test_replay_holds_the_newest() -> None:
    replay = Replay(5, NUMBER)
    assert len(replay) == 0 and numbers(replay) == []
    replay.add(rows(0, 3))
    assert numbers(replay) == [0, 1, 2]
    replay.add(rows(3, 7))  # over the end of the ring
    assert numbers(replay) == [5, 6, 2, 3, 4] and len(replay) == 5
    replay.add(rows(7, 20))  # more than it holds: only the last five are looked at
    assert numbers(replay) == [15, 16, 17, 18, 19] and replay.added == 20
    replay.add(rows(20, 20))
    assert replay.added == 20
    replay.add(rows(20, 21))
    assert numbers(replay) == [20, 16, 17, 18, 19]


@pytest.mark.parametrize("sizes", [[1] * 23, [23], [4, 0, 11, 1, 7]])
def test_replay_does_not_depend_on_how_rows_come(sizes: list[int]) -> None:
    replay, first = Replay(8, NUMBER), 0
    for size in sizes:
        replay.add(rows(first, first + size))
        first += size
    assert numbers(replay) == [16, 17, 18, 19, 20, 21, 22, 15]


def test_sample_is_uniform_over_what_is_there_and_a_copy() -> None:
    replay = Replay(100, NUMBER)
    replay.add(rows(0, 20))
    drawn = replay.sample((200, 100), np.random.default_rng(0))
    assert drawn.shape == (200, 100) and drawn.dtype == NUMBER
    counts = np.bincount(drawn["number"].ravel(), minlength=100)
    assert (counts[20:] == 0).all() and np.abs(counts[:20] - 1000).max() < 5 * np.sqrt(1000)
    drawn["number"] = -1
    assert numbers(replay) == list(range(20))
    again = replay.sample(7, np.random.default_rng(3)), replay.sample(7, np.random.default_rng(3))
    assert np.array_equal(*again)
    with pytest.raises(ValueError, match="nothing to sample from"):
        Replay(3, NUMBER).sample(1, np.random.default_rng(0))


def test_capacity_is_checked() -> None:
    for kind in (Replay, Reservoir):
        with pytest.raises(ValueError, match="capacity must be at least 1, got 0"):
            kind(0, NUMBER)


# -- reservoir -------------------------------------------------------------------------------------------------------


def frequencies(capacity: int, stream: int, runs: int, split: Callable[[np.random.Generator], list[int]]) -> np.ndarray:
    """How often each row of a stream is kept in the end."""
    rng, kept = np.random.default_rng(30), []
    every = rows(0, stream)
    for _ in range(runs):
        reservoir = Reservoir(capacity, NUMBER)
        cuts = [0, *split(rng), stream]
        for first, last in itertools.pairwise(cuts):
            reservoir.add(every[first:last], rng)
            assert len(reservoir.rows) == min(last, capacity)
        kept.append(reservoir.rows["number"])
    assert (np.diff(np.sort(kept, axis=1), axis=1) > 0).all()  # no row is there twice
    return np.bincount(np.ravel(kept), minlength=stream) / runs


@pytest.mark.parametrize(
    ("split", "runs", "tolerance"),
    [
        (lambda rng: [], 20_000, 0.008),
        (lambda rng: sorted(rng.integers(0, 101, 3).tolist()), 2_000, 0.03),
        (lambda rng: list(range(1, 100)), 200, 0.09),
    ],
    ids=["at once", "in four parts", "one by one"],
)
def test_b30_every_row_is_kept_as_often(
    split: Callable[[np.random.Generator], list[int]], runs: int, tolerance: float
) -> None:
    kept = frequencies(10, 100, runs, split)
    assert kept.sum() == pytest.approx(10)
    assert np.abs(kept - 0.1).max() <= tolerance


@pytest.mark.parametrize(("split", "runs", "tolerance"), [([], 20_000, 0.01), ([1], 4_000, 0.03)], ids=str)
def test_b30_one_of_two(split: list[int], runs: int, tolerance: float) -> None:
    assert np.abs(frequencies(1, 2, runs, lambda rng: split) - 0.5).max() <= tolerance


def test_b30_the_places_are_independent() -> None:
    """Of a stream of four each of the six pairs is kept as often, whatever the order of their coming."""
    rng, pairs = np.random.default_rng(2), np.zeros((4, 4))
    for _ in range(3_000):
        reservoir = Reservoir(2, NUMBER)
        reservoir.add(rows(0, 4), rng)
        low, high = sorted(numbers(reservoir))
        pairs[low, high] += 1
    assert np.abs(pairs[np.triu_indices(4, 1)] / 3_000 - 1 / 6).max() < 0.03


def test_reservoir_begins_with_the_first_in_their_order() -> None:
    reservoir = Reservoir(6, NUMBER)
    reservoir.add(rows(0, 4), np.random.default_rng(0))
    assert numbers(reservoir) == [0, 1, 2, 3]
    reservoir.add(rows(4, 6), np.random.default_rng(0))
    assert numbers(reservoir) == [0, 1, 2, 3, 4, 5]


# -- keeping ---------------------------------------------------------------------------------------------------------


def add(buffer: Replay | Reservoir, new: np.ndarray, seed: int) -> None:
    if isinstance(buffer, Replay):
        buffer.add(new)
    else:
        buffer.add(new, np.random.default_rng(seed))


@pytest.mark.parametrize("kind", [Replay, Reservoir])
@pytest.mark.parametrize("before", [0, 3, 8, 21])
def test_b30_the_count_goes_on_after_saving(kind: type[Replay] | type[Reservoir], before: int) -> None:
    """What it holds, and what it will: at the same adds it goes the same way as one that was never saved."""
    whole, again = kind(8, NUMBER), kind(8, NUMBER)
    add(whole, rows(0, before), 1)
    tensors = {name: tensor.clone() for name, tensor in whole.tensors().items()}
    assert tensors["rows"].shape == (min(before, 8), NUMBER.itemsize) and tensors["rows"].dtype == torch.uint8
    again.restore(tensors)
    assert again.added == before and numbers(again) == numbers(whole)
    for buffer in (whole, again):
        add(buffer, rows(before, before + 30), 2)
    assert again.added == before + 30 and numbers(again) == numbers(whole)
    assert all(torch.equal(tensor, again.tensors()[name]) for name, tensor in whole.tensors().items())


def test_restore_refuses_what_is_of_other_rows() -> None:
    full = Replay(8, NUMBER)
    full.add(rows(0, 20))
    for other in (Replay(9, NUMBER), Replay(7, NUMBER), Replay(8, np.dtype("<i4"))):
        with pytest.raises(ValueError, match=r"rows are torch\.uint8 \(8, 7\), expected torch\.uint8 \("):
            other.restore(full.tensors())
        assert other.added == 0
    tensors = full.tensors()
    with pytest.raises(ValueError, match=r"rows are torch\.int32"):
        Replay(8, NUMBER).restore({**tensors, "rows": tensors["rows"].int()})
    with pytest.raises(KeyError, match="added"):
        Replay(8, NUMBER).restore({"rows": tensors["rows"]})
