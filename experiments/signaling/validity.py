"""Whether the measures measure: players whose signals are known, and figures that are worked out by other means.

* A player without a convention has no convention bits, to the last digit; with one of growing strength it has more.
* What tells nothing beyond a reference is told so: random play, and a player that is its own reference.
* A speaker that nobody reads changes nothing by what it says, though it changes much by what lies on the line (Lowe,
  Foerster, Boureau, Pineau and Dauphin 2019); and who follows a noise listens, though nothing is said.
* Who knows the players is as sure of the hidden hands as he is right about them.
* Figures of late positions are those of playing every deal again, and those of a small game those of all its deals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import Agent, make_agent
from agents.search.reading import policy_belief
from domino_env.rules import Rules, get_rules
from experiments.signaling import exact
from experiments.signaling.information import Progress, divergences, figure, measure
from experiments.signaling.listening import changes, influences, twins
from experiments.signaling.record import Moments, Record, play
from experiments.signaling.statistics import CONFIDENCE, NOTHING, Estimate, clustered, plot

Floats = npt.NDArray[np.float64]

DOSES = (0.0, 2.0, 4.0, 8.0)  # strengths of a planted convention
TILES = (12,)  # on the line: one decision a deal, so that decisions are as many as units
FEW = 100  # deals that a figure rests on: of fewer what an interval leaves open is no failure
LATE = 20  # tiles on the line where every deal can be played again
EXACT, NOTHING_THERE = 1e-12, 1e-9  # bits
_REPLAYED = 4  # positions of each table
_MORE = 4  # times as many deals where a figure has a long tail
_SMALL = "tiny_pairs"


@dataclass(frozen=True)
class Control:
    """A figure whose value is known."""

    name: str
    estimate: Estimate
    expected: str
    holds: bool | None  # None: so few deals leave it open

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"name": self.name, "expected": self.expected, "holds": self.holds} | self.estimate.to_dict()


@dataclass(frozen=True)
class Validity:
    """All controls."""

    controls: tuple[Control, ...]
    doses: dict[float, Estimate]  # strength of the planted convention: its convention bits
    deals: int
    rules: str

    @property
    def holds(self) -> bool:
        """Whether every control came out as it has to, and none is open."""
        return all(control.holds for control in self.controls)

    @property
    def fails(self) -> bool:
        """Whether a control came out otherwise than it has to."""
        return any(control.holds is False for control in self.controls)

    @property
    def open(self) -> bool:
        """Whether so few deals leave a control open."""
        return any(control.holds is None for control in self.controls)

    def rows(self) -> list[dict[str, Any]]:
        """Lines of a table: name, estimate, low, high, expected, holds (None: open)."""
        return [
            {
                "name": one.name,
                "estimate": one.estimate.mean,
                "low": one.estimate.low,
                "high": one.estimate.high,
                "expected": one.expected,
                "holds": one.holds,
            }
            for one in self.controls
        ]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "rules": self.rules,
            "deals": self.deals,
            "holds": self.holds,
            "controls": [one.to_dict() for one in self.controls],
            "doses": {f"{dose:g}": one.to_dict() for dose, one in self.doses.items()},
        }

    def draw(self, axes: Any) -> None:
        """Convention bits against the strength of the planted convention, with 95 % intervals."""
        plot(axes, np.array(list(self.doses)), list(self.doses.values()), "partner")
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_xlabel("strength of the planted convention")
        axes.set_ylabel("convention bits for the partner")


def validity(
    rules: str | Rules = "sport_book",
    *,
    deals: int = 300,
    seed: int = 0,
    doses: Sequence[float] = DOSES,
    tiles: Sequence[int] = TILES,
    whole: bool = True,
    progress: Progress | None = None,
) -> Validity:
    """Run all controls; by default some minutes on one core.

    Args:
        rules: a game of pairs with one tile a turn on an open line.
        deals: of each table; seed: of the deals.
        doses: strengths of the planted convention, ascending, the first of them 0.
        tiles: on the line, in the decisions that are looked at.
        whole: list all deals of tiny_pairs, which takes a minute or two; else only those of one hand.
        progress: called with (parts done, parts).

    Raises:
        ValueError: doses out of order, deals too few for an interval or for a decision with so many tiles on the line,
            or a game without pairs.
    """
    game = get_rules(rules)
    if not game.pairs:
        raise ValueError(f"the controls have a partner as observer, and {game.name} is played without")
    if deals < 2:
        raise ValueError(f"an interval needs two deals or more, not deals={deals!r}")
    if len(doses) < 2 or doses[0] != 0 or any(b <= a for a, b in pairwise(doses)):
        raise ValueError(f"doses={list(doses)} must begin with 0 and go up")

    def played(players: Any, count: int = deals, **settings: Any) -> Record:
        record = play(players, game, count, seed, **{"tiles": tiles, **settings})
        if not len(record.moments):
            said = ", ".join(map(str, tiles))
            raise ValueError(f"no decision in {count:,} deals of {game.title} with {said} tiles on the line: take more")
        return record

    found: dict[float, Estimate] = {}
    parts: list[Callable[[], list[Control]]] = [
        lambda: _dose_response(played, doses, found),
        lambda: _negatives(played),
        lambda: _listening(played),
        lambda: _calibrations(played, _MORE * deals),
        lambda: _replays(game, seed),
        lambda: _small_game(deals, seed, whole),
    ]
    controls: list[Control] = []
    for number, part in enumerate(parts):
        controls += part()
        if progress is not None:
            progress(number + 1, len(parts))
    return Validity(tuple(controls), found, deals, game.title)


def _planted(**options: float) -> Agent:
    return make_agent("planted:" + ",".join(f"{name}={value:g}" for name, value in options.items()))


def _none(name: str, values: Floats, deal: npt.NDArray[Any], limit: float) -> Control:
    """The largest of some figures that have to be 0; open where there is none."""
    if not values.size:
        return Control(name, NOTHING, f"0 to {limit:g}", None)
    worst, units = float(np.abs(values).max()), len(np.unique(deal))
    return Control(name, Estimate(worst, worst, worst, 0.0, units, values.size), f"0 to {limit:g}", worst <= limit)


def _zero(name: str, estimate: Estimate) -> Control:
    """An estimate whose interval has to cover 0; open where it has none."""
    return Control(name, estimate, "0", None if math.isnan(estimate.error) else estimate.covers(0))


def _above(name: str, estimate: Estimate, bound: float = 0.0, what: str = "") -> Control:
    """An estimate whose interval has to lie above a bound, or of fewer than `FEW` deals must not lie below it."""
    holds: bool | None = estimate.low > bound
    if not holds and estimate.units < FEW and not estimate.high <= bound + EXACT:
        holds = None
    return Control(name, estimate, f"above {bound:.3f}{what}" if what else f"above {bound:g}", holds)


def _dose_response(played: Any, doses: Sequence[float], found: dict[float, Estimate]) -> list[Control]:
    """Convention bits of the planted convention for the partner, by strength: none at 0, and more of more."""
    plain, controls = _planted(strength=0), []
    for dose in doses:
        record = played(_planted(strength=dose))
        bits = divergences(record.moments, record.table, [plain], other_floor=0.0)[:, 0]
        found[dose] = figure(bits, record.moments.deal)
        if dose == 0:
            controls.append(_none("no convention: convention bits", bits, record.moments.deal, NOTHING_THERE))
    for weak, strong in pairwise(doses):
        name = f"planted convention of strength {strong:g}: convention bits"
        bound = f", the upper end of strength {weak:g}"
        controls.append(_above(name, found[strong], found[weak].high, bound))
    return controls


def _negatives(played: Any) -> list[Control]:
    """Random play tells no more than the floor, and a player no more than itself."""
    record = played("random")
    info = measure(record.moments, record.table, "uniform", reference_floor=0.0)
    deal = record.moments.deal
    controls = [_none("random: bits of an action beyond random play", info.told - info.uniform, deal, EXACT)]
    controls.append(_none("random: secrecy", info.secrecy()["opponents"], deal, EXACT))
    record = played("greedy")
    info = measure(record.moments, record.table, make_agent("greedy"), reference_floor=0.0)
    deal = record.moments.deal
    controls.append(_none("greedy, its own reference: bits of an action in excess", info.excess, deal, EXACT))
    controls.append(_none("greedy, its own reference: convention bits", info.gap, deal, EXACT))
    return controls


def _listening(played: Any) -> list[Control]:
    """A speaker that nobody reads, one that is read, and a listener where nothing is said."""
    controls = []
    speaker, plain = _planted(strength=4), _planted(strength=0)
    record = played(speaker)
    twin = make_agent(twins(speaker.name)["partner"])
    heard = influences(record.table, record.moments, speaker, twin, 2)
    deal = record.moments.deal
    controls.append(_none("unread speaker: what its partner hears", heard.informational, deal, EXACT))
    board = clustered(heard.total, deal)
    controls.append(_above("unread speaker: what its moves change on the line", board))
    reader = _planted(strength=4, listen=4)
    record = played(reader)
    change = changes(record.moments, reader, speaker).divergence
    assert change is not None
    listens = clustered(change, record.moments.deal)
    controls.append(_above("speaker that is read: what its partner hears", listens))
    noisy = _planted(strength=0, noise=4)
    record = played([plain, plain, noisy, noisy])
    mine = record.moments.take(record.moments.seat >= 2)
    change = changes(mine, noisy, plain).divergence
    assert change is not None
    listens = clustered(change, mine.deal)
    controls.append(_above("listener of noise: what it follows", listens))
    theirs = record.moments.take(record.moments.seat < 2)
    said = divergences(theirs, record.table, [plain], other_floor=0.0)[:, 0]
    controls.append(_none("listener of noise: convention bits of its partner", said, theirs.deal, NOTHING_THERE))
    return controls


def _calibrations(played: Any, deals: int) -> list[Control]:
    """How sure of the hidden hands who moves is, against how right: one decision a deal.

    Whether a seat has a choice it knows itself, so its decisions are not selected by what is hidden. Players whose
    moves are certain are not asked: all deals that fit them are alike, and entropy and loss the same everywhere. Losses
    have a long tail, so there are more deals here than elsewhere.
    """
    controls = []
    for name in ("random", "planted:strength=0", "planted:strength=4"):
        record = played(name, deals, each=1)
        moments: Moments = record.moments
        belief = policy_belief(moments.seen_by(0), list(record.table), method="exact")
        gap = -belief.log2_probability(moments.hands) - belief.entropy()
        controls.append(_zero(f"{name}: log loss less entropy of the belief", clustered(gap, moments.deal)))
    return controls


def _replays(game: Rules, seed: int) -> list[Control]:
    """Late positions, every deal of which is played from the start."""
    places, worst, deals = (2, 1, 3), [], []
    tables: list[tuple[Any, Any, float, float]] = [
        ([_planted(strength=2), make_agent("club")], make_agent("greedy"), 0.0, 0.02),
        (_planted(strength=4, listen=2), _planted(strength=0), 0.1, 0.0),
    ]
    for players, reference, floor, reference_floor in tables:
        late = game.num_tiles - game.leftover - 8
        record = play(players, game, 5 * _REPLAYED, seed, tiles=[min(LATE, late)])
        some = record.moments.take(np.arange(min(_REPLAYED, len(record.moments))))
        floors: dict[str, Any] = {"floor": floor, "reference_floor": reference_floor}
        info = measure(some, record.table, reference, places=places, method="exact", **floors)
        for number in range(len(some)):
            for column, place in enumerate(places):
                plain = exact.by_replay(some, number, place, record.table, reference, **floors)
                worst += [getattr(info, name)[number, column] - plain[name] for name in exact.FIGURES]
                deals += [some.deal[number]] * len(exact.FIGURES)
    return [
        _none("late positions: figures less those of all deals played again", np.array(worst), np.array(deals), EXACT)
    ]


def _small_game(deals: int, seed: int, whole: bool) -> list[Control]:
    """tiny_pairs: figures at single decisions, and means over all of them, against all deals there are."""
    player, plain = _planted(strength=2), _planted(strength=0)
    observer = None if whole else (0, 0b11)
    all_of = exact.everything(player, plain, _SMALL, observer=observer, sample=100, seed=seed)
    info = measure(all_of.some, player, plain, places=all_of.places, reference_floor=0.0)
    apart = np.concatenate([(getattr(info, name) - all_of.figures[name]).ravel() for name in exact.FIGURES])
    apart = apart[~np.isnan(apart)]
    name = f"{_SMALL}: figures less those of all {all_of.deals:,} deals"
    controls = [_none(name, apart, all_of.some.deal, EXACT)]
    if not whole:
        return controls
    record = play(player, _SMALL, 10 * deals, seed)
    info = measure(record.moments, player, plain, places=all_of.places, reference_floor=0.0)
    column = all_of.places.index(2)
    for figure_name, label in (("told", "bits of an action"), ("gap", "convention bits")):
        estimate = clustered(getattr(info, figure_name)[:, column], record.moments.deal)
        true = all_of.means[figure_name][2]
        name = f"{_SMALL}: {label} for the partner, mean over {record.moments.deal[-1] + 1} deals"
        said = f"{true:.5f}, the mean over all deals, in the {CONFIDENCE:.0%} interval"
        controls.append(Control(name, estimate, said, estimate.covers(true)))
    return controls
