"""Single-observer information-set Monte Carlo tree search (Cowling, Powley and Whitehouse 2012) for two sides.

One tree a decision, over the public actions that follow it. Every iteration imagines other hidden hands that fit all
that the asking seat knows by the rules, walks down the tree by the actions that are legal with these hands, adds one
node, plays the deal out, and adds the result to the nodes it came by. A node's worth is that of the side of the seat
that chose it, so that partners work together and opponents against them. Which actions are legal changes from one
iteration to the next: the exploration term of an action counts how often it could have been chosen, not how often its
parent was visited.

With equal ends a tile on the left and on the right leave the same line: they are one action, the left one.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agents.base import Decisions, decide
from agents.search.kernels import GOLDEN, compiled, cores, lowest, mix, popcount
from agents.search.position import Position, position_of
from agents.search.worlds import check_clock, is_number, keys_of, lenient
from domino_env.deals import Streams
from domino_env.line import LineEngine
from domino_env.rules import Rules
from domino_env.tiles import HIGH, LOW, NUM_ACTIONS, NUM_TILES, PASS, PIPS, SUIT_MASK, is_whole

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

PLAYOUTS = ("random", "greedy")
EXPLORE = 1.0  # weight of the exploration term; from 0.5 to 1.4 it makes no difference that 1,000 boards show
MOST = 1_000_000  # iterations of one search: 24 bytes each
_USUAL = 1000  # iterations where neither they nor the time are given

# A result is its points divided by a quarter of the set's pips (42 for the double-six): most deals lie in [-1, 1] then,
# and the exploration weight means the same in small sets. It is no option: only its ratio to that weight matters.
_SHARE = 4

_NODES = 1 << 19  # of all trees that one thread grows at once: 12 MB
_WORLDS = 1 << 16  # that one thread draws at once: 1 MB
_FIRST = 16  # iterations before the clock is looked at for the first time
_A_MS = 200  # iterations in a millisecond, about
_A_CALL = 200_000  # iterations a decision times boards at once, for calls of some seconds
_ROWS = 16  # decisions that share a clock: enough to draw their worlds together

# A node is six numbers. Children of a node are a chain; node 0 is the root, so 0 ends a chain.
_CHILD, _NEXT, _ACTION, _VISITS, _OFFERED, _POINTS = range(6)
_WIDTH = 6
_DEPTH = 128  # a deal has fewer actions

_SALT = np.uint64(0x15C35C0DEB10C4ED)  # the search's own chance, apart from that of the worlds
_SUIT = SUIT_MASK.astype(np.int64)
_SUM = PIPS.astype(np.int64)
_LOW, _HIGH = LOW.astype(np.int64), HIGH.astype(np.int64)
_HEAVY = 2 * _SUM + (LOW == HIGH)  # the order of the greedy player
_ALL = (1 << NUM_TILES) - 1


@compiled
def _pick(actions, state):  # type: ignore[no-untyped-def]
    """One of the set bits of `actions`, all equally likely, by the uint64 `state`."""
    high = mix(state) >> np.uint64(32)
    for _ in range(np.int64(high * np.uint64(popcount(actions)) >> np.uint64(32))):
        actions &= actions - 1
    return lowest(actions)


@compiled
def _heaviest(actions):  # type: ignore[no-untyped-def]
    """The heaviest tile; of equals a double, then the lower tile, then the left end."""
    best, worth = PASS, -1
    while actions:
        action = lowest(actions)
        actions &= actions - 1
        if action < PASS and _HEAVY[action % NUM_TILES] > worth:
            best, worth = action, _HEAVY[action % NUM_TILES]
    return best


@compiled
def _legal(hand, left, right):  # type: ignore[no-untyped-def]
    """Legal actions on a line that is not empty, bit a for action a; with equal ends those of the left end."""
    actions = hand & _SUIT[left]
    if left != right:
        actions |= (hand & _SUIT[right]) << NUM_TILES
    return actions if actions else 1 << PASS


@compiled
def _lay(hands, seat, left, right, action):  # type: ignore[no-untyped-def]
    """One action: takes the tile out of the hand. Returns the ends after it and whether the deal is over (S5)."""
    if action == PASS:
        return left, right, False
    tile = action % NUM_TILES
    hands[seat] ^= 1 << tile
    if left < 0:
        left, right = _LOW[tile], _HIGH[tile]
    elif action < NUM_TILES:
        left = _SUM[tile] - left
    else:
        right = _SUM[tile] - right
    held = 0
    for hand in hands:
        held |= hand
    return left, right, hands[seat] == 0 or held & (_SUIT[left] | _SUIT[right]) == 0


@compiled
def _score(hands, by, game):  # type: ignore[no-untyped-def]
    """Net points of the side of seat 0 where a deal is over: S6-S8, K1, K2, and B5 for two seats.

    Args:
        hands: (seats,) int64 what is left; by: the seat that laid the last tile; game: as of `_game`.
    """
    seats = len(hands)
    mine = theirs = 0  # of the side that laid the last tile, and of the other
    for r in range(seats):
        hand = hands[(by + r) % seats]
        pips = game[2] if hand == 1 else 0
        while hand > 1:
            tile = lowest(hand)
            hand &= hand - 1
            pips += _SUM[tile]
        if r & 1:
            theirs += pips
        else:
            mine += pips
    if hands[by] == 0:
        net = theirs + mine if game[1] else theirs
    elif mine == theirs:
        net = 0
    elif game[0] == 0:
        net = theirs - mine
    else:
        net = mine + theirs if game[0] == 2 else max(mine, theirs)
        if mine > theirs:
            net = -net
    return -net if by & 1 else net


@compiled
def _offer(tree, node, legal):  # type: ignore[no-untyped-def]
    """Counts that the children of a node for these actions could be chosen. Returns the actions that have no child."""
    child = tree[node, _CHILD]
    while child:
        bit = 1 << np.int64(tree[child, _ACTION])
        if legal & bit:
            legal ^= bit
            tree[child, _OFFERED] += 1
        child = tree[child, _NEXT]
    return legal


@compiled
def _best(tree, node, legal, scale, explore):  # type: ignore[no-untyped-def]
    """The child with the highest upper confidence bound of those for these actions."""
    best, highest = np.int64(0), -np.inf
    child = tree[node, _CHILD]
    while child:
        if legal >> np.int64(tree[child, _ACTION]) & 1:
            visits = tree[child, _VISITS]
            bound = scale * tree[child, _POINTS] / visits
            bound += explore * math.sqrt(math.log(tree[child, _OFFERED]) / visits)
            if bound > highest:
                best, highest = np.int64(child), bound
        child = tree[child, _NEXT]
    return best


@compiled
def _grow(trees, used, worlds, start, actions, ends, movers, keys, game, scale, explore):  # type: ignore[no-untyped-def]
    """One iteration for every world of every row.

    Args:
        trees: (n, nodes, 6) int32 with room for one node more an iteration; used: (n,) int64 nodes that are there.
        worlds: (n, iterations, seats) uint32 hands; start: number of the first iteration.
        actions: (n,) int64 what the asking seat may do; ends: (n, 2) int64; movers: (n,) int64.
        keys: (n,) uint64 chance; game: as of `_game`.
        scale: from points to results; explore: weight of the exploration term.
    """
    seats = worlds.shape[2]
    hands = np.zeros(seats, np.int64)
    path = np.zeros(_DEPTH, np.int64)
    greedy = game[3] != 0
    for row in range(len(worlds)):
        tree = trees[row]
        for w in range(worlds.shape[1]):
            state = mix(keys[row] + np.uint64(start + w) * GOLDEN)
            for s in range(seats):
                hands[s] = worlds[row, w, s]
            left, right, by = ends[row, 0], ends[row, 1], movers[row] - 1
            node, depth, over, fresh = 0, 0, False, False
            while not (over or fresh):
                by = (by + 1) % seats
                legal = _legal(hands[by], left, right) if node else actions[row]
                untried = _offer(tree, node, legal)
                fresh = untried != 0
                if fresh:
                    state += GOLDEN
                    new = used[row]
                    used[row] += 1
                    tree[new, _CHILD] = 0
                    tree[new, _NEXT] = tree[node, _CHILD]
                    tree[new, _ACTION] = _pick(untried, state)
                    tree[new, _VISITS] = 0
                    tree[new, _OFFERED] = 1
                    tree[new, _POINTS] = 0
                    tree[node, _CHILD] = new
                    node = new
                else:
                    node = _best(tree, node, legal, scale, explore)
                path[depth] = node
                depth += 1
                left, right, over = _lay(hands, by, left, right, np.int64(tree[node, _ACTION]))
            while not over:
                by = (by + 1) % seats
                legal = _legal(hands[by], left, right)
                if greedy or legal & (legal - 1) == 0:
                    action = _heaviest(legal)
                else:
                    state += GOLDEN
                    action = _pick(legal, state)
                left, right, over = _lay(hands, by, left, right, action)
            points = _score(hands, by, game)
            for i in range(depth):
                tree[path[i], _VISITS] += 1
                tree[path[i], _POINTS] += -points if (movers[row] + i) & 1 else points


def _game(rules: Rules, playout: str) -> Ints:
    """(4,) the rules as the compiled functions read them: block score, partner counts on an out, lone 0-0, playout."""
    if not rules.pairs:
        return np.array([0, 0, rules.lone_blank, PLAYOUTS.index(playout)])  # B5: for two seats the difference
    block = ("difference", "loser_total", "both_totals").index(rules.block_score)
    return np.array([block, int(rules.out_score == "others"), rules.lone_blank, PLAYOUTS.index(playout)])


@dataclass
class Counts:
    """What a search found about each action, (N, 57) by action id, 0 where the action is not legal or was not tried."""

    visits: Ints  # iterations that began with the action
    points: Ints  # sum of the asking side's net points in them

    @property
    def choice(self) -> Ints:
        """(N,) the most visited action; of equals that with the higher mean, then the lower id."""
        return (self.visits * (1 << 40) + self.points).argmax(axis=1)


class Ismcts:
    """The player.

    It knows nothing of how others play: its worlds follow from the rules alone, all alike likely.
    """

    needs_history = False

    def __init__(
        self,
        iterations: int | None = None,
        explore: float = EXPLORE,
        playout: str = "random",
        ms: float | None = None,
        threads: int | None = None,
    ) -> None:
        """Takes the options.

        Args:
            iterations: of each search, 1..1,000,000. None: 1000, or, where `ms` is given, as many as there is time for.
            explore: weight of the exploration term, >= 0.
            playout: how a deal is played out below the tree: "random" (all legal actions alike likely) or "greedy" (the
                heaviest tile).
            ms: time for a move in milliseconds; the search then also ends when it is used up, and what is played
                depends on the machine. None: no limit.
            threads: over the decisions of a batch; None: one for each core. What is played without `ms` does not depend
                on it.

        Raises:
            ValueError: anything out of these.
        """
        if iterations is not None and (not is_whole(iterations) or not 1 <= iterations <= MOST):
            raise ValueError(f"iterations={iterations!r} must be a whole number in 1..{MOST}")
        if not is_number(explore) or not 0 <= explore < math.inf:
            raise ValueError(f"explore={explore!r} must be a number >= 0")
        if playout not in PLAYOUTS:
            raise ValueError(f"playout={playout!r} is unknown; choose from {', '.join(PLAYOUTS)}")
        check_clock(ms, threads)
        self.iterations = int(iterations or (_USUAL if ms is None else MOST))
        self.explore, self.playout, self.ms = float(explore), playout, ms
        self.threads = threads or cores()
        self.name = f"ismcts-{self.iterations}" if ms is None else f"ismcts:ms={ms:g}"
        cost = self.iterations if ms is None else ms * _A_MS  # of a move, in iterations
        self.batch_hint = int(min(max(_A_CALL / cost, 1), 1024))
        if ms is not None:
            # What the first call of all compiles or loads must not cost the first move its time.
            Ismcts(1, playout=playout).act(decide(LineEngine(num_envs=1, seed=0), rng=Streams.of(0, np.zeros(1))))

    def check(self, rules: Rules) -> None:
        """Raises a ValueError for a game without two sides, or with more than one tile a turn."""
        if rules.kind != "line" or not (rules.pairs or rules.seats == 2):
            raise ValueError(
                f"ismcts plays games of pairs or of two seats, one tile a turn on an open line, not {rules.name}"
                f" with seats={rules.seats}, pairs={rules.pairs}"
            )

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64 the action that each row's search went into most often; one number of `batch.rng` a row."""
        return self.search(batch).choice

    def search(self, batch: Decisions) -> Counts:
        """Search every decision. A row with one action is not searched, its visits are 1.

        Raises:
            ValueError: no `batch.rng`; a game that is not played; a position that no deal fits, whoever passed.
        """
        keys, position = keys_of(batch), position_of(batch)
        self.check(position.rules)
        legal = _bits(batch.mask, position)
        counts = Counts(*(np.zeros((len(batch), NUM_ACTIONS), np.int64) for _ in range(2)))
        forced = np.flatnonzero(legal & (legal - 1) == 0)
        counts.visits[forced, batch.mask[forced].argmax(axis=1)] = 1
        rows = np.flatnonzero(legal & (legal - 1))
        if not len(rows):
            return counts
        size = -(-len(rows) // self.threads)
        size = min(size, max(1, _NODES // (self.iterations + 1)) if self.ms is None else _ROWS)
        groups = [rows[i : i + size] for i in range(0, len(rows), size)]

        def work(group: Ints) -> None:
            self._search(position.take(group), legal[group], keys[group], group, counts)

        with ThreadPoolExecutor(min(self.threads, len(groups))) as pool:
            list(pool.map(work, groups))  # raises what a thread raised
        return counts

    def _search(
        self, position: Position, legal: Ints, keys: npt.NDArray[np.uint64], rows: Ints, counts: Counts
    ) -> None:
        """Search some decisions side by side, and write down in their rows of `counts` what was found."""
        begun, rules, n = time.perf_counter(), position.rules, len(position)
        belief = lenient(position)
        game, scale = _game(rules, self.playout), _SHARE / float(_SUM[list(rules.tiles)].sum())
        trees = np.zeros((n, 1 + (self.iterations if self.ms is None else _FIRST), _WIDTH), np.int32)
        used = np.ones(n, np.int64)
        done, block = 0, self._block(0, n, 0.0)
        while block:
            if done + block >= trees.shape[1]:
                more = np.zeros((n, max(done, block), _WIDTH), np.int32)
                trees = np.concatenate([trees, more], axis=1)
            worlds = np.ascontiguousarray(belief.sample(block, keys, done), np.uint32)
            at = legal, position.ends, position.to_move
            _grow(trees, used, worlds, done, *at, keys ^ _SALT, game, scale, self.explore)
            done += block
            block = self._block(done, n, time.perf_counter() - begun)
        for row, tree in zip(rows, trees):
            child = tree[0, _CHILD]
            while child:
                action = tree[child, _ACTION]
                counts.visits[row, action], counts.points[row, action] = tree[child, _VISITS], tree[child, _POINTS]
                child = tree[child, _NEXT]

    def _block(self, done: int, rows: int, spent: float) -> int:
        """Iterations to do before the clock is looked at again; 0: the search is over.

        Args:
            done: iterations so far; rows: decisions searched side by side; spent: seconds since they began.
        """
        block = max(_WORLDS // rows, 1)
        if self.ms is not None:
            left = rows * self.ms / 1000 - spent
            if done and left <= 0:
                return 0
            # Half of what still fits at the pace so far, so that the last looks come close to the end.
            block = int(max(_FIRST, min(block, done * left / max(spent, 1e-9) / 2))) if done else _FIRST
        return min(block, self.iterations - done)


def _bits(mask: npt.NDArray[np.int8], position: Position) -> Ints:
    """(N,) int64 the legal actions, bit a for action a; at equal ends one of two that leave the same line."""
    bits = (mask[:, :NUM_ACTIONS].astype(np.int64) << np.arange(NUM_ACTIONS)).sum(axis=1)
    equal = position.ends[:, 0] == position.ends[:, 1]
    return np.where(equal, bits & ~((bits & _ALL) << NUM_TILES), bits)


ismcts = Ismcts  # by the name of the player
