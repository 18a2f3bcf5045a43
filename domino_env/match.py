"""The match: who sits where, leads and shuffles, what the result is, and the record of it all (S2, S10-S13; J).

The record (protocol) is JSON Lines: a header, a line a deal, at most one withdrawal. A line holds what was played and
what follows from it by the rules and by the judge; reading a record plays every deal again on the engine and refuses a
line that does not follow. :class:`Recorder` appends a line at a time, on the disk before it returns.
``schemas/match.json`` is the format as JSON Schema.
"""

import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from domino_env.deals import Deal, format_deal, holder, parse_deal, struck
from domino_env.judge import (
    RULEBOOKS,
    Verdict,
    Violation,
    Withdrawal,
    fate,
    record,
    stopped,
    verdicts,
    violation,
    warnings,
    withdraw,
)
from domino_env.line import LineEngine
from domino_env.rules import Rules, get_rules
from domino_env.schemas import check
from domino_env.tiles import (
    LOW,
    NUM_TILES,
    PASS,
    PIPS,
    action_index,
    action_name,
    is_whole,
    mask_of,
    tile_index,
    tile_name,
)

FOUR = 4  # deals: each seat leads once
_KIND, _VERSION = "domino match", 1
_ONE_ONE, _SIX_SIX = tile_index("1-1"), tile_index("6-6")
_PASS_BIT = np.uint64(1 << PASS)

# -- seats and leads --------------------------------------------------------------------------------------------------


def draw_tiles(rng: np.random.Generator, players: int = 4) -> list[str]:
    """The tiles that the players draw for their seats in `sport_club` (S11)."""
    return [tile_name(int(tile)) for tile in rng.permutation(NUM_TILES)[:players]]


def lowness(tile: str) -> tuple[int, int]:
    """Sort key of drawn tiles, the lowest first: fewest pips, then the smaller suit, so 0-2 is below 1-1 (S11)."""
    number = tile_index(tile)
    return int(PIPS[number]), int(LOW[number])


def seat_by_tiles(pairs: Sequence[Sequence[str]], drawn: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Seating of `sport_club` (S11): the lowest tile sits at seat 0 and leads, to its left the lower of the other pair.

    Args:
        pairs: two pairs of players.
        drawn: the tile of each, in the same order.
    Returns:
        players by seat.
    Raises:
        ValueError: not two pairs, an unknown tile, or one drawn twice.
    """
    (a, b), tiles = _two_pairs(pairs), [*_two_pairs(drawn, "drawn")]
    if len({tile_index(tile) for pair in tiles for tile in pair}) != 4:
        raise ValueError(f"drawn={drawn!r}: every player draws a tile of its own")
    keys = [[lowness(tile) for tile in pair] for pair in tiles]
    first = 0 if min(keys[0]) < min(keys[1]) else 1
    own, other = (a, b) if first == 0 else (b, a)
    low, left = (min((0, 1), key=keys[side].__getitem__) for side in (first, 1 - first))
    return own[low], other[left], own[1 - low], other[1 - left]


def draw_numbers(rng: np.random.Generator, pairs: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """The draw of `sport_book` (S11): pairs by their numbers, from 1, and players by their number in the pair."""
    order = rng.permutation(len(pairs))
    turned = rng.integers(0, 2, len(pairs))
    return [(pairs[i][turned[i]], pairs[i][1 - turned[i]]) for i in order]


def seat_by_numbers(pairs: Sequence[Sequence[str]], numbers: Sequence[int]) -> tuple[str, ...]:
    """Seating of `sport_book` (S11): the lower pair's first sits at seat 0 and leads, the other's first to its left.

    Args:
        pairs: two pairs of players, each by number within the pair.
        numbers: of the two pairs.
    Returns:
        players by seat.
    Raises:
        ValueError: not two pairs, or not two different numbers.
    """
    a, b = _two_pairs(pairs)
    if len(numbers) != 2 or not all(is_whole(n) and n >= 1 for n in numbers) or numbers[0] == numbers[1]:
        raise ValueError(f"numbers={numbers!r} must be two different pair numbers, counted from 1")
    if numbers[1] < numbers[0]:
        a, b = b, a
    return a[0], b[0], a[1], b[1]


def _two_pairs(pairs: Sequence[Sequence[str]], name: str = "pairs") -> tuple[Sequence[str], Sequence[str]]:
    if len(pairs) != 2 or any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"{name}={pairs!r} must be two pairs")
    return pairs[0], pairs[1]


def change_seats(players: Sequence[str], side: int, deals: int, sums: Sequence[int]) -> tuple[str, ...]:
    """A pair changes its two seats; its points stay its own (S11).

    With partners facing each other there are only two orders round the table; either pair can turn one into the other.

    Args:
        players: by seat.
        side: the pair that changes.
        deals: deals of the match that have a result.
        sums: points of both pairs.
    Raises:
        ValueError: within a four, before the first, or by a pair that is not behind.
    """
    if len(players) != 4 or side not in (0, 1):
        raise ValueError(f"side={side!r} must be 0 or 1, of four players, not {players!r}")
    if deals % FOUR or not deals:
        raise ValueError(f"seats are changed only between fours (S11), not after {deals} deals")
    if sums[side] >= sums[1 - side]:
        raise ValueError(f"only the pair that is behind may change seats (S11); pair {side} is not, at {list(sums)}")
    seats = [seat if seat % 2 != side else (seat + 2) % 4 for seat in range(4)]
    return players[seats[0]], players[seats[1]], players[seats[2]], players[seats[3]]


def lead(
    rules: Rules, deals: int, hands: Sequence[int], last: tuple[int, Mapping[str, Any]] | None = None
) -> tuple[int, int | None]:
    """Who leads a deal (S2, K1, K2).

    Args:
        rules: a game on an open line.
        deals: number d of the deal.
        hands: masks as dealt, by seat.
        last: leader and raw result of the deal before in the match; None for the first.
    Returns:
        the seat, and the tile that it must lead, None for any.
    Raises:
        ValueError: a game with another lead.
    """
    dealt = np.array([hands], np.uint32)
    if rules.lead == "rotation":
        return deals % rules.seats, None
    if rules.lead == "double_six":
        return int(holder(dealt, _SIX_SIX)[0]), _SIX_SIX
    if rules.lead == "winner":
        if last is None:
            return int(holder(dealt, _ONE_ONE)[0]), _ONE_ONE
        leader, raw = last
        if raw["winner"] is None:
            return leader, None
        return (raw["by"] + (raw["winner"] - raw["by"]) % rules.num_sides) % rules.seats, None
    raise ValueError(f"lead={rules.lead!r} is of no game on an open line; match records know these alone")


def shuffler(rulebook: str, leader: int) -> dict[str, Any]:
    """Who would shuffle before a deal, in order, and who draws last (S12).

    The book says "the pair that does not lead"; of its players the one before the leader is named, as in the club.

    Args:
        rulebook: "book" or "club".
        leader: seat that leads the deal.
    Returns:
        {"by": seats, "draws_last": seat}.
    """
    before = (leader + 3) % 4
    if rulebook == "book":
        return {"by": [before], "draws_last": before}
    if rulebook == "club":
        return {"by": [before, leader], "draws_last": leader}
    raise ValueError(f"unknown rulebook {rulebook!r}; choose from {', '.join(RULEBOOKS)}")


def result(sums: Sequence[int]) -> int | None:
    """The side that won a match by the sums of its points, None for a tie (S10)."""
    best = max(sums)
    return None if list(sums).count(best) > 1 else list(sums).index(best)


# -- what a record says -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Header:
    """What is played, by whom.

    Raises ``ValueError`` on construction for what cannot be played, or seats that do not follow from the draw.
    """

    rules: Rules
    players: tuple[str, ...]  # by seat; seat 0 leads first
    fours: int = 1  # length of the match; of no effect where the rules play to a score (K2)
    judge: str | None = None  # None: nobody judges | book | club
    warnings: tuple[int, int] = (0, 0)  # J1: of each pair, from its earlier matches of the tournament
    given: bool = False  # given deals (S13): S4 is off
    draw: tuple[str, ...] | tuple[int, ...] | None = None  # S11: tiles by seat (club) | numbers of the two pairs (book)
    info: Mapping[str, Any] = field(default_factory=dict)  # whatever else: round, table, first board

    def __post_init__(self) -> None:
        if len(self.players) != self.rules.seats or not all(isinstance(p, str) and p for p in self.players):
            raise ValueError(f"players={self.players!r} must be {self.rules.seats} names, one a seat")
        if not is_whole(self.fours) or self.fours < 1:
            raise ValueError(f"fours={self.fours!r} must be a whole number >= 1")
        if self.judge is not None and (self.judge not in RULEBOOKS or not self.rules.pairs):
            raise ValueError(f"judge={self.judge!r} must be None, or one of {', '.join(RULEBOOKS)} in a game in pairs")
        if self.judge is not None and self.rules.lead == "winner":
            raise ValueError(f"judge={self.judge!r}: in {self.rules.name} the lead goes by results, which J knows not")
        if len(self.warnings) != 2 or not all(is_whole(n) and n >= 0 for n in self.warnings):
            raise ValueError(f"warnings={self.warnings!r} must be two whole numbers >= 0")
        self._check_draw()
        check("match", "header", self.as_dict())

    def _check_draw(self) -> None:
        if self.draw is None:
            return
        if len(self.draw) == 4 and self.rules.pairs:
            tiles = [str(tile) for tile in self.draw]
            if seat_by_tiles(("02", "13"), ((tiles[0], tiles[2]), (tiles[1], tiles[3]))) == ("0", "1", "2", "3"):
                return
        elif len(self.draw) == 2 and self.rules.pairs:
            low, high = self.draw
            if is_whole(low) and is_whole(high) and 1 <= low < high:
                return
        raise ValueError(
            f"draw={self.draw!r} does not give these seats (S11); it is four tiles by seat, the lowest first, or the "
            "numbers of the two pairs, the lower first"
        )

    @property
    def rulebook(self) -> str | None:
        """The rulebook of the sport games; None for others."""
        return {"sport_book": "book", "sport_club": "club"}.get(self.rules.name)

    def as_dict(self) -> dict[str, Any]:
        """The first line of the record."""
        return {
            "record": _KIND,
            "version": _VERSION,
            "rules": self.rules.name,
            "overrides": self.rules.overrides(),
            "fours": self.fours,
            "players": [*self.players],
            "judge": self.judge,
            "warnings": [*self.warnings],
            "given": self.given,
            "draw": None if self.draw is None else [*self.draw],
            "info": {**self.info},
        }


def header(data: Any) -> Header:
    """Read what :meth:`Header.as_dict` writes. Raises ``ValueError`` for anything else."""
    check("match", "header", data)
    return Header(
        rules=get_rules(data["rules"], **data["overrides"]),
        players=tuple(data["players"]),
        fours=data["fours"],
        judge=data["judge"],
        warnings=(data["warnings"][0], data["warnings"][1]),
        given=data["given"],
        draw=None if data["draw"] is None else tuple(data["draw"]),
        info=data["info"],
    )


@dataclass(frozen=True)
class Played:
    """One deal as it was played: what the rest of its line follows from."""

    deal: Deal  # hands, leader, moves
    violations: tuple[Violation, ...] = ()
    players: tuple[str, ...] | None = None  # by seat, where seats were changed before this deal (S11)
    left: tuple[tuple[str, ...], ...] | None = None  # with misfit_later: tiles in hand at the end, by seat


@dataclass(frozen=True)
class Standing:
    """How a match stands: after the header, and after every line."""

    header: Header
    players: tuple[str, ...]  # by seat, as they sit now
    sums: tuple[int, ...]  # points of each side
    deals: int = 0  # deals that have a result; also the number of the next
    violations: tuple[Violation, ...] = ()  # of the match so far
    pending: tuple[Verdict, ...] = ()  # on deals that are to be replayed next
    last: tuple[int, Mapping[str, Any]] | None = None  # leader and raw result of the last deal that had one (K2)
    removed: tuple[int, ...] = ()  # pairs that are out of the tournament (J1)
    withdrawal: Withdrawal | None = None  # J6

    @property
    def over(self) -> bool:
        """Whether no deal follows: the match is complete, or a pair is out."""
        to = self.header.rules.match_to
        complete = self.deals >= FOUR * self.header.fours if to is None else max(self.sums) >= to
        return complete or bool(self.removed) or self.withdrawal is not None

    @property
    def winner(self) -> int | None:
        """The side that is ahead, None for a tie (S10)."""
        return result(self.sums)

    @property
    def warnings(self) -> tuple[int, int]:
        """Warnings of each pair in the tournament, those of this match included (J1)."""
        if self.header.judge is None:
            return self.header.warnings
        return warnings(self.header.judge, self.violations, self.header.warnings)


def begin(header: Header) -> Standing:
    """A match before its first deal."""
    return Standing(header, header.players, (0,) * header.rules.num_sides)


def advance(standing: Standing, played: Played) -> tuple[Standing, dict[str, Any]]:
    """Enter a deal: play it on the engine, judge it, add it up.

    Args:
        standing: before the deal.
        played: the deal.
    Returns:
        the standing after it, and its line of the record.
    Raises:
        ValueError: a deal after the end, of other rules or another leader, one that S4 deals again, moves that the
            rules do not allow or that do not end the deal, a violation that did not happen, seats changed against S11.
    """
    head, deal, rules = standing.header, played.deal, standing.header.rules
    if standing.over:
        raise ValueError("the match is over; no deal follows")
    if deal.rules != rules:
        raise ValueError(f"the deal is of {deal.rules}, the match is of {rules}")
    if played.violations and head.judge is None:
        raise ValueError("there are violations, but the header names no judge")
    players = _seated(standing, played.players)
    hands = [mask_of(hand) for hand in deal.hands]
    seat, tile = lead(rules, standing.deals, hands, standing.last)
    if deal.leader != seat:
        raise ValueError(f"deal {standing.deals} is led by seat {seat}, not by seat {deal.leader}")
    if tile is not None and deal.moves and deal.moves[0] % NUM_TILES != tile:
        raise ValueError(f"deal {standing.deals} is led with {tile_name(tile)}, not {action_name(deal.moves[0])}")
    _check_shuffle(head, hands, played.violations)
    found = [] if head.judge is None else verdicts(head.judge, standing.violations, played.violations, head.warnings)
    raw = _replay(played, fate(found))
    if head.judge is None:
        assert raw is not None  # without verdicts a deal is played to its end
        points, recorded = raw["points"], _unjudged(raw)
        judged = None
    else:
        judged = record(raw, found, standing.pending)
        points, recorded = [*judged.points], judged.as_dict()
    replayed = judged is not None and judged.deal == "replay"
    sums = tuple(a + b for a, b in zip(standing.sums, points))
    line = {
        "deal": standing.deals,
        "leader": deal.leader,
        **({} if players == standing.players else {"players": [*players]}),
        "text": format_deal(replace(deal, moves=[])),
        "moves": [action_name(move) for move in deal.moves],
        **({} if played.left is None else {"left": [[*hand] for hand in played.left]}),
        "raw": raw,
        "sanctions": [one.as_dict() for one in found],
        "recorded": recorded,
        "sums": [*sums],
        "shuffle": None if head.rulebook is None else shuffler(head.rulebook, deal.leader),
    }
    after = replace(
        standing,
        players=players,
        sums=sums,
        deals=standing.deals + (not replayed),
        violations=(*standing.violations, *played.violations),
        pending=(*standing.pending, *found) if replayed else (),
        last=standing.last if raw is None else (deal.leader, raw),
        removed=() if judged is None else judged.removed,
    )
    return after, line


def _unjudged(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded result where nobody judges: the raw one."""
    points = [*raw["points"]]
    return {"points": points, "fines": [0] * len(points), "winner": raw["winner"], "deal": "continue", "removed": []}


def _seated(standing: Standing, players: tuple[str, ...] | None) -> tuple[str, ...]:
    """Players by seat for the next deal."""
    if players is None or players == standing.players:
        return standing.players
    if standing.pending:
        raise ValueError("seats are not changed before a replay: its four has begun (S11)")
    if not standing.header.rules.pairs:
        raise ValueError("seats are changed by a pair (S11); here each seat plays for itself")
    behind = 0 if standing.sums[0] < standing.sums[1] else 1
    changed = change_seats(standing.players, behind, standing.deals, standing.sums)
    if players != changed:
        raise ValueError(f"players={list(players)} is not the change open to the pair behind, {list(changed)} (S11)")
    return changed


def _check_shuffle(head: Header, hands: Sequence[int], violations: Sequence[Violation]) -> None:
    """S4, and the violations of J3 that are about it."""
    if head.given or not head.rules.redeal:
        return
    again = [bool(one) for one in struck(np.array(hands, np.uint32)[:, None])]
    fined = False
    for one in violations:
        fined |= one.kind in ("redeal_undeclared", "redeal_unshown")
        if one.kind == "redeal_undeclared" and one.seat is not None and not again[one.seat]:
            raise ValueError(f"seat {one.seat} could not declare a re-deal: its hand is none that S4 deals again")
    if any(again) and not fined:
        raise ValueError(f"seat {again.index(True)} holds a hand that S4 deals again, and nobody was fined for it")


def _replay(played: Played, ended: str) -> dict[str, Any] | None:
    """Play a deal on the engine: its raw result, as far as it has one.

    Args:
        played: the deal.
        ended: what became of it by its verdicts.
    """
    deal = played.deal
    seats, moves = deal.rules.seats, deal.moves
    engine = LineEngine(deal.rules, 1, 0)
    engine.deal(np.array([[mask_of(hand) for hand in deal.hands]], np.uint32), np.array([deal.leader]))
    wrong = {}  # ply -> violation
    for one in played.violations:
        if one.ply > len(moves):
            raise ValueError(f"{one.kind} at ply {one.ply}, but only {len(moves)} moves were made")
        if one.kind == "wrong_pass":
            wrong[one.ply] = one
            _check_wrong_pass(one, deal)
    last = None
    for ply, move in enumerate(moves):
        if engine.over()[0]:
            raise ValueError(f"move {ply + 1}, {action_name(move)}, comes after the end of the deal")
        seat = (deal.leader + ply) % seats
        if ply in wrong:
            if engine.legal_bits()[0] == _PASS_BIT:
                raise ValueError(f"seat {seat} had nothing to lay at ply {ply}: its pass was right")
            if not wrong[ply].corrected:
                _let_pass(engine)
        try:
            engine.step(np.array([move]), autoreset=False)
        except ValueError as error:
            raise ValueError(f"move {ply + 1} of seat {seat}: {error}") from None
        last = seat if move != PASS else last
    if played.left is not None and not any(one.kind == "misfit_later" for one in played.violations):
        raise ValueError("left= is for deals that a tile ended which did not match (misfit_later)")
    if engine.over()[0]:
        return engine.finished.info(0)
    if ended == "continue":
        raise ValueError(f"the deal is not over after its {len(moves)} moves")
    if ended != "end":
        return None
    hands = engine.hands()[0].tolist()
    if played.left is not None:
        hands = _left(deal.rules, hands, played.left)
    return stopped(deal.rules, hands, len(moves), last)


def _check_wrong_pass(one: Violation, deal: Deal) -> None:
    """That the moves hold the pass, or, corrected, what was laid instead."""
    move = deal.moves[one.ply] if one.ply < len(deal.moves) else None
    if (deal.leader + one.ply) % deal.rules.seats != one.seat or move is None or (move == PASS) == one.corrected:
        wanted = "a tile that seat laid" if one.corrected else "a pass of that seat"
        raise ValueError(f"wrong_pass of seat {one.seat} at ply {one.ply}: there the moves must hold {wanted}")


def _let_pass(engine: LineEngine) -> None:
    """Let the mover of a batch of one pass though it could lay: the pass was judged, and the deal went on (J3)."""
    engine._legal[0] |= _PASS_BIT


def _left(rules: Rules, hands: Sequence[int], left: Sequence[Sequence[str]]) -> list[int]:
    """Masks of the tiles that the judge found in the hands: no others than those that the moves leave there."""
    masks = [mask_of(tile_index(tile) for tile in hand) for hand in left]
    if len(masks) != rules.seats or not all(masks) or any(mask & ~hand for mask, hand in zip(masks, hands)):
        raise ValueError(f"left={[list(hand) for hand in left]!r} must be tiles that each seat still held")
    return masks


# -- the file ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MatchRecord:
    """A record that was read, and holds."""

    header: Header
    lines: tuple[dict[str, Any], ...]  # of the deals, as they stand in the file
    played: tuple[Played, ...]  # the same deals
    standing: Standing  # after the last line
    size: int  # bytes of the whole lines
    cut: bool  # a last line was cut while it was written; it is left out


def read(path: str | Path, *, drop_cut: bool = False) -> MatchRecord:
    """Read a record, playing every deal again.

    Args:
        path: the file.
        drop_cut: leave out a last line that was cut while it was written, instead of refusing the record.
    Raises:
        ValueError: naming file and line: no record, a line that is cut, malformed, or does not follow from its moves.
        OSError: the file cannot be read.
    """
    return _parse(Path(path).read_bytes(), str(path), drop_cut)


def _parse(data: bytes, path: str, drop_cut: bool) -> MatchRecord:
    *whole, rest = data.split(b"\n")
    if rest and not drop_cut:
        raise ValueError(f"{path}: line {len(whole) + 1} is cut in the middle: it was not written to its end")
    if not whole:
        raise ValueError(f"{path}: line 1 is missing; a match record begins with its header")
    standing = None
    lines, deals = [], []
    for number, text in enumerate(whole, 1):
        try:
            value = _json(text)
            if standing is None:
                standing = begin(header(value))
            elif isinstance(value, dict) and "withdrawal" in value:
                standing = _withdrawn(standing, value)
            else:
                standing, played = _follow(standing, value)
                lines.append(value)
                deals.append(played)
        except ValueError as error:
            raise ValueError(f"{path}: line {number}: {error}") from None
    assert standing is not None  # there is a first line
    return MatchRecord(standing.header, tuple(lines), tuple(deals), standing, len(data) - len(rest), bool(rest))


def _json(text: bytes) -> Any:
    """One line as JSON, strictly: no key twice, no number that is none."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            raise ValueError(f"a key stands twice among {', '.join(key for key, _ in pairs)}")
        return value

    def never(word: str) -> Any:
        raise ValueError(f"{word} is no number of JSON")

    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=once, parse_constant=never)
    except UnicodeDecodeError:
        raise ValueError("not text in UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise ValueError("not a line of a record: it is nested too deeply") from None


def _follow(standing: Standing, value: Any) -> tuple[Standing, Played]:
    """Check a deal's line against what follows from its moves."""
    check("match", "deal", value)
    try:
        deal = parse_deal(value["text"])
    except ValueError as error:
        raise ValueError(f"text: {str(error).removeprefix('line 1, ')}") from None
    if deal.moves:
        raise ValueError("text holds moves; they stand in moves")
    deal.moves = [action_index(move) for move in value["moves"]]
    left = value.get("left")
    played = Played(
        deal,
        tuple(violation(one["violation"]) for one in value["sanctions"]),
        tuple(value["players"]) if "players" in value else None,
        None if left is None else tuple(tuple(hand) for hand in left),
    )
    after, line = advance(standing, played)
    for key in [*line, *value]:
        if value.get(key) != line.get(key):
            raise ValueError(f"{key} is {value.get(key)!r}; from the moves follows {line.get(key)!r}")
    return after, played


def _withdrawn(standing: Standing, value: Any) -> Standing:
    check("match", "withdrawal", value)
    after = leave(standing, value["withdrawal"]["seat"])
    line = _withdrawal_line(after)
    if value != line:
        raise ValueError(f"withdrawal is {value['withdrawal']!r}; it must be {line['withdrawal']!r}")
    return after


def leave(standing: Standing, seat: int) -> Standing:
    """A player leaves without leave (J6): the match goes no further; what was played counts.

    Raises:
        ValueError: not judged by the club, an unknown seat, or the match is over.
    """
    if standing.over:
        raise ValueError("the match is over; nobody leaves it")
    if standing.header.judge is None:
        raise ValueError("a withdrawal is a matter of the judge (J6), but the header names none")
    return replace(standing, withdrawal=withdraw(standing.header.judge, seat))


def _withdrawal_line(standing: Standing) -> dict[str, Any]:
    left = standing.withdrawal
    assert left is not None  # only called after leave()
    return {"withdrawal": {"seat": left.seat, "player": standing.players[left.seat], "note": left.note}}


def _lock(path: Path, handle: int) -> None:
    """Keep other writers out until the file is closed, be it by the end of a process that is killed."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise ValueError(f"{path} is being written by somebody else") from None


class Recorder:
    """Writes one match record; nobody else can while it is open. A line is whole on the disk before `append` returns.

    Get one by :meth:`create` or :meth:`resume`, and close it, or use it in a ``with``.
    """

    def __init__(self, path: Path, handle: int, standing: Standing) -> None:
        self.path = path
        self.standing = standing  # after the last line
        self._handle = handle  # of the open and locked file; -1 once closed

    @classmethod
    def create(cls, path: str | Path, header: Header) -> Self:
        """Begin a record in a new file.

        Raises:
            ValueError: the file is there already.
            OSError: it cannot be written.
        """
        path = Path(path)
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            raise ValueError(f"{path} is there already; resume it, or write elsewhere") from None
        _lock(path, handle)
        recorder = cls(path, handle, begin(header))
        try:
            recorder._write(header.as_dict())
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)  # the name, too, is on the disk
            finally:
                os.close(folder)
        except BaseException:
            path.unlink(missing_ok=True)
            recorder.close()
            raise
        return recorder

    @classmethod
    def resume(cls, path: str | Path, *, drop_cut: bool = False) -> Self:
        """Go on with a record.

        Args:
            path: the file.
            drop_cut: remove a last line that was cut while it was written, instead of refusing the record.
        Raises:
            ValueError: as of :func:`read`, or somebody else is writing.
            OSError: it cannot be read or written.
        """
        path = Path(path)
        handle = os.open(path, os.O_RDWR)
        _lock(path, handle)
        try:
            found = _parse(path.read_bytes(), str(path), drop_cut)
            if found.cut:
                os.ftruncate(handle, found.size)
                os.fsync(handle)
        except BaseException:
            os.close(handle)
            raise
        return cls(path, handle, found.standing)

    def append(self, played: Played) -> dict[str, Any]:
        """Enter a deal: its line, which is now on the disk.

        Raises:
            ValueError: as of :func:`advance`; nothing was written.
            OSError: it could not be written; the file is as it was.
        """
        standing, line = advance(self.standing, played)
        self._write(line)
        self.standing = standing
        return line

    def leave(self, seat: int) -> None:
        """Enter a withdrawal (J6). Raises ``ValueError`` as of :func:`leave`."""
        standing = leave(self.standing, seat)
        self._write(_withdrawal_line(standing))
        self.standing = standing

    def _write(self, line: Mapping[str, Any]) -> None:
        if self._handle < 0:
            raise ValueError(f"{self.path}: the recorder is closed")
        data = (json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8")
        end = os.lseek(self._handle, 0, os.SEEK_END)
        try:
            if os.write(self._handle, data) != len(data):
                raise OSError(f"{self.path}: a line was written in part; is the disk full?")
            os.fsync(self._handle)
        except BaseException:
            os.ftruncate(self._handle, end)
            raise

    def close(self) -> None:
        """Close the file and let others write."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
