"""The match: who sits where, leads and shuffles, what the result is, and the record of it all (S2, S10-S13; B2, R3; J).

A match of any game is ``begin(Header(...))`` and then, until it is ``over``, ``next_deal``, ``lay_out``, the play, and
``advance``, or `append` of a :class:`Recorder`.

The record (protocol) is JSON Lines of one format for every game; ``schemas/match.json`` is its JSON Schema.

* The first line is the header: the game and what differs from it, players by seat, length, who judges, warnings brought
  along, whether deals are given, the draw for the seats, and whatever else is worth keeping.
* Then a line a deal. What was played: its number; ``text``, which is leader, hands (in the blind games rows from left
  to right) and stock; ``moves``, every action in order, so in blitz the stop too, written ``pass``, and in the blind
  games ``turn``, ``draw``, and ``pass`` where a seat declines or stops; the violations, with the judge's decisions;
  ``players`` where a pair changed seats, ``left`` where the judge found what was in the hands. What follows from that:
  ``raw`` result, ``sanctions``, ``recorded`` result, ``sums``, and who would ``shuffle``. Whose each move was is not
  written: the rules say it.
* The last line may be a withdrawal.

Reading a record plays every deal again on the engine and refuses a line that does not follow. :class:`Recorder` appends
a line at a time, on the disk before it returns.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

from domino_env.deals import Deal, format_deal, parse_deal, row_keys, shuffle, shuffle_rows, struck
from domino_env.engine import Engine, make_engine
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
from domino_env.rows import RowEngine
from domino_env.rules import Rules, get_rules
from domino_env.schemas import check
from domino_env.tiles import (
    LOW,
    NUM_TILES,
    PASS,
    PIPS,
    is_whole,
    mask_of,
    tile_index,
    tile_name,
    tiles_of,
)

FOUR = 4  # deals; each of four seats leads once where the lead rotates
_KIND, _VERSION = "domino match", 1
_ONE_ONE, _SIX_SIX = tile_index("1-1"), tile_index("6-6")
_RANKS = sorted(range(NUM_TILES), key=lambda tile: (int(PIPS[tile]), int(LOW[tile])))  # S11, the lowest first
_PASS_BIT = np.uint64(1 << PASS)
_BESIDE = 4096  # deals that are played again side by side

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
    rules: Rules,
    deals: int,
    hands: Sequence[int],
    last: tuple[int, Mapping[str, Any]] | None = None,
    lot: int | None = None,
) -> tuple[int, int | None]:
    """Who leads a deal (S2, K1, K2, B2, R3).

    Args:
        rules: the game.
        deals: number d of the deal.
        hands: masks as dealt, by seat.
        last: leader and raw result of the deal before in the match; None for the first.
        lot: the seat that a lot decided on; only read where the rules let one decide.
    Returns:
        the seat, and the tile that it must lead, None for any.
    Raises:
        ValueError: a lot decides, and none was given, or nobody holds the tile that leads.
    """
    if rules.lead == "rotation":
        return deals % rules.seats, None
    if rules.lead == "double_six":
        return _holder(hands, _SIX_SIX), _SIX_SIX
    if rules.lead == "winner":
        if last is None:
            return _holder(hands, _ONE_ONE), _ONE_ONE
        leader, raw = last
        if raw["winner"] is None:
            return leader, None
        return (raw["by"] + (raw["winner"] - raw["by"]) % rules.num_sides) % rules.seats, None
    if rules.lead == "lot":
        if lot is None or not 0 <= lot < rules.seats:
            raise ValueError(f"lot={lot!r} must be a seat in 0..{rules.seats - 1}: in {rules.name} a lot decides")
        return lot, None
    dealt = 0
    for hand in hands:
        dealt |= int(hand)
    ranks = reversed(_RANKS) if rules.lead == "high" else _RANKS
    tile = next((tile for tile in ranks if dealt >> tile & 1), 0)  # 0-0 is the lowest, so `blank` is as `low`
    return _holder(hands, tile), tile


def _holder(hands: Sequence[int], tile: int) -> int:
    for seat, hand in enumerate(hands):
        if int(hand) >> tile & 1:
            return seat
    raise ValueError(f"nobody holds {tile_name(tile)}, with which the deal is led")


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
    dealt: int = 0  # lines of deals so far, with those that are replayed

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


def next_deal(standing: Standing, seed: int | None) -> Deal:
    """The next deal of a match: shuffled (S1, S4, B1, R1), with its leader (S2, K1, K2, B2, R3) and no moves.

    A seed is a whole match: row 0 of an engine with this seed and ``episode="match"`` deals the same, and a deal that
    is played instead of another (J5) is the next of the seed.

    Args:
        standing: before the deal.
        seed: of the match; None for chance that nobody can repeat.
    Raises:
        ValueError: the match is over, or a bad seed.
    """
    rules = standing.header.rules
    keys, count = row_keys(seed, np.zeros(1, np.int64)), np.array([standing.dealt])
    if rules.rows:
        order, lot = shuffle_rows(rules, keys, count)
        tiles, size = order[0].tolist(), rules.hand_size
        dealt = rules.seats * size
        hands = [tiles[start : start + size] for start in range(0, dealt, size)]
        return given_deal(standing, hands, tiles[dealt:], int(lot[0]))
    return given_deal(standing, [tiles_of(int(hand)) for hand in shuffle(rules, keys, count)[0]])


def given_deal(
    standing: Standing, hands: Sequence[Sequence[int]], stock: Sequence[int] = (), lot: int | None = None
) -> Deal:
    """Hands that are given (S13) as the next deal of a match, with the leader that the rules name, and no moves.

    Args:
        standing: before the deal.
        hands: tile numbers by seat; in the blind games from left to right.
        stock: in the blind games the rest, the next to be drawn first.
        lot: the seat that leads, where a lot decides (R3).
    Raises:
        ValueError: the match is over, or a lot decides and none is given.
    """
    if standing.over:
        raise ValueError("the match is over; no deal follows")
    seat, _ = _leads(standing, [mask_of(hand) for hand in hands], lot)
    return Deal(standing.header.rules, seat, [[*hand] for hand in hands], stock=[*stock])


def lay_out(standings: Sequence[Standing], deals: Sequence[Deal]) -> Engine:
    """An engine with the next deal of each of these matches in a row of its own, ready to be played.

    Where the rules name the tile that is led (K1, K2, B2, R3) the leader may lay no other. What was played is
    ``Played(engine.record(row))``.

    Args:
        standings: n matches of one game; deals: as of :func:`next_deal`, one a match.
    Raises:
        ValueError: no match, several games, or hands that are none.
    """
    if not deals or len(standings) != len(deals) or len({one.header.rules for one in standings}) != 1:
        raise ValueError(f"{len(standings)} matches and {len(deals)} deals must be as many, of one game")
    engine = make_engine(standings[0].header.rules, len(deals), 0)
    deal_out(engine, deals)
    free = engine.legal_count() > 1
    for row, (standing, deal) in enumerate(zip(standings, deals)):
        _, tile = _leads(standing, [mask_of(hand) for hand in deal.hands], deal.leader)
        if tile is not None and free[row]:  # given deals may be led with any tile
            engine.load(row, {**engine.snapshot(row), "lead_tile": tile_name(tile)})
    return engine


def _leads(standing: Standing, hands: Sequence[int], lot: int | None) -> tuple[int, int | None]:
    """Who leads the next deal of a match, and with which tile."""
    return lead(standing.header.rules, standing.deals, hands, standing.last, lot)


def deal_out(engine: Engine, deals: Sequence[Deal]) -> None:
    """Begin given deals in the rows of an engine, without their moves; S4 is off.

    In a game on an open line the leader may lay any tile.

    Args:
        engine: of the game, one row a deal.
        deals: one a row.
    Raises:
        ValueError: hands that are none, or a leader whom the rules do not name (B2, R3); the engine is as it was.
    """
    leader = np.array([deal.leader for deal in deals])
    if isinstance(engine, RowEngine):
        engine.deal(np.array([deal.hands for deal in deals]), leader, np.array([d.stock for d in deals], np.int64))
    else:
        engine.deal(np.array([[mask_of(hand) for hand in deal.hands] for deal in deals], np.uint32), leader)


def summary(standing: Standing) -> dict[str, Any]:
    """How a match stands, as plain data for JSON.

    Returns:
        rules, overrides; players (by seat, as they sit now); sides (the names of each side); deals (that have a
        result); length (deals of the whole match, None where it is played to a score) and to (that score, or None);
        sums (of each side); over; winner (the side, None for a tie or before the end); tie (S10); removed (J1);
        warnings (J1; None without a judge); withdrawal (J6; None, or seat, player and note).
    """
    head, rules = standing.header, standing.header.rules
    winner = standing.winner if standing.over else None
    left = standing.withdrawal
    return {
        "rules": rules.name,
        "overrides": rules.overrides(),
        "players": [*standing.players],
        "sides": [
            [player for seat, player in enumerate(head.players) if rules.side_of(seat) == side]
            for side in range(rules.num_sides)
        ],
        "deals": standing.deals,
        "length": FOUR * head.fours if rules.match_to is None else None,
        "to": rules.match_to,
        "sums": [*standing.sums],
        "over": standing.over,
        "winner": winner,
        "tie": standing.over and winner is None,
        "removed": [*standing.removed],
        "warnings": None if head.judge is None else [*standing.warnings],
        "withdrawal": None if left is None else _withdrawal_line(standing)["withdrawal"],
    }


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
    return _advance(standing, played, make_engine(standing.header.rules, 1, 0))


def _advance(
    standing: Standing, played: Played, table: Engine, raw: dict[str, Any] | None = None
) -> tuple[Standing, dict[str, Any]]:
    """:func:`advance` on an engine of one row that serves for deal after deal, or with a raw result that is known."""
    head, deal, rules = standing.header, played.deal, standing.header.rules
    if standing.over:
        raise ValueError("the match is over; no deal follows")
    if deal.rules != rules:
        raise ValueError(f"the deal is of {deal.rules.title}, the match is of {rules.title}")
    if played.violations and head.judge is None:
        raise ValueError("there are violations, but the header names no judge")
    players = _seated(standing, played.players)
    hands = [mask_of(hand) for hand in deal.hands]
    seat, tile = _leads(standing, hands, deal.leader)
    if deal.leader != seat:
        raise ValueError(f"deal {standing.deals} is led by seat {seat}, not by seat {deal.leader}")
    if tile is not None and deal.moves and deal.moves[0] < PASS and deal.moves[0] % NUM_TILES != tile:
        raise ValueError(f"deal {standing.deals} is led with {tile_name(tile)}, not {rules.action_name(deal.moves[0])}")
    _check_shuffle(head, hands, played.violations)
    found = [] if head.judge is None else verdicts(head.judge, standing.violations, played.violations, head.warnings)
    raw = _replay(table, played, fate(found)) if raw is None else raw
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
        "moves": [rules.action_name(move) for move in deal.moves],
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
        dealt=standing.dealt + 1,
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


def _results(rules: Rules, deals: Sequence[Played]) -> Iterator[dict[str, Any] | None]:
    """Play many deals again: the raw result of each that went by the rules to its end, None for the others.

    The others are those with violations, with a move that the rules forbid, with too few moves or too many.
    """
    for start in range(0, len(deals), _BESIDE):
        results = dict.fromkeys(range(start, min(start + _BESIDE, len(deals))))
        plain = [
            i for i in results if deals[i].deal.rules == rules and not deals[i].violations and deals[i].left is None
        ]
        found = _play([deals[i].deal for i in plain])
        yield from (results | dict(zip(plain, found))).values()


def _play(deals: Sequence[Deal]) -> list[dict[str, Any] | None]:
    """Play deals of one game side by side: the raw result of each whose moves are just those that the rules allow."""
    results: list[dict[str, Any] | None] = [None] * len(deals)
    lengths = np.array([len(deal.moves) for deal in deals])
    if not lengths.any():
        return results
    engine = make_engine(deals[0].rules, len(deals), 0)
    try:
        deal_out(engine, deals)
    except ValueError:  # of one of them: they are looked at one by one
        return results
    moves = np.zeros((len(deals), lengths.max()), np.int64)
    for i, deal in enumerate(deals):
        moves[i, : lengths[i]] = deal.moves
    at = np.arange(len(deals))  # the deal in each row of the engine
    for ply in range(moves.shape[1]):
        on = ~engine.over() & (lengths[at] > ply)
        on &= engine.legal_bits() >> moves[at, ply].astype(np.uint64) & np.uint64(1) != 0
        if not on.any():
            break
        if not on.all():
            at, engine = at[on], engine.take(on)
        engine.step(moves[at, ply], autoreset=False)
        for j, row in enumerate(engine.finished.rows):
            if lengths[at[row]] == ply + 1:
                results[at[row]] = engine.finished.info(j)
    return results


def _replay(table: Engine, played: Played, ended: str) -> dict[str, Any] | None:
    """Play a deal in a batch of one: its raw result, as far as it has one.

    Args:
        table: an engine of one row.
        played: the deal.
        ended: what became of it by its verdicts.
    """
    deal = played.deal
    rules, moves = deal.rules, deal.moves
    if len(moves) > rules.max_plies:  # only with wrong passes on and on (J3), and nobody lays any more
        raise ValueError(f"{len(moves)} moves; no deal of {rules.name} has more than {rules.max_plies}")
    deal_out(table, [deal])
    wrong = {}  # ply -> violation
    for one in played.violations:
        if one.ply > len(moves):
            raise ValueError(f"{one.kind} at ply {one.ply}, but only {len(moves)} moves were made")
        if one.kind == "wrong_pass":
            wrong[one.ply] = one
    last = None
    for ply, move in enumerate(moves):
        if table.over()[0]:
            raise ValueError(f"move {ply + 1}, {rules.action_name(move)}, comes after the end of the deal")
        seat = int(table.to_move()[0])
        if ply in wrong:
            _pass_wrongly(table, wrong.pop(ply), seat, move)
        try:
            table.step(np.array([move]), autoreset=False)
        except ValueError as error:
            raise ValueError(f"move {ply + 1} of seat {seat}: {error}") from None
        last = seat if move < PASS else last
    for one in wrong.values():
        raise _no_wrong_pass(one)
    if played.left is not None and not any(one.kind == "misfit_later" for one in played.violations):
        raise ValueError("left= is for deals that a tile ended which did not match (misfit_later)")
    if table.over()[0]:
        return table.finished.info(0)
    if ended == "continue":
        raise ValueError(f"the deal is not over after its {len(moves)} moves")
    if ended != "end":
        return None
    hands = table.hands()[0].tolist()
    if played.left is not None:
        hands = _left(rules, hands, played.left)
    return stopped(rules, hands, len(moves), last)


def _pass_wrongly(table: Engine, one: Violation, seat: int, move: int) -> None:
    """Let the mover pass though it could lay: it was judged, and the deal went on (J3); corrected, it lays (J4)."""
    if seat != one.seat or (move == PASS) == one.corrected:
        raise _no_wrong_pass(one)
    if table.legal_bits()[0] & _PASS_BIT:
        raise ValueError(f"seat {seat} had nothing to lay at ply {one.ply}: its pass was right")
    if not one.corrected:
        assert isinstance(table, LineEngine)  # the judge knows games in pairs, and those are on a line
        table.allow_pass(np.zeros(1, np.int64))


def _no_wrong_pass(one: Violation) -> ValueError:
    wanted = "a tile that seat laid" if one.corrected else "a pass of that seat"
    return ValueError(f"wrong_pass of seat {one.seat} at ply {one.ply}: there the moves must hold {wanted}")


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
    entries: list[tuple[int, dict[str, Any], Played | None]] = []  # line, what it says, its deal; None: a withdrawal
    fault = None  # the first line that is none
    try:
        head = header(_json(whole[0]))
    except ValueError as error:
        raise ValueError(f"{path}: line 1: {error}") from None
    for number, text in enumerate(whole[1:], 2):
        try:
            value = _json(text)
            entries.append((number, value, _deal_of(value)))
        except ValueError as error:
            fault = ValueError(f"{path}: line {number}: {error}")
            break
    played = [one for _, _, one in entries if one is not None]
    known = _results(head.rules, played)
    table = make_engine(head.rules, 1, 0)
    standing = begin(head)
    for number, value, one in entries:
        try:
            standing = _withdrawn(standing, value) if one is None else _follow(standing, value, one, table, known)
        except ValueError as error:
            raise ValueError(f"{path}: line {number}: {error}") from None
    if fault is not None:
        raise fault
    lines = tuple(value for _, value, one in entries if one is not None)
    return MatchRecord(head, lines, tuple(played), standing, len(data) - len(rest), bool(rest))


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


def _deal_of(value: Any) -> Played | None:
    """What was played by a line as it is parsed; None for a withdrawal."""
    if isinstance(value, dict) and "withdrawal" in value:
        check("match", "withdrawal", value)
        return None
    check("match", "deal", value)
    try:
        deal = parse_deal(value["text"])
    except ValueError as error:
        raise ValueError(f"text: {str(error).removeprefix('line 1, ')}") from None
    if deal.moves:
        raise ValueError("text holds moves; they stand in moves")
    deal.moves = [deal.rules.action_index(move) for move in value["moves"]]
    left = value.get("left")
    return Played(
        deal,
        tuple(violation(one["violation"]) for one in value["sanctions"]),
        tuple(value["players"]) if "players" in value else None,
        None if left is None else tuple(tuple(hand) for hand in left),
    )


def _follow(
    standing: Standing, value: dict[str, Any], played: Played, table: Engine, known: Iterator[dict[str, Any] | None]
) -> Standing:
    """Check a deal's line against what follows from its moves; `known` yields the raw results of deal after deal."""
    after, line = _advance(standing, played, table, next(known))
    for key in [*line, *value]:
        if value.get(key) != line.get(key):
            raise ValueError(f"{key} is {value.get(key)!r}; from the moves follows {line.get(key)!r}")
    return after


def _withdrawn(standing: Standing, value: dict[str, Any]) -> Standing:
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
        self._table = make_engine(standing.header.rules, 1, 0)  # on which deals are played again
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
            raise ValueError(f"{path} is there already; a new record needs a new file") from None
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
        standing, line = _advance(self.standing, played, self._table)
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
