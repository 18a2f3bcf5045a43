"""A tournament of pairs: round robin or Swiss, one table each or team matches at two tables (S10-S13; J1, J6).

A side is a pair of players, by a name of its own; at `table="team"` it may be two pairs. A match is so many fours. At
one table its deals are dealt for it alone; a team match plays each deal at two tables with the pairs crossed, and S4 is
off (S13): a board counts once it was played at both. A side of one pair then sits at both tables.

Chance is keyed on (seed, round, match, deal), so nothing depends on the order of playing nor on the number of workers.
A tournament is a folder: `records/` holds a match record for every table (`domino_env.match`), a line a deal, on the
disk before the next; `tournament.json` holds what was asked for and what follows from the records. Going on reads the
records, plays what is missing, and ends with the same bytes as if nothing had happened.

Where nobody judges, an agent that raises or answers with what cannot be played stops the tournament, as in
`domino evaluate`: no result is made up, and once it is mended the tournament goes on. A judge punishes it by the
rulebook, as `experiments.tables` says. Warnings of the book go along to later matches; a pair that got the 5th plays no
more (J1), nor does one that left (J6): what they have not played is void for all.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.special import stdtrit

from agents.base import folder_of, make_agent
from domino_env.judge import LADDER, Fixture, matches_left, withdraw as withdrawal
from domino_env.match import FOUR, Header, draw_numbers, draw_tiles, seat_by_numbers, seat_by_tiles
from domino_env.rules import PRESETS, Rules, get_rules
from experiments import config as configs
from experiments.files import locked, read_record, write_whole
from experiments.pairing import Pairing, circle, swiss
from experiments.ratings import Rating, rate
from experiments.tables import GRACE, Sheet, Table, Workers

SWISS_ROUNDS = 7
WIN, TIE = 2, 1  # match points
CONFIDENCE = 0.95
_KIND, _VERSION = "domino tournament", 1
_FILE, _RECORDS = "tournament.json", "records"
ANOTHER = "another tournament; wait for it, or write elsewhere"  # beside which none is written to a folder
_MATCH_BITS, _DEAL_BITS = 12, 16  # of the number of a board: round, match, deal
_REMOVED = len(LADDER) - 1  # J1: the warning that removes a pair

# -- what is asked for ------------------------------------------------------------------------------------------------

Squad = tuple[tuple[str, str], ...]  # the one or two pairs of a side, each the agents of its two players
_Written = str | list[str] | list[list[str]]


@dataclass(frozen=True)
class Config:
    """A tournament, as a YAML file has it; :func:`plan` makes one that can be played."""

    # name -> "club", "club+greedy", ["club", "greedy"], or a team of two pairs; or a list of words, "mixed=club+greedy"
    pairs: dict[str, str | list[str] | list[list[str]]] | list[str] = field(default_factory=dict)
    system: Literal["round_robin", "swiss"] = "round_robin"
    table: Literal["single", "team"] = "single"  # team: the same deals at two tables, the pairs crossed (S13)
    rounds: int | None = None  # None: swiss 7; round robin until all have met. More begin a round robin again
    fours: int = 1  # length of a match (S10)
    rules: str = "sport_book"
    rule_overrides: dict[str, int | bool | str | None] = field(default_factory=dict)
    judge: Literal["book", "club"] | None = None
    withdraw: dict[str, int] = field(default_factory=dict)  # J6: name -> the round before which the pair leaves
    seed: int = 0

    def check(self) -> None:
        """Whether it can be played. Raises ``ValueError`` naming the key."""
        rules, squads = self.game, self.squads
        if not 2 <= len(squads) <= 1 << _MATCH_BITS:
            raise ValueError(f"pairs: a tournament has 2 to {1 << _MATCH_BITS}, not {len(squads)}")
        for key, value, least, most in (
            ("rounds", self.num_rounds, 1, 1 << 12),
            ("fours", self.fours, 1, 1 << _DEAL_BITS - 2),
            ("seed", self.seed, 0, 1 << 63),
        ):
            if not least <= value <= most:
                raise ValueError(f"{key} must be in {least}..{most}, not {value}")
        if not rules.pairs:
            names = ", ".join(name for name, preset in PRESETS.items() if preset.pairs)
            raise ValueError(f"rules: in {rules.name} each seat plays for itself; a tournament is of pairs: {names}")
        if self.table == "team" and rules.lead == "winner":
            raise ValueError(f"table: in {rules.name} results decide who leads, so no two tables play the same deals")
        for name, squad in squads.items():
            if len(squad) == 2 and self.table != "team":
                raise ValueError(f"pairs: {name!r} is a team of two pairs; teams play at table=team")
        Header(rules, ("1", "2", "3", "4"), self.fours, self.judge)  # whether this judge knows this game
        for name, number in self.withdraw.items():
            if name not in squads:
                raise ValueError(f"withdraw: pair {name!r} does not exist; pairs are {', '.join(squads)}")
            if self.judge != "club":
                raise ValueError(f"withdraw: leaving is a matter of judge=club (J6), not of judge={self.judge}")
            if not 1 <= number <= self.num_rounds:
                raise ValueError(
                    f"withdraw: {name!r} leaves before one of the rounds 1..{self.num_rounds}, not {number}"
                )

    @cached_property
    def game(self) -> Rules:
        """The rules. Raises ``ValueError`` for what cannot be played."""
        return get_rules(self.rules, **self.rule_overrides)

    @cached_property
    def squads(self) -> dict[str, Squad]:
        """The sides by name. Raises ``ValueError`` where they cannot be told apart."""
        return squads_of(self.pairs)

    @property
    def num_rounds(self) -> int:
        """How many rounds are played."""
        if self.rounds is not None:
            return self.rounds
        count = len(self.squads)
        return SWISS_ROUNDS if self.system == "swiss" else count - 1 + count % 2

    def as_dict(self) -> dict[str, Any]:
        """Plain data, written out; the head of `tournament.json`."""
        return {
            "pairs": {name: [[*pair] for pair in squad] for name, squad in self.squads.items()},
            "system": self.system,
            "table": self.table,
            "rounds": self.num_rounds,
            "fours": self.fours,
            "rules": self.game.name,
            "rule_overrides": self.game.overrides(),
            "judge": self.judge,
            "withdraw": dict(self.withdraw),
            "seed": self.seed,
        }


def squads_of(pairs: Mapping[str, _Written] | Sequence[str]) -> dict[str, Squad]:
    """The sides by name, as :class:`Config` has them or in words of a command line.

    Raises:
        ValueError: a name twice, or none, or what is no side.
    """
    squads: dict[str, Squad] = {}
    for name, written in _named(pairs):
        if name in squads:
            raise ValueError(f"pairs: {name!r} stands twice; give one another name: NAME={name}")
        if not name.strip() or not name.isprintable() or len(name) > 200:
            raise ValueError(f"pairs: {name!r} is no name")
        squads[name] = _squad(name, written)
    return squads


def _named(pairs: Mapping[str, _Written] | Sequence[str]) -> Iterator[tuple[str, _Written]]:
    """Names and agents; of a word such as "club", "mixed=club+greedy" or "north=club & greedy" the two parts of it."""
    if isinstance(pairs, Mapping):
        yield from pairs.items()
        return
    for word in pairs:
        name, sign, text = word.partition("=")
        if not sign or set(name) & set(":/+&"):  # the sign belongs to an option of an agent, or to a folder
            name, text = word, word
        yield name.strip(), text


def _squad(name: str, written: _Written) -> Squad:
    """One or two pairs: "&" stands between pairs, "+" between partners; an agent alone is its own partner."""
    if isinstance(written, str):
        parts = [[part] if Path(part).is_dir() else part.split("+") for part in map(str.strip, written.split("&"))]
    else:
        words = [part for part in written if isinstance(part, str)]
        parts = [words] if words else [part for part in written if not isinstance(part, str)]
    pairs = [[agent.strip() for agent in part] for part in parts]
    for pair in pairs:
        if not 1 <= len(pair) <= 2 or not all(pair):
            raise ValueError(f"pairs: {name!r}: a pair is an agent or two, AGENT+AGENT, not {'+'.join(pair)!r}")
    if not 1 <= len(pairs) <= 2:
        raise ValueError(f"pairs: {name!r} is one pair, or two with & between them, not {len(pairs)}")
    return tuple((pair[0], pair[-1]) for pair in pairs)


def plan(words: Sequence[str] = (), file: str | Path | None = None, given: Mapping[str, Any] | None = None) -> Config:
    """What to play, from words of a command line and a YAML file.

    Args:
        words: pairs, as "club", "mixed=club+greedy" or "north=club & greedy", beside those of the file.
        file: a YAML file with fields of :class:`Config`.
        given: fields that hold whatever the file says.
    Raises:
        ValueError: a mistake in it, in one line; an agent that does not exist.
        OSError: the file cannot be read.
    """
    overrides = [f"{key}={json.dumps(value)}" for key, value in (given or {}).items()]  # JSON is YAML
    config = configs.load(file, overrides, Config)
    if words:
        both = [*_named(config.pairs), *_named(words)]
        again = next((name for i, (name, _) in enumerate(both) if name in dict(both[:i])), None)
        if again is not None:
            raise ValueError(f"pairs: {again!r} stands twice; give one another name: NAME={again}")
        config = replace(config, pairs=dict(both))
    config.check()
    for agent in {agent for squad in config.squads.values() for pair in squad for agent in pair}:
        make_agent(agent, config.game)  # an unknown name, or a pair that was trained for another game
    return config


# -- matches and their tables -----------------------------------------------------------------------------------------


@dataclass
class Match:
    """A match and, once it was played, its results."""

    round: int  # from 1
    number: int  # from 1
    sides: tuple[str, str]
    tables: list[Table]
    played: list[Sheet] = field(default_factory=list)  # a table each; none: not begun

    @property
    def deals(self) -> int:
        """Deals with a result, at all tables."""
        return sum(len(one.points) for one in self.played)

    @property
    def boards(self) -> list[tuple[int, int]]:
        """Points of the two sides by board: a deal, or both tables of a deal added up."""
        return [(sum(a for a, _ in deals), sum(b for _, b in deals)) for deals in zip(*(t.points for t in self.played))]

    @property
    def points(self) -> tuple[int, int]:
        """Points of the two sides, over the boards that count."""
        return sum(a for a, _ in self.boards), sum(b for _, b in self.boards)

    @property
    def values(self) -> list[float]:
        """Of each board: net points a deal of the first side."""
        return [(a - b) / len(self.tables) for a, b in self.boards]


def _players(name: str, squad: Squad) -> list[tuple[str, str]]:
    """Names of the players of each pair of a side."""
    return [(f"{name} {2 * i + 1}", f"{name} {2 * i + 2}") for i in range(len(squad))]


@dataclass
class _Draw:
    """S11: the draws of a tournament."""

    config: Config
    order: list[str]  # sides by number, from 1
    pairs: dict[str, list[tuple[str, str]]]  # players of each pair of a side, by number within the pair

    @classmethod
    def of(cls, config: Config) -> _Draw:
        rng = _rng(config, 0)
        players = {name: _players(name, squad) for name, squad in config.squads.items()}
        owner = {player: name for name, pairs in players.items() for pair in pairs for player in pair}
        first = draw_numbers(rng, [pairs[0] for pairs in players.values()])
        second = draw_numbers(rng, [pairs[1] for pairs in players.values() if len(pairs) == 2])
        drawn: dict[str, list[tuple[str, str]]] = {owner[pair[0]]: [pair] for pair in first}
        for pair in second:
            drawn[owner[pair[0]]].append(pair)
        return cls(config, list(drawn), drawn)

    def seats(
        self, sides: tuple[str, str], second: bool, key: tuple[int, int]
    ) -> tuple[tuple[str, ...], tuple[Any, ...]]:
        """Players by seat, and the draw as it stands in the header, of the first or the second pairs of two sides."""
        a, b = (self.pairs[name][-1 if second else 0] for name in sides)
        if self.config.game.name == "sport_club":
            tiles = draw_tiles(_rng(self.config, 1 + second, *key))
            seats = seat_by_tiles((a, b), (tiles[:2], tiles[2:]))
            tile = dict(zip((*a, *b), tiles))
            return seats, tuple(tile[player] for player in seats)
        numbers = [self.order.index(name) + 1 for name in sides]
        return seat_by_numbers((a, b), numbers), tuple(sorted(numbers))

    def match(self, number: int, count: int, sides: tuple[str, str], warnings: Mapping[str, int]) -> Match:
        """Match `count` of round `number`, both from 1, before it is played."""
        config, key = self.config, (number, count)
        seats, draw = self.seats(sides, False, key)
        team = config.table == "team"
        # Of every table: its letter, players by seat, the draw. At the second table the pairs are crossed (S13).
        laid: list[tuple[str, tuple[str, ...], tuple[Any, ...] | None]] = [("a" if team else "", seats, draw)]
        if team:
            other = self.seats(sides, True, key)[0] if any(len(self.pairs[s]) == 2 for s in sides) else seats
            if self._even(sides, other) == self._even(sides, seats):
                other = (other[1], other[0], other[3], other[2])
            laid.append(("b", other, None))
        tables = []
        for letter, players, drawn in laid:
            even = self._even(sides, players)
            info = {"round": number, "match": count, **({"table": letter} if team else {}), "seed": config.seed}
            header = Header(
                config.game,
                players,
                config.fours,
                config.judge,
                (warnings.get(sides[even], 0), warnings.get(sides[1 - even], 0)),
                given=team,
                draw=drawn,
                info={**info, "pair_0": sides[even], "pair_1": sides[1 - even]},
            )
            file = f"round-{number:02}-match-{count:02}{letter and '-' + letter}.jsonl"
            board = (number << _MATCH_BITS | count - 1) << _DEAL_BITS
            where = f"round {number}, match {count}" + (f", table {letter}" if team else "")
            tables.append(Table(file, header, self._agents(sides, players), board, letter == "b", even, where))
        return Match(number, count, sides, tables)

    def _even(self, sides: tuple[str, str], players: Sequence[str]) -> int:
        """Which of the sides has seat 0."""
        return 0 if any(players[0] in pair for pair in self.pairs[sides[0]]) else 1

    def _agents(self, sides: tuple[str, str], players: Sequence[str]) -> tuple[str, str, str, str]:
        agents = {
            player: agent
            for name in sides
            for pair, own in zip(_players(name, self.config.squads[name]), self.config.squads[name])
            for player, agent in zip(pair, own)
        }
        a, b, c, d = (agents[player] for player in players)
        return a, b, c, d


def _rng(config: Config, *key: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(config.seed, spawn_key=key))


# -- standings --------------------------------------------------------------------------------------------------------


@dataclass
class State:
    """What has happened: it follows from the config and the records alone."""

    config: Config
    draw: list[str]  # sides by the number they drew
    models: dict[str, str] = field(default_factory=dict)  # as of :func:`networks`
    rounds: list[list[Match]] = field(default_factory=list)
    byes: dict[int, str] = field(default_factory=dict)  # round -> who had none to play
    out: dict[str, str] = field(default_factory=dict)  # side -> why it plays no more (J1, J6)
    warnings: dict[str, int] = field(default_factory=dict)  # J1
    withdrawals: list[dict[str, Any]] = field(default_factory=list)  # J6

    @property
    def matches(self) -> list[Match]:
        """All of them, in order."""
        return [match for played in self.rounds for match in played]

    @property
    def complete(self) -> bool:
        """Whether nothing is left to play."""
        return len(self.rounds) == self.config.num_rounds

    def fates(self) -> list[str]:
        """Of each match: counted, cut, void or open (J1, J6)."""
        return matches_left([self._fixture(match) for match in self.matches], set(self.out))

    def _fixture(self, match: Match) -> Fixture:
        deals = len(match.tables) * FOUR * self.config.fours
        if self.config.game.match_to is not None:  # K2: as long as it takes
            deals = match.deals if match.played and all(one.over for one in match.played) else match.deals + 1
        return Fixture(match.sides, deals, match.deals)

    def enter(self, match: Match, played: Sequence[Sheet]) -> None:
        """The results of a match, and what they do to its sides (J1, J6)."""
        match.played = list(played)
        for i, name in enumerate(match.sides):
            before = self.warnings.get(name, 0)
            self.warnings[name] = before + sum(one.warnings[i] - before for one in played)
            if any(i in one.removed for one in played) or self.warnings[name] >= _REMOVED:
                self.out.setdefault(name, f"removed in round {match.round} (J1)")
            if any(one.withdrawn == i for one in played):
                self.leave(name, match.round)

    def leave(self, name: str, number: int) -> None:
        """A pair left in this round, or before it (J6)."""
        if name not in self.out:
            self.out[name] = f"withdrawn in round {number} (J6)"
            note = withdrawal("club", 0).note
            self.withdrawals.append({"pair": name, "round": number, "note": note})


def tie_breaks(config: Config) -> list[str]:
    """How places are decided, the first first, in words."""
    swiss = config.system == "swiss"
    bye = f", {WIN} for a bye" if swiss else ""
    unit = "over the boards played at both tables" if config.table == "team" else "over all deals"
    return [
        f"match points ({WIN} for a win, {TIE} for a tie{bye}; none for a match that was cut short)",
        *(["Buchholz (match points of all opponents; a bye counts as one with the pair's own)"] if swiss else []),
        "head-to-head (match points among those still level, where all of them have met)",
        f"net points ({unit})",
        "the number drawn",
    ]


def standings(state: State) -> list[dict[str, Any]]:
    """The table, the best first; those who are out come last.

    Returns:
        for each side: place, pair, match_points, played, won, tied, lost, byes, buchholz (Swiss), head_to_head, net,
        deals, warnings, out.
    """
    config, names = state.config, state.draw
    row: dict[str, dict[str, Any]] = {name: dict.fromkeys(_COUNTS, 0) for name in names}
    opponents: dict[str, list[str]] = {name: [] for name in names}
    against: dict[tuple[str, str], int] = {}  # match points of the first in matches with the second
    for match, fate in zip(state.matches, state.fates()):
        (a, b), (for_a, for_b) = match.sides, match.points
        for name, other, own, theirs in ((a, b, for_a, for_b), (b, a, for_b, for_a)):
            row[name]["net"] += own - theirs
            row[name]["deals"] += match.deals
            if fate != "counted":
                continue
            points = WIN if own > theirs else TIE if own == theirs else 0
            row[name]["played"] += 1
            row[name][{WIN: "won", TIE: "tied", 0: "lost"}[points]] += 1
            row[name]["match_points"] += points
            opponents[name].append(other)
            against[name, other] = against.get((name, other), 0) + points
    for name in state.byes.values():
        row[name]["byes"] += 1
        row[name]["match_points"] += WIN if config.system == "swiss" else 0
    if config.system == "swiss":
        for name in names:
            own = row[name]["match_points"]
            row[name]["buchholz"] = sum(row[o]["match_points"] for o in opponents[name]) + own * row[name]["byes"]

    def first(name: str) -> tuple[Any, ...]:
        return name in state.out, -row[name]["match_points"], -row[name].get("buchholz", 0)

    for name in names:
        level = [other for other in names if other != name and first(other) == first(name)]
        met = all((a, b) in against for a in [name, *level] for b in [name, *level] if a != b)
        row[name]["head_to_head"] = sum(against[name, other] for other in level) if level and met else None
    ranked = sorted(names, key=lambda name: (*first(name), -(row[name]["head_to_head"] or 0), -row[name]["net"]))
    keys = [key for key in _COLUMNS if key != "buchholz" or config.system == "swiss"]
    extra = {name: {"warnings": state.warnings.get(name, 0), "out": state.out.get(name)} for name in names}
    whole = [{"place": i, "pair": name, **row[name], **extra[name]} for i, name in enumerate(ranked, 1)]
    return [{key: one[key] for key in keys} for one in whole]


_COUNTS = ("match_points", "played", "won", "tied", "lost", "byes", "net", "deals")
_COLUMNS = (
    *("place", "pair", "match_points", "played", "won", "tied", "lost", "byes", "buchholz", "head_to_head", "net"),
    *("deals", "warnings", "out"),
)


def crosstable(state: State) -> dict[str, list[list[Any]]]:
    """Every pair against every other, in the order of the config.

    Returns:
        points: net points a deal of the row against the column, low and high: the 95 % interval over boards (Student's
        t), counts: how many boards. None where they never met; the interval from two boards on.
    """
    names = list(state.config.squads)
    values: dict[tuple[str, str], list[float]] = {}
    for match in state.matches:
        a, b = match.sides
        values.setdefault((a, b), []).extend(match.values)
        values.setdefault((b, a), []).extend(-value for value in match.values)
    cells = [[_cell(values.get((a, b), [])) for b in names] for a in names]
    return {key: [[cell[i] for cell in line] for line in cells] for i, key in enumerate(_CELL)}


_CELL = ("points", "low", "high", "counts")


def _cell(values: Sequence[float]) -> tuple[float | None, float | None, float | None, int]:
    count = len(values)
    if not count:
        return None, None, None, 0
    mean = float(np.mean(values))
    if count == 1:
        return mean, None, None, 1
    half = float(stdtrit(count - 1, (1 + CONFIDENCE) / 2) * np.std(values, ddof=1) / np.sqrt(count))
    return mean, mean - half, mean + half, count


def ratings(state: State) -> dict[str, Rating]:
    """Rating and 95 % interval of every pair (`experiments.ratings`), from the boards that the crosstable has."""
    meetings = [(*match.sides, match.values) for match in state.matches]
    return rate(list(state.config.squads), meetings, shared=False, seed=state.config.seed)


def report(state: State) -> dict[str, Any]:
    """All figures of a tournament as plain data: what `domino tournament --json` prints, less ratings and folder."""
    config, rules = state.config, state.config.game
    cross = crosstable(state)
    boards = sum(len(match.boards) for match in state.matches)
    return {
        "players": list(config.squads),
        **{key: cross[key] for key in ("points", "low", "high")},
        "boards": boards,
        "counts": cross["counts"],
        "standings": standings(state),
        "tie_breaks": tie_breaks(config),
        "system": config.system,
        "table": config.table,
        "rounds": config.num_rounds,
        "fours": config.fours,
        "rules": rules.title,
        "judge": config.judge,
        "seed": config.seed,
        "complete": state.complete,
    }


# -- the folder -------------------------------------------------------------------------------------------------------


def _file(state: State) -> str:
    """The text of `tournament.json`."""
    config = state.config
    fates = iter(state.fates())
    rounds = []
    for number, played in enumerate(state.rounds, 1):
        rounds.append(
            {
                "round": number,
                "matches": [
                    {
                        "pairs": [*match.sides],
                        "points": [*match.points],
                        "deals": match.deals,
                        "fate": next(fates),
                        "records": [f"{_RECORDS}/{table.file}" for table in match.tables if match.played],
                    }
                    for match in played
                ],
                "bye": state.byes.get(number),
            }
        )
    figures = report(state)
    derived = {key: figures[key] for key in ("standings", "tie_breaks", *_CELL, "boards", "complete")}
    head = {"record": _KIND, "version": _VERSION, **config.as_dict(), "models": state.models, "draw": state.draw}
    whole = {**head, "withdrawals": state.withdrawals, "results": rounds, **derived}
    return json.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def networks(agents: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the model of every folder that a name of an agent mentions: the agent itself, or one that it reads."""
    parts = {part for agent in agents for part in (agent, *re.findall(r"[:,](?:model|critic)=([^,]+)", agent))}
    folders = {part: folder for part in sorted(parts) if (folder := folder_of(part)) is not None}
    if not folders:
        return {}
    from agents.checkpoint import resolve  # needs torch, as the networks do

    models = {part: resolve(folder) / "model.safetensors" for part, folder in folders.items()}
    return {part: hashlib.sha256(model.read_bytes()).hexdigest() for part, model in models.items()}


def same_networks(folder: Path, then: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raises ``ValueError`` where one of the networks of before is another one now."""
    for name, digest in then.items():
        if now.get(name, digest) != digest:
            raise ValueError(f"{name} is not the network that began {folder}: it was trained on, or replaced")


def load(folder: str | Path) -> Config:
    """What was asked for in a tournament's folder.

    Raises:
        ValueError: no tournament, or one that cannot be read.
        OSError: the file cannot be read.
    """
    path = Path(folder) / _FILE
    if not path.is_file():
        raise ValueError(f"{folder} holds no tournament: there is no {_FILE} in it")
    data = read_record(path, _KIND, _VERSION)
    known = {field.name for field in fields(Config)}
    saved = {key: value for key, value in data.items() if key in known}
    config = configs.load(None, [], Config, saved=saved, source=str(path))
    try:
        config.check()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return config


def _wait_for_workers(records: Path) -> None:
    """Until no worker of a run that was killed is left; each ends by itself at once."""
    handle = os.open(records, os.O_RDONLY)
    deadline = time.monotonic() + 5 * GRACE
    try:
        while True:
            try:
                return fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ValueError(f"{records} is still being written by a worker of an earlier run") from None
                time.sleep(0.05)
    finally:
        os.close(handle)


def _claim(folder: Path, config: Config) -> None:
    """Make the folder, or see that what it holds is this tournament."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; a tournament is written to a folder")
    if (folder / _FILE).is_file():
        there, asked = load(folder).as_dict(), config.as_dict()
        for key, value in asked.items():
            if there[key] != value:
                raise ValueError(
                    f"{folder} holds another tournament, with {key}={_short(there[key])}, not {key}={_short(value)}; "
                    f"go on with it by --resume {folder}, or write elsewhere"
                )
    elif folder.exists() and any(
        one.name != _RECORDS and not one.name.startswith(f".{_FILE}") for one in folder.iterdir()
    ):
        raise ValueError(f"{folder} is not empty and holds no tournament; write elsewhere")


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


# -- a whole tournament -----------------------------------------------------------------------------------------------


def run(
    config: Config,
    folder: str | Path,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Play a tournament to its end, or go on with it.

    Args:
        config: what to play.
        folder: where it is written; a new one, or one that holds this tournament.
        workers: processes; the result is the same for any number.
        progress: called with deals recorded and deals in all (K2: as many as can be known).
    Returns:
        :func:`report`, the :func:`ratings`, and the folder.
    Raises:
        ValueError: bad numbers, a folder that holds something else or is being written, a record that does not hold.
        PairError: an agent failed, and nobody judges; what was played is kept.
        KeyboardInterrupt: Ctrl-C; what was played is kept.
        OSError: it cannot be written.
    """
    folder = Path(folder)
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= 1024:
        raise ValueError(f"workers={workers!r} must be a whole number in 1..1024")
    _claim(folder, config)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, ANOTHER):
        _claim(folder, config)
        (folder / _RECORDS).mkdir(exist_ok=True)
        _wait_for_workers(folder / _RECORDS)
        for left in folder.glob(f".{_FILE}.*.part"):  # of a run that was killed while it wrote
            left.unlink()
        crew = Workers(folder / _RECORDS, config.seed, workers)
        try:
            state = _play(config, folder, crew, progress or (lambda done, total: None))
        finally:
            crew.close()
    return {**report(state), "ratings": ratings(state), "folder": str(folder)}


def _play(config: Config, folder: Path, crew: Workers, progress: Callable[[int, int], None]) -> State:
    draw = _Draw.of(config)
    agents = sorted({agent for squad in config.squads.values() for pair in squad for agent in pair})
    state = State(config, draw.order, networks(agents))
    written = -1  # rounds that stand in the file
    if (folder / _FILE).is_file():
        found = json.loads((folder / _FILE).read_text(encoding="utf-8"))
        known = found.get("models")
        same_networks(folder, known if isinstance(known, dict) else {}, state.models)
        written = len(found["results"]) if isinstance(found.get("results"), list) else 0
    else:
        write_whole(folder / _FILE, _file(state))
    per_match = (1 + (config.table == "team")) * FOUR * config.fours
    total = config.num_rounds * (len(config.squads) // 2) * per_match
    done = 0

    def tell(deals: int) -> None:
        nonlocal done
        done += deals
        progress(done, max(done, total))

    for number in range(1, config.num_rounds + 1):
        same_networks(folder, state.models, networks(agents))
        for name in (name for name, leaves in config.withdraw.items() if leaves == number):
            state.leave(name, number)
        playing: list[Match] = []
        met = _pairing(state, number)
        state.rounds.append(played := [])
        for count, sides in enumerate((sides for sides in met if sides[1] is not None), 1):
            match = draw.match(number, count, (sides[0], str(sides[1])), state.warnings)
            played.append(match)
            if not set(match.sides) & set(state.out):
                playing.append(match)
        for name, other in met:
            if other is None and name not in state.out:
                state.byes[number] = name
        tables = [table for match in playing for table in match.tables]
        results = iter(crew.play(tables, tell) if tables else [])
        for match in playing:
            state.enter(match, [next(results) for _ in match.tables])
        if number > written or state.complete:  # what was there is never taken back
            write_whole(folder / _FILE, _file(state))
    return state


def _pairing(state: State, number: int) -> Pairing:
    """Who meets whom in this round."""
    config = state.config
    if config.system == "round_robin":
        return circle(state.draw, number - 1)
    table = standings(state)
    ranked = [row["pair"] for row in table if row["out"] is None]
    if len(ranked) < 2:
        return []
    met: dict[frozenset[str], int] = {}
    for meeting in [frozenset(match.sides) for match in state.matches] + [frozenset([n]) for n in state.byes.values()]:
        met[meeting] = met.get(meeting, 0) + 1
    points = {row["pair"]: row["match_points"] for row in table}
    return swiss(ranked, points, met, config.num_rounds - number + 1)
