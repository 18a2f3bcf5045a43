"""Advice for a person at a table: what each legal move is worth, and who probably holds what.

Known are the rules, one hand and the moves so far. Hands of the others that fit are imagined, every one of these worlds
is solved with all hands open (Ginsberg 2001), and a move is worth its mean over the worlds. Who holds what is exact,
where nothing is read from the moves but what the rules say; with a model of the others it follows from how likely their
moves were.
"""

from __future__ import annotations

import dataclasses
import io
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit  # Student's quantile: `scipy.stats` takes a second more to import

from agents.base import make_agent
from agents.search import load
from agents.search.position import PUBLIC, Position, position_from
from domino_env import get_rules, render
from domino_env.deals import Deal, row_keys
from domino_env.rules import PRESETS, Rules
from domino_env.tiles import HIGH, LOW, NUM_SUITS, tile_index, tile_name, tiles_of
from experiments.files import write_whole
from experiments.replay import MatchReplay, play, read
from experiments.solve import chosen, lines_of, typed

Show = Callable[[int, int], None]

WORLDS = 200
_CLOCKED = 100_000  # worlds at most where a clock runs and nobody says how many
_COMPLETE = 1000  # where so many deals fit at most, all of them are solved, unless fewer worlds are asked for
_AT_ONCE = 16  # worlds between two looks at the clock
_FEW = 30  # effective samples below which the figures are no good
_CONFIDENCE = 0.95
_WIDTH = 80  # columns of the text
_NEVER = 1e-9  # of a sample: what it did not show
_DIGITS = 9  # of the figures; sums have a rounding error beyond
_SALT = 3  # the family of random streams that worlds are drawn from


@dataclass(frozen=True)
class Table:
    """What a person tells of a table."""

    rules: Rules
    leader: int
    seat: int | None  # whose hand it is; None: of the seat to move
    hands: list[list[int]]  # tile numbers of this seat alone, or of all seats
    moves: list[int]  # actions, oldest first
    movers: list[int | None]  # who made them, where it was said

    def position(self, moves: int | None = None) -> Position:
        """What the seat knows after some moves (None: all); ValueError as of `position_from`, or too many moves."""
        if moves is not None and moves > len(self.moves):
            raise ValueError(f"--move {moves}: there are moves 0 to {len(self.moves)}")
        seat, told = self.seat, (self.rules, self.leader, self.moves[:moves])
        if seat is None:
            seat = int(position_from(*told, PUBLIC, movers=self.movers).to_move[0])
        if not 0 <= seat < self.rules.seats:
            raise ValueError(f"--seat {seat}: {self.rules.name} has seats 0 to {self.rules.seats - 1}")
        hand = self.hands[seat if len(self.hands) > 1 else 0]
        return position_from(*told, seat, hand, self.movers)


# -- what is told ----------------------------------------------------------------------------------------------------


def from_words(rules: Rules, seat: int, leader: int, hand: str, moves: str = "") -> Table:
    """A table from the options of the command line; ValueError for words that are no tiles or moves."""
    tiles = [_read("--hand", tile_index, word) for word in _split(hand)]
    actions, movers = _moves(rules, [("--moves", word) for word in _split(moves)])
    return Table(rules, leader, seat, [tiles], actions, movers)


def find(word: str, number: int | None = None, seat: int | None = None) -> Table:
    """The table that a word of the command line means.

    Args:
        word: a table in text; a file of such lines, or the record of a match; "-" for lines on standard input.
        number: which of them, from 1; None where there is one alone.
        seat: who asks; None: who is named there, else who is to move.
    Raises:
        ValueError: with line and column for what is not the notation; no such line, or several.
        OSError: the file cannot be read.
    """
    if "|" in word or not word.strip():
        return from_text(chosen("the text", [word], number), 1, seat)
    if word != "-" and Path(word).read_bytes().lstrip()[:1] == b"{":
        found = read(word)
        return _of_deal(chosen(word, found.deals if isinstance(found, MatchReplay) else found, number).deal, seat)
    name = "standard input" if word == "-" else word
    line, text = chosen(name, lines_of(typed() if word == "-" else _text(word)), number)
    try:
        return from_text(text, line, seat)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def from_text(text: str, line: int = 1, seat: int | None = None) -> Table:
    """A table from one line: ``sport_book leader=0 seat=2 | 0-1 2-2 … | 3-4L pass …``, or a whole deal in text.

    Without ``seat=`` it is a deal with all hands (`domino_env.deals`), of which only the asker's own is looked at.
    Before a move may stand who made it: ``1:pass``.

    Raises:
        ValueError: anything else, with line and column.
    """
    tokens = [(found.group(), found.start()) for found in re.finditer(r"\||[^\s|]+", text)]
    bars = [number for number, (word, _) in enumerate(tokens) if word == "|"]
    head = tokens[: bars[0]] if bars else tokens
    if not any(word.startswith("seat=") for word, _ in head):
        return _of_deal(play(text, line).deal, seat)

    def at(column: int) -> str:
        return f"line {line}, column {column + 1}"

    rules, numbers = _head(head, at)
    if not 1 <= len(bars) <= 2:
        raise ValueError(f"{at(tokens[-1][1])}: after seat={numbers['seat']} write | its hand | the moves")
    if seat is not None and seat != numbers["seat"]:
        raise ValueError(f"--seat {seat}: the hand is that of seat {numbers['seat']}")
    end = bars[1] if len(bars) == 2 else len(tokens)
    hand = [_read(at(column), tile_index, word) for word, column in tokens[bars[0] + 1 : end]]
    moves, movers = _moves(rules, [(at(column), word) for word, column in tokens[end + 1 :]])
    return Table(rules, numbers["leader"], numbers["seat"], [hand], moves, movers)


def _head(words: Sequence[tuple[str, int]], at: Callable[[int], str]) -> tuple[Rules, dict[str, int]]:
    """The rules that a line begins with, and its leader and seat."""
    (name, column), *settings = words
    if name not in PRESETS:
        raise ValueError(f"{at(column)}: unknown rules {name!r}; choose from {', '.join(PRESETS)}")
    fields: dict[str, Any] = {}
    numbers: dict[str, int] = {}
    for word, place in settings:
        key, _, value = word.partition("=")
        whole = re.fullmatch(r"[0-9]{1,9}", value) is not None
        if key in fields or key in numbers or not value or (key in ("leader", "seat") and not whole):
            raise ValueError(f"{at(place)}: {word!r}: write leader=SEAT, seat=SEAT or FIELD=VALUE, each once")
        if key in ("leader", "seat"):
            numbers[key] = int(value)
        else:
            fields[key] = int(value) if whole else {"True": True, "False": False, "None": None}.get(value, value)
    rules = _read(at(column), lambda one: get_rules(one, **fields), name)
    for key in ("leader", "seat"):
        if key not in numbers:
            raise ValueError(f"{at(column)}: {key}=SEAT is missing")
        if numbers[key] >= rules.seats:
            raise ValueError(f"{at(column)}: {key}={numbers[key]} must be in 0..{rules.seats - 1}")
    return rules, numbers


def _of_deal(deal: Deal, seat: int | None) -> Table:
    return Table(deal.rules, deal.leader, seat, deal.hands, deal.moves, [None] * len(deal.moves))


def _moves(rules: Rules, words: Sequence[tuple[str, str]]) -> tuple[list[int], list[int | None]]:
    """Actions, and who made them where it is said; each word with where it stands."""
    actions, movers = [], []
    for place, word in words:
        who, _, name = word.rpartition(":")
        if who and not re.fullmatch("[0-9]", who):
            raise ValueError(f"{place}: {word!r}: before a colon stands the seat that made the move")
        actions.append(_read(place, rules.action_index, name))
        movers.append(int(who) if who else None)
    return actions, movers


def _read(place: str, reader: Callable[[str], Any], word: str) -> Any:
    try:
        return reader(word)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _split(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file in UTF-8") from None


# -- what is advised -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    """A legal move over the imagined worlds."""

    move: str
    points: float  # expected points of the mover's side
    low: float | None  # of its 95 % interval; None where a single world tells nothing of it
    high: float | None
    win: float  # chance that the mover's side wins the deal


@dataclass(frozen=True)
class Advice:
    """What is advised, all of it plain."""

    position: Position
    moves: list[Move]  # best first; none where another seat is to move, or the solver does not play the game
    worlds: int  # imagined and solved
    ess: float  # effective number of independent worlds behind the figures
    exact: bool  # all deals that fit were solved
    deals: float  # how many fit
    tiles: npt.NDArray[np.float64]  # (seats + 1, 28) who holds what; the last row: nobody was dealt it
    suits: npt.NDArray[np.float64]  # (seats, 7) chance to hold a tile of the suit
    model: str | None
    fell_back: bool  # the model rules out all that fits: the figures are by the rules alone
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON. The belief has the hidden tiles alone: by seat, and nobody where tiles are left over."""
        position, rules = self.position, self.position.rules
        viewer, ends = int(position.viewer[0]), position.ends[0].tolist()
        others = [seat for seat in range(rules.seats) if seat != viewer]
        groups = [(f"{seat}", seat) for seat in others] + ([("nobody", rules.seats)] if rules.leftover else [])
        return {
            "rules": rules.name,
            "overrides": rules.overrides(),
            "seat": viewer,
            "leader": int(position.leader[0]),
            "ends": None if ends[0] < 0 else ends,
            "hand": [tile_name(tile) for tile in tiles_of(int(position.own[0]))],
            "to_move": int(position.to_move[0]),
            "moves": [dataclasses.asdict(move) for move in self.moves],
            "belief": {
                tile_name(tile): {name: float(self.tiles[group, tile]) for name, group in groups}
                for tile in tiles_of(int(position.hidden[0]))
            },
            "suits": {f"{seat}": self.suits[seat].tolist() for seat in others},
            "worlds": self.worlds,
            "effective_sample_size": self.ess,
            "exact": self.exact,
            "deals": self.deals,
            "model": self.model,
            "fell_back": self.fell_back,
            "notes": self.notes,
        }


def advise(
    position: Position,
    *,
    worlds: int | None = None,
    ms: int | None = None,
    model: str | None = None,
    candidates: int = 4000,
    floor: float = 0.02,
    seed: int = 0,
    show: Show | None = None,
) -> Advice:
    """Value the legal moves of a seat, and say who probably holds what.

    Args:
        position: one table, with events and a seat as viewer.
        worlds: how many to imagine and solve; where no more deals fit, all of them. None: 200, with a clock what it
            allows.
        ms: milliseconds after which no further worlds are begun; None: no clock.
        model: who reads the moves of the others: an agent's name or a checkpoint; None: by the rules alone.
        candidates: deals that a model weighs where there are too many to weigh all.
        floor: share of the others' moves that are taken to be made at random, 0..1.
        seed: of all chance.
        show: called with worlds done and worlds wanted.
    Raises:
        ValueError: a position that no deal fits, a model that cannot say probabilities, numbers below 1.
        ImportError: Numba is not installed.
    """
    for name, value in (("worlds", worlds), ("ms", ms), ("candidates", candidates)):
        if value is not None and value < 1:
            raise ValueError(f"{name}={value} must be at least 1")
    if not 0 <= floor <= 1:
        raise ValueError(f"floor={floor} must be in 0..1")
    rules, viewer = position.rules, int(position.viewer[0])
    keys = row_keys(seed, np.zeros(1, np.int64), salt=_SALT)
    by_rules = load("beliefs").RulesBelief(position)
    belief, notes, fell_back = by_rules, [], False
    if rules.redeal and not by_rules.redeal[0]:
        notes.append("a hand was dealt that is dealt again (S4), so the deal was given: S4 is not counted on")
    if model is not None:
        player = model if model in ("rules", "uniform") else make_agent(model, rules)
        models = [None if seat == viewer else player for seat in range(rules.seats)]
        read = load("reading").policy_belief(position, models, candidates=candidates, keys=keys, floor=floor)
        fell_back = bool(read.fell_back[0])
        belief = by_rules if fell_back else read
        if fell_back:
            notes.append(f"no hands explain the moves if {model} made them: what follows is by the rules alone")
    moves: list[Move] = []
    count, ess, exact = 0, 0.0, False
    mover = int(position.to_move[0])
    why_not = _unsolved(rules)
    if mover != viewer:
        notes.append(f"it is the turn of seat_{mover}: no moves to value")
    elif why_not:
        notes.append(f"no moves are valued: {why_not}")
    else:
        values, weights, exact = _values(position, by_rules, belief, keys, worlds, ms, show)
        count = len(values)
        ess = 1 / float((weights**2).sum()) if exact else 1 / (1 / count + 1 / float(belief.ess[0]))
        moves = _moves_of(rules, values, weights, ess, exact)
        if moves[0].move == "pass":
            notes.append("no tile in the hand matches an end: it must pass")
    scarce = min(float(belief.ess[0]), np.inf if exact or ess >= min(_FEW, count) else ess)
    if scarce < _FEW:
        notes.append(f"only {scarce:.0f} effective samples: more --candidates give surer figures")
    return Advice(
        position=position,
        moves=moves,
        worlds=count,
        ess=ess,
        exact=exact,
        deals=float(by_rules.total()[0]),
        tiles=_unsure(belief, belief.marginals()[0], by_rules.marginals()[0]),
        suits=_unsure(belief, belief.holds()[0], by_rules.holds()[0]),
        model=model,
        fell_back=fell_back,
        notes=notes,
    )


def _unsure(belief: Any, found: npt.NDArray[np.float64], by_rules: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Probabilities of a belief; of one that rests on samples, 0 and 1 are left to what the rules make certain."""
    if np.isinf(belief.ess[0]):
        return found
    open_still = (by_rules > _NEVER) & (by_rules < 1 - _NEVER)
    return np.where(open_still, found.clip(_NEVER, 1 - _NEVER), found)


def _unsolved(rules: Rules) -> str | None:
    """Why the solver does not play the game."""
    try:
        load("solver").check(rules)
    except ValueError as error:
        return str(error)
    return None


def _values(
    position: Position,
    by_rules: Any,
    belief: Any,
    keys: npt.NDArray[np.uint64],
    worlds: int | None,
    ms: int | None,
    show: Show | None,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], bool]:
    """Worlds solved: values (K, 57), -inf where a move is not legal; weights (K,), in all 1; whether these are all."""
    solver, total = load("solver"), float(by_rules.total()[0])

    def solve(hands: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
        hands, again = np.unique(hands, axis=0, return_inverse=True)
        at = np.zeros(len(hands), np.int64)
        found = solver.solve(hands, position.ends[at], position.to_move[at], position.rules)
        return np.where(found == solver.ILLEGAL, -np.inf, found)[again.reshape(-1)]

    wanted = worlds if worlds is not None else WORLDS if ms is None else _CLOCKED
    limit = _COMPLETE if worlds is None else wanted if ms is None else min(wanted, _COMPLETE)
    if total <= limit and np.isinf(belief.ess[0]):
        hands = _every(by_rules, int(total), keys)
        log = np.zeros(len(hands))
        if belief is not by_rules:
            log = np.array([belief.log2_probability(one[None])[0] for one in hands])
        return solve(hands), np.exp2(log) / np.exp2(log).sum(), True
    if ms is not None:
        solve(belief.sample(1, keys)[0])  # what has yet to be loaded does not count
    parts: list[npt.NDArray[np.float64]] = []
    done, began = 0, time.monotonic()
    while done < wanted and (not parts or ms is None or 1000 * (time.monotonic() - began) < ms):
        some = min(_AT_ONCE, wanted - done)
        parts.append(solve(belief.sample(some, keys, start=done)[0]))
        done += some
        if show is not None:
            show(done, wanted)
    return np.concatenate(parts), np.full(done, 1 / done), False


def _every(by_rules: Any, total: int, keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """All deals that fit: (total, seats), in a fixed order, by drawing until no other comes."""
    found = np.zeros((0, by_rules.position.rules.seats), np.uint32)
    start, some = 0, 4 * total + 16
    while len(found) < total:
        found = np.unique(np.concatenate([found, by_rules.sample(some, keys, start=start)[0]]), axis=0)
        start += some
    return found


def _moves_of(
    rules: Rules, values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], ess: float, exact: bool
) -> list[Move]:
    """Means and intervals of the legal moves, the best first."""
    moves = []
    for action in np.flatnonzero(np.isfinite(values[0])).tolist():
        one = values[:, action]
        points, win = round(float(weights @ one), _DIGITS), round(float(weights @ (one > 0)), _DIGITS)
        low: float | None = points
        high: float | None = points
        if not exact:
            low = high = None
            if len(one) > 1 and ess > 1:
                spread = float(weights @ (one - points) ** 2) * len(one) / (len(one) - 1)
                margin = float(stdtrit(max(ess - 1, 1), (1 + _CONFIDENCE) / 2)) * (spread / ess) ** 0.5
                low, high = points - margin, points + margin
        moves.append(Move(rules.action_name(action), points, low, high, win))
    return sorted(moves, key=lambda move: -move.points)


# -- what is shown ---------------------------------------------------------------------------------------------------


def report(advice: Advice, color: bool = False) -> str:
    """The advice as text of 80 columns."""
    position, rules = advice.position, advice.position.rules
    viewer, ends = int(position.viewer[0]), position.ends[0].tolist()
    plies = int(position.plies[0])
    where = f"ends {ends[0]} and {ends[1]}" if ends[0] >= 0 else "nothing is laid"
    text = [
        f"{rules.name}: you are seat_{viewer}, seat_{int(position.leader[0])} leads; "
        f"{plies} move{'' if plies == 1 else 's'}, {where}",
        f"your hand: {' '.join(tile_name(tile) for tile in tiles_of(int(position.own[0])))}",
    ]
    lacks = [
        (seat, [k for k in range(NUM_SUITS) if int(suits) >> k & 1]) for seat, suits in enumerate(position.voids[0])
    ]
    told = [f"seat_{seat} no {' '.join(map(str, suits))}" for seat, suits in lacks if suits and seat != viewer]
    text += [f"passes tell: {', '.join(told)}"] if told else []
    if advice.model is not None and not advice.fell_back:
        read_as = f"the others' moves are read as those of {advice.model}"
        text += wrap(read_as, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    for note in advice.notes:
        text += wrap(f"! {note}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    if advice.moves:
        text += ["", "move    points          95 %          win"]
        for move in advice.moves:
            interval = "exact" if advice.exact else "?"
            if not advice.exact and move.low is not None:
                interval = f"{move.low:+.1f} to {move.high:+.1f}"
            text.append(f"{move.move:6} {move.points:+7.1f}   {interval:>16} {move.win:8.0%}")
        text += wrap(_basis(advice), _WIDTH, break_on_hyphens=False)
    heads = _heads(rules, viewer)
    columns = [seat for seat, _ in heads]
    titles = [words for _, words in heads]
    tiles = {tile_name(tile): _lies(advice, tile, columns) for tile in rules.tiles}
    text += ["", "who holds what, in per cent (█ certain, · impossible)"]
    drawn = render.belief(tiles, titles, color)
    seats = [(seat, words) for seat, words in heads if seat < rules.seats]
    suits = {f"{suit}": [float(advice.suits[seat, suit]) for seat, _ in seats] for suit in range(rules.max_pip + 1)}
    drawn += "\nwho holds a tile of suit\n" + render.belief(suits, [words for _, words in seats], color)
    return "\n".join(text) + "\n" + drawn


def _basis(advice: Advice) -> str:
    """What the figures rest on."""
    if advice.exact:
        one = "the one deal" if advice.worlds == 1 else f"all {advice.worlds:,} deals"
        return f"Over {one} that can be, each solved with all hands open from the move on."
    short = f" (as good as {advice.ess:,.0f} independent ones)" if advice.ess < 0.99 * advice.worlds else ""
    return (
        f"Over {advice.worlds:,} imagined worlds{short} of {advice.deals:,.0f} that can be, each solved with all hands "
        "open from the move on; the mean over all of them lies in the interval with a probability of 95 %."
    )


def _heads(rules: Rules, viewer: int) -> list[tuple[int, tuple[str, str]]]:
    """The others clockwise and, where tiles are left over, nobody: number of the group, and two words for it."""
    names = ["left", "partner" if rules.pairs else "across", "right"] if rules.seats == 4 else [""] * (rules.seats - 1)
    seats = [(viewer + 1 + place) % rules.seats for place in range(rules.seats - 1)]
    heads = [(seat, (name, f"seat_{seat}")) for seat, name in zip(seats, names)]
    return heads + ([(rules.seats, ("nobody", ""))] if rules.leftover else [])


def _lies(advice: Advice, tile: int, groups: Sequence[int]) -> list[float] | str:
    """The probabilities of a tile, or where it is seen."""
    position = advice.position
    if int(position.own[0]) >> tile & 1:
        return "your hand"
    for seat, laid in enumerate(position.played[0]):
        if int(laid) >> tile & 1:
            return "laid by you" if seat == int(position.viewer[0]) else f"laid by seat_{seat}"
    return [float(advice.tiles[group, tile]) for group in groups]


def draw_beliefs(advices: Mapping[str, Advice], out: str | Path, hands: Sequence[Sequence[str]] | None = None) -> Path:
    """Draw who holds what as PNG: a row of half-squares of tiles a belief, one for each seat that is not seen.

    A tile stands in the row of its larger suit and in the column of its smaller one; the number is its probability in
    per cent. Grey tiles are seen: they lie on the line or in the asker's own hand.

    Args:
        advices: beliefs about one position, by what is written over them.
        out: the picture.
        hands: names of the tiles that each seat holds in truth, which get a frame; None: not told.

    Raises:
        ValueError: no belief, or beliefs about several positions; OSError: it cannot be written.
    """
    picture = io.BytesIO()
    _figure(advices, hands or []).savefig(picture, format="png", dpi=100)
    return write_whole(out, picture.getvalue())


def _figure(advices: Mapping[str, Advice], hands: Sequence[Sequence[str]]) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    asked = [one.position for one in advices.values()]
    seen = {(one.rules, one.hidden.tobytes(), one.viewer.tobytes(), one.played.tobytes()) for one in asked}
    if len(seen) != 1:
        raise ValueError("draw beliefs about one position, one of them or more")
    rules, viewer = asked[0].rules, int(asked[0].viewer[0])
    heads = _heads(rules, viewer)
    held = [{tile_index(tile) for tile in hand} for hand in hands]
    figure = Figure(figsize=(3.3 * len(heads) + 0.4, 3.1 * len(advices)), layout="constrained")
    FigureCanvasAgg(figure)
    plots = figure.subplots(len(advices), len(heads), squeeze=False)
    for row, (title, advice) in zip(plots, advices.items()):
        for axes, (group, words) in zip(row, heads):
            hidden = int(advice.position.hidden[0])
            half_square(axes, rules, hidden, advice.tiles[group], held[group] if group < len(held) else ())
            axes.set_title(f"{title}\n{' '.join(words).strip()}", fontsize=9)
    framed = "; framed: what the seat holds in truth" if hands else ""
    figure.suptitle(f"who holds what, in per cent, as seat_{viewer} sees it{framed}", fontsize=9, color="0.3")
    return figure


def half_square(
    axes: Any, rules: Rules, hidden: int, chances: npt.NDArray[np.float64], held: Iterable[int] = ()
) -> None:
    """Draw how likely one hand has each tile, as a half-square.

    Args:
        axes: of matplotlib.
        rules: the game; hidden: mask of the tiles that are not seen, all others are grey.
        chances: (28,) of each tile; held: numbers of tiles that get a frame.
    """
    cells = np.full((rules.max_pip + 1, rules.max_pip + 1), np.nan)
    seen = cells.copy()
    for tile in rules.tiles:
        place, chance = (HIGH[tile], LOW[tile]), float(chances[tile])
        if not hidden >> tile & 1:
            seen[place] = 0.15
            continue
        cells[place] = chance
        if chance > 0:
            percent = "<1" if chance < 0.01 else ">99" if 0.99 < chance < 1 else f"{100 * chance:.0f}"
            ink = "white" if chance > 0.55 else "black"
            axes.text(*place[::-1], percent, ha="center", va="center", fontsize=8, color=ink)
    axes.imshow(seen, cmap="Greys", vmin=0, vmax=1)
    axes.imshow(cells, cmap="Blues", vmin=0, vmax=1)
    for tile in held:
        axes.plot(*_frame(float(LOW[tile]), float(HIGH[tile])), color="#D55E00", linewidth=1.8)
    axes.set_xticks(range(rules.max_pip + 1))
    axes.set_yticks(range(rules.max_pip + 1))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _frame(x: float, y: float, half: float = 0.44) -> tuple[list[float], list[float]]:
    """Corners of the square around a cell's middle, the first one twice."""
    sides = [(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)]
    return [x + half * a for a, _ in sides], [y + half * b for _, b in sides]
