"""Sets of ends, against laying one tile after the other on one line after the other."""

import numpy as np
import pytest

from agents.lines import NO_TILE, lay, lay_left, lay_right, lines_of, one_line
from domino_env.tiles import HIGH, LOW, NUM_TILES


def plainly(lines: set[tuple[int, int]], tile: int, sides: tuple[int, ...]) -> set[tuple[int, int]]:
    """Lines after a tile is laid at one of the sides of any of these."""
    after = set()
    for line in lines:
        for side in sides:
            pair = [int(LOW[tile]), int(HIGH[tile])]
            if line[side] in pair:
                new = list(line)
                new[side] = sum(pair) - line[side]
                after.add(tuple(new))
    return after


@pytest.mark.parametrize(("move", "sides"), [(lay_left, (0,)), (lay_right, (1,)), (lay, (0, 1))])
def test_lay__every_tile_on_sets_of_lines(move, sides):
    rng = np.random.default_rng(1)
    chosen = [set(map(tuple, rng.integers(0, 7, (size, 2)).tolist())) for size in (0, 1, 2, 5, 12, 40)]
    for tile in range(NUM_TILES):
        ends = np.array([sum(1 << 7 * left + right for left, right in lines) for lines in chosen], np.uint64)
        after = move(ends, np.full(len(chosen), tile))
        which, left, right = lines_of(after)
        for i, lines in enumerate(chosen):
            assert set(zip(left[which == i].tolist(), right[which == i].tolist())) == plainly(lines, tile, sides)


def test_lay__what_is_no_tile_fits_nowhere():
    everything = np.array([(1 << 49) - 1] * 2, np.uint64)
    assert not lay(everything, np.array([NO_TILE, NO_TILE + 1])).any()


def test_one_line():
    ends = one_line(np.array([3, 0, 6, 7]), np.array([4, 0, 6, 7]))
    which, left, right = lines_of(ends)
    assert which.tolist() == [0, 1, 2], "an empty line is in no set"
    assert left.tolist() == [3, 0, 6] and right.tolist() == [4, 0, 6]
