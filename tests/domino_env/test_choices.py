"""What seats have opened and left alone, against a plain second way from the actions, and on a deal by hand."""

import numpy as np
import pytest

from domino_env.choices import KINDS, choices, num_bytes, packed
from domino_env.engine import make_engine
from domino_env.tiles import PASS, PIPS, tile_index

GAMES = ("sport_book", "sport_club", "puerto_rico", "kozyol", "tiny_pairs", "blitz")


def plain(deals: list[list[tuple[int, int, int, int]]], viewer: int, seats: int) -> tuple[np.ndarray, np.ndarray]:
    """The same from (seat, action, left end, right end before it), one lay after the other."""
    masks, lead = np.zeros((len(deals), 5, seats), np.uint8), np.zeros(len(deals), np.uint32)
    for row, lays in enumerate(deals):
        if lays:
            lead[row] = 1 << (lays[0][1] % 28)
        for kind in (0, 2):
            counts: dict[tuple[int, int], int] = {}
            for seat, action, left, right in lays:
                tile = action % 28
                if left < 0:
                    suits = {k for k in range(7) if tile_index(f"{k}-{k}") == tile} or {
                        k for k in range(7) for j in range(7) if tile_index(f"{min(k, j)}-{max(k, j)}") == tile
                    }
                    suits = suits if kind == 0 else set()
                else:
                    end, other = (left, right) if action < 28 else (right, left)
                    suits = {int(PIPS[tile]) - end} if kind == 0 else {other} - {end}
                if kind == 0:
                    masks[row, 4, (seat - viewer) % seats] = sum(1 << suit for suit in suits)
                for suit in suits:
                    key = ((seat - viewer) % seats, suit)
                    counts[key] = counts.get(key, 0) + 1
            for (seat, suit), count in counts.items():
                masks[row, kind, seat] |= 1 << suit
                masks[row, kind + 1, seat] |= (count > 1) << suit
    return masks, lead


@pytest.mark.parametrize("game", GAMES)
def test_choices_against_the_actions(game: str) -> None:
    engine = make_engine(game, 60, seed=4)
    rng = np.random.default_rng(2)
    lays: list[list[tuple[int, int, int, int]]] = [[] for _ in range(60)]
    seen = 0
    for _ in range(40):
        for viewer in (0, engine.rules.seats - 1):
            found, lead = choices(engine.history(viewer), engine.rules)
            masks, first = plain(lays, viewer, engine.rules.seats)
            assert (found == masks).all() and (lead == first).all()
            both = packed(engine.history(viewer), engine.rules)
            assert both.shape == (60, num_bytes(engine.rules)) and (both[:, :-4] == masks.reshape(60, -1)).all()
            assert (both[:, -4:].copy().view("<u4")[:, 0] == first).all()
        actions, ends, mover = engine.sample_legal(rng), engine.ends(), engine.to_move()
        for row in range(len(lays)):
            if actions[row] < PASS:
                lays[row].append((int(mover[row]), int(actions[row]), *map(int, ends[row])))
        _, done = engine.step(actions)
        for row in np.flatnonzero(done):
            lays[row] = []
            seen += 1
    assert seen > 10 and found.dtype == np.uint8 and found.shape == (60, len(KINDS), engine.rules.seats)


def test_a_deal_by_hand() -> None:
    hands = [
        ["1-2", "0-0", "0-1", "0-2", "0-3", "0-4", "0-5"],
        ["2-3", "1-1", "1-3", "1-4", "1-5", "1-6", "0-6"],
        ["3-3", "2-2", "2-4", "2-5", "2-6", "3-4", "3-5"],
        ["3-6", "4-4", "4-5", "4-6", "5-5", "5-6", "6-6"],
    ]
    engine = make_engine("sport_book", 1)
    engine.reset(options={"hands": hands, "leader": 0})
    for word, side in (("1-2", "left"), ("2-3", "right"), ("3-3", "right"), ("3-6", "right")):
        engine.step(np.array([tile_index(word) + 28 * (side == "right")]))
    assert engine.ends().tolist() == [[1, 6]]
    masks, lead = choices(engine.history(0), "sport_book")
    opened, twice, alone, alone_twice, last = masks[0].tolist()
    assert lead.tolist() == [1 << tile_index("1-2")] and last == opened  # each has laid one tile
    assert opened == [1 << 1 | 1 << 2, 1 << 3, 1 << 3, 1 << 6]  # the first tile opens both its suits
    assert alone == [0, 1 << 1, 1 << 1, 1 << 1]  # all three leave the end 1 alone
    assert twice == alone_twice == [0, 0, 0, 0]
    assert choices(engine.history(1), "sport_book")[0][0, 0].tolist() == [1 << 3, 1 << 3, 1 << 6, 1 << 1 | 1 << 2]


def test_nothing_yet_and_nonsense() -> None:
    assert not packed(np.full((3, 4), -1, np.int16)).any()
    assert packed(np.zeros((0, 4), np.int16)).shape == (0, 24)
    with pytest.raises(ValueError, match="no events"):
        choices(np.array([[63]], np.int16))
