"""Shuffling, re-deals, given deals, duplicate boards, and the text notation of a deal.

Clauses: S1 (hands), S4 (re-deal), S2 (leaders of boards), K4 (small sets), B1, B2 (blitz), R1 (rows and stock), R3 (the
tile that leads). Every row of a batch
has its own counter-based random stream, so a row's deals depend on its key alone: not on the batch size, nor on earlier
play.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from domino_env.rules import PRESETS, Rules, get_rules
from domino_env.tiles import (
    HIGH,
    LOW,
    NUM_TILES,
    PIPS,
    is_whole,
    mask_of,
    tile_index,
    tile_name,
)

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TILE_STEP = np.uint64(0xD1342543DE82EF95)
_MAX_ATTEMPTS = 1 << 16  # deal numbers of a stream are spaced so far apart; S4 strikes 1.9 % of shuffles


def mix(x: np.ndarray) -> np.ndarray:
    """SplitMix64's finaliser (Steele, Lea and Flood 2014; Stafford's variant 13), in place on a uint64 array."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def row_keys(seed: int | None, rows: np.ndarray, salt: int = 0) -> np.ndarray:
    """Keys of the random streams of some rows of a seed.

    Args:
        seed: a whole number >= 0, or None for fresh entropy.
        rows: (n,) row numbers.
        salt: separates families of streams of one seed.
    Returns:
        (n,) uint64.
    Raises:
        ValueError: a negative or non-integer seed.
    """
    if seed is not None and (not is_whole(seed) or seed < 0):
        raise ValueError(f"seed={seed!r} must be a whole number >= 0 or None")
    entropy = np.random.SeedSequence(None if seed is None else int(seed), spawn_key=(salt,))
    base = entropy.generate_state(1, np.uint64)[0]
    return mix(base + (np.asarray(rows).astype(np.uint64) + np.uint64(1)) * GOLDEN)


class Streams:
    """A counter-based uniform random stream a row; serves where a ``Generator`` is asked for ``random(n)``."""

    def __init__(self, keys: np.ndarray, counter: int = 0) -> None:
        self.keys = np.asarray(keys, dtype=np.uint64)  # (n,)
        self.counter = counter

    @classmethod
    def of(cls, seed: int | None, rows: np.ndarray) -> "Streams":
        """Streams of some row numbers of a seed."""
        return cls(row_keys(seed, rows, salt=1))

    def random(self, size: int) -> np.ndarray:
        """The next uniform number of every row: (n,) float64 in [0, 1). ``size`` must be the number of rows."""
        if size != len(self.keys):
            raise ValueError(f"these streams serve {len(self.keys)} rows; {size} numbers were asked for")
        self.counter += 1
        step = np.uint64(self.counter * int(GOLDEN) & (1 << 64) - 1)
        return (mix(self.keys + step) >> np.uint64(11)) * 2.0**-53

    def take(self, rows: np.ndarray) -> "Streams":
        """The streams of only these rows, at the same place."""
        return Streams(self.keys[rows], self.counter)


def _strike_tables() -> tuple[np.ndarray, np.ndarray]:
    """Per half of a hand (14 tiles): how many doubles and how many tiles of each suit, a nibble each."""
    weight = np.zeros(NUM_TILES, dtype=np.uint32)
    for tile in range(NUM_TILES):
        weight[tile] = int(LOW[tile] == HIGH[tile]) << 28
        for suit in {int(LOW[tile]), int(HIGH[tile])}:
            weight[tile] += np.uint32(1 << 4 * suit)
    half = np.arange(1 << 14)[:, None] >> np.arange(14) & 1
    return (half @ weight[:14]).astype(np.uint32), (half @ weight[14:]).astype(np.uint32)


_STRIKE_LOW, _STRIKE_HIGH = _strike_tables()
# Added to the counts, it carries into a nibble's top bit at five doubles or at six of a suit; no count exceeds 7.
_STRIKE_BIAS = np.uint32(0x32222222)


def struck(hands: np.ndarray) -> np.ndarray:
    """Whether S4 deals again: some seat holds five or more doubles, or six or more tiles of one suit.

    Args:
        hands: (n, seats) uint32 masks of at most seven tiles.
    Returns:
        (n,) bool.
    """
    counts = _STRIKE_LOW.take(hands & 0x3FFF)
    counts += _STRIKE_HIGH.take(hands >> 14)
    counts += _STRIKE_BIAS
    counts &= np.uint32(0x88888888)
    return np.bitwise_or.reduce(counts, axis=1) != 0


def shuffle(rules: Rules, keys: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Deal number ``counts[i]`` of the stream ``keys[i]``, dealt again under S4 where the rules have it.

    Args:
        rules: the game.
        keys: (n,) uint64 stream keys.
        counts: (n,) whole numbers.
    Returns:
        hands: (n, seats) uint32 masks, uniformly distributed over the admissible deals.
    """
    tiles = np.array(rules.tiles, dtype=np.uint64)
    steps = tiles * _TILE_STEP
    dealt = rules.seats * rules.hand_size

    def draw(position: np.ndarray) -> np.ndarray:
        order = mix(mix(position.copy())[:, None] + steps)
        # The tile rides in the low five bits of its random key, so one sort of plain numbers shuffles.
        order &= ~np.uint64(31)
        order |= tiles
        order.sort(axis=1)
        bits = np.uint32(1) << (order.T[:dealt] & np.uint64(31)).astype(np.uint32)
        return np.bitwise_or.reduce(bits.reshape(rules.seats, rules.hand_size, -1), axis=1).T

    position = keys + counts.astype(np.uint64) * np.uint64(_MAX_ATTEMPTS) * GOLDEN
    hands = draw(position)
    if rules.redeal:
        again = struck(hands).nonzero()[0]
        while len(again):
            position[again] += GOLDEN
            hands[again] = drawn = draw(position[again])
            again = again[struck(drawn)]
    return hands


def shuffle_rows(rules: Rules, keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Deal number ``counts[i]`` of the stream ``keys[i]`` of a blind game (R1), and who leads it by lot (R3).

    Returns:
        order: (n, num_tiles) uint8, the tiles shuffled: the row of each seat from left to right, then the stock as it
        is drawn; lot: (n,) int64 seats.
    """
    tiles = np.array(rules.tiles, dtype=np.uint64)
    place = mix(keys + counts.astype(np.uint64) * np.uint64(_MAX_ATTEMPTS) * GOLDEN)
    order = mix(place[:, None] + tiles * _TILE_STEP)
    order &= ~np.uint64(31)
    order |= tiles  # as in `shuffle`
    order.sort(axis=1)
    lot = mix(place + np.uint64(NUM_TILES * int(_TILE_STEP) & (1 << 64) - 1)) >> np.uint64(32)
    return (order & np.uint64(31)).astype(np.uint8), (lot * np.uint64(rules.seats) >> np.uint64(32)).astype(np.int64)


def boards(rules: Rules, seed: int, start: int, count: int) -> tuple[np.ndarray, ...]:
    """Duplicate boards ``start`` .. ``start + count - 1`` of a seed; a board is the same however boards are batched.

    Returns:
        What ``engine.deal(*boards)`` takes: hands (count, seats) uint32 and leader (count,) int64, and where 6-6 leads
        (K1) the tiles that may be led, (count,) uint32 masks; of a blind game hands (count, seats, hand_size) tile
        numbers from left to right, leader, and stock (count, leftover). Leaders rotate over the boards, unless a tile
        decides (K1, B2, R3).
    Raises:
        ValueError: a bad seed, or numbers that are not whole or negative.
    """
    for name, value in (("start", start), ("count", count)):
        if not is_whole(value) or value < 0:
            raise ValueError(f"{name}={value!r} must be a whole number >= 0")
    rows = np.arange(start, start + count)
    keys, leader = row_keys(seed, rows, salt=2), rows % rules.seats
    if rules.rows:
        order, _ = shuffle_rows(rules, keys, np.zeros(count, dtype=np.int64))
        dealt = rules.seats * rules.hand_size
        if rules.lead != "lot":
            leader = leading_place(rules, order) // rules.hand_size
        return order[:, :dealt].reshape(count, rules.seats, rules.hand_size), leader, order[:, dealt:]
    hands = shuffle(rules, keys, np.zeros(count, dtype=np.int64))
    if rules.lead == "double_six":
        return hands, holder(hands, NUM_TILES - 1), np.full(count, 1 << NUM_TILES - 1, np.uint32)
    if rules.lead == "low":
        leader, _ = lowest(rules, hands)
    return hands, leader


_RANK = PIPS.astype(np.int64) * 8 + LOW  # S11, B2, R3: by pips, then by the smaller suit


def lowest(rules: Rules, hands: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest tile dealt, which leads (B2).

    Args:
        rules: the game.
        hands: (n, seats) uint32 masks as dealt.
    Returns:
        seat (n,) int64 that holds it; tile (n,) int64 number.
    """
    # It is among the lowest of the set: no more than the tiles left over can be missing.
    low = np.array(sorted(rules.tiles, key=_RANK.__getitem__)[: rules.leftover + 1])
    dealt = np.bitwise_or.reduce(hands, axis=1)
    tile = low[(dealt[:, None] >> low.astype(np.uint32) & np.uint32(1)).argmax(axis=1)]
    return (hands >> tile[:, None].astype(np.uint32) & np.uint32(1)).argmax(axis=1), tile


def leading_place(rules: Rules, order: np.ndarray) -> np.ndarray:
    """Where the tile lies that must lead a blind game, unless a lot decides (R3).

    Args:
        rules: the game.
        order: (n, num_tiles) tile numbers as dealt: the rows from left to right, then the stock.
    Returns:
        (n,) int64 place in the order.
    """
    rank = _RANK.take(order[:, : rules.seats * rules.hand_size])
    # The blank is the lowest tile there is, so `blank` and `low` name the same tile.
    return rank.argmax(axis=1) if rules.lead == "high" else rank.argmin(axis=1)


def holder(hands: np.ndarray, tile: int) -> np.ndarray:
    """Seat that holds a tile: (n,) int64 from (n, seats) masks."""
    return np.argmax(hands >> np.uint32(tile) & np.uint32(1), axis=1)


@dataclass
class Given:
    """Options of a reset, checked: what is given instead of dealt."""

    hands: list[int] | None = None  # a mask per seat
    leader: int | None = None
    deal_index: int | None = None
    rows: list[list[int]] | None = None  # blind games: the hands as tile numbers, left to right
    stock: list[int] | None = None  # blind games: tile numbers, the next to be drawn first


def given(rules: Rules, options: Mapping[str, Any] | None) -> Given:
    """Check the options of a reset (design.md: hands, leader, stock, deal_index).

    Raises:
        ValueError: an unknown key, tile, seat or count, or a tile twice.
    """
    if options is None:
        return Given()
    if not isinstance(options, Mapping):
        raise ValueError(f"options must be a dict, not {options!r}")
    known = ("hands", "leader", "stock", "deal_index")
    for key in options:
        if key not in known and key != "options":  # PettingZoo's own tests send that one
            raise ValueError(f"unknown option {key!r}; options are {', '.join(known)}")
    stock = options.get("stock")
    if not rules.rows and stock is not None and not (isinstance(stock, list | tuple) and not stock):
        raise ValueError(f"option stock={stock!r}: {rules.name} has no stock")
    result = Given(
        leader=_whole(options, "leader", rules.seats),
        deal_index=_whole(options, "deal_index", 1 << 31),
    )
    if options.get("hands") is not None:
        hands = check_hands(rules, options["hands"])
        result.hands = [mask_of(hand) for hand in hands]
        if rules.rows:
            result.rows = hands
    if rules.rows and stock is not None:
        result.stock = check_stock(rules, stock, result.rows)
    return result


def _whole(options: Mapping[str, Any], key: str, bound: int) -> int | None:
    value = options.get(key)
    if value is None:
        return None
    if not is_whole(value) or not 0 <= value < bound:
        raise ValueError(f"option {key}={value!r} must be a whole number in 0..{bound - 1}")
    return int(value)


def check_hands(rules: Rules, hands: Sequence[Sequence[str]]) -> list[list[int]]:
    """Tile numbers of given hands.

    Raises:
        ValueError: wrong number of hands or tiles, an unknown tile, one outside the set, or one given twice.
    """
    if isinstance(hands, str) or not isinstance(hands, Sequence) or len(hands) != rules.seats:
        raise ValueError(f"hands must be a list of {rules.seats} hands of {rules.name}, not {hands!r}")
    seen: dict[int, int] = {}
    result = []
    for seat, hand in enumerate(hands):
        if isinstance(hand, str) or not isinstance(hand, Sequence) or len(hand) != rules.hand_size:
            raise ValueError(f"the hand of seat {seat} must be {rules.hand_size} tile names, not {hand!r}")
        tiles = [tile_index(name) for name in hand]
        for tile in tiles:
            if tile in seen:
                to = f"to seat {seat}" if seen[tile] == seat else f"to seats {seen[tile]} and {seat}"
                raise ValueError(f"tile {tile_name(tile)} is given twice, {to}")
            if tile not in rules.tiles:
                raise ValueError(f"tile {tile_name(tile)} is not in the double-{rules.max_pip} set of {rules.name}")
            seen[tile] = seat
        result.append(tiles)
    return result


def check_stock(rules: Rules, stock: Any, rows: list[list[int]] | None) -> list[int]:
    """Tile numbers of a stock given as tile names, the next to be drawn first.

    Raises:
        ValueError: a wrong number of tiles, an unknown one, one outside the set, or one that is given twice.
    """
    if isinstance(stock, str) or not isinstance(stock, Sequence) or len(stock) != rules.leftover:
        raise ValueError(f"the stock must be the {rules.leftover} tile names that nobody is dealt, not {stock!r}")
    held = {tile: seat for seat, row in enumerate(rows or []) for tile in row}
    tiles: list[int] = []
    for name in stock:
        tile = tile_index(name)
        if tile in tiles or tile in held:
            to = f"to seat {held[tile]} and to the stock" if tile in held else "to the stock"
            raise ValueError(f"tile {tile_name(tile)} is given twice, {to}")
        if tile not in rules.tiles:
            raise ValueError(f"tile {tile_name(tile)} is not in the double-{rules.max_pip} set of {rules.name}")
        tiles.append(tile)
    return tiles


@dataclass
class Deal:
    """A deal and what was played of it: one line of text."""

    rules: Rules
    leader: int
    hands: list[list[int]]  # tile numbers as dealt, a list per seat
    moves: list[int] = field(default_factory=list)  # action ids in order
    stock: list[int] = field(default_factory=list)  # blind games: tile numbers, the next to be drawn first


def format_deal(deal: Deal) -> str:
    """One line: ``sport_book leader=0 | 0-1 2-2 … | … | … | … | 3-4L 4-4R pass …`` (no last part without moves).

    In a blind game the hands are the rows from left to right, and the stock, if there is one, follows them.
    """
    parts = [f"{deal.rules.title} leader={deal.leader}"]
    piles = [hand if deal.rules.rows else sorted(hand) for hand in deal.hands] + ([deal.stock] if deal.stock else [])
    parts += [" ".join(tile_name(tile) for tile in pile) for pile in piles]
    if deal.moves:
        parts.append(" ".join(deal.rules.action_name(action) for action in deal.moves))
    return " | ".join(parts)


def parse_deal(text: str, line: int = 1) -> Deal:
    """Read what :func:`format_deal` writes; the bar before the moves may be left out.

    Whether the moves follow the rules is not looked at here: ``domino replay`` and the engine play them.

    Raises:
        ValueError: anything else, naming line and column.
    """

    def fail(column: int, why: str) -> ValueError:
        return ValueError(f"line {line}, column {column + 1}: {why}")

    if not isinstance(text, str):
        raise fail(0, f"a deal is a line of text, not {text!r}")
    tokens = [(match.group(), match.start()) for match in re.finditer(r"\||[^\s|]+", text)]
    parts: list[list[tuple[str, int]]] = [[]]
    bars = [0]
    for word, column in tokens:
        if word == "|":
            parts.append([])
            bars.append(column)
        else:
            parts[-1].append((word, column))
    if not parts[0]:
        raise fail(0, f"a deal begins with the name of its rules: {', '.join(PRESETS)}")
    (name, column), *settings = parts[0]
    if name not in PRESETS:
        raise fail(column, f"unknown rules {name!r}; choose from {', '.join(PRESETS)}")
    leader = None
    overrides: dict[str, Any] = {}
    columns: dict[str, int] = {}
    for word, column in settings:
        key, _, value = word.partition("=")
        if key == "leader":
            if leader is not None or not re.fullmatch(r"[0-9]", value):
                raise fail(column, f"{word!r}: write leader=SEAT once, with a seat number")
            leader = (int(value), column)
        elif key in overrides or not value:
            raise fail(column, f"{word!r}: write FIELD=VALUE, each field once")
        else:
            literals = {"True": True, "False": False, "None": None}
            number = int(value) if re.fullmatch(r"[0-9]{1,9}", value) else value
            overrides[key] = literals.get(value, number)
            columns[key] = column
    try:
        rules = get_rules(name, **overrides)
    except ValueError as error:
        # The field that the message names first is the one at fault.
        found = {key: str(error).find(key) for key in columns}
        guilty = min((key for key in found if found[key] >= 0), key=found.__getitem__, default=None)
        raise fail(columns[guilty] if guilty else parts[0][0][1], str(error)) from None
    if leader is None:
        raise fail(len(text.rstrip()) if len(parts) == 1 else bars[1], "leader=SEAT is missing")
    if leader[0] >= rules.seats:
        raise fail(leader[1], f"leader={leader[0]} must be in 0..{rules.seats - 1}")
    sizes = [rules.hand_size] * rules.seats + ([rules.leftover] if rules.rows and rules.leftover else [])
    piles = len(sizes)  # the hands, and the stock of a blind game
    if not piles + 1 <= len(parts) <= piles + 2:
        stock = ", the stock" if piles > rules.seats else ""
        raise fail(bars[-1], f"{rules.name} has {rules.seats} hands{stock}, each after a bar '|', then the moves")
    moves = parts[piles + 1] if len(parts) == piles + 2 else []
    if not moves and len(parts) == piles + 1:  # moves straight after the last hand
        last = parts[piles]
        parts[piles], moves = last[: sizes[-1]], last[sizes[-1] :]
    hands: list[list[int]] = []
    seen: set[int] = set()
    for seat, size in enumerate(sizes):
        hand: list[int] = []
        for word, column in parts[seat + 1]:
            try:
                tile = tile_index(word)
            except ValueError as error:
                raise fail(column, str(error)) from None
            if tile in seen:
                raise fail(column, f"tile {tile_name(tile)} stands here a second time")
            if tile not in rules.tiles:
                raise fail(column, f"tile {tile_name(tile)} is not in the double-{rules.max_pip} set")
            seen.add(tile)
            hand.append(tile)
        if len(hand) != size:
            whose = f"seat {seat}" if seat < rules.seats else "the stock"
            raise fail(bars[seat + 1], f"{whose} has {len(hand)} tiles; {rules.name} deals {size}")
        hands.append(hand)
    actions = []
    for word, column in moves:
        try:
            actions.append(rules.action_index(word))
        except ValueError as error:
            raise fail(column, str(error)) from None
    return Deal(rules, leader[0], hands[: rules.seats], actions, hands[rules.seats] if piles > rules.seats else [])
