"""The report on one player's signals: what its moves tell, who listens, what it is worth; one page and one JSON.

The parts stand in the order in which one asks: who played, how well, what is known of a hand at all, what moves add to
that, who hears it, what it is worth in points, what of the hand it is about, by which moves, whether others who were
trained alike would understand it, whether the measures measure, and whether a free channel is used. A part that cannot
be had says why.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
import math
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from agents.base import folder_of
from agents.search.asking import answers
from domino_env.rules import Rules
from domino_env.tiles import DOUBLES_MASK, SUIT_MASK
from experiments.files import read_record, write_whole
from experiments.signaling import examples, ladder, sheets
from experiments.signaling.consistency import agreement, consistency
from experiments.signaling.conventions import ADDED, CHEAP, Conventions, conventions, costs
from experiments.signaling.cross_play import POOL, CrossPlay, cross_play
from experiments.signaling.decoding import Decoding, decode
from experiments.signaling.ends import free_channel
from experiments.signaling.information import PLACES, SEATS, Information, distances, measure
from experiments.signaling.listening import Listening, changes, listening
from experiments.signaling.matches import Damaged, Matches, Show, said
from experiments.signaling.page import Part, Picture, Sheet, drawn, page, raster
from experiments.signaling.players import (
    WORLDS,
    Blind,
    Reference,
    Seats,
    Sitter,
    blind,
    deaf_to_mover,
    each_once,
    others,
    tiles_for,
    without_opponents,
    without_partner,
)
from experiments.signaling.record import Moments, play
from experiments.signaling.statistics import DRAWS, ESS, NOTHING, Estimate, clustered, held, over_units, plot
from experiments.signaling.validity import TILES as CONTROLLED, validity
from experiments.signaling.value import square
from experiments.signaling.worth import BOARDS, worth
from experiments.tournament import networks

KIND, VERSION = "domino signal report", 1
FILES = ("report.html", "report.json", "decisions.jsonl")


@dataclass(frozen=True)
class Sizes:
    """How much is looked at."""

    deals: int = 120  # for what a move tells, the ladder and the questions
    more: int = 300  # for kinds of moves, listening and the free channel
    least: int = 200  # decisions of a kind below which there is no figure
    boards: int = 10_000  # of each match
    controls: int = 150  # deals of each table of the controls
    apart: int = 40  # deals of each training for the distances
    draws: int = DRAWS  # of the bootstrap over trainings
    worth: int = BOARDS  # boards of each match for the points of a kind of moves
    worlds: int = WORLDS  # that judge the price of a move

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        for name, value in vars(self).items():
            if value < 2:
                raise ValueError(f"{name}={value!r} must be at least 2")
        if self.deals > self.more:
            raise ValueError(f"deals={self.deals!r} must be at most more={self.more!r}: they are the first of these")


USUAL = Sizes()
QUICK = Sizes(deals=10, more=30, least=40, boards=1000, controls=120, apart=6, draws=1000, worth=200, worlds=100)

_TITLES: dict[str, tuple[str, str]] = {
    "scoreboard": (
        "How well it plays",
        "Points a deal on duplicate boards: each deal is played twice with the pairs exchanged, and luck falls out. "
        "What a move costs is what the best one is worth more, to a judge who hears nobody: by a critic that sees all "
        "hands, in worlds drawn by the rules alone.",
    ),
    "ladder": (
        "What is known of another hand",
        "Four who know ever more believe something about a hand that they do not see: by the rules and the passes; "
        "that every move was a legal one; as if all were the reference; as the players play. A bar below 0 leads away "
        "from the truth. Who looks is the seat that is to move.",
    ),
    "information": (
        "What a move tells",
        "I: bits that a move tells an observer, who knows how all play, of the mover's hand. Even random play tells "
        "some, for what is legal is private; so what counts is ΔI, what the player tells beyond the reference under "
        "the same belief. G: bits that an observer loses who takes the mover for the reference; it is above 0 for any "
        "habit that the reference has not, and does not say that more is told. S: ΔI for the partner less that for "
        "opponents.",
    ),
    "listening": (
        "Who listens",
        "What others chose is taken away and the board stays: Listen is the divergence of the play from that of the "
        "deaf twin. A move also changes what the next may lay; that part, through the board, is no communication.",
    ),
    "value": (
        "What it is worth",
        "Four matches on the same boards: J(x, y) is what A wins, where x says whether A's partners read each other's "
        "moves, and y whether B reads A's.",
    ),
    "decoding": (
        "What of the hand can be told",
        "Questions about another hand, answered by who knows the rules alone, by who takes all for the reference, and "
        "by who knows the players. The gain is in log loss; what a right belief says with 30 % is so in 30 of 100.",
    ),
    "conventions": (
        "By which moves",
        "Kinds of moves in words that hang on no suit's name. A signal adds to G, is heard by the partner, is worth "
        "points, and tells more than the reference's; a cue is heard, but the reference's move tells it too; a leak is "
        "heard by opponents alone; noise is all else. Points: what a team loses a deal, against fixed opponents, whose "
        "ears are closed right after its partner's moves of the kind. Price: what the move costs by a judge who hears "
        "nobody. By counts: bits that the choice of a kind tells within classes of contexts that all see, beside those "
        "of chance; and stability, how much of what the lift is from 1 is common to all contexts.",
    ),
    "cross_play": (
        "Whether others understand it",
        "Partners of different trainings against fixed opponents. What they lose against partners of one training is "
        "private agreement. D: bits lost by who reads the row's play as the column's. Whether moves say the same: 1 "
        "where what says more in one training says more in the other, too. Some kinds of moves say by their nature "
        "more than others, whoever makes them; the lift over the reference leaves out what the reference says, too.",
    ),
    "controls": (
        "Whether the measures measure",
        "Players whose signals are known, measured by the same means: a convention of known strength, players that "
        "tell or hear nothing, and figures that are worked out by playing every deal.",
    ),
    "channel": (
        "The free channel",
        "Where both ends are one suit, left or right makes no difference but that all see it: what is told there is "
        "nothing but convention.",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Report:
    """All parts, and what was measured of each decision."""

    header: dict[str, Any]
    parts: tuple[Part, ...]
    decisions: list[dict[str, Any]]
    made: dict[str, Any]  # when, and in how many seconds: all that differs from run to run

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        parts = {part.name: part.to_dict() for part in self.parts[1:]}
        return {"record": KIND, "version": VERSION, "made": self.made, "header": self.header, "parts": parts}

    def html(self) -> str:
        """The page."""
        lead = (
            f"Made {self.made['at']} in {self.made['seconds']:.0f} s. All figures are in report.json beside this page."
        )
        return page(f"Signals of {self.header['player']}", [lead], self.parts)

    def write(self, folder: str | Path) -> list[Path]:
        """Write `FILES` into a folder that is there; OSError where it cannot be."""
        whole = json.dumps(_clean(self.to_dict()), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        lines = "".join(json.dumps(_clean(row), ensure_ascii=False, allow_nan=False) + "\n" for row in self.decisions)
        contents = (self.html(), whole, lines)
        return [write_whole(Path(folder) / name, content) for name, content in zip(FILES, contents)]


def _clean(value: Any) -> Any:
    """Figures that are not finite are null."""
    if isinstance(value, dict):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def claim(folder: str | Path) -> None:
    """See that a folder holds nothing but a report, or the matches of one that was interrupted; or is not there.

    Raises:
        ValueError: it holds something else.
    """
    place = Path(folder)
    left = {".part", ".trial"}  # of a process that was killed
    names = {one.name for one in place.iterdir() if one.suffix not in left} if place.is_dir() else set[str]()
    if names <= {"matches"}:
        return
    try:
        read_record(place / FILES[1], KIND, VERSION)
    except (ValueError, OSError):
        raise ValueError(f"{place} is not empty and holds no report on signals; write elsewhere by --out") from None


def ready(folder: str | Path) -> Path:
    """Make a folder, and see that files can be written there.

    Raises:
        ValueError: it is a file; OSError: they cannot.
    """
    place = Path(folder)
    if place.is_file():
        raise ValueError(f"{place} is a file; a folder is wanted")
    place.mkdir(parents=True, exist_ok=True)
    trial = place / f".{os.getpid()}.trial"
    try:
        trial.write_bytes(b"")
    finally:
        trial.unlink(missing_ok=True)
    return place


def default_out(player: str) -> Path:
    """Where a report goes if nobody says where."""
    path = folder_of(player)
    if path is not None:
        from agents.checkpoint import resolve

        return Path("runs") / f"signals-{resolve(path).parent.parent.name}"
    return Path("runs") / ("signals-" + "".join(one if one.isalnum() or one in "-_" else "-" for one in player))


_TABLE = 35.0  # what the beliefs of a table of conventions take, as steps are weighed


class _Steps:
    """Progress over parts that take very different times."""

    def __init__(self, weights: dict[str, float], show: Show | None) -> None:
        self.weights, self.show, self.before, self.shown = weights, show, 0.0, 0
        self.total = round(1000 * sum(weights.values()))

    def of(self, name: str, part: float = 0.0, share: float = 1.0) -> Show:
        """Progress of a share of a step, that begins where `part` of it is done."""

        def show(done: int, total: int) -> None:
            self._to(self.before + self.weights[name] * (part + share * done / max(total, 1)))

        return show

    def done(self, name: str) -> None:
        self.before += self.weights[name]
        self._to(self.before)

    def _to(self, now: float) -> None:
        """Never back: what a part does out of its order stands still."""
        self.shown = max(self.shown, min(round(1000 * now), self.total))
        if self.show is not None:
            self.show(self.shown, self.total)


class _Work:
    """What the parts share."""

    def __init__(
        self,
        seats: Seats,
        players: Sequence[str],
        reference: str | None,
        sizes: Sizes,
        seed: int,
        pool: Sequence[str],
        folder: Path | None,
        show: Show | None,
    ) -> None:
        self.seats, game = seats, seats.rules
        self.players, self.pool = [seats.asked(name) for name in players], [seats(name) for name in pool]
        self.asked, self.reference = reference, seats.reference(self.players[0], reference)
        self.game, self.sizes, self.seed = game, sizes, seed
        self.matches = Matches(game, sizes.boards, seed, None if folder is None else folder / "matches")
        self.player = self.players[0]
        self.tiles, self.all_tiles = tiles_for(game), tiles_for(game, every=True)
        crossed = _TABLE * (len(players) - 1) + (2.0 * len(players) ** 2 if len(players) > 2 else 0.0)
        weights: dict[str, float] = {
            "scoreboard": 1,
            "information": 25,
            "ladder": 22,
            "listening": 3,
            "value": 4,
            "decoding": 16,
        }
        weights |= {"conventions": 50, "cross_play": 0.5 + crossed, "controls": 12}
        weights["channel"] = 8 if game.labelled_ends else 0.1
        self.steps = _Steps(weights, show)
        try:
            self.twins, self.no_twin = seats.twins(self.player), ""
        except ValueError as error:
            self.twins, self.no_twin = {}, _line(error)
        self.judge: Blind | None = None
        try:
            self.judge, self.no_judge = blind(self.player, self.reference, game, sizes.worlds, seed), ""
        except ValueError as error:
            self.no_judge = _line(error)
        self.record = play(self.player.agent, game, sizes.more, seed)
        few = self.record.moments.deal < sizes.deals
        self.moments = self.record.moments.take(few & np.isin(self.record.moments.tiles, self.tiles))
        self.table: Conventions | None = None
        self.information: Information | None = None
        self.decoded: Decoding | None = None

    def need_twin(self) -> dict[str, Sitter]:
        if self.no_twin:
            raise ValueError(self.no_twin)
        return self.twins

    def need_moments(self) -> Moments:
        if not len(self.moments):
            raise ValueError(f"no decision with {', '.join(map(str, self.tiles))} tiles on the line in so few deals")
        return self.moments

    @cached_property
    def judged(self) -> np.ndarray[Any, Any]:
        """(M, actions) what the judge thinks of all decisions of the record."""
        assert self.judge is not None
        return self.judge(self.record.moments, self.steps.of("conventions", 0, 0.1))

    def price(self, moments: Moments) -> np.ndarray[Any, Any]:
        """The same of some of these decisions."""
        return self.judged[np.searchsorted(self.record.moments.number, moments.number)]

    def over_pool(self, player: Sitter) -> list[tuple[str, np.ndarray[Any, Any]]]:
        """By opponent, points a deal on each board."""
        sides = [(one.name, one.side) for one in others(player, self.pool)]
        return [(name, self.matches.play(player.side, side).values) for name, side in sides]


def report(
    players: Sequence[str],
    game: Rules,
    *,
    reference: str | None = None,
    sizes: Sizes = USUAL,
    seed: int = 0,
    greedy: bool = False,
    pool: Sequence[str] = POOL,
    folder: str | Path | None = None,
    progress: Show | None = None,
) -> Report:
    """Measure a player.

    Args:
        players: names; the first is looked at, all of them are partners of each other in cross-play.
        game: as of `players.game_of`.
        reference: as of `players.Seats.reference`; sizes: how much is looked at.
        seed: of deals and chance; greedy: networks play their likeliest action.
        pool: fixed opponents.
        folder: matches are kept there, in `matches`, and those that are there are not played again.
        progress: called with (done, all), in no unit.

    Raises:
        ValueError: a player that cannot be had, does not play the game, or has no probabilities, or stands twice, be it
            as an opponent; a file in the folder that is no match (`Damaged`).
        AgentError: a player failed.
    """
    each_once(players)
    each_once(pool, "opponent", "for all count alike")
    begun = time.monotonic()
    kept = None if folder is None else Path(folder)
    work = _Work(Seats(game, greedy), players, reference, sizes, seed, pool, kept, progress)
    made = {
        "ladder": _ladder, "information": _information, "listening": _listening, "value": _value,
        "decoding": _decoding, "conventions": _conventions, "scoreboard": _scoreboard, "cross_play": _cross_play,
        "controls": _controls, "channel": _channel,
    }  # fmt: skip
    done: dict[str, Part] = {}
    for name, make in made.items():
        title, about = _TITLES[name]
        try:
            done[name] = Part(name, title, about, **make(work))
        except Damaged:
            raise
        except ValueError as error:
            done[name] = Part(name, title, about, missing=_line(error))
        work.steps.done(name)
    parts = [done[name] for name in _TITLES]
    header = _header(work)
    parts.insert(0, Part("header", "What was measured", _HEADER, header, [_header_sheet(header)]))
    at = time.strftime("%Y-%m-%d %H:%M")
    return Report(header, tuple(parts), _decisions(work), {"at": at, "seconds": round(time.monotonic() - begun, 1)})


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


Made = dict[str, Any]  # what `Part` takes beside its name and title

# -- the parts --------------------------------------------------------------------------------------------------------

_HEADER = (
    "Bits are log2; intervals are 95 %, over deals or boards, never over decisions. Beliefs are about the players who "
    "sat at this table: beside others the same moves mean something else."
)


def _header(work: _Work) -> dict[str, Any]:
    info, game = work.information, work.game
    exact = info is None or bool(np.isinf(info.ess).all())
    try:
        version = importlib.metadata.version("domino-lab")
    except importlib.metadata.PackageNotFoundError:
        version = "from source"
    names = [one.name for one in (*work.players, *work.twins.values(), *work.pool)] + [work.reference.name]
    plain = json.dumps(dataclasses.asdict(game), sort_keys=True, default=str)
    return {
        "player": work.player.name,
        "how": work.player.how,
        "others": [one.name for one in work.players[1:]],
        "reference": work.reference.name,
        "why_reference": work.reference.why,
        "reference_floor": work.reference.floor,
        "deaf_twins": {who: one.name for who, one in work.twins.items()},
        "no_deaf_twin": work.no_twin or None,
        "judge": None if work.judge is None else work.judge.to_dict(),
        "no_judge": work.no_judge or None,
        "rules": game.title,
        "rules_hash": hashlib.sha256(plain.encode()).hexdigest()[:12],
        "seed": work.seed,
        "sizes": dataclasses.asdict(work.sizes),
        "pool": [one.name for one in work.pool],
        "tiles": list(work.tiles),
        "decisions": len(work.moments),
        "beliefs": "exact" if exact else "exact late in a deal, sampled before",
        "least_ess": None if info is None else info.least_ess,
        "left_out": {} if info is None else info.left_out,
        "networks": networks(names),
        "version": version,
    }


def _header_sheet(header: dict[str, Any]) -> Sheet:
    sizes = header["sizes"]
    ess, judge, left = header["least_ess"], header["judge"], sheets.left_out(header["left_out"])
    prices = f"none: {header['no_judge']}" if judge is None else f"the critic {judge['critic']}, {judge['why']}"
    rows = [
        ("player", header["player"]),
        ("its moves while measured", header["how"]),
        ("reference", f"{header['reference']}, {header['why_reference']}; floor {header['reference_floor']:g}"),
        ("deaf twins", ", ".join(dict.fromkeys(header["deaf_twins"].values())) or f"none: {header['no_deaf_twin']}"),
        ("judge of what moves cost", prices),
        ("rules", f"{header['rules']}, hash {header['rules_hash']}"),
        ("seed", f"{header['seed']}"),
        ("deals", f"{sizes['deals']:,} for what a move tells, {sizes['more']:,} for kinds of moves and listening"),
        ("boards", f"{sizes['boards']:,} of each match, against {', '.join(header['pool'])}"),
        ("boards for kinds of moves", f"{sizes['worth']:,} of each match"),
        ("tiles on the line", ", ".join(map(str, header["tiles"]))),
        ("decisions", f"{header['decisions']:,} with more than one legal move, all in decisions.jsonl"),
        ("beliefs", header["beliefs"] + ("" if ess is None else f", worth at least {ess:.0f} worlds")),
        *((f"network {name}", f"sha256 {digest[:16]}…") for name, digest in header["networks"].items()),
        ("version", f"domino-lab {header['version']}"),
    ]
    if left:
        place = [name for name, _ in rows].index("beliefs") + 1
        rows.insert(place, ("without a figure", f"{left}: their beliefs are worth fewer than {ESS:g} worlds"))
    if header["others"]:
        rows.insert(1, ("also, in cross-play", ", ".join(header["others"])))
    return Sheet("", ("", ""), rows)


def _scoreboard(work: _Work) -> Made:
    rows: list[tuple[str, Estimate]] = []
    sitting = [*work.players]
    if work.twins and work.twins["all"].name != work.player.name:
        sitting.append(work.twins["all"])
    for one in sitting:
        rows += [(f"{said(one.side)} against {name}", over_units(values)) for name, values in work.over_pool(one)]
    moments, record = work.record.moments, work.record
    deals = len(record.points)
    counts = np.bincount(moments.deal, minlength=deals).astype(np.float64)
    facts: dict[str, Any] = {"decisions_a_deal": float(counts.mean()), "forced": 1 - len(moments) / record.turns}
    lines = [
        ("decisions with a choice, a deal", f"{facts['decisions_a_deal']:.2f}"),
        ("turns without one, passes among them", f"{facts['forced']:.1%}"),
    ]
    notes = ["against itself a player wins 0 by symmetry"]
    if any(one.side == work.player.side for one in work.pool):
        notes[0] += f", so {work.player.name} is left out of its own opponents"
    if work.no_twin:
        notes.append(f"whether its moves are those of its deaf twin cannot be asked: {work.no_twin}")
    else:
        own = answers(moments.position, work.twins["all"].agent, np.arange(len(moments)), moments.hand())[0]
        likeliest = own[np.arange(len(moments)), moments.action] >= own.max(axis=1) - 1e-9
        grounded = clustered(likeliest, moments.deal)
        facts["grounded"] = grounded.to_dict()
        lines.append(("moves that are its deaf twin's likeliest, too", sheets.percent(grounded)))
    facts |= {"costs_nothing": None, "costly_signals": None}
    if work.judge is None:
        notes.append(f"what its moves cost is not known: {work.no_judge}")
    else:
        optimal = clustered(costs(work.judged, moments) <= CHEAP, moments.deal)
        costly = NOTHING if work.table is None else work.table.costly
        facts |= {"costs_nothing": optimal.to_dict(), "costly_signals": costly.to_dict()}
        lines += [
            (f"moves that cost at most {CHEAP:g} points by a judge who hears nobody", sheets.percent(optimal)),
            (f"moves that cost more and add over {ADDED:g} bits to G: costly signals", sheets.percent(costly)),
        ]
        notes.append(
            f"the judge looks at {work.judge.worlds:,} worlds, the same for all moves of a decision, by the critic "
            f"{work.judge.critic}, {work.judge.why}; costly signals are looked for where beliefs are exact, with "
            f"{work.all_tiles[0]} to {work.all_tiles[-1]} tiles on the line"
        )
    points = [(name, str(one)) for name, one in rows]
    return {
        "data": {"points": {name: one.to_dict() for name, one in rows}, **facts},
        "sheets": [
            Sheet(f"points a deal, {work.sizes.boards:,} boards (95 %)", ("", "points a deal"), points),
            Sheet(f"{deals:,} deals that it played against itself", ("", ""), lines),
        ],
        "notes": notes,
    }


def _ladder(work: _Work) -> Made:
    moments, found = work.need_moments(), []
    for number, of in enumerate((2, 1, 3)):
        found.append(
            ladder.climb(
                moments, work.record.table, work.reference.model, of=of, floor=work.player.reading_floor,
                reference_floor=work.reference.floor, player=work.player.name,
                progress=work.steps.of("ladder", number / 3, 1 / 3),
            )
        )  # fmt: skip

    def draw(figure: Any) -> None:
        axes = figure.subplots(1, 3)
        ladder.draw(found, axes)
        axes[-1].legend_.remove()
        for one, ax in zip(found, axes):
            ax.set_title(f"the hand of the {SEATS[PLACES[one.of]]}", fontsize=10)
        handles, words = axes[0].get_legend_handles_labels()
        figure.legend(handles, words, loc="outside lower center", ncols=5, frameon=False, fontsize=9)

    words = "bits of a hand that are known, step by step, by tiles on the line; grey: what is still unknown"
    return {
        "data": {PLACES[one.of]: one.to_dict() for one in found},
        "sheets": sheets.of_ladders(found),
        "pictures": [drawn(words, (10, 4), draw)],
    }


def _information(work: _Work) -> Made:
    moments = work.need_moments()
    work.information = found = measure(
        moments, work.record.table, work.reference.model, floor=work.player.reading_floor,
        reference_floor=work.reference.floor, seed=work.seed, progress=work.steps.of("information"),
    )  # fmt: skip

    words = "what a move tells beyond the reference, and convention bits, by observer"
    return {
        "data": {"reference": work.reference.name, **found.to_dict()},
        "sheets": sheets.of_information(found),
        "pictures": [drawn(words, (10, 3.6), lambda figure: found.draw(figure.subplots(1, 2)))],
    }


_SHOWN = 10  # deals below which a point is not drawn


def _listening(work: _Work) -> Made:
    found: dict[str, Listening] = {}
    notes = []
    player, twins = work.player, work.need_twin()
    for number, (who, twin) in enumerate(twins.items()):
        found[who] = listening(
            work.record, player.agent, twin.agent, places=(1, 2, 3), do=player.do, floor=player.floor,
            progress=work.steps.of("listening", number / len(twins), 1 / len(twins)),
        )  # fmt: skip
    if list(twins) == ["all"]:
        notes.append("a network hears or does not hear all seats at once: what is taken away is what all others chose")
    if player.certain:
        notes.append("its moves are certain: of a move's influence, all its legal moves count alike")

    def draw(figure: Any) -> None:
        ax = figure.subplots()
        for who, one in found.items():
            some = {tiles: value for tiles, value in one.by_tiles.items() if value.units >= _SHOWN}
            plot(ax, np.array(list(some)), list(some.values()), f"without hearing {sheets.UNHEARD[who]}")
        ax.axhline(0, color="black", linewidth=0.8)
        ax.set_xlabel("tiles on the line")
        ax.set_ylabel("Listen, bits a decision")
        ax.legend(frameon=False, fontsize=8)

    return {
        "data": {who: one.to_dict() for who, one in found.items()},
        "sheets": sheets.of_listening(found),
        "pictures": [drawn("how much the play owes to what others chose, by tiles on the line", (7, 3.2), draw)],
        "notes": notes,
    }


def _value(work: _Work) -> Made:
    twins, hear = work.need_twin(), work.player
    found = square(
        hear.side, without_partner(twins).side, hear.side, without_opponents(twins).side, work.game, work.sizes.boards,
        work.seed, folder=work.matches.folder, progress=work.steps.of("value", 0, 0.6),
    )  # fmt: skip
    rows = []
    without = "who hears nobody" if list(twins) == ["all"] else "who does not read its partner"
    for (name, heard), (_, deaf) in zip(work.over_pool(hear), work.over_pool(without_partner(twins))):
        rows.append((f"against {name}, less the same of {without}", over_units(heard - deaf)))
    title = "reading, against fixed opponents, on the same boards"
    fixed = Sheet(title, ("", "points a deal"), [(name, str(one)) for name, one in rows])
    words = "partner value, exposure, net and interaction, points a deal with 95 % intervals"
    return {
        "data": {"square": found.to_dict(), "against_pool": {name: one.to_dict() for name, one in rows}},
        "sheets": [*sheets.of_square(found), fixed],
        "pictures": [drawn(words, (8, 3), lambda figure: found.draw(figure.subplots()))],
        "notes": ["J(1, 1) and J(0, 0) are 0 where both teams are the same players"],
    }


def _decoding(work: _Work) -> Made:
    moments, found = work.need_moments(), {}
    for number, of in enumerate((2, 1)):
        found[PLACES[of]] = decode(
            moments, list(work.record.table), work.reference.model, of=of,  # type: ignore[arg-type]
            targets=("holds", "double", "void", "longest") if of == 2 else ("holds", "double"),
            floor=work.player.reading_floor, reference_floor=work.reference.floor, seed=work.seed,
            progress=work.steps.of("decoding", number / 2, 0.5),
        )  # fmt: skip
    work.decoded = found["partner"]

    def draw(figure: Any) -> None:
        axes = figure.subplots(1, 2)
        found["partner"].draw_gains(axes[0])
        found["partner"].draw(axes[1])
        axes[0].set_title("bits gained by suit: does the partner hold one of it?", fontsize=9)

    return {
        "data": {place: one.to_dict() for place, one in found.items()},
        "sheets": [sheet for one in found.values() for sheet in sheets.of_decoding(one)],
        "pictures": [drawn("gains by suit, and how often what was said came true", (10, 4), draw)],
        "notes": ["how much of this a learned probe finds: write deals down and ask domino signal probe"],
    }


def _conventions(work: _Work) -> Made:
    if work.judge is not None:
        work.price(work.record.moments)  # prices are the first part of the time
    deaf = deaf_to_mover(work.twins) if work.twins else None
    points, no_points = None, work.no_twin
    if work.twins:
        try:
            points = worth(
                work.player.side, without_partner(work.twins).side,
                [one.side for one in others(work.player, work.pool)], work.game,
                work.sizes.worth, work.seed, least=work.sizes.least, folder=work.matches.folder,
                progress=work.steps.of("conventions", 0.1, 0.2),
            )  # fmt: skip
        except Damaged:
            raise
        except ValueError as error:
            no_points = _line(error)
    work.table = found = conventions(
        work.record, work.reference.model, tiles=work.all_tiles, deaf=deaf,
        price=None if work.judge is None else work.price, value=None if points is None else points.values,
        least=work.sizes.least, floor=_floor(work.player, work.reference), seed=work.seed,
        progress=work.steps.of("conventions", 0.3, 0.7),
    )  # fmt: skip
    assert found.judged is not None
    told = consistency(found.judged, least=work.sizes.least, draws=work.sizes.draws, seed=work.seed)
    words = "how much likelier than by the rules a meaning is after the move; blue likelier, red less likely"

    def draw(figure: Any, what: Any = found) -> None:
        ax = figure.subplots()
        what.draw(ax)
        ax.set_title("")

    pictures = [drawn(words, (9.5, 7.5), draw)]
    words = "bits beyond chance that the choice of a kind tells; blue: the meaning is true more often after the move"
    pictures.append(drawn(words, (9.5, 7.5), lambda figure: draw(figure, told)))
    notes = []
    if found.examples:
        texts = "; ".join(
            f"deal {one.number}, ply {one.ply}: seat_{one.seat} lays {one.move}, {one.gap:+.2f} bits"
            for one in found.examples
        )
        pictures.append(_example_picture(f"the moves that added most to G, one a deal: {texts}", found.examples))
    else:
        notes.append(f"no example: {examples.NONE}")
    if deaf is None:
        notes.append(f"nobody's listening is known, and verdicts that hang on it stay open: {work.no_twin}")
    if points is None and work.twins:
        notes.append(f"what kinds are worth is not known, and verdicts that hang on it stay open: {no_points}")
    if work.judge is None:
        notes.append(f"no prices: {work.no_judge}")
    data = {**found.to_dict(), "worth": None if points is None else points.to_dict(), "no_worth": no_points or None}
    data |= {"consistency": told.to_dict(), "judge": None if work.judge is None else work.judge.to_dict()}
    tables = [*sheets.of_conventions(found), *sheets.of_consistency(told)]
    tables += [] if points is None else sheets.of_worth(points)
    return {"data": data, "sheets": tables, "pictures": pictures, "notes": notes}


def _floor(player: Sitter, reference: Reference) -> float:
    """With which moves are read for a table of conventions."""
    return max(player.reading_floor, player.floor, reference.floor)


def _example_picture(words: str, found: Sequence[examples.Example]) -> Picture:
    return raster(words, examples.figure(found))


def apart(
    seats: Seats, players: Sequence[Sitter], deals: int, seed: int
) -> Callable[[Any, Sequence[Any]], list[Estimate]]:
    """D of what one training plays, read as each of others: what `cross_play` asks for.

    Args:
        players: the trainings; deals: that each plays against itself.
    """
    floors = {"floor": max(one.reading_floor for one in players), "other_floor": max(one.floor for one in players)}
    game, tiles = seats.rules, tiles_for(seats.rules)

    def row(player: Any, others: Sequence[Any]) -> list[Estimate]:
        agents = [seats(one).agent if isinstance(one, str) else one for one in (player, *others)]
        record = play(agents[0], game, deals, seed, tiles=tiles)
        return distances(record.moments, list(record.table), agents[1:], **floors, seed=seed)

    return row


def _alike(work: _Work, share: float) -> Made:
    """Whether the moves of all trainings say the same; share: of the part's time."""
    if work.table is None:
        raise ValueError(f"there is no table of conventions of {work.player.name} to compare others with")
    tables, references, rest = [work.table], [work.reference], work.players[1:]
    for number, one in enumerate(rest):
        references.append(other := work.seats.reference(one, work.asked))
        tables.append(
            conventions(
                play(one.agent, work.game, work.sizes.more, work.seed), other.model, tiles=work.all_tiles,
                floor=_floor(one, other), least=work.sizes.least, examples=0, seed=work.seed,
                progress=work.steps.of("cross_play", share * number / len(rest), share / len(rest)),
            )
        )  # fmt: skip
    names, by = [one.name for one in work.players], [one.name for one in references]
    own = by == [f"deaf:model={name}" for name in names]
    figures = ["lift", "over_reference"] if own or len({*by}) == 1 else ["lift"]
    options: dict[str, Any] = {"draws": work.sizes.draws, "seed": work.seed}
    found = [agreement(tables, names, figure=figure, **options) for figure in figures]
    notes = [
        f"whether moves say the same rests on {work.sizes.more:,} deals of each training against itself, the same "
        f"deals for all, and kinds with {work.sizes.least:,} decisions; of trainings after the first only beliefs are "
        "asked, no points, prices or listening"
    ]
    if len(figures) > 1:
        notes.append(f"the reference is {'the deaf twin of each training' if own else by[0]}")
    else:
        notes.append(
            f"no lifts over the reference: trainings have different ones ({', '.join(dict.fromkeys(by))}); give one "
            "for all by --reference"
        )
    if (cases := held(len(names))) and not all(math.isnan(one.mean.low) for one in found):
        notes.append(
            f"{len(names)} trainings: the interval of the mean over pairs is too narrow; of 100 such about {cases[1]} "
            "hold the truth"
        )
    data: dict[str, Any] = {one.figure: one.to_dict() for one in found}
    data |= {"deals": work.sizes.more, "references": dict(zip(names, by))}
    pictures = []
    if len(names) > 2:

        def draw(figure: Any) -> None:
            for one, axes in zip(found, figure.subplots(1, len(found), squeeze=False)[0]):
                one.draw(axes)
                axes.set_title({"lift": "lifts", "over_reference": "lifts over the reference"}[one.figure], fontsize=9)

        wide = 3.4 + 0.45 * len(names)
        words = "rank correlation of what moves say in two trainings: blue alike, red the contrary"
        pictures.append(drawn(words, (len(found) * wide, wide), draw))
    tables_of = [sheets.of_agreement(one) for one in found]
    return {"data": {"same_meaning": data}, "sheets": tables_of, "pictures": pictures, "notes": notes}


def _cross_play(work: _Work) -> Made:
    count, run = len(work.players), "domino signal report RUN RUN RUN"
    if count < 2:
        raise ValueError(f"one training given, and others are compared with it; points need three or more: {run}")
    share = _TABLE * (count - 1) / work.steps.weights["cross_play"]
    pool = [one for one in work.pool if one.side not in [training.side for training in work.players]]
    lacks = f"points and distances of trainings need three or more: {run}" if count == 2 else ""
    if not pool and not lacks:
        lacks = "points and distances of trainings need opponents that are none of them: --pool PLAYER,…"
    if lacks:
        made = _alike(work, share)
        made["notes"].append(lacks)
        return made
    try:
        made = _alike(work, share)
    except ValueError as error:
        made = {"data": {"same_meaning": None}, "sheets": [], "pictures": []}
        made["notes"] = [f"whether their moves say the same is not known: {_line(error)}"]
    found = cross_play(
        [one.side for one in work.players], [one.side for one in pool], work.game, work.sizes.boards,
        work.seed, distances=apart(work.seats, work.players, work.sizes.apart, work.seed),
        folder=work.matches.folder, draws=work.sizes.draws,
        progress=work.steps.of("cross_play", share, 1 - share),
    )  # fmt: skip
    first, *rest = sheets.of_cross_play(found)
    notes = [*first.notes, *made["notes"]]  # those of all of it, where the JSON has them, too
    if len(pool) < len(work.pool):
        left = ", ".join(one.name for one in work.pool if one not in pool)
        notes.append(f"trainings are no opponents of themselves: the pool is without {left}")
    return {
        "data": found.to_dict() | made["data"],
        "sheets": [dataclasses.replace(first, notes=()), *rest, *made["sheets"]],
        "pictures": [crossed(found), *made["pictures"]],
        "notes": notes,
    }


def crossed(found: CrossPlay) -> Picture:
    """Heat maps of points and distances, and gaps over distances."""
    size = len(found.players)

    def draw(figure: Any) -> None:
        axes = figure.subplots(1, 3 if found.distances is not None else 1, squeeze=False)[0]
        found.draw(axes[0])
        if found.distances is not None:
            found.draw(axes[1], "distances")
            axes[1].set_title("D, bits: row's play read as column's", fontsize=9)
            found.draw_agreement(axes[2])
            axes[2].set_box_aspect(1)
            if len(set(found.method)) == 1:
                axes[2].legend_.remove()

    wide = 3.4 + 0.45 * size
    words = "points of all pairs of trainings, how differently they mean their moves, and whether these go together"
    return drawn(words, ((3 if found.distances is not None else 1) * wide, wide), draw)


def _controls(work: _Work) -> Made:
    whole = work.game.num_tiles == 28 and work.game.leftover == 0
    game: Any = work.game if whole else "sport_book"
    show = work.steps.of("controls")
    found = validity(game, deals=work.sizes.controls, seed=work.seed, tiles=CONTROLLED, whole=False, progress=show)
    notes = [] if whole else [f"controls are of the measures, not of the player; they are played in {found.rules}"]
    data: dict[str, Any] = found.to_dict()
    if found.fails:
        notes.append("a control does not hold: with few deals that may be chance; domino signal e0 takes more of them")
    if work.decoded is not None and "true" in work.decoded.hands:
        one = work.decoded.hands["true"]
        data["calibration"] = one.to_dict()
        notes.append(
            f"this player's own beliefs: log loss less entropy {one.gap} bits, z = {one.z:+.1f}; 0 where it plays what "
            "it says"
        )
    if work.twins and work.player.network is not None:
        notes.append(
            f"the deaf twin is the network as it plays in {work.player.network.deafness:.0%} of the seats of its "
            "training, so it is in its distribution; part 2 shows how well it plays"
        )
    else:
        notes.append(f"there is no mask to check: {work.no_twin or 'the player is no network'}")
    words = "controls: convention bits of a planted convention by its strength"
    return {
        "data": data,
        "sheets": sheets.of_validity(found),
        "pictures": [drawn(words, (5, 3), lambda figure: found.draw(figure.subplots()))],
        "notes": notes,
    }


def _channel(work: _Work) -> Made:
    if not work.game.labelled_ends:
        raise ValueError(
            f"in {work.game.title} left and right are one move where both ends are alike; a run of labelled_ends=true "
            "(domino train labelled) has it"
        )
    innocent: Any = "random" if work.reference.model == "uniform" else work.reference.model
    plain = play(innocent, work.game, work.sizes.more, work.seed)
    options: dict[str, Any] = {"tiles": work.all_tiles, "seed": work.seed}
    own = free_channel(
        work.record, floor=work.player.reading_floor, progress=work.steps.of("channel", 0, 0.5), **options
    )
    floor = Sitter(work.reference.name, work.reference.model).reading_floor
    other = free_channel(plain, floor=floor, progress=work.steps.of("channel", 0.5, 0.5), **options)
    return {"data": {"player": own.to_dict(), "reference": other.to_dict()}, "sheets": sheets.of_channel(own, other)}


# -- each decision ----------------------------------------------------------------------------------------------------


def _decisions(work: _Work) -> list[dict[str, Any]]:
    """A row a decision of part 4, with what it owes to what was heard, and what it costs."""
    info = work.information
    if info is None:
        return []
    heard = None
    if work.twins:
        heard = changes(info.moments, work.player.agent, work.twins["all"].agent, work.player.floor)
    price = None if work.judge is None else costs(work.price(info.moments), info.moments)
    state = states(info.moments)
    out = []
    for number, row in enumerate(info.rows()):
        row["state"] = state[number]
        row["without"] = work.twins["all"].name if work.twins else None
        row["listen"] = None if heard is None or heard.divergence is None else float(heard.divergence[number])
        row["flip"] = None if heard is None else bool(heard.flip[number])
        row["c"] = None if price is None else float(price[number])
        out.append(row)
    return out


def states(moments: Moments) -> list[str]:
    """What the rules need to know of each position, as a hash: tiles on the line, ends, sizes, passes, whose turn, who
    led; where struck hands are dealt again, how many doubles and tiles of each suit each seat laid, too, for it cannot
    hold as many more as would have struck its hand. Decisions of one hash differ only by what was chosen on the way."""
    position = moments.position
    laid = np.bitwise_or.reduce(position.played, axis=1)
    ends = np.sort(position.ends, axis=1)
    parts = [laid[:, None], ends, position.sizes, position.voids, position.to_move[:, None], position.leader[:, None]]
    if position.rules.redeal:
        kinds = np.append(SUIT_MASK, np.uint32(DOUBLES_MASK))
        parts.append(np.bitwise_count(position.played[:, :, None] & kinds).reshape(len(moments), -1))
    whole = np.concatenate([np.asarray(part, np.int64) for part in parts], axis=1)
    return [hashlib.sha256(row.tobytes()).hexdigest()[:16] for row in whole]
