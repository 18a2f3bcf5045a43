"""The double-dummy solver: exact values of a deal in which all hands are open (S3, S5-S8, B5, K1, K2, K4).

A null-window alpha-beta search with a transposition table, driven by MTD(f) (Plaat et al., Best-first fixed-depth
minimax algorithms, 1996), as compiled code. What it does beyond that: the two ends of the line are kept in order, so
that a line and its mirror image are one position; forced passes make no nodes; the pips that are left bound what can
still be won; and moves are tried in a fixed order, first those that make the next opponent pass. Many deals are
searched at once by threads, each with a table of its own.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np

from agents.search.kernels import compiled, cores, lowest, popcount
from domino_env.rules import Rules
from domino_env.tiles import (
    LOW,
    NUM_ACTIONS,
    NUM_SUITS,
    NUM_TILES,
    PASS,
    PIPS,
    SUIT_MASK,
    is_whole,
    mask_of,
    tile_name,
    tiles_of,
)

ILLEGAL: int = int(np.iinfo(np.int32).min)  # the value of an action that is not legal

# In compiled code everything is int64. A position of a deal is one number: the tiles that are left; from bit _ENDS on
# the ends, the smaller suit first; from bit _SEAT on the mover. Who holds which tile follows from the deal. In the
# table the number of the deal is added from bit _DEAL on, among the moves of a node the tile and the rank.
_ENDS, _SEAT, _TILE, _RANK = 28, 34, 36, 41
_DEAL = _TILE
_LEFT = (1 << _ENDS) - 1
_POSITION = (1 << _TILE) - 1
_SUIT = SUIT_MASK.astype(np.int64)
_PIPS = PIPS.astype(np.int64)
_LOW = LOW.astype(np.int64)
_REACH = np.zeros(64, np.int64)  # left << 3 | right -> the tiles that match an end
for _a in range(NUM_SUITS):
    for _b in range(NUM_SUITS):
        _REACH[_a << 3 | _b] = SUIT_MASK[_a] | SUIT_MASK[_b]
# A frame of the search: position, pips left to either side, best value, moves left to try, and those (at most 14).
_FRAME, _MOVES = 20, 5
_STACK = _FRAME * (NUM_TILES + 1) + 1
_NODES = _STACK - 1  # counted in the last number of the stack
_WIDE = 2048  # no value is so far from 0
_HASH = -7046029254386353131  # 2 ** 64 over the golden ratio
# What the rules say, as numbers: what a lone 0-0 counts, how a block scores, whether an out scores the partner's pips
# too; and of the deal: seats, and who was dealt 0-0, any seat where nobody was.
_LONE, _BLOCK, _OTHERS, _SEATS, _BLANK = range(5)
_BLOCKS = ("difference", "loser_total", "both_totals")
_BOTH = 2
# Entries of the table (two to the power) by tiles left. 2 ** 14 of them, 256 KiB, stay in the cache of a core: from the
# deal they take half the time that 2 ** 18 do, for 6 % more nodes.
_TABLE = np.array([10] * 23 + [12] * 2 + [14] * 4)


@compiled
def _result(deal, how, rest, p0, p1, out):  # type: ignore[no-untyped-def]
    """Net points of side 0 where a deal is over: by an out of side `out`, or by a block (-1).

    rest: the tiles left; p0, p1: their pips, by side.
    """
    blank = how[_BLANK]
    if how[_LONE] and rest & deal[blank] == 1:  # S8
        if blank & 1:
            p1 += how[_LONE]
        else:
            p0 += how[_LONE]
    if out >= 0:
        if how[_OTHERS]:  # K1: all that is left is the others'
            return p0 + p1 if out == 0 else -p0 - p1
        return p1 if out == 0 else -p0  # S6
    more = p1 - p0
    if how[_BLOCK] == 0 or more == 0:  # S7
        return more
    won = p0 + p1 if how[_BLOCK] == _BOTH else max(p0, p1)
    return won if more > 0 else -won


@compiled
def _test(deal, how, table, mask, number, stack, state, p0, p1, goal):  # type: ignore[no-untyped-def]
    """A bound of a position's value for side 0: a lower one if it is at least `goal`, else an upper one.

    Args: the hands as dealt to four seats, twice (8,); rules and deal, see _LONE; keys and bounds in turn, of which
    mask + 1 pairs are used; the deal's number in the table; frames; the position; pips left, by side.
    """
    depth = 0
    down = True  # a position is to be looked at; else `value` is that of the position one below
    value = best = moves = 0
    while True:
        base = depth * _FRAME
        if down:
            stack[_NODES] += 1
            rem = state & _LEFT
            seat = state >> _SEAT & 3
            side = seat & 1
            key = state | number << _DEAL
            slot = (key * _HASH >> 20 & mask) << 1
            known = False
            if table[slot] == key:
                data = table[slot + 1]
                lower = (data & 4095) - _WIDE
                upper = (data >> 12) - _WIDE
                if lower >= goal or upper < goal:
                    known = True
                    value = lower if lower >= goal else upper
            if not known:
                # A move that ends the deal, or after which the pips left settle the question, is counted at once.
                a = state >> _ENDS + 3 & 7
                b = state >> _ENDS & 7
                mine = rem & deal[seat]
                left = mine & _SUIT[a]
                right = mine & _SUIT[b] if a != b else 0
                best = _WIDE if side else -_WIDE
                moves = 0
                while left | right:
                    if left:
                        tile = lowest(left)
                        left &= left - 1
                        end = _PIPS[tile] - a
                        other = b
                    else:
                        tile = lowest(right)
                        right &= right - 1
                        end = _PIPS[tile] - b
                        other = a
                    pips = _PIPS[tile]
                    q0 = p0 if side else p0 - pips
                    q1 = p1 - pips if side else p1
                    ends = min(end, other) << 3 | max(end, other)
                    rest = rem ^ 1 << tile
                    fits = rest & _REACH[ends]
                    out = mine == 1 << tile
                    if out or fits == 0:
                        value = _result(deal, how, rest, q0, q1, side if out else -1)
                    else:
                        most = q1
                        least = q0
                        if rest & 1:
                            if how[_BLANK] & 1:
                                most += how[_LONE]
                            else:
                                least += how[_LONE]
                        if how[_OTHERS] | (how[_BLOCK] == _BOTH):
                            most += least
                            least = most
                        if most < goal:
                            value = most
                        elif -least >= goal:
                            value = -least
                        else:
                            following = seat + 1
                            theirs = fits & deal[following & how[_SEATS] - 1]
                            while fits & deal[following] == 0:
                                following += 1
                            rank = pips + 32 * popcount(fits & deal[seat]) - 64 * popcount(theirs) + 1024
                            if theirs == 0:
                                rank += 1024
                            stack[base + _MOVES + moves] = (
                                rank << _RANK | tile << _TILE | (following & 3) << _SEAT | ends << _ENDS | rest
                            )
                            moves += 1
                            continue
                    best = min(best, value) if side else max(best, value)
                    if (best < goal) if side else (best >= goal):
                        moves = 0
                        break
                if moves == 0:
                    known = True
                    value = best
            if known:
                if depth == 0:
                    return value
                depth -= 1
                down = False
                continue
            stack[base] = state
            stack[base + 1] = p0
            stack[base + 2] = p1
        else:
            state = stack[base]
            p0 = stack[base + 1]
            p1 = stack[base + 2]
            moves = stack[base + 4]
            seat = state >> _SEAT & 3
            side = seat & 1
            best = min(stack[base + 3], value) if side else max(stack[base + 3], value)
            if moves == 0 or ((best < goal) if side else (best >= goal)):
                key = state | number << _DEAL
                slot = (key * _HASH >> 20 & mask) << 1
                lower = 0
                upper = 2 * _WIDE - 1
                if table[slot] == key:
                    data = table[slot + 1]
                    lower = data & 4095
                    upper = data >> 12
                if best >= goal:
                    lower = best + _WIDE
                else:
                    upper = best + _WIDE
                table[slot] = key
                table[slot + 1] = upper << 12 | lower
                value = best
                if depth == 0:
                    return value
                depth -= 1
                continue
        # On with the move that ranks highest of those left.
        top = base + _MOVES
        last = top + moves - 1
        for place in range(top + 1, last + 1):
            if stack[place] > stack[top]:
                top = place
        move = stack[top]
        stack[top] = stack[last]
        stack[base + 3] = best
        stack[base + 4] = moves - 1
        pips = _PIPS[move >> _TILE & 31]
        if side:
            p1 -= pips
        else:
            p0 -= pips
        state = move & _POSITION
        depth += 1
        down = True


@compiled
def _solve(hands, ends, to_move, sign, how, table, stack, deal, ranked, start, stop, values):  # type: ignore[no-untyped-def]
    """Write the values of the legal actions of rows start..stop-1. Every call for one table has other rows.

    how, stack, deal, ranked: room to work in; `how` has what the rules say.
    """
    seats = how[_SEATS]
    for row in range(start, stop):
        p0 = 0
        p1 = 0
        rem = 0
        for seat in range(seats):
            hand = hands[row, seat]
            deal[seat] = hand
            deal[seat + 4] = hand
            rem |= hand
            if hand & 1:
                how[_BLANK] = seat
            while hand:
                if seat & 1:
                    p1 += _PIPS[lowest(hand)]
                else:
                    p0 += _PIPS[lowest(hand)]
                hand &= hand - 1
        mask = (1 << _TABLE[popcount(rem)]) - 1
        seat = to_move[row]
        side = seat & 1
        a = ends[row, 0]
        b = ends[row, 1]
        mine = deal[seat]
        # The moves in the order of the search: the table then knows of one what the next ones need.
        moves = 0
        for action in range(2 * NUM_TILES):
            tile = action % NUM_TILES
            if not mine >> tile & 1:
                continue
            if a < 0:
                end = _LOW[tile]
                other = _PIPS[tile] - end
                legal = action == tile
            else:
                at = a if action == tile else b
                end = _PIPS[tile] - at
                other = a + b - at
                legal = _SUIT[at] >> tile & 1 and (action == tile or a != b)
            if not legal:
                continue
            new = min(end, other) << 3 | max(end, other)
            fits = (rem ^ 1 << tile) & _REACH[new]
            theirs = popcount(fits & deal[(seat + 1) % seats])
            rank = _PIPS[tile] + 32 * popcount(fits & mine) - 64 * theirs + 2048
            if theirs == 0:
                rank += 1024
            ranked[moves] = rank << 12 | new << 6 | action
            moves += 1
        if moves == 0:
            ranked[0] = (min(a, b) << 3 | max(a, b)) << 6 | PASS
            moves = 1
        value = 0
        for _ in range(moves):
            top = 0
            for place in range(1, moves):
                if ranked[place] > ranked[top]:
                    top = place
            action = ranked[top] & 63
            new = ranked[top] >> 6 & 63
            ranked[top] = -1
            rest = rem
            q0 = p0
            q1 = p1
            out = False
            if action != PASS:
                tile = action % NUM_TILES
                rest ^= 1 << tile
                out = mine == 1 << tile
                if side:
                    q1 -= _PIPS[tile]
                else:
                    q0 -= _PIPS[tile]
            fits = rest & _REACH[new]
            if out or fits == 0:
                result = _result(deal, how, rest, q0, q1, side if out else -1)
                if sign:
                    result = min(max(result, -1), 1)
            else:
                following = seat + 1
                while fits & deal[following] == 0:
                    following += 1
                state = (following & 3) << _SEAT | new << _ENDS | rest
                # MTD(f): the value of the move before is the first guess of this one.
                lower = -1 if sign else -_WIDE
                upper = 1 if sign else _WIDE
                goal = 1 if sign else value
                while lower < upper:
                    value = _test(deal, how, table, mask, row + 1, stack, state, q0, q1, goal)
                    if value >= goal:
                        lower = min(value, upper)
                        goal = value + 1
                    else:
                        upper = max(value, lower)
                        goal = upper
                result = value = lower
            values[row, action] = -result if side else result


def check(rules: Rules) -> None:
    """Raise a ``ValueError`` unless the solver plays the game: two sides, one tile a turn, all tiles known."""
    if rules.kind != "line" or not (rules.pairs or rules.seats == 2):
        what = f"{rules.seats} seats, each for itself" if rules.kind == "line" else f"kind {rules.kind!r}"
        raise ValueError(
            f"the solver plays games of one tile a turn, of two pairs or two seats, not {rules.name} with {what}"
        )


def _whole(name: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(given)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be whole numbers of shape {shape}, not {array.dtype} of shape {array.shape}")
    return array.astype(np.int64)


def _refuse(rows: np.ndarray, why: str) -> None:
    """Raise a ``ValueError`` that names the first row of a (N,) bool."""
    if rows.any():
        raise ValueError(why.format(row=int(rows.argmax())))


def _checked(hands: Any, ends: Any, to_move: Any, rules: Rules) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three arrays as int64; errors as of :func:`solve`."""
    check(rules)
    n, seats = np.size(to_move), rules.seats
    hands = _whole("hands", hands, (n, seats))
    ends, to_move = _whole("ends", ends, (n, 2)), _whole("to_move", to_move, (n,))
    held = np.bitwise_or.reduce(hands, axis=1)
    strange = (held & ~mask_of(rules.tiles)) != 0
    _refuse(strange, f"row {{row}} holds a tile that is not in the double-{rules.max_pip} set")
    twice = np.bitwise_count(hands).sum(axis=1, dtype=np.int64) != np.bitwise_count(held)
    if twice.any():
        row = int(twice.argmax())
        tile = next(t for t in tiles_of(held[row]) if (hands[row] >> t & 1).sum() > 1)
        raise ValueError(f"row {row} holds tile {tile_name(tile)} twice")
    _refuse((to_move < 0) | (to_move >= seats), f"to_move of row {{row}} must be a seat in 0..{seats - 1}")
    empty = (ends == -1).all(axis=1)
    wrong = ~empty & ((ends < 0) | (ends > rules.max_pip)).any(axis=1)
    _refuse(wrong, f"the ends of row {{row}} must be suits in 0..{rules.max_pip}, or both -1 before the lead")
    _refuse((hands == 0).any(axis=1), "the deal of row {row} is over: a hand is empty")
    fits = held & _REACH[np.where(empty[:, None], 0, ends) @ np.array([8, 1])]
    _refuse(~empty & (fits == 0), "the deal of row {row} is over: no hand can play")
    return hands, ends, to_move


def solve(
    hands: np.ndarray,
    ends: np.ndarray,
    to_move: np.ndarray,
    rules: Rules,
    *,
    sign: bool = False,
    threads: int | None = None,
) -> np.ndarray:
    """What every action is worth if all seats see all hands and play their best from there.

    Args:
        hands: (N, seats) masks of the tiles that the seats hold now, of any sizes.
        ends: (N, 2) suits of the left and the right end; -1, -1 before the lead, when any tile may be laid.
        to_move: (N,) seats.
        rules: the game, see :func:`check`.
        sign: only whether the action wins, 1, ties, 0, or loses, -1; about four times as fast from the deal.
        threads: searches at once, at most; None: one a core. The values do not depend on it.

    Returns:
        (N, 57) int32 net points of the mover's side by action id. ILLEGAL where the action is not legal, which with
        equal ends the right-hand ones are unless ``labelled_ends``; PASS is legal where nothing can be laid.

    Raises:
        ValueError: a game that the solver does not play, arrays of other shapes, threads below 1; naming the row: a
            deal that is over, a tile twice or outside the set, ends or a seat that do not exist.
    """
    hands, ends, to_move = _checked(hands, ends, to_move, rules)
    if threads is not None and (not is_whole(threads) or threads < 1):
        raise ValueError(f"threads={threads!r} must be a whole number >= 1 or None")
    n = len(hands)
    values = np.full((n, NUM_ACTIONS), ILLEGAL, np.int32)
    if n == 0:
        return values
    how = np.array([rules.lone_blank, 0, 0, rules.seats, 0])
    if rules.pairs:  # two seats score as S6 and S7 book by B5
        how[_BLOCK], how[_OTHERS] = _BLOCKS.index(rules.block_score), rules.out_score == "others"
    left = np.bitwise_count(hands).sum(axis=1)
    entries = 1 << int(_TABLE[left].max())
    # Threads cost some tenths of a millisecond; a search takes 15 microseconds with 16 tiles left, 6 ms with 28.
    short = (1.6 ** (left - 16.0)).sum() < 60
    workers = 1 if short else min(threads or cores(), n)
    chunk = max(1, n // (16 * workers))
    starts = count(0, chunk)  # handed out as they come

    def work(_: int) -> None:
        table = np.zeros(2 * entries, np.int64)
        room = how.copy(), table, *(np.zeros(size, np.int64) for size in (_STACK, 8, NUM_TILES))
        while (start := next(starts)) < n:
            _solve(hands, ends, to_move, sign, *room, start, min(start + chunk, n), values)

    if workers == 1:
        work(0)
    else:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(work, range(workers)))
    if rules.labelled_ends:
        same = (ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)
        values[same, NUM_TILES:PASS] = values[same, :NUM_TILES]
    return values


def best_line(hands: Sequence[int] | np.ndarray, ends: Sequence[int], to_move: int, rules: Rules) -> list[int]:
    """The actions with which all seats play their best to the end of the deal, passes included.

    Args:
        hands: (seats,) masks; ends: two suits, -1, -1 before the lead; to_move: a seat; rules: see :func:`check`.
    Returns:
        Action ids; of several best ones the lowest.
    Raises:
        ValueError: as of :func:`solve`.
    """
    left, line, seat = _checked(np.array([hands]), np.array([ends]), np.array([to_move]), rules)
    actions: list[int] = []
    while True:
        action = int(solve(left, line, seat, rules, threads=1)[0].argmax())
        actions.append(action)
        if action != PASS:
            tile = action % NUM_TILES
            left[0, seat[0]] ^= 1 << tile
            if line[0, 0] < 0:
                line[0] = LOW[tile], PIPS[tile] - LOW[tile]
            else:
                place = action // NUM_TILES
                line[0, place] = PIPS[tile] - line[0, place]
            held = np.bitwise_or.reduce(left[0])
            if left[0, seat[0]] == 0 or held & _REACH[line[0, 0] << 3 | line[0, 1]] == 0:
                return actions
        seat[0] = (seat[0] + 1) % rules.seats
