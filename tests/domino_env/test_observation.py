"""What a seat sees: the layout, the packed form, a position worked out by hand, and that nothing hidden shows."""

import random
from pathlib import Path

import numpy as np
import pytest

from domino_env import aec, make_engine
from tests.reference import GAMES, TILES, Table, make_game
from tests.twin import engine_of, mask_in, tiles_in

ROOT = Path(__file__).parents[2]
HANDS = [
    ["0-1", "0-2", "0-6", "1-2", "3-3", "5-5", "6-6"],
    ["0-0", "0-3", "0-4", "0-5", "2-2", "2-6", "4-6"],
    ["1-1", "1-3", "3-4", "3-6", "4-4", "5-6", "2-5"],
    ["1-4", "1-5", "1-6", "2-3", "2-4", "3-5", "4-5"],
]


def parts(engine, seat, row=0):
    """The bits of an observation that are on, by the name of their slice."""
    seen = engine.observe(seat)[row]
    return {name: np.flatnonzero(seen[part]).tolist() for name, part in engine.layout.slices.items()}


def test_layout__four_seats():
    layout = make_engine("sport_book", 1).layout
    assert layout.size == 256 and layout.nbytes == 32
    names = ("me", "left", "partner", "right")
    lengths = {name: part.stop - part.start for name, part in layout.slices.items()}
    assert lengths == {
        "hand": 28,
        "leader": 4,
        "deal": 4,
        **{f"played_{name}": 28 for name in names},
        "end_left": 7,
        "end_right": 7,
        "score_ahead": 9,
        "score_behind": 9,
        **{f"passed_{name}": 7 for name in names},
        **{f"size_{name}": 7 for name in names},
    }


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"pairs": False},
        {"pairs": False, "seats": 2, "hand_size": 14, "redeal": False},
        {"max_pip": 3, "hand_size": 2},
    ],
)
def test_layout__slices_are_apart_and_in_the_table(keywords):
    layout = make_engine("sport_book", 1, **keywords).layout
    used = np.zeros(layout.size, int)
    for name, part in layout.slices.items():
        used[part] += 1
        assert f"`{name}`" in layout.table() and f"{part.start}..{part.stop - 1}" in layout.table()
    assert used.max() == 1
    assert layout.size % 8 == 0 and layout.nbytes == layout.size // 8
    assert len(layout.table().splitlines()) == len(layout.slices) + 2


def test_env_card__holds_the_table():
    """The card is written by hand but for this table, which must be what the slices say."""
    table = make_engine("sport_book", 1).layout.table()
    assert aec.__doc__ is not None and f"\n\n{table}\n\n" in aec.__doc__
    assert "(256,)" in aec.__doc__


@pytest.mark.parametrize("rules", ["sport_book", "kozyol", "tiny_pairs"])
@pytest.mark.parametrize("episode", ["deal", "match"])
def test_packed__is_the_same(rules, episode):
    """Packed bytes unpack to the vector, least bit first; bits of no slice are 0; the mover's view is its seat's."""
    engine = make_engine(rules, 200, seed=81, episode=episode)
    rng = np.random.default_rng(81)
    used = np.zeros(engine.layout.size, bool)
    for part in engine.layout.slices.values():
        used[part] = True
    for _ in range(40):
        for seat in (None, 0, 1, 2, 3, engine.to_move(), rng.integers(0, 4, 200)):
            seen, packed = engine.observe(seat), engine.observe(seat, packed=True)
            assert seen.shape == (200, engine.layout.size) and seen.dtype == np.uint8 and seen.max() <= 1
            assert packed.shape == (200, engine.layout.nbytes) and packed.dtype == np.uint8
            assert np.array_equal(np.unpackbits(packed, axis=1, bitorder="little"), seen)
            assert not seen[:, ~used].any()
        assert np.array_equal(engine.observe(), engine.observe(engine.to_move()))
        assert np.array_equal(engine.history(), engine.history(engine.to_move()))
        seats = rng.integers(0, 4, 200)
        each = np.stack([engine.observe(seat) for seat in range(4)])
        assert np.array_equal(engine.observe(seats), each[seats, np.arange(200)])
        each = np.stack([engine.history(seat) for seat in range(4)])
        assert np.array_equal(engine.history(seats), each[seats, np.arange(200)])
        engine.step(engine.sample_legal(rng))


def test_view__by_hand():
    """Seat 1 leads 0-4; seat 2 lays 3-4 right; seat 3 lays 2-3 right; seat 0 0-1 left; seat 1 passes on nothing."""
    engine = make_engine("sport_book", 1, seed=1)
    engine.reset(options={"hands": HANDS, "leader": 1})
    # 0-4 | 4-3 | 3-2 | 0: 6-0 on the left | 1 lays 4-6 on the left | 2 lays 4-4 | 3 lays 1-4 -> ends 1, 2
    for tile, right in [("0-4", 0), ("3-4", 1), ("2-3", 1), ("0-6", 0), ("4-6", 0), ("4-4", 0), ("1-4", 0), ("1-2", 1)]:
        engine.step(np.array([TILES.index((int(tile[0]), int(tile[2]))) + 28 * right]))
    assert engine.ends()[0].tolist() == [1, 1] and engine.to_move()[0] == 1
    engine.step(np.array([56]))  # seat 1 has no 1
    assert engine.to_move()[0] == 2

    def tiles(*names):
        return [TILES.index((int(a[0]), int(a[2]))) for a in names]

    assert parts(engine, 2) == {
        "hand": sorted(tiles("1-1", "1-3", "3-6", "5-6", "2-5")),
        "leader": [3],
        "deal": [],
        "played_me": sorted(tiles("3-4", "4-4")),
        "played_left": sorted(tiles("2-3", "1-4")),
        "played_partner": sorted(tiles("0-6", "1-2")),
        "played_right": sorted(tiles("0-4", "4-6")),
        "end_left": [1],
        "end_right": [1],
        "score_ahead": [],
        "score_behind": [],
        "passed_me": [],
        "passed_left": [],
        "passed_partner": [],
        "passed_right": [1],
        "size_me": [0, 1, 2, 3, 4],
        "size_left": [0, 1, 2, 3, 4],
        "size_partner": [0, 1, 2, 3, 4],
        "size_right": [0, 1, 2, 3, 4],
    }
    events = engine.history(2)[0]
    shown = [(e >> 12, e >> 9 & 7, e >> 6 & 7, e & 63) for e in events[:9].tolist()]
    assert shown == [
        (3, 7, 7, tiles("0-4")[0]),
        (0, 0, 4, tiles("3-4")[0] + 28),
        (1, 0, 3, tiles("2-3")[0] + 28),
        (2, 0, 2, tiles("0-6")[0]),
        (3, 6, 2, tiles("4-6")[0]),
        (0, 4, 2, tiles("4-4")[0]),
        (1, 4, 2, tiles("1-4")[0]),
        (2, 1, 2, tiles("1-2")[0] + 28),
        (3, 1, 1, 56),
    ]
    assert (events[9:] == -1).all() and len(events) == engine.rules.max_plies


def test_view__match_parts():
    """Deal of the four and the score, from the side of the seat that asks."""
    engine = make_engine("sport_club", 64, seed=82, episode="match")
    rng = np.random.default_rng(82)
    layout = engine.layout
    steps = np.array([1, 5, 10, 20, 35, 50, 75, 100, 150])
    seen_deals, most = set(), 0
    for _ in range(150):
        score = engine.score()
        for seat in range(4):
            seen = engine.observe(seat)
            ahead = score[:, seat % 2] - score[:, 1 - seat % 2]
            assert np.array_equal(seen[:, layout.slices["deal"]], np.eye(4, dtype=np.uint8)[engine.deal_index() % 4])
            assert np.array_equal(seen[:, layout.slices["score_ahead"]], ahead[:, None] >= steps)
            assert np.array_equal(seen[:, layout.slices["score_behind"]], -ahead[:, None] >= steps)
        seen_deals |= set(engine.deal_index().tolist())
        most = max(most, int(abs(ahead).max()))
        engine.step(engine.sample_legal(rng))
    assert seen_deals == {0, 1, 2, 3} and most > 50


def test_view__is_relative():
    """Every seat moved one place on: each sees what its right neighbour saw."""
    rng = np.random.default_rng(83)
    one = make_engine("kozyol", 128, seed=83)
    two = make_engine("kozyol", 128, seed=83)
    leader = rng.integers(0, 4, 128)
    hands = one.hands()
    one.deal(hands, leader)
    two.deal(np.roll(hands, 1, axis=1), (leader + 1) % 4)
    while not one.over().any():
        for seat in range(4):
            assert np.array_equal(one.observe(seat), two.observe((seat + 1) % 4))
            assert np.array_equal(one.history(seat), two.history((seat + 1) % 4))
        actions = one.sample_legal(rng)
        one.step(actions, autoreset=False)
        two.step(actions, autoreset=False)


def rearranged(table, seat, rng, tries=60):
    """Another deal in which all that `seat` has seen would have happened too: its first hands, or None."""
    game = table.game
    others = [other for other in range(game.seats) if other != seat]
    dealt = {tile for hand in table.dealt for tile in hand}
    unseen = [tile for other in others for tile in table.hands[other]] + [t for t in game.tiles if t not in dealt]
    for _ in range(tries):
        pool = rng.sample(unseen, len(unseen))
        hands = [[] for _ in range(game.seats)]
        for other in others:
            size = len(table.hands[other])
            hands[other] = table.played(other) + pool[:size]
            pool = pool[size:]
        hands[seat] = list(table.dealt[seat])
        twin = Table(game, hands, table.leader)
        try:
            for event in table.events:
                twin.play(event.action)
        except ValueError:
            continue
        if twin.result is None:
            return hands
    return None


POINTS = [(name, plies) for name in sorted(GAMES) for plies in (0, 1, 3, 4, 8, 12, 16, 20)]


@pytest.mark.parametrize(("name", "plies"), [p for p in POINTS if p[0] != "tiny_pairs" or p[1] < 4])
def test_hidden_hands__do_not_show(name, plies):
    """Byte-equal under any re-arrangement of the tiles that the seat cannot see, those left over too."""
    game = make_game(name, redeal=False, lead="rotation")
    seed = 84 + plies
    rng, draws = random.Random(seed), np.random.default_rng(seed)
    engine = engine_of(game, 200, seed=seed)
    deals, leaders = engine.hands(), engine.leader()
    log = []
    for _ in range(plies):
        log.append(engine.sample_legal(draws))
        engine.step(log[-1], autoreset=False)
        keep = ~engine.over()
        engine, log = engine.take(keep), [actions[keep] for actions in log]
        deals, leaders = deals[keep], leaders[keep]
    rows = min(40, len(deals))
    engine = engine.take(np.arange(rows))
    tables = []
    for row in range(rows):
        table = Table(game, [tiles_in(mask) for mask in deals[row]], int(leaders[row]))
        for actions in log:
            table.play(int(actions[row]))
        tables.append(table)
    changed = 0
    for seat in range(4):
        others = [rearranged(table, seat, rng) for table in tables]
        chosen = [hands or table.dealt for hands, table in zip(others, tables, strict=True)]
        masks = np.array([[mask_in(hand) for hand in hands] for hands in chosen], np.uint32)
        changed += int((masks != deals[:rows]).any(axis=1).sum())
        twin = engine_of(game, rows, seed=1)
        twin.deal(masks, leaders[:rows])
        for actions in log:
            twin.step(actions[:rows], autoreset=False)
        assert engine.observe(seat, packed=True).tobytes() == twin.observe(seat, packed=True).tobytes()
        assert engine.observe(seat).tobytes() == twin.observe(seat).tobytes()
        assert engine.history(seat).tobytes() == twin.history(seat).tobytes()
        assert engine.legal(seat).tobytes() == twin.legal(seat).tobytes()
    assert changed > rows, "too few deals could be re-arranged for the test to mean anything"


@pytest.mark.parametrize(
    ("card", "game", "sizes"), [("blitz", "blitz", range(4, 9)), ("blind", "blind_blitz", (4, 3, 2))]
)
def test_cards__tables_and_sizes(card, game, sizes):
    """The card of a game shows its layout and its sizes."""
    text = (ROOT / "docs" / f"{card}.md").read_text(encoding="utf-8")
    assert f"\n\n{make_engine(game, 1).layout.table()}\n\n" in text
    for seats in sizes:
        assert f"({make_engine(game, 1, seats=seats).layout.size},)" in text
    assert f"Discrete({make_engine(game, 1).num_actions})" in text
