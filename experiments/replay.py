"""Deals and matches, played again. A file holds either deals in text or the record of a match.

Deals in text: one a line; blank lines and lines that begin with # are left out. The notation is that of
`domino_env.deals`; moves are played on the engine, so what is shown is what the rules allow, and a mistake is told with
its line and column.

Match records: those of `domino_env.match`, which are played again as they are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from domino_env import make_engine, match
from domino_env.deals import Deal, parse_deal
from domino_env.engine import Engine
from domino_env.line import LineEngine
from domino_env.match import MatchRecord
from domino_env.tiles import PASS

Snapshot = dict[str, Any]
_FIRST = 2  # the line of the first deal of a match record


@dataclass(frozen=True)
class Replay:
    """One deal of a file and every position of it."""

    line: int  # number of its line in the file, from 1
    deal: Deal
    wrong: frozenset[int] = frozenset()  # moves, counted from 0, that are wrong passes with which the deal went on (J3)
    number: int = 0  # of the deal in its match, where it has one
    sums: tuple[Sequence[int], Sequence[int]] | None = None  # points in its match, before and after; None: no match
    players: Sequence[str] = ()  # of its match, by seat

    @cached_property
    def positions(self) -> list[Snapshot]:
        """Before the first move, then after each."""
        return [self._seen(engine, number) for number, engine in enumerate(self._engines())]

    def position(self, moves: int | None = None) -> Snapshot:
        """The position after some moves, None for all.

        Raises:
            ValueError: more moves than were made.
        """
        last = len(self.deal.moves)
        if moves is not None and not 0 <= moves <= last:
            raise ValueError(f"the deal of line {self.line} has moves 0 to {last}, not {moves}")
        wanted = last if moves is None else moves
        return next(self._seen(engine, wanted) for number, engine in enumerate(self._engines()) if number == wanted)

    def _seen(self, engine: Engine, number: int) -> Snapshot:
        """The position after `number` moves, with what the match adds to it."""
        snapshot = engine.snapshot(0)
        if self.sums is None:
            return snapshot
        ended = number == len(self.deal.moves)
        return {**snapshot, "deal_index": self.number, "score": [*self.sums[ended]]}

    def _engines(self) -> Iterator[Engine]:
        """The engine at each position: one and the same, so look at it before going on."""
        engine = _laid_out(self.deal)
        yield engine
        for number, move in enumerate(self.deal.moves):
            if number in self.wrong and isinstance(engine, LineEngine):
                engine.allow_pass(np.zeros(1, np.int64))
            engine.step(np.array([move]), autoreset=False)
            yield engine

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the deal as dealt, its moves, and how it stands after the last."""
        last = self.position()
        return {
            "line": self.line,
            "rules": last["rules"],
            "overrides": last["overrides"],
            "leader": self.deal.leader,
            "hands": last["dealt"],
            **({"stock": last["dealt_stock"]} if self.deal.rules.rows else {}),
            "moves": last["moves"],
            "movers": last["movers"],
            "ends": last["ends"],
            "over": last["over"],
            "deal": last["deal"],
        }


@dataclass(frozen=True)
class MatchReplay:
    """A match record, its deals as they can be played again."""

    record: MatchRecord
    deals: list[Replay]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the header, and how the match stands after the last line. Deals: see `deal_dict`."""
        return {
            "header": self.record.header.as_dict(),
            "summary": match.summary(self.record.standing),
            "cut": self.record.cut,
        }

    def deal_dict(self, one: Replay) -> dict[str, Any]:
        """The line of one deal, and its number in the file."""
        return {"line": one.line, **self.record.lines[one.line - _FIRST]}

    def heading(self) -> list[str]:
        """Lines that say what is played, by whom, and who judges."""
        head = self.record.header
        judge = "nobody judges" if head.judge is None else f"the {head.judge} judges"
        length = f"to {head.rules.match_to} points" if head.rules.match_to else f"{match.FOUR * head.fours} deals"
        text = [f"match of {head.rules.title}, {length}, {judge}"]
        tiles = head.draw if head.draw and len(head.draw) == len(head.players) else [""] * len(head.players)
        width = max(len(player) for player in head.players)
        for seat, (player, tile) in enumerate(zip(head.players, tiles, strict=True)):
            text.append(f"  seat {seat}  {player:{width}}  {f'drew {tile}' if tile else ''}".rstrip())
        if head.rules.pairs:
            numbers = f", pairs {head.draw[0]} and {head.draw[1]} by the draw" if head.draw and tiles[0] == "" else ""
            text.append(f"  {' against '.join(self._sides())}{numbers}")
        if any(head.warnings):
            text.append(f"  warnings from earlier matches: {_score(head.warnings)}")
        text += ["  the deals are given"] if head.given else []
        text += [f"  {key}: {value}" for key, value in head.info.items()]
        return text

    def opening(self, one: Replay) -> list[str]:
        """Lines that say which deal it is, who leads, and who would shuffle."""
        line, players = self.record.lines[one.line - _FIRST], _apart(one.players)
        leader = f"{one.players[line['leader']]}, seat {line['leader']}"
        text = f"deal {line['deal'] + 1} (line {one.line}): {leader}, leads"
        if line["shuffle"] is not None:
            by = ", then ".join(players[seat] for seat in line["shuffle"]["by"])
            text += f"; {by} would shuffle, {players[line['shuffle']['draws_last']]} draws last"
        changed = [f"  seats were changed: {', '.join(one.players)}"] if "players" in line else []
        return [text, *changed]

    def outcome(self, one: Replay) -> list[str]:
        """Lines that say how a deal ended: raw result, sanctions, recorded result, sums."""
        line, players = self.record.lines[one.line - _FIRST], _apart(one.players)
        raw, recorded = line["raw"], line["recorded"]
        text = [f"  {_raw(raw, players, len(line['moves']))}"]
        for verdict in line["sanctions"]:
            text.append(f"  {_sanction(verdict, players)}")
        if self.record.header.judge is not None:
            fines = f", of it fines {_score(recorded['fines'])}" if any(recorded["fines"]) else ""
            fate = {"end": ", ended by the judge", "replay": ", to be replayed", "lost": ", lost by decree"}
            text.append(f"  recorded {_score(recorded['points'])}{fines}{fate.get(recorded['deal'], '')}")
        text += [f"  {self._sides()[side]} are out of the tournament" for side in recorded["removed"]]
        return [*text, f"  sums {_score(line['sums'])}"]

    def ending(self) -> list[str]:
        """Lines that say how the match stands after the last line of the record."""
        stands = match.summary(self.record.standing)
        left = stands["withdrawal"]
        text = [f"{left['player']}, seat {left['seat']}, left: {left['note']}"] if left else []
        after = f"after {_count(stands['deals'], 'deal')}: {_score(stands['sums'])}"
        if not stands["over"]:
            text.append(f"the match goes on {after}")
        elif stands["tie"]:
            text.append(f"a tie {after}")
        else:
            pair = self.record.header.rules.pairs
            text.append(f"{self._sides()[stands['winner']]} {'win' if pair else 'wins'} {after}")
        return text + (["the last line was cut while it was written; it is left out"] if self.record.cut else [])

    def _sides(self) -> list[str]:
        rules, players = self.record.header.rules, _apart(self.record.standing.players)
        side_of = [rules.side_of(seat) for seat in range(rules.seats)]
        return [
            " and ".join(player for player, its in zip(players, side_of, strict=True) if its == side)
            for side in range(rules.num_sides)
        ]


def _apart(players: Sequence[str]) -> list[str]:
    """Names by seat, with the seat where several have the same."""
    return [name if players.count(name) == 1 else f"{name} (seat {seat})" for seat, name in enumerate(players)]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _score(points: Sequence[int]) -> str:
    return " : ".join(map(str, points))


def _raw(raw: dict[str, Any] | None, players: Sequence[str], moves: int) -> str:
    if raw is None:
        return f"broken off after {_count(moves, 'move')}, without a result"
    by = "nobody" if raw["by"] is None else players[raw["by"]]
    how = {"out": f"{by} goes out", "block": f"a block, {by} laid last", "guard": "broken off by the guard"}
    pips = " ".join(map(str, raw["pips_left"]))
    return f"{how[raw['outcome']]} after {_count(raw['plies'], 'move')}, pips left {pips}: {_score(raw['points'])}"


def _sanction(verdict: dict[str, Any], players: Sequence[str]) -> str:
    one = verdict["violation"]
    who = "" if one["seat"] is None else f" by {players[one['seat']]}"
    costs = ["a warning"] if verdict["warning"] else []
    costs += [f"fine {verdict['fine']}"] if verdict["fine"] else []
    costs += [f"the deal is {verdict['deal']}"] if verdict["deal"] == "lost" else []
    costs += [f"the judge decides: {one['decision']}"] if one["decision"] != "continue" else []
    taken_back = ", taken back" if one["corrected"] else ""
    return (
        f"{one['kind']}{who} after {_count(one['ply'], 'move')}{taken_back} ({verdict['clause']}), "
        f"no. {verdict['count']}: {', '.join(costs) or 'noted'}"
    )


def read(path: str | Path, *, drop_cut: bool = False) -> list[Replay] | MatchReplay:
    """All deals of a file, played.

    Args:
        path: the file.
        drop_cut: of a match record, leave out a last line that was cut while it was written.
    Raises:
        ValueError: with file, line and column, for what is not the notation and for a move that the rules forbid; with
            file and line for a record that is none, is cut, or does not follow from its moves.
        OSError: the file cannot be read.
    """
    data = Path(path).read_bytes()
    if data.lstrip()[:1] == b"{":  # no deal in text begins so, and every record does
        return _match(path, drop_cut)
    if drop_cut:
        raise ValueError(f"{path}: only the last line of a match record can be left out, and this is none")
    return _texts(data, path)


def _texts(data: bytes, path: str | Path) -> list[Replay]:
    try:
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file in UTF-8") from None
    replays = []
    for number, text in enumerate(lines, 1):
        if text.strip() and not text.lstrip().startswith("#"):
            try:
                replays.append(play(text, number))
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None
    if not replays:
        raise ValueError(f'{path}: no deal in it; one begins like "sport_book leader=0 | 0-1 2-2 … | …"')
    return replays


def _match(path: str | Path, drop_cut: bool) -> MatchReplay:
    record = match.read(path, drop_cut=drop_cut)
    deals, players, before = [], record.header.players, [0] * record.header.rules.num_sides
    # Lines of deals are all that lie between the header and a withdrawal, which is the last.
    for number, (line, one) in enumerate(zip(record.lines, record.played, strict=True), _FIRST):
        wrong = frozenset(v.ply for v in one.violations if v.kind == "wrong_pass" and not v.corrected)
        players = one.players or players
        deals.append(Replay(number, one.deal, wrong, line["deal"], (before, line["sums"]), players))
        before = line["sums"]
    return MatchReplay(record, deals)


def play(text: str, line: int = 1) -> Replay:
    """Plays one line of text; ValueError with line and column where it cannot be."""
    deal = parse_deal(text, line)
    try:
        engine = _laid_out(deal)
    except ValueError as error:  # a tile decides who leads (B2, R3)
        raise ValueError(f"line {line}, column {text.index('leader=') + 1}: {error}") from None
    name = deal.rules.action_name
    for number, action in enumerate(deal.moves):
        at = _place(text, deal, number, line)
        if engine.over()[0]:
            raise ValueError(f"{at}: {name(action)} comes after the end of the deal")
        mask = engine.legal()[0]
        if not mask[action]:
            allowed = ", ".join(name(legal) for legal in np.flatnonzero(mask).tolist())
            wrong = ", so it is a wrong pass" if action == PASS and not deal.rules.rows else ""
            mover = int(engine.to_move()[0])
            raise ValueError(f"{at}: seat {mover} may not play {name(action)}; allowed: {allowed}{wrong}")
        engine.step(np.array([action]), autoreset=False)
    return Replay(line, deal)


def _laid_out(deal: Deal) -> Engine:
    """An engine of one row with a deal before its first move."""
    engine = make_engine(deal.rules, 1, seed=0)
    match.deal_out(engine, [deal])
    return engine


def _place(text: str, deal: Deal, number: int, line: int) -> str:
    """Where move `number` stands: the moves are the last words of the line."""
    words = [found.start() for found in re.finditer(r"[^\s|]+", text)]
    return f"line {line}, column {words[len(words) - len(deal.moves) + number] + 1}"
