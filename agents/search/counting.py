"""Compiled counting of deals: how many ways there are to give hidden tiles to groups, who holds what, and a sampler.

A group is a seat whose hand is hidden, or the tiles that nobody was dealt. What is known of a group is the mask of the
tiles that it may hold and how many of them it holds. Groups that may hold the same tiles are counted as one and
told apart by a multinomial; of those that remain, the tiles are given out one by one over a table of how many each has
got so far, so a count is one pass over the product of (size + 1).

Two conditions are of other kinds, and are counted by inclusion and exclusion over such counts:

* S4, no hand was dealt again: a struck hand of at most seven tiles is struck in one way only (six of a suit and five
  doubles would be ten tiles, six of two suits eleven), so it has exactly one of 85 patterns: what it holds of that
  suit, or of the doubles.
* S5, B4, the deal goes on: some hand can play on the open ends.

All counts are whole numbers in float64: exact below 2 ** 53, and to a few units in the last place beyond.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np

from agents.search.kernels import GOLDEN, S11, UNIT, compiled, mix, popcount
from domino_env.tiles import DOUBLES_MASK, NUM_SUITS, NUM_TILES, SUIT_MASK, mask_of, tiles_of

_SUITS = SUIT_MASK.astype(np.int64)
_DOUBLES = np.int64(DOUBLES_MASK)


def _patterns() -> tuple[np.ndarray, np.ndarray]:
    """What a struck hand holds (S4), and the suit (or all doubles) of which it holds no more: (85,) masks each."""
    held, zone = [], []
    for mask, least in [*((int(mask), 6) for mask in SUIT_MASK), (DOUBLES_MASK, 5)]:
        for size in range(least, NUM_SUITS + 1):
            for tiles in combinations(tiles_of(mask), size):
                held.append(mask_of(tiles))
                zone.append(mask)
    return np.array(held, np.int64), np.array(zone, np.int64)


_HELD, _ZONE = _patterns()


@compiled
def _struck(hand):  # type: ignore[no-untyped-def]
    """Whether a dealt hand of at most seven tiles is dealt again (S4)."""
    found = popcount(hand & _DOUBLES) >= 5
    for suit in range(NUM_SUITS):
        found |= popcount(hand & _SUITS[suit]) >= 6
    return found


@compiled
def _prepare(may, sizes, free, room, seen, kind, tiles, fits, strides):  # type: ignore[no-untyped-def]
    """Bring one problem into the form in which it is counted.

    Args:
        may: (G,) masks, sizes: (G,), free: mask of the tiles to give out.
    Returns (and fills):
        kinds, how many kinds of groups there are; how many tiles; ways, in how many ways the tiles of a kind can be
        split among its groups, 0. where there is no deal at all; places of the table. room: (kinds,) tiles that a kind
        holds. seen: (kinds,) what it may hold. kind: (G,) of each group, -1 where it holds none. tiles: those to give
        out, the ones with the fewest kinds first. fits: which kinds may hold each, as bits. strides: (kinds,).
    """
    kinds, total = 0, 0
    ways = 1.0
    for g in range(len(may)):
        kind[g] = -1
        size = sizes[g]
        if size < 0:
            return 0, 0, 0.0, 0
        if size == 0:
            continue
        mask = may[g] & free
        k = 0
        while k < kinds and seen[k] != mask:
            k += 1
        if k == kinds:
            seen[k], room[k] = mask, 0
            kinds += 1
        kind[g] = k
        for i in range(1, size + 1):
            ways = ways * (room[k] + i) / i  # binomials on the way: whole numbers
        room[k] += size
        total += size
    places = 1
    for k in range(kinds):
        if popcount(seen[k]) < room[k]:
            return 0, 0, 0.0, 0
        strides[k] = places
        places *= room[k] + 1
    if popcount(free) != total:
        return 0, 0, 0.0, 0
    n = 0
    for width in range(1, kinds + 1):  # the narrow ones first keep most of the table empty
        for t in range(NUM_TILES):
            if free >> t & 1:
                bits = 0
                for k in range(kinds):
                    bits |= (seen[k] >> t & 1) << k
                if popcount(bits) == width:
                    tiles[n], fits[n] = t, bits
                    n += 1
    if n != total:  # some tile fits nowhere
        return 0, 0, 0.0, 0
    return kinds, n, ways, places


@compiled
def _forward(kinds, room, fits, strides, table):  # type: ignore[no-untyped-def]
    """Fill the table: in how many ways the first tiles can have brought each kind to what it has."""
    got = np.zeros(kinds, np.int64)
    given = 0
    table[:] = 0.0
    table[0] = 1.0
    for place in range(len(table)):
        value = table[place]
        if value != 0.0 and place + 1 < len(table):
            bits = fits[given]
            for k in range(kinds):
                if bits >> k & 1 and got[k] < room[k]:
                    table[place + strides[k]] += value
        for k in range(kinds):
            if got[k] < room[k]:
                got[k] += 1
                given += 1
                break
            given -= got[k]
            got[k] = 0


@compiled
def _backward(kinds, n, room, fits, strides, ahead, table, counts):  # type: ignore[no-untyped-def]
    """Fill the table: in how many ways the other tiles can be given out from each place on.

    With what `_forward` filled as `ahead`, also add to counts[i, k] the ways in which tile i comes to kind k.
    """
    got = np.empty(kinds, np.int64)
    for k in range(kinds):
        got[k] = room[k]
    given = n
    summed = len(ahead) > 0
    table[len(table) - 1] = 1.0
    for place in range(len(table) - 1, -1, -1):
        if place + 1 < len(table):
            bits = fits[given]
            value = 0.0
            for k in range(kinds):
                if bits >> k & 1 and got[k] < room[k]:
                    after = table[place + strides[k]]
                    value += after
                    if summed:
                        counts[given, k] += ahead[place] * after
            table[place] = value
        for k in range(kinds):
            if got[k] > 0:
                got[k] -= 1
                given -= 1
                break
            got[k] = room[k]
            given += room[k]


@compiled
def _add_ways(may, sizes, free, sign, out):  # type: ignore[no-untyped-def]
    """In how many ways the free tiles can be given to the groups.

    Where out (G, 28) has rows, the ways in which each group gets each tile are added to it, times the sign.
    """
    groups = len(may)
    work = np.empty((4, groups), np.int64)
    room, seen, kind, strides = work[0], work[1], work[2], work[3]
    order = np.empty((2, NUM_TILES), np.int64)
    tiles, fits = order[0], order[1]
    kinds, n, ways, places = _prepare(may, sizes, free, room, seen, kind, tiles, fits, strides)
    if ways == 0.0:
        return 0.0
    ahead = np.empty(places)
    _forward(kinds, room, fits, strides, ahead)
    if len(out):
        table, counts = np.empty(places), np.zeros((NUM_TILES, groups))
        _backward(kinds, n, room, fits, strides, ahead, table, counts)
        for g in range(groups):
            k = kind[g]
            if k >= 0:
                for i in range(n):
                    out[g, tiles[i]] += sign * (ways * counts[i, k] * sizes[g] / room[k])
    return ways * ahead[places - 1]


@compiled
def _terms(may, sizes, played, redeal, reach):  # type: ignore[no-untyped-def]
    """The counts that inclusion and exclusion adds up.

    Args:
        may: (G,) masks, sizes: (G,), played: (G,) masks of what each group has laid, the last is that of nobody.
        redeal: whether no hand was dealt again. reach: the tiles of which some seat holds one; 0 where that is known.
    Returns:
        terms: (2, T or more, G) masks, first of the tiles that the groups hold for sure, then of those they may hold;
        sign: of each, (T or more,); and T. The first term is the count without either condition.
    """
    groups = len(may)
    terms, sign = np.zeros((2, 16, groups), np.int64), np.zeros(16)
    for g in range(groups):
        terms[1, 0, g] = may[g]
    sign[0] = 1.0
    size = 1
    for group in range(groups):  # the last stands for: nobody can play on
        seat = group < groups - 1
        if (seat and (not redeal or sizes[group] == 0)) or (not seat and reach == 0):
            continue
        now = size
        for choice in range(len(_HELD) if seat else 1):
            need, zone = reach, reach
            if seat:
                need, zone = _HELD[choice] & ~played[group], _ZONE[choice]
                if played[group] & zone & ~_HELD[choice] or need & ~may[group] or popcount(need) > sizes[group]:
                    continue
            for t in range(now):
                taken = np.int64(0)
                for g in range(groups):
                    taken |= terms[0, t, g]
                if taken & need:
                    continue
                if size == len(sign):
                    fewer, signs = terms, sign
                    terms, sign = np.zeros((2, 4 * size, groups), np.int64), np.zeros(4 * size)
                    for i in range(size):
                        sign[i] = signs[i]
                        for g in range(groups):
                            terms[0, i, g], terms[1, i, g] = fewer[0, i, g], fewer[1, i, g]
                sign[size] = -sign[t]
                for g in range(groups):
                    mine = g == group if seat else g < groups - 1
                    terms[0, size, g] = need if seat and mine else terms[0, t, g]
                    terms[1, size, g] = terms[1, t, g] & ~zone if mine else terms[1, t, g]
                size += 1
    return terms, sign, size


@compiled
def count_rows(begin, end, may, sizes, hidden, played, redeal, reach, totals, marginals, lacks):  # type: ignore[no-untyped-def]
    """Count the deals of the rows begin..end - 1, in all and by who holds what; an array without rows is left out.

    Args:
        may: (M, G) int64 masks of the tiles that each group may hold; sizes: (M, G) int64 how many it holds.
        hidden: (M,) int64 masks of all tiles that are dealt out. played: (M, G) int64 masks of what the groups laid.
        redeal: (M,) bool, no hand was dealt again. reach: (M,) int64 masks, some seat holds one of these; 0: no matter.
        totals: (M,) float64, filled with the number of deals.
        marginals: (M, G, 28) float64, filled with the number of those in which each group holds each tile.
        lacks: (M, G - 1, 7) float64, filled with the number of those in which each seat lacks each suit.
    """
    groups = may.shape[1]
    rest, twin = np.empty(groups, np.int64), np.empty(groups, np.int64)
    nothing = np.empty((0, NUM_TILES))
    for row in range(begin, end):
        terms, sign, size = _terms(may[row], sizes[row], played[row], redeal[row], reach[row])
        total = 0.0
        out = nothing
        if len(marginals):
            out = marginals[row]
            out[:] = 0.0
        if len(lacks):
            lacks[row] = 0.0
            for seat in range(groups - 1):  # seats of which the same is known lack the same
                twin[seat] = 0
                while not (
                    may[row, twin[seat]] == may[row, seat]
                    and sizes[row, twin[seat]] == sizes[row, seat]
                    and played[row, twin[seat]] == played[row, seat]
                ):
                    twin[seat] += 1
        for t in range(size):
            fixed, masks = terms[0, t], terms[1, t]
            free = hidden[row]
            for g in range(groups):
                free &= ~fixed[g]
                rest[g] = sizes[row, g] - popcount(fixed[g])
            ways = _add_ways(masks, rest, free, sign[t], out)
            total += sign[t] * ways
            if len(out):
                for g in range(groups):
                    for tile in range(NUM_TILES if fixed[g] else 0):
                        if fixed[g] >> tile & 1:
                            out[g, tile] += sign[t] * ways
            for seat in range(groups - 1 if len(lacks) else 0):
                if twin[seat] < seat:
                    continue
                kept = masks[seat]
                for suit in range(NUM_SUITS):
                    zone = _SUITS[suit]
                    if may[row, seat] & zone == 0:
                        lacks[row, seat, suit] += sign[t] * ways
                    elif fixed[seat] & zone == 0:
                        masks[seat] = kept & ~zone
                        lacks[row, seat, suit] += sign[t] * _add_ways(masks, rest, free, 1.0, nothing)
                masks[seat] = kept
        if len(totals):
            totals[row] = total
        for seat in range(groups - 1 if len(lacks) else 0):
            for suit in range(NUM_SUITS):
                lacks[row, seat, suit] = lacks[row, twin[seat], suit]


@compiled
def sample_rows(begin, end, first, weight, may, sizes, hidden, played, redeal, reach, keys, start, out):  # type: ignore[no-untyped-def]
    """Draw worlds: out[row] (N, W, G) int64 masks of what each group holds, for the rows begin..end - 1.

    A row has the cases first[row] .. first[row + 1] - 1, of which one is true, each with its weight: the number of its
    deals without the conditions `redeal` and `reach`. These reject a world, and the next one of the same stream is
    taken; each must leave at least one deal.

    Args:
        first: (N + 1,) int64; weight: (M,); may, sizes, hidden, played, redeal, reach: of each case, as `count_rows`;
        keys: (N,) uint64; start: number of the first world. The stream of a world is that of its key and number alone.
    """
    groups = may.shape[1]
    work = np.empty((4, groups), np.int64)
    room, kind, strides = work[0], work[2], work[3]
    tiles = np.empty((2, NUM_TILES), np.int64)
    fits = tiles[1]
    left, kept = np.empty(groups, np.int64), np.empty(groups, np.int64)
    nothing, no_counts = np.empty(0), np.empty((0, 0))
    for row in range(begin, end):
        cases = first[row + 1] - first[row]
        all_weight = 0.0
        for case in range(first[row], first[row + 1]):
            all_weight += weight[case]
        below = 0.0
        for case in range(first[row], first[row + 1]):
            low, below = below, below + weight[case]
            if weight[case] == 0.0:
                continue
            kinds, n, _, places = _prepare(
                may[case], sizes[case], hidden[case], room, work[1], kind, tiles[0], fits, strides
            )
            table = np.empty(places)
            _backward(kinds, n, room, fits, strides, nothing, table, no_counts)
            for world in range(out.shape[1]):
                state = mix(keys[row] ^ mix(np.uint64(start + world) + GOLDEN))
                if cases > 1:
                    state += GOLDEN
                    mark = (mix(state) >> S11) * UNIT * all_weight
                    if mark < low or (mark >= below and below < all_weight):
                        continue
                hands = out[row, world]
                while True:
                    hands[:] = 0
                    for g in range(groups):
                        left[g], kept[g] = room[g], sizes[case, g]
                    place = 0
                    for i in range(n):
                        state += GOLDEN
                        mark = (mix(state) >> S11) * UNIT * table[place]
                        chosen, inside, share = -1, 0.0, 1.0
                        for k in range(kinds):
                            if fits[i] >> k & 1 and left[k] > 0:
                                after = table[place + strides[k]]
                                if after > 0.0:
                                    chosen, inside, share = k, mark, after
                                    if mark < after:
                                        break
                                    mark -= after
                        place += strides[chosen]
                        # Which group of the kind: by the tiles that they still get.
                        nth = inside / share * left[chosen]
                        owner = -1
                        for g in range(groups):
                            if kind[g] == chosen and kept[g] > 0:
                                owner = g
                                if nth < kept[g]:
                                    break
                                nth -= kept[g]
                        left[chosen] -= 1
                        kept[owner] -= 1
                        hands[owner] |= np.int64(1) << tiles[0, i]
                    fine = reach[case] == 0
                    for g in range(groups - 1):
                        if hands[g] & reach[case]:
                            fine = True
                    if redeal[case]:
                        for g in range(groups - 1):
                            if sizes[case, g] > 0 and _struck(hands[g] | played[case, g]):
                                fine = False
                    if fine:
                        break


@compiled
def weighted(rows, hands, weights, tiles, suits):  # type: ignore[no-untyped-def]
    """Add the weights of worlds by what each seat holds in them.

    Args:
        rows: (M,) int64; hands: (M, seats) uint32; weights: (M,) float64.
        tiles: (N, seats, 28) and suits: (N, seats, 7) float64, that are added to.
    """
    for world in range(len(rows)):
        weight = weights[world]
        if weight == 0.0:
            continue
        for seat in range(hands.shape[1]):
            hand = np.int64(hands[world, seat])
            for tile in range(NUM_TILES):
                if hand >> tile & 1:
                    tiles[rows[world], seat, tile] += weight
            for suit in range(NUM_SUITS):
                if hand & _SUITS[suit]:
                    suits[rows[world], seat, suit] += weight
