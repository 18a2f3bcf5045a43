"""Compiled loops of the exact belief: hands that can be, and sums over all ways in which they share the hidden tiles.

A problem is a number of groups (seats whose hands are hidden, and the tiles that nobody was dealt) that share m hidden
tiles. Every group has a list of hands, each with a weight; a deal weighs the product of its hands' weights. Sums over
all deals take the groups one after the other: `ahead[k][S]` is the weight of all ways in which the groups 0..k share
the tiles S, `behind[k][S]` of those in which the groups from k on do. It is the product of set functions of Björklund,
Husfeldt, Kaski and Koivisto (2007), done plainly, as all sizes are given. Tables are dense over the 2 ** m sets.

One condition is not about a single hand: that some seat can play on the open ends (S5, B4). It is taken apart by the
first seat that can: then those before it cannot, and those after it may or may not. So nothing is ever subtracted.
"""

from __future__ import annotations

import numpy as np

from agents.search.kernels import GOLDEN, S11, UNIT, compiled, mix, popcount
from domino_env.tiles import NUM_SUITS, NUM_TILES, SUIT_MASK

_SUITS = SUIT_MASK.astype(np.int64)
_HALF = 1 << NUM_TILES // 2


@compiled
def _places(mask, places):  # type: ignore[no-untyped-def]
    """Fill the places of the bits of a mask, ascending; returns how many there are."""
    n = 0
    for t in range(NUM_TILES):
        if mask >> t & 1:
            places[n] = t
            n += 1
    return n


@compiled
def _choices(n, size):  # type: ignore[no-untyped-def]
    """All masks of `size` of the lowest n bits, ascending (Gosper 1972); 1 <= size <= n."""
    count = 1
    for i in range(size):
        count = count * (n - i) // (i + 1)
    out = np.empty(count, np.int64)
    mask = (np.int64(1) << size) - 1
    for i in range(count):
        out[i] = mask
        low = mask & -mask
        ripple = mask + low
        mask = ripple | ((mask ^ ripple) >> 2) // low
    return out


@compiled
def subset_rows(may, sizes, hidden, first, hands, squeezed):  # type: ignore[no-untyped-def]
    """List the hands that each group may hold, in ascending order.

    Args:
        may: (C, G) int64 masks, sizes: (C, G) int64, hidden: (C,) int64 masks of the tiles that are shared out.
        first: (C * G + 1,) int64, where the list of each group begins; empty for those without tiles.
        hands: (P,) int64, filled with the masks; squeezed: (P,) int64, with the same by their places in `hidden`.
    """
    places = np.empty(NUM_TILES, np.int64)
    for case in range(len(may)):
        for g in range(may.shape[1]):
            at, end = first[case * may.shape[1] + g], first[case * may.shape[1] + g + 1]
            if at == end:
                continue
            n = _places(may[case, g] & hidden[case], places)
            for choice in _choices(n, sizes[case, g]):
                hand, own = np.int64(0), np.int64(0)
                for i in range(n):
                    if choice >> i & 1:
                        bit = np.int64(1) << places[i]
                        hand |= bit
                        own |= np.int64(1) << popcount(hidden[case] & (bit - 1))
                hands[at], squeezed[at] = hand, own
                at += 1


@compiled
def _spread_out(tiles, places, low, high):  # type: ignore[no-untyped-def]
    """Fill low and high: what the lower and the upper half of a choice among some tiles are as tiles.

    Returns:
        the number of bits in the lower half.
    """
    n = _places(tiles, places)
    half = n // 2
    low[0] = high[0] = 0
    for j in range(n):
        bit = np.int64(1) << places[j]
        table, k = (low, j) if j < half else (high, j - half)
        for i in range(1 << k):
            table[i | 1 << k] = table[i] | bit
    return half


@compiled
def _shared(tiles, choices, one, other, places, low, high):  # type: ignore[no-untyped-def]
    """Sum of one[x] * other[tiles - x] over the choices x among the tiles."""
    half = _spread_out(tiles, places, low, high)
    inside = (np.int64(1) << half) - 1
    total = 0.0
    for choice in choices:
        x = low[choice & inside] | high[choice >> half]
        weight = one[x]
        if weight != 0.0:
            total += weight * other[tiles ^ x]
    return total


@compiled
def _nth(tiles, choices, one, other, left, places, low, high):  # type: ignore[no-untyped-def]
    """The x of `_shared` at which the running sum passes `left`; the last with a weight where rounding leaves none."""
    half = _spread_out(tiles, places, low, high)
    inside = (np.int64(1) << half) - 1
    chosen = np.int64(0)
    for choice in choices:
        x = low[choice & inside] | high[choice >> half]
        value = one[x] * other[tiles ^ x]
        if value != 0.0:
            chosen = x
            if left < value:
                break
            left -= value
    return chosen


@compiled
def _share_all(m, sized, size, one, other, need, all_needed, out, places, low, high):  # type: ignore[no-untyped-def]
    """Fill out[S] with `_shared` for every S of `sized` of m tiles; else 0.

    Args:
        size: how many tiles of S go to `one`. need: only where need[the rest] is not 0, unless all are needed.
    """
    out[:] = 0.0
    every = (np.int64(1) << m) - 1
    choices = _choices(sized, size)
    for tiles in _choices(m, sized):
        if all_needed or need[every ^ tiles] != 0.0:
            out[tiles] = _shared(tiles, choices, one, other, places, low, high)


@compiled
def _own_tables(case, variant, groups, sizes, first, squeezed, weight, hits, own):  # type: ignore[no-untyped-def]
    """Fill own[k] (2 ** m,) with the weights of the hands of the k-th group that holds tiles.

    Args:
        variant: the number of the first seat that can play on; -1 where that is no matter.
    Returns:
        whether each of them has a hand.
    """
    for k in range(len(groups)):
        g = groups[k]
        own[k] = 0.0
        some = False
        for i in range(first[case * sizes.shape[1] + g], first[case * sizes.shape[1] + g + 1]):
            if (g < variant and hits[i]) or (g == variant and not hits[i]):
                continue
            if weight[i] != 0.0:
                own[k, squeezed[i]] = weight[i]
                some = True
        if not some:
            return False
    return True


@compiled
def _fill_ahead(m, held, own, ahead, places, low, high):  # type: ignore[no-untyped-def]
    """Fill ahead[k] for k = 1..n - 2; of the last only what leaves a hand for the last group."""
    sized = held[0]
    for k in range(1, len(held) - 1):
        sized += held[k]
        before = own[0] if k == 1 else ahead[k - 1]
        last = k == len(held) - 2
        _share_all(m, sized, held[k], own[k], before, own[k + 1], not last, ahead[k], places, low, high)


@compiled
def _fill_behind(m, held, own, behind, places, low, high):  # type: ignore[no-untyped-def]
    """Fill behind[k] for k = n - 2..1; of the last only what leaves a hand for the first group."""
    n = len(held)
    sized = held[n - 1]
    for k in range(n - 2, 0, -1):
        sized += held[k]
        after = own[n - 1] if k == n - 2 else behind[k + 1]
        _share_all(m, sized, held[k], own[k], after, own[k - 1], k > 1, behind[k], places, low, high)


@compiled
def _holders(sizes):  # type: ignore[no-untyped-def]
    """The groups that hold tiles, and how many each."""
    n = 0
    for size in sizes:
        n += size > 0
    groups, held = np.empty(n, np.int64), np.empty(n, np.int64)
    n = 0
    for g in range(len(sizes)):
        if sizes[g] > 0:
            groups[n], held[n] = g, sizes[g]
            n += 1
    return groups, held


@compiled
def join_rows(begin, end, which, sizes, first, squeezed, weight, hits, reach, mass, total):  # type: ignore[no-untyped-def]
    """Sum the weights of all deals, and of those in which each group has each of its hands.

    Args:
        begin, end: of `which` (K,) int64, the numbers of the problems to do; there are C of them.
        sizes: (C, G) int64, the last group is that of nobody; first, squeezed: as of `subset_rows`.
        weight: (P,) float64 of the hands; hits: (P,) bool, the hand can play on; reach: (C,) bool, some seat must.
        mass: (P,) float64 and total: (C,) float64, that are filled for these problems.
    """
    width = sizes.shape[1]
    places = np.empty(NUM_TILES, np.int64)
    low, high = np.empty(_HALF, np.int64), np.empty(_HALF, np.int64)
    for number in range(begin, end):
        case = which[number]
        groups, held = _holders(sizes[case])
        n, m = len(groups), held.sum()
        every = (np.int64(1) << m) - 1
        total[case] = 0.0
        mass[first[case * width] : first[(case + 1) * width]] = 0.0
        own = np.empty((n, 1 << m))
        inner = n if n > 2 else 0  # sums over several groups are only needed where there are three
        ahead, behind = np.empty((inner, 1 << m)), np.empty((inner, 1 << m))
        for variant in range(0 if reach[case] else -1, width - 1 if reach[case] else 0):
            if variant >= 0 and sizes[case, variant] == 0:
                continue
            if not _own_tables(case, variant, groups, sizes, first, squeezed, weight, hits, own):
                continue
            _fill_ahead(m, held, own, ahead, places, low, high)
            _fill_behind(m, held, own, behind, places, low, high)
            for k in range(n):
                start, stop = first[case * width + groups[k]], first[case * width + groups[k] + 1]
                if k == 0 or k == n - 1:  # all others in one table
                    if n == 1:
                        others = np.ones(1)
                    elif n == 2:
                        others = own[1 - k]
                    else:
                        others = behind[1] if k == 0 else ahead[n - 2]
                    for i in range(start, stop):
                        value = own[k, squeezed[i]]
                        if value != 0.0:
                            value *= others[every ^ squeezed[i]]
                            mass[i] += value
                            if k == n - 1:
                                total[case] += value
                    continue
                before = own[0] if k == 1 else ahead[k - 1]
                after = own[n - 1] if k == n - 2 else behind[k + 1]
                choices = _choices(m - held[k], held[:k].sum())
                for i in range(start, stop):
                    value = own[k, squeezed[i]]
                    if value != 0.0:
                        rest = every ^ squeezed[i]
                        mass[i] += value * _shared(rest, choices, before, after, places, low, high)


@compiled
def _unsqueezed(squeezed, hidden):  # type: ignore[no-untyped-def]
    """The tiles at some places among the hidden ones."""
    hand, place = np.int64(0), 0
    for t in range(NUM_TILES):
        if hidden >> t & 1:
            hand |= (squeezed >> place & 1) << t
            place += 1
    return hand


@compiled
def draw_rows(begin, end, cases, total, sizes, hidden, first, squeezed, weight, hits, reach, keys, start, out):  # type: ignore[no-untyped-def]
    """Draw deals by their weights: out[row] (N, W, G) int64 masks, for the rows begin..end - 1.

    Args:
        cases: (N + 1,) int64, the problems of each row, of which one is true; total: (C,) as `join_rows` filled it.
        sizes, hidden, first, squeezed: as of `subset_rows`; weight, hits, reach: as of `join_rows`.
        keys: (N,) uint64; start: number of the first world. The stream of a world is that of its key and number alone.
    """
    width, worlds = sizes.shape[1], out.shape[1]
    places = np.empty(NUM_TILES, np.int64)
    low, high = np.empty(_HALF, np.int64), np.empty(_HALF, np.int64)
    state, mark = np.empty(worlds, np.uint64), np.empty(worlds)
    mine, rest = np.empty(worlds, np.bool_), np.empty(worlds, np.int64)
    for row in range(begin, end):
        out[row] = 0
        everything = 0.0
        for case in range(cases[row], cases[row + 1]):
            everything += total[case]
        for world in range(worlds):
            state[world] = mix(keys[row] ^ mix(np.uint64(start + world) + GOLDEN)) + GOLDEN
            mark[world] = (mix(state[world]) >> S11) * UNIT * everything
        before_case = 0.0
        for case in range(cases[row], cases[row + 1]):
            after_case = before_case + total[case]
            groups, held = _holders(sizes[case])
            n, m = len(groups), held.sum()
            every = (np.int64(1) << m) - 1
            own = np.empty((n, 1 << m))
            ahead = np.empty((n if n > 2 else 0, 1 << m))
            begin_last, end_last = first[case * width + groups[n - 1]], first[case * width + groups[n - 1] + 1]
            upto = np.empty(end_last - begin_last)  # weight of all deals up to each hand of the last group
            below = 0.0
            for variant in range(0 if reach[case] else -1, width - 1 if reach[case] else 0):
                if total[case] == 0.0 or (variant >= 0 and sizes[case, variant] == 0):
                    continue
                if not _own_tables(case, variant, groups, sizes, first, squeezed, weight, hits, own):
                    continue
                _fill_ahead(m, held, own, ahead, places, low, high)
                passed = below  # adds up as `total` did, so that the last sum is the total to the last bit
                for i in range(begin_last, end_last):
                    value = own[n - 1, squeezed[i]]
                    if value != 0.0 and n > 1:
                        value *= own[0, every ^ squeezed[i]] if n == 2 else ahead[n - 2, every ^ squeezed[i]]
                    passed += value
                    upto[i - begin_last] = passed
                mine[:] = False
                for world in range(worlds):
                    inside = mark[world] - before_case
                    if before_case <= mark[world] < after_case:
                        if inside >= total[case]:  # by rounding
                            inside = total[case] * (1.0 - UNIT)
                        if below <= inside < passed:
                            chosen = squeezed[begin_last + np.searchsorted(upto, inside, side="right")]
                            out[row, world, groups[n - 1]] = chosen
                            mine[world], rest[world] = True, every ^ chosen
                for k in range(n - 2, -1, -1):
                    before = own[0] if k <= 1 else ahead[k - 1]
                    choices = _choices(held[: k + 1].sum(), held[k])
                    for world in range(worlds):
                        if mine[world] and k == 0:
                            out[row, world, groups[0]] = rest[world]
                        elif mine[world]:
                            state[world] += GOLDEN
                            left = (mix(state[world]) >> S11) * UNIT * ahead[k, rest[world]]
                            chosen = _nth(rest[world], choices, own[k], before, left, places, low, high)
                            out[row, world, groups[k]] = chosen
                            rest[world] ^= chosen
                for world in range(worlds):
                    if mine[world]:
                        for g in groups:
                            out[row, world, g] = _unsqueezed(out[row, world, g], hidden[case])
                below = passed
            before_case = after_case


@compiled
def sum_hands(rows, groups, hands, mass, tiles, suits):  # type: ignore[no-untyped-def]
    """Add the mass of hands by what is in them.

    Args:
        rows, groups: (P,) int64; hands: (P,) int64 masks; mass: (P,) float64.
        tiles: (N, G, 28) and suits: (N, G, 7) float64, that are added to.
    """
    for i in range(len(hands)):
        if mass[i] != 0.0:
            for t in range(NUM_TILES):
                if hands[i] >> t & 1:
                    tiles[rows[i], groups[i], t] += mass[i]
            for suit in range(NUM_SUITS):
                if hands[i] & _SUITS[suit]:
                    suits[rows[i], groups[i], suit] += mass[i]
