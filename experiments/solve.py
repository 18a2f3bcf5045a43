"""A deal with all hands open: what every move is worth, the best line, and what each played move lost.

Values are exact: net points of the mover's side if all play their best from there, knowing all hands.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from textwrap import wrap
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from agents.search import load
from domino_env.render.words import result_of, side_names
from domino_env.rules import Rules
from domino_env.tiles import mask_of, tile_index
from experiments.replay import MatchReplay, Replay, Snapshot, play, read

WIDTH = 80  # columns of the text

Found = TypeVar("Found")


def find(word: str, number: int | None = None) -> Replay:
    """The deal that a word of the command line means.

    Args:
        word: a deal in text; a file of deals, or the record of a match; "-" for deals on standard input.
        number: which of them, from 1; None where there is one alone.
    Raises:
        ValueError: with line and column for what is not the notation or not allowed; no such deal, or several.
        OSError: the file cannot be read.
    """
    if "|" in word or not word.strip():
        return chosen("the text", [play(word)], number)
    if word == "-":
        return chosen("standard input", [play(text, line) for line, text in lines_of(typed())], number)
    found = read(word)
    return chosen(word, found.deals if isinstance(found, MatchReplay) else found, number)


def typed() -> str:
    """All of standard input."""
    return "" if sys.stdin is None else sys.stdin.read()


def lines_of(text: str) -> list[tuple[int, str]]:
    """The lines that hold something, numbered from 1; those that begin with # are left out."""
    lines = enumerate(text.splitlines(), 1)
    return [(number, line) for number, line in lines if line.strip() and not line.lstrip().startswith("#")]


def chosen(name: str, found: Sequence[Found], number: int | None) -> Found:
    """The one deal of some that is asked for by its number, from 1; ValueError where there is none, or no number."""
    holds = f"deals 1 to {len(found)}" if found else "no deals"
    if number is None and len(found) != 1:
        raise ValueError(f"{name} holds {holds}{': choose with --deal' if found else ''}")
    if number is not None and number > len(found):
        raise ValueError(f"--deal {number}: {name} holds {holds}")
    return found[(number or 1) - 1]


def solve(one: Replay, moves: int | None = None) -> dict[str, Any]:
    """What the moves of a deal are worth after some of them were made, and what these lost.

    Args:
        one: of a game that the solver plays.
        moves: how many were made; None: all.
    Returns:
        plain data: rules, overrides, leader; ends, over, to_move (None where the deal is over); values (points of the
        mover's side by move), best (the first of the best moves, None where the deal is over), line (moves of the best
        line to the end) and end (how the deal then ends); losses (of each move made: its number move, seat, played,
        best, value, best_value, loss, forced: it was the only one), loss_by_seat and loss_by_side.
    Raises:
        ValueError: a game that the solver does not play, more moves than there are.
        ImportError: Numba is not installed.
    """
    rules = one.deal.rules
    solver = load("solver")
    solver.check(rules)
    last = one.position(moves)
    made = len(last["moves"])
    positions = one.positions[: made + 1]
    going = [position for position in positions if not position["over"]]
    table = _table(going)
    values = solver.solve(*table, rules) if going else np.zeros((0, rules.num_actions), np.int32)
    # Of each position for side 0; a wrong pass that the judge let stand (J3) is worth what comes after it.
    worth = [_sign(position) * int(value.max()) for position, value in zip(going, values)]
    losses = []
    for number, action in enumerate(one.deal.moves[:made]):
        before, value = going[number], values[number]
        wrong = value[action] == solver.ILLEGAL
        after = _sign(before) * worth[number + 1] if wrong else int(value[action])
        best = action if after == value.max() else int(value.argmax())
        losses.append(
            {
                "move": number + 1,
                "seat": before["to_move"],
                "played": rules.action_name(action),
                "best": rules.action_name(best),
                "value": after,
                "best_value": int(value.max()),
                "loss": int(value.max()) - after,
                "forced": not wrong and int((value != solver.ILLEGAL).sum()) == 1,
            }
        )
    by_seat = [sum(move["loss"] for move in losses if move["seat"] == seat) for seat in range(rules.seats)]
    by_side = [sum(by_seat[side :: rules.num_sides]) for side in range(rules.num_sides)]
    plain = {
        "rules": rules.name,
        "overrides": rules.overrides(),
        "leader": one.deal.leader,
        "ends": last["ends"],
        "over": last["over"],
        "to_move": None if last["over"] else last["to_move"],
        "values": {},
        "best": None,
        "line": [],
        "end": last["deal"],
        "losses": losses,
        "loss_by_seat": by_seat,
        "loss_by_side": by_side,
    }
    if not last["over"]:
        value, ends, mover = values[-1], last["ends"] or (-1, -1), last["to_move"]
        legal = np.flatnonzero(value != solver.ILLEGAL).tolist()
        line = solver.best_line(table[0][-1], ends, mover, rules)
        plain |= {
            "values": {rules.action_name(action): int(value[action]) for action in legal},
            "best": rules.action_name(int(value.argmax())),
            "line": [rules.action_name(action) for action in line],
            "end": _played_on(one, made, line)["deal"],
        }
    return plain


def _table(positions: Sequence[Snapshot]) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Hands, ends and movers of some positions, as the solver takes them."""
    hands = [[mask_of(map(tile_index, hand)) for hand in position["hands"]] for position in positions]
    ends = [position["ends"] or (-1, -1) for position in positions]
    return np.array(hands, np.uint32), np.array(ends), np.array([position["to_move"] for position in positions])


def _sign(position: Snapshot) -> int:
    """1 where side 0 is to move, else -1: what turns the mover's points into those of side 0, and back."""
    return 1 - 2 * (position["to_move"] % 2)


def _played_on(one: Replay, made: int, line: list[int]) -> Snapshot:
    """The position in which a deal ends that goes on with other moves."""
    deal = dataclasses.replace(one.deal, moves=one.deal.moves[:made] + line)
    return Replay(one.line, deal, one.wrong).position()


def report(result: dict[str, Any], rules: Rules) -> list[str]:
    """What `solve` found, as lines of text."""
    table = {"seats": rules.seats, "pairs": rules.pairs}
    sides = side_names(table)
    made = len(result["losses"])
    text = [f"{rules.name}, seat_{result['leader']} leads, {made} move{'' if made == 1 else 's'}"]
    if result["over"]:
        text[0] += ": the deal is over"
    else:
        ends = result["ends"]
        where = f"ends {ends[0]} and {ends[1]}" if ends else "the lead"
        text[0] += f": seat_{result['to_move']} to move, {where}"
        side = sides[rules.side_of(result["to_move"])]
        text.append(f"points for {side} with the best play of all from there")
        for name, value in sorted(result["values"].items(), key=lambda item: -item[1]):
            text.append(f"  {value:+4d}  {name}")
        seats = _movers(rules, result["to_move"], len(result["line"]))
        text += _wrapped("best line ", [f"{seat}:{name}" for seat, name in zip(seats, result["line"])])
    text.append("  ".join(result_of({**table, "over": True, "deal": result["end"]})))
    if made:
        text.append("move    seat    played   lost  best")
        for move in result["losses"]:
            head = f"{move['move']:4d}    seat_{move['seat']}  {move['played']:7}"
            best = "the only one" if move["forced"] else f"{move['best_value']:+4d}  {move['best']}"
            text.append(f"{head} {move['loss'] or '.':>6}  {best}")
        names = [f"seat_{seat}" for seat in range(rules.seats)]
        parts = [f"{name} {loss}" for name, loss in zip(names, result["loss_by_seat"])]
        parts += [f"{name} {loss}" for name, loss in zip(sides, result["loss_by_side"])] if rules.pairs else []
        text += wrap(f"points lost: {', '.join(parts)}", WIDTH, subsequent_indent=" " * 13, break_on_hyphens=False)
    return text


def _movers(rules: Rules, first: int, count: int) -> list[int]:
    return [(first + number) % rules.seats for number in range(count)]


def _wrapped(head: str, words: Sequence[str]) -> list[str]:
    return wrap(head + " ".join(words), WIDTH, subsequent_indent=" " * len(head), break_on_hyphens=False)
