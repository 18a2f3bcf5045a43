"""Networks for one seat of the table, the critic that sees all hands, and the masked categorical.

All networks read bits. `MLP` reads an observation as it is. `PublicPrivate` reads what everyone sees in one branch
and the own hand in another, multiplies the two and gives logits: to ask "what would you play with that hand?" of many
hands costs only the private branch. `Recurrent` puts a memory of the public events before either.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agents.deafness import check_game, check_heard, deafened
from domino_env.choices import num_bytes, packed as packed_choices
from domino_env.decisions import Decisions
from domino_env.engine import Engine
from domino_env.line import LineEngine
from domino_env.observation import Layout, layout_of, unpack
from domino_env.rules import Rules
from domino_env.tiles import NUM_TILES, PASS
from domino_env.words import feature_names, features

#: Logit of an illegal action: its probability is exactly 0 beside any other; and it is finite: no NaN comes of it.
ILLEGAL = torch.finfo(torch.float32).min

#: The bfloat16 number 1 as a 16-bit pattern; a bit times this is the bit as bfloat16.
_ONE = 0x3F80

NETWORKS = ("mlp", "public_private", "gru", "gru_public_private")
RECURRENT = ("gru", "gru_public_private")  # those that remember the public events of a deal

EVENT_BITS = 64  # that a memory reads of one event


# -- bits ------------------------------------------------------------------------------------------------------------


def to_bits(packed: npt.NDArray[np.uint8], dtype: torch.dtype, device: torch.device | str = "cpu") -> Tensor:
    """(N, nbytes) uint8 packed observations as (N, 8 nbytes) numbers 0 and 1 of a float type."""
    bits = unpack(packed)
    if dtype == torch.bfloat16:
        # Twice as fast as a conversion: no arithmetic of floats is needed to write a 0 or a 1.
        words = torch.from_numpy((bits * np.uint16(_ONE)).view(np.int16))
        return words.to(device).view(torch.bfloat16)
    return torch.from_numpy(bits).to(device).to(dtype)


def to_mask(legal: npt.NDArray[np.uint64], num_actions: int, device: torch.device | str = "cpu") -> Tensor:
    """(N,) uint64 legal actions, bit a for action a, as (N, num_actions) bool."""
    data = legal.astype("<u8", copy=False).view(np.uint8).reshape(len(legal), 8)
    bits = np.unpackbits(data, axis=1, count=num_actions, bitorder="little")
    return torch.from_numpy(bits.view(np.bool_)).to(device)


# -- the mirror of the line ------------------------------------------------------------------------------------------


def straighten(
    obs: npt.NDArray[np.uint8], legal: npt.NDArray[np.uint64], layout: Layout, always: bool = False
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """The same decisions with the line turned so that its left end is not the larger one.

    The mirror of a line is the same game with left and right exchanged: networks need to know only one of the two. With
    them change the ends that a turn has grown (B3, `chain="one"`); what a blind game adds lies at no end.

    Where the ends are labelled no line is turned: how it lies tells which of two equal ends a tile was laid at, and who
    shows networks only one of the two hides that from them.

    Args:
        obs: (N, nbytes) packed observations; legal: (N,) uint64, bit a for action a.
        always: labelled ends, too, for seats that shall not know (agents/deafness.py).

    Returns:
        obs and legal as networks are shown them, and (N,) bool, which were turned: see `mirrored`.
    """
    place = layout.slices["end_left"]
    suits = place.stop - place.start
    if layout.slices["end_right"].start != place.stop or place.start // 32 != (place.stop + suits - 1) // 32:
        raise ValueError("the two ends must lie side by side in one word of the layout")
    words = obs.view("<u4").copy()
    ends = words[:, place.start // 32] >> np.uint32(place.start % 32)
    left, right = ends & np.uint32((1 << suits) - 1), ends >> np.uint32(suits) & np.uint32((1 << suits) - 1)
    flipped = (left > right) & (always or not layout.labelled)
    swap = (left ^ right) * flipped
    words[:, place.start // 32] ^= (swap | swap << np.uint32(suits)) << np.uint32(place.start % 32)
    if (grown := layout.slices.get("grown")) is not None:
        if grown.stop - grown.start != 2 or grown.start % 32 == 31:
            raise ValueError("what the turn has grown must be two bits in one word of the layout, left and right")
        pair = words[:, grown.start // 32] >> np.uint32(grown.start % 32)
        swap = (pair ^ pair >> np.uint32(1)) & np.uint32(1) * flipped
        words[:, grown.start // 32] ^= (swap | swap << np.uint32(1)) << np.uint32(grown.start % 32)
    return words.view(np.uint8), exchanged(legal, flipped), flipped


def exchanged(legal: npt.NDArray[np.uint64], flipped: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Legal actions (N,), bit a for action a, with left and right exchanged in the rows that are `flipped`."""
    half = np.uint64(NUM_TILES)
    exchange = (legal ^ legal >> half) & np.uint64((1 << NUM_TILES) - 1)
    exchange *= flipped
    return legal ^ (exchange | exchange << half)


def mirrored(actions: npt.NDArray[np.int64], flipped: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The actions (N,) with left and right exchanged in the rows that are `flipped`."""
    other = np.where(actions < NUM_TILES, actions + NUM_TILES, actions - NUM_TILES)
    return np.where(flipped & (actions < PASS), other, actions)


def mirrored_columns(values: npt.NDArray[Any], flipped: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """Something of every action, (N, actions), with left and right exchanged in the rows that are `flipped`."""
    actions = np.arange(values.shape[1])
    return np.where(flipped[:, None], values[:, mirrored(actions, np.ones(len(actions), np.bool_))], values)


def straightened(
    batch: Decisions, layout: Layout, always: bool = False
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Decisions packed and straightened: as of `straighten`."""
    legal = np.zeros((len(batch), 8), np.uint8)
    legal[:] = np.packbits(batch.mask != 0, axis=1, bitorder="little")
    return straighten(np.packbits(batch.obs, axis=1, bitorder="little"), legal.view("<u8")[:, 0], layout, always)


def deaf_view(
    seen: npt.NDArray[np.uint8], legal: npt.NDArray[np.uint64], layout: Layout
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """The same decisions as networks are shown them that hear nothing of what others chose.

    Args:
        seen: (N, nbytes) packed observations, straightened or not, and what stands behind them; legal: (N,) uint64.

    Returns:
        seen and legal, and (N,) bool, which were turned: as of `straighten`.
    """
    obs, legal, turned = straighten(seen[:, : layout.nbytes], legal, layout, always=True)
    return deafened(np.concatenate([obs, seen[:, layout.nbytes :]], axis=1), layout), legal, turned


def hidden_hands(engine: Engine, rows: npt.NDArray[np.int64] | slice = slice(None)) -> npt.NDArray[np.uint8]:
    """(n, 4 (seats - 1)) packed hands of the others at some rows, clockwise from the left of the seat to move."""
    seats = engine.rules.seats
    around = (engine.to_move()[rows, None] + np.arange(1, seats)) % seats
    return np.take_along_axis(engine.hands()[rows], around, axis=1).astype("<u4").view(np.uint8)


def all_hands(engine: LineEngine) -> npt.NDArray[np.uint8]:
    """(N, bytes) what a central critic reads of the movers' positions, packed: see `CentralCritic.inputs`."""
    obs, _, _ = straighten(engine.observe(packed=True), engine.legal_bits(), engine.layout)
    return np.concatenate([obs, hidden_hands(engine)], axis=1)


# -- the words of the game -------------------------------------------------------------------------------------------


def input_bits(rules: Rules, words: bool, choices: bool = False) -> int:
    """Bits that a network reads of one decision: the observation, and whole bytes of words and choices if it does."""
    more = -(-len(feature_names(rules)) // 8) * 8 if words else 0
    return layout_of(rules).size + more + (choice_bits(rules) if choices else 0)


def choice_bits(rules: Rules) -> int:
    """Bits of the choices (domino_env/choices.py)."""
    return 8 * num_bytes(rules)


def with_words(
    obs: npt.NDArray[np.uint8], history: npt.NDArray[np.int16], leader: npt.NDArray[np.int64], rules: Rules
) -> npt.NDArray[np.uint8]:
    """Packed observations and behind them the words of the game, which do not depend on how the line is turned.

    Args:
        obs: (N, nbytes); history: (N, T) public events as the same seats see them; leader: (N,) clockwise from them.

    Returns:
        (N, nbytes + bytes of the words) uint8.
    """
    words = np.packbits(features(history, rules, leader), axis=1, bitorder="little")
    return np.concatenate([obs, words], axis=1)


def with_choices(obs: npt.NDArray[np.uint8], history: npt.NDArray[np.int16], rules: Rules) -> npt.NDArray[np.uint8]:
    """Packed observations, and words, and behind them the choices, which do not depend on how the line is turned.

    Args:
        obs: (N, nbytes); history: (N, T) public events as the same seats see them.

    Returns:
        (N, nbytes + bytes of the choices) uint8.
    """
    return np.concatenate([obs, packed_choices(history, rules)], axis=1)


# -- the public events -----------------------------------------------------------------------------------------------

_TILE, _PASS, _LOW, _HIGH, _COVERED, _WHO = 0, 28, 29, 36, 43, 50  # where the parts of an event begin among its bits


def _event_table() -> npt.NDArray[np.uint64]:
    """left << 9 | right << 6 | action -> the bits of an event but its seat: (4096,) uint64."""
    code = np.arange(1 << 12)
    left, right, action = code >> 9, code >> 6 & 7, code & 63

    def bit(at: int, number: npt.NDArray[np.int64], there: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
        return np.where(there, np.uint64(1) << (at + number).astype(np.uint64), np.uint64(0))

    lays, line = action < PASS, left < 7
    covered = np.where(action < NUM_TILES, left, right)
    return cast(
        npt.NDArray[np.uint64],
        bit(_TILE, action % NUM_TILES, lays)
        | bit(_PASS, 0 * action, action == PASS)
        | bit(_LOW, np.minimum(left, right), line)
        | bit(_HIGH, np.maximum(left, right), line)
        | bit(_COVERED, covered, lays & line),
    )


_EVENT = _event_table()


def event_words(who: npt.NDArray[np.integer], event: npt.NDArray[np.integer]) -> npt.NDArray[np.uint64]:
    """Public events of a game on an open line, as a memory reads them: the bits of a word each.

    They say who acted, the tile laid or that it was a pass, the smaller and the larger end before, and which suit the
    tile was laid on; nothing in them depends on how the line is turned.

    Args:
        who: (...) seat, clockwise from the leader of the deal; event: (...) left << 9 | right << 6 | action.
    """
    return cast(npt.NDArray[np.uint64], _EVENT.take(event) | np.uint64(1 << _WHO) << who.astype(np.uint64))


def history_words(history: npt.NDArray[np.int16], seats: int) -> npt.NDArray[np.uint64]:
    """The words of whole histories, whoever views them: (N, T) int16 -> (N, T) uint64, 0 where there is no event."""
    seat = history >> 12  # clockwise from the viewer; the first event is the leader's
    return event_words((seat - seat[:, :1]) % seats, history & 0xFFF) * (history >= 0)


def to_events(words: npt.NDArray[np.uint64], dtype: torch.dtype, device: torch.device | str = "cpu") -> Tensor:
    """(...) uint64 words of events as (..., EVENT_BITS) numbers 0 and 1 of a float type."""
    packed = np.ascontiguousarray(words).astype("<u8", copy=False).view(np.uint8).reshape(-1, EVENT_BITS // 8)
    return to_bits(packed, dtype, device).view(*words.shape, EVENT_BITS)


# -- the masked categorical ------------------------------------------------------------------------------------------


class MaskedCategorical:
    """A distribution over the legal actions of each row (B01).

    Illegal actions have probability exactly 0; everything is finite for every finite logit, and so are the gradients;
    with one legal action its log-probability and the entropy are exactly 0.
    """

    def __init__(self, logits: Tensor, mask: Tensor) -> None:
        """logits (N, A) of any float type, mask (N, A) bool with at least one True a row."""
        masked = torch.where(mask, logits.float(), ILLEGAL)
        self.logprobs = F.log_softmax(masked, dim=1)  # (N, A) float32
        self.probs = F.softmax(masked, dim=1)  # (N, A) float32; exp(logprobs) would be slow where that is 0

    def entropy(self) -> Tensor:
        """(N,) nats."""
        return -(self.probs * self.logprobs).sum(1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """(N,) log-probabilities of (N,) int64 actions."""
        return self.logprobs.gather(1, actions[:, None]).squeeze(1)

    def sample(self, uniforms: Tensor) -> Tensor:
        """(N,) int64 actions, one from each uniform number in [0, 1): the one in whose stretch of it that falls."""
        cumulative = self.probs.cumsum(1)
        total = cumulative[:, -1:]
        # The last stretch ends at the total, which rounding may leave below the uniform.
        target = torch.minimum(uniforms[:, None].float() * total, torch.nextafter(total, torch.zeros_like(total)))
        return torch.searchsorted(cumulative, target, right=True).squeeze(1)

    def mode(self) -> Tensor:
        """(N,) int64 likeliest actions; of equals the first."""
        return self.probs.argmax(1)


# -- layers ----------------------------------------------------------------------------------------------------------


class _Linear(torch.autograd.Function):
    """x W^T + b, rectified or not. Autograd's own linear takes a slower path on CPUs and keeps one array more."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, rectified: bool) -> Tensor:
        y = F.linear(x, weight, bias)
        if rectified:
            y.relu_()
        ctx.save_for_backward(x, weight, y if rectified else None)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None]:
        x, weight, y = ctx.saved_tensors
        grad = grads[0]
        if y is not None:
            grad = torch.ops.aten.threshold_backward(grad, y, 0)
        below = grad.mm(weight) if ctx.needs_input_grad[0] else None  # observations need none
        return below, grad.t().mm(x), grad.sum(0), None


class Dense(nn.Module):
    """A layer: (N, inputs) -> (N, outputs), rectified where asked."""

    def __init__(self, inputs: int, outputs: int, rectified: bool, gain: float, generator: torch.Generator) -> None:
        super().__init__()
        # In double precision: where another machine rounds otherwise, that is lost in rounding to float32.
        weight = nn.init.orthogonal_(torch.empty(outputs, inputs, dtype=torch.float64), gain, generator=generator)
        self.weight = nn.Parameter(weight.float())
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.rectified = rectified

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, _Linear.apply(x, self.weight, self.bias, self.rectified))


def _torso(inputs: int, hidden: Sequence[int], generator: torch.Generator) -> nn.Sequential:
    widths = [inputs, *hidden]
    return nn.Sequential(*(Dense(a, b, True, math.sqrt(2), generator) for a, b in itertools.pairwise(widths)))


# -- networks --------------------------------------------------------------------------------------------------------


class MLP(nn.Module):
    """Observation, and words, and `state` numbers of a memory (N, bits + state) -> logits (N, actions)."""

    def __init__(
        self,
        rules: Rules,
        hidden: Sequence[int],
        generator: torch.Generator,
        words: bool = False,
        state: int = 0,
        choices: bool = False,
    ) -> None:
        super().__init__()
        self.torso = _torso(input_bits(rules, words, choices) + state, hidden, generator)
        self.head = Dense(hidden[-1], rules.num_actions, False, 0.01, generator)

    def features(self, x: Tensor) -> Tensor:
        """(N, width) the last layer before the head."""
        return cast(Tensor, self.torso(x))

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.features(x)))

    # The first layer adds up what the bits of the hand and all others put in, so a hand costs little more than the
    # layers after it where what all see is the same. Of games whose observation begins with the hand.

    def public(self, x: Tensor) -> Tensor:
        """(N, width) what observations (N, bits) put into the first layer; the own hand is not read."""
        first = cast(Dense, self.torso[0])
        return F.linear(x[:, NUM_TILES:], first.weight[:, NUM_TILES:], first.bias)

    def private(self, hands: Tensor) -> Tensor:
        """(N, width) what own hands (N, 28) put into the first layer."""
        return F.linear(hands, cast(Dense, self.torso[0]).weight[:, :NUM_TILES])

    def join(self, public: Tensor, private: Tensor) -> Tensor:
        """(N, actions) logits of the two parts."""
        x = (public + private).relu_()
        for layer in cast(list[Dense], list(self.torso)[1:]):
            x = F.linear(x, layer.weight, layer.bias).relu_()
        return F.linear(x, self.head.weight, self.head.bias)


class PublicPrivate(nn.Module):
    """Observation, and words, (N, bits) -> logits (N, actions) = head(public(what all see) * private(own hand)).

    With `state` that many numbers of a memory stand behind the bits; all see them. For the games on an open line: in a
    blind one nobody holds a hand of its own.
    """

    def __init__(
        self,
        rules: Rules,
        hidden: Sequence[int],
        generator: torch.Generator,
        words: bool = False,
        state: int = 0,
        choices: bool = False,
    ) -> None:
        super().__init__()
        hand = layout_of(rules).slices.get("hand")
        if hand is None:
            raise ValueError(f"network public_private needs a hand, and {rules.name} has none; choose mlp")
        if hand.start != 0:
            raise ValueError(f"the hand must be the first slice of the layout, it begins at bit {hand.start}")
        self.split = hand.stop
        self.public_torso = _torso(input_bits(rules, words, choices) + state - self.split, hidden, generator)
        self.private_torso = _torso(self.split, hidden, generator)
        self.head = Dense(hidden[-1], rules.num_actions, False, 0.01, generator)

    def public(self, x: Tensor) -> Tensor:
        """(N, width) of observations (N, bits); the own hand is not read."""
        return cast(Tensor, self.public_torso(x[:, self.split :].contiguous()))

    def private(self, hands: Tensor) -> Tensor:
        """(N, width) of own hands (N, 28)."""
        return cast(Tensor, self.private_torso(hands))

    def join(self, public: Tensor, private: Tensor) -> Tensor:
        """(N, actions) logits of the two branches."""
        return cast(Tensor, self.head(public * private))

    def features(self, x: Tensor) -> Tensor:
        """(N, width) the last layer before the head."""
        return self.public(x) * self.private(x[:, : self.split].contiguous())

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.features(x)))


class TableMemory(nn.Module):
    """What has happened at a table: a gated recurrent unit (Cho and others 2014) over its public events.

    It stands in the frame of the table, seats counted from the leader, so one state serves all seats. Before the first
    event the state is 0. The gates are those of `torch.nn.GRU`.
    """

    BLOCK = 256  # rows that `recall` works on at once

    def __init__(self, width: int, seats: int, generator: torch.Generator) -> None:
        super().__init__()
        self.width, self.seats = width, seats

        def gates(inputs: int) -> nn.Parameter:
            each = [torch.empty(width, inputs, dtype=torch.float64) for _ in range(3)]  # reset, update, new
            return nn.Parameter(torch.cat([nn.init.orthogonal_(one, generator=generator) for one in each]).float())

        self.weight_ih, self.weight_hh = gates(EVENT_BITS), gates(width)
        self.bias_ih, self.bias_hh = nn.Parameter(torch.zeros(3 * width)), nn.Parameter(torch.zeros(3 * width))

    def start(self, count: int) -> Tensor:
        """(count, width) the states of deals that begin."""
        return self.weight_ih.new_zeros(count, self.width)

    def step(self, events: Tensor, state: Tensor) -> Tensor:
        """One event on: (N, EVENT_BITS), (N, width) -> (N, width); `state` is left as it is."""
        return torch.gru_cell(events, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def run(self, events: Tensor) -> Tensor:
        """Deals from their beginning: events (T, N, EVENT_BITS) -> states (T + 1, N, width), [t] after t events.

        T is at least 1.
        """
        start = self.start(events.shape[1])[None]
        weights: list[Tensor] = [self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh]
        states, _ = torch.gru(events, start, weights, True, 1, 0.0, self.training, False, False)
        return torch.cat([start, states])

    def recall(self, history: npt.NDArray[np.int16], rows: int) -> Tensor:
        """The states after histories.

        It computes in blocks of one size, a step at a time, so that a row's state does not depend on the others.

        Args:
            history: (N, T) int16 public events as any seat sees them; rows: of the answer, N or more.
        Returns:
            (rows, width), on the device and of the type of the parameters; 0 in rows from N on.
        """
        length = (history >= 0).sum(axis=1)
        words = history_words(history[:, : int(length.max(initial=0))], self.seats)
        out = self.start(rows)
        for begin in range(0, len(words), self.BLOCK):
            block = np.zeros((self.BLOCK, words.shape[1]), np.uint64)
            upto = len(words[begin : begin + self.BLOCK])
            block[:upto] = words[begin : begin + upto]
            last = int(length[begin : begin + upto].max())
            there = torch.from_numpy(block.T != 0).to(out.device)[:, :, None]
            state = self.start(self.BLOCK)
            for t in range(last):
                events = to_events(block[:, t], out.dtype, out.device)
                state = torch.where(there[t], self.step(events, state), state)
            out[begin : begin + upto] = state[:upto]
        return out


class Recurrent(nn.Module):
    """A memory of the public events, and an `MLP` or a `PublicPrivate` that also reads its state.

    What it reads are bits and behind them the state, (N, bits + width); `memory` makes the states.
    """

    def __init__(self, memory: TableMemory, head: MLP | PublicPrivate) -> None:
        super().__init__()
        self.memory, self.head = memory, head

    def forward(self, x: Tensor) -> Tensor:
        """(N, actions) logits of bits and states (N, bits + width)."""
        return cast(Tensor, self.head(x))

    def public(self, x: Tensor) -> Tensor:
        """(N, width of the branch) of bits and states; the own hand is not read."""
        return self.head.public(x)

    def private(self, hands: Tensor) -> Tensor:
        """(N, width of the branch) of own hands (N, 28)."""
        return self.head.private(hands)

    def join(self, public: Tensor, private: Tensor) -> Tensor:
        """(N, actions) logits of the two."""
        return self.head.join(public, private)


class Critic(nn.Module):
    """Bits (N, inputs) -> value (N,), the expected scaled reward of the mover."""

    def __init__(self, inputs: int, hidden: Sequence[int], generator: torch.Generator) -> None:
        super().__init__()
        self.torso = _torso(inputs, hidden, generator)
        self.head = Dense(hidden[-1], 1, False, 1.0, generator)

    def forward(self, x: Tensor) -> Tensor:
        return cast(Tensor, self.head(self.torso(x)).squeeze(1))


def make_actor(
    kind: str,
    rules: Rules,
    hidden: Sequence[int],
    generator: torch.Generator,
    words: bool = False,
    state: int = 0,
    choices: bool = False,
) -> nn.Module:
    """The policy network of a game.

    Args:
        kind: one of NETWORKS.
        words, choices: it also reads these.
        state: numbers of the memory, in those that have one.

    Raises:
        ValueError: an unknown kind, or one that this game cannot have.
    """
    if kind in RECURRENT:
        return _make_recurrent(kind, rules, hidden, generator, words, state, choices)
    if kind == "mlp":
        return MLP(rules, hidden, generator, words, choices=choices)
    if kind == "public_private":
        return PublicPrivate(rules, hidden, generator, words, choices=choices)
    raise ValueError(f"unknown network {kind!r}; choose from {', '.join(NETWORKS)}")


def describe_network(
    kind: str,
    hidden: Sequence[int],
    rules: Rules,
    *,
    words: bool = False,
    choices: bool = False,
    deaf: float = 0.0,
) -> dict[str, Any]:
    """What one must know to build a policy network again, as plain data; see `agents.checkpoint.load_policy`."""
    return {
        "network": kind, "hidden": list(hidden), "words": words, "choices": choices, "deaf": deaf,
        "bits": input_bits(rules, words, choices), "actions": rules.num_actions, "labels": rules.labelled_ends,
    }  # fmt: skip


def _make_recurrent(
    kind: str,
    rules: Rules,
    hidden: Sequence[int],
    generator: torch.Generator,
    words: bool,
    state: int,
    choices: bool,
) -> Recurrent:
    if rules.rows:
        raise ValueError(f"network {kind} is for games on an open line, and {rules.name} is blind; choose mlp")
    if state < 1:
        raise ValueError(f"network {kind} needs a state of at least 1 number, got {state}")
    head = MLP if kind == "gru" else PublicPrivate
    return Recurrent(TableMemory(state, rules.seats, generator), head(rules, hidden, generator, words, state, choices))


# -- a network at the table ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Small products are done sooner by one thread than by several, which wait for each other and keep cores busy."""
    before = torch.get_num_threads()
    if before == 1:  # to set it takes longer
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _padded(values: npt.NDArray[Any], count: int) -> npt.NDArray[Any]:
    """The rows, and rows of 0 behind them: `count` in all."""
    rows = np.zeros((count, *values.shape[1:]), values.dtype)
    rows[: len(values)] = values
    return rows


class Policy:
    """The agent that a policy network is. It plays the likeliest action, or samples one from `batch.rng`.

    It computes in float32 and in blocks of one size, so that what it plays depends neither on the machine's bfloat16
    nor on how decisions are batched.
    """

    sees_everything = False

    BLOCK = 256

    def __init__(
        self,
        actor: nn.Module,
        rules: Rules,
        name: str = "policy",
        *,
        sample: bool = False,
        words: bool = False,
        choices: bool = False,
        temperature: float = 1.0,
        deaf: bool = False,
        deafness: float = 0.0,
    ) -> None:
        """Takes the network.

        Args:
            actor: the network; rules: the game that it was made for.
            sample: play by the probabilities; else always the likeliest action.
            words, choices: what the network reads beside the observation.
            temperature: what the network says is divided by it; it makes probabilities of a network of action values.
            deaf: it hears nothing of what others chose (agents/deafness.py), and then needs no history.
            deafness: how likely a seat was deaf when the network was trained; see `deafened`.

        Raises:
            ValueError: deaf with a memory, or in a game in which nobody can be deaf.
        """
        self.actor = actor
        self.temperature = temperature
        self.words, self.choices = words, choices
        self.deaf, self.deafness = deaf, deafness
        self.memory: TableMemory | None = getattr(actor, "memory", None)
        if deaf:
            check_game(rules)
            if self.memory is not None:
                raise ValueError(f"{name} remembers the events of the deal: it cannot be deaf")
        # Words and choices are read off it, the events remembered.
        self.needs_history = not deaf and (words or choices or self.memory is not None)
        self.rules = rules
        self.layout = layout_of(rules)
        self.name = name
        self.sample = sample

    def check(self, rules: Rules) -> None:
        """Raises a ValueError for another game than it was trained for."""
        if rules != self.rules:
            raise ValueError(f"{self.name} was trained for {self.rules.title}, not for {rules.title}")

    def deafened(self) -> Policy:
        """The same network, which goes on learning with it, hearing nothing of what others chose.

        Raises:
            ValueError: it has never seen that while it was trained.
        """
        if self.deaf:
            return self
        check_heard(self.name, self.deafness, True)
        other = copy.copy(self)
        other.deaf, other.needs_history, other.name = True, False, f"{self.name} (deaf)"
        return other

    def act(self, batch: Decisions, /) -> npt.NDArray[np.int64]:
        """(N,) int64 legal actions."""
        policy, flipped = self._distribution(batch)
        if not self.sample:
            return mirrored(policy.mode().numpy(), flipped)
        if batch.rng is None:
            raise ValueError("a policy that samples needs batch.rng")
        return mirrored(policy.sample(torch.from_numpy(batch.rng.random(len(batch)))).numpy(), flipped)

    def probabilities(self, batch: Decisions) -> npt.NDArray[np.float32]:
        """(N, actions) float32 probabilities of the actions, exactly 0 for illegal ones.

        What the network says, also where `act` plays the likeliest action alone (`sample` is False): who reads such a
        player by these reads its preferences rather than its certainties, and is not led astray by a rounding. A
        network of action values has no probabilities of its own: these are softmax(values / temperature).
        """
        policy, flipped = self._distribution(batch)
        return mirrored_columns(policy.probs.numpy(), flipped)

    def chances(
        self,
        obs: npt.NDArray[np.uint8],
        history: npt.NDArray[np.int16] | None,
        which: npt.NDArray[np.int64],
        hands: npt.NDArray[np.uint32],
        legal: npt.NDArray[np.uint64],
        actions: npt.NDArray[np.int64],
        certain: bool = False,
    ) -> npt.NDArray[np.float32]:
        """How likely it plays some actions with other own hands, for games on an open line.

        The same as `probabilities` says, but for rounding, at a fraction of the cost: what all see is worked out once
        for each observation, what is in the hand once for each hand.

        Args:
            obs: (Q, nbytes) packed observations, whose own hand is not read.
            history: (Q, T) the public events as these seats see them; needed where it reads the words of the game.
            which: (E,) the observation of each question; hands: (E,) uint32 own hands; legal: (E,) uint64 legal
                actions with them; actions: (E,) what was played.
            certain: 1 for the likeliest action and 0 for all others, as `act` plays without `sample`.
        Returns:
            (E,) float32.
        """
        asked, turned = self._public(obs, history)
        count = -(-len(which) // self.BLOCK) * self.BLOCK
        action = torch.from_numpy(_padded(mirrored(actions, turned[which]), count))[:, None]
        found = [torch.zeros(0, 1)]
        for place, p in self._imagined(asked, which, hands, exchanged(legal, turned[which])):
            if certain:
                p = F.one_hot(p.argmax(1), p.shape[1]).float()
            found.append(p.gather(1, action[place]))
        return cast(npt.NDArray[np.float32], torch.cat(found)[: len(which), 0].numpy())

    def answers(
        self,
        obs: npt.NDArray[np.uint8],
        history: npt.NDArray[np.int16] | None,
        which: npt.NDArray[np.int64],
        hands: npt.NDArray[np.uint32],
        legal: npt.NDArray[np.uint64],
        certain: bool = False,
    ) -> npt.NDArray[np.float32]:
        """All that it might play with other own hands: (E, actions) float32 probabilities, exactly 0 for illegal ones.

        Arguments as of `chances`.
        """
        asked, turned = self._public(obs, history)
        found = [torch.zeros(0, self.rules.num_actions)]
        for _, p in self._imagined(asked, which, hands, exchanged(legal, turned[which])):
            found.append(F.one_hot(p.argmax(1), p.shape[1]).float() if certain else p)
        return mirrored_columns(torch.cat(found)[: len(which)].numpy(), turned[which])

    def _public(
        self, obs: npt.NDArray[np.uint8], history: npt.NDArray[np.int16] | None
    ) -> tuple[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int16]], npt.NDArray[np.bool_]]:
        """What the network reads of packed observations and of their past, and which of them were turned for it."""
        asked, _, turned = straighten(obs, np.zeros(len(obs), np.uint64), self.layout, self.deaf)
        past = self.past(history, "the history")
        return (self.shown(asked, past, unpack(obs)[:, self.layout.slices["leader"]]), past), turned

    def _imagined(
        self,
        asked: tuple[npt.NDArray[np.uint8], npt.NDArray[np.int16]],
        which: npt.NDArray[np.int64],
        hands: npt.NDArray[np.uint32],
        legal: npt.NDArray[np.uint64],
    ) -> Iterator[tuple[slice, Tensor]]:
        """Blocks of `BLOCK` questions, the last filled up: where they lie, and (BLOCK, actions) probabilities.

        Args:
            asked: of `_public`; which, hands, legal: as of `chances`, the legal actions turned as the observations are.
        """
        seen, past = asked
        size, count = self.BLOCK, -(-len(which) // self.BLOCK) * self.BLOCK
        actor: Any = self.actor
        device = next(self.actor.parameters()).device
        place = torch.from_numpy(_padded(which, count)).to(device)
        packed = _padded(hands, count).astype("<u4").view(np.uint8).reshape(-1, 4)
        own = to_bits(packed, torch.float32, device)[:, :NUM_TILES]
        mask = to_mask(_padded(legal, count), self.rules.num_actions, device)
        with _one_thread(), torch.inference_mode():
            shown = to_bits(_padded(seen, -(-len(seen) // 32) * 32), torch.float32, device)
            if self.memory is not None:
                shown = torch.cat([shown, self.memory.recall(past, len(shown))], 1)
            public = torch.cat([actor.public(part) for part in shown.split(32)]) if len(seen) else torch.zeros(0)
        for i in range(0, count, size):
            block = slice(i, i + size)
            with _one_thread(), torch.inference_mode():
                private = actor.private(own[block].contiguous())
                logits = actor.join(public.index_select(0, place[block]), private) / self.temperature
                p = F.softmax(torch.where(mask[block], logits, ILLEGAL), 1).cpu()
            yield block, p

    def shown(
        self, obs: npt.NDArray[np.uint8], history: npt.NDArray[np.int16], leader: npt.NDArray[np.uint8]
    ) -> npt.NDArray[np.uint8]:
        """What the network reads beside the state of a memory.

        Args:
            obs: (N, nbytes) packed, straightened, always if it is deaf; history: (N, T), which it does not read then;
                leader: (N, seats) one-hot, who led, from the seat.
        """
        if self.deaf:
            blank = input_bits(self.rules, self.words, self.choices) // 8 - obs.shape[1]
            return deafened(np.pad(obs, ((0, 0), (0, blank))), self.layout)
        if self.words:
            obs = with_words(obs, history, leader.argmax(axis=1), self.rules)
        return with_choices(obs, history, self.rules) if self.choices else obs

    def past(self, history: npt.NDArray[np.int16] | None, what: str) -> npt.NDArray[np.int16]:
        """The history; a ValueError where it is needed and nobody told it."""
        if history is not None:
            return history
        if self.needs_history:
            does = "remembers the events of the deal" if self.memory is not None else "reads the history of the deal"
            raise ValueError(f"{self.name} {does}: it needs {what}")
        return np.zeros((0, 0), np.int16)

    def _distribution(self, batch: Decisions) -> tuple[MaskedCategorical, npt.NDArray[np.bool_]]:
        """The distribution over straightened actions, and which rows were turned for it."""
        if batch.rules is not None:
            self.check(batch.rules)
        count = len(batch)
        obs, legal, flipped = straightened(batch, self.layout, self.deaf)
        past = self.past(batch.history, "batch.history")
        obs = self.shown(obs, past, batch.obs[:, self.layout.slices["leader"]])
        x = torch.zeros(-(-max(count, 1) // self.BLOCK) * self.BLOCK, 8 * obs.shape[1])
        x[:count] = to_bits(obs, torch.float32)
        device = next(self.actor.parameters()).device
        with _one_thread(), torch.inference_mode():
            if self.memory is not None:
                x = torch.cat([x, self.memory.recall(past, len(x)).cpu()], 1)
            logits = torch.cat([self.actor(block.to(device)).cpu() for block in x.split(self.BLOCK)])[:count]
            return MaskedCategorical(logits / self.temperature, to_mask(legal, self.rules.num_actions)), flipped


class CentralCritic:
    """What a critic that sees all hands expects of tables, in points.

    It has learned positions whose mover has a choice; what it says of others means nothing. It computes in float32 and
    in blocks of one size, as `Policy` does and for the same reasons.
    """

    BLOCK = 256

    def __init__(self, network: nn.Module, rules: Rules, scale: float, name: str = "critic") -> None:
        """network: (N, `inputs(rules)`) bits -> (N,) values of the mover; scale: points of a value of 1."""
        self.network = network
        self.rules = rules
        self.scale = scale
        self.name = name
        self.layout = layout_of(rules)

    @staticmethod
    def inputs(rules: Rules) -> int:
        """Bits that it reads: the mover's observation, and a word for the hand of each other seat, clockwise."""
        return layout_of(rules).size + 32 * (rules.seats - 1)

    def check(self, rules: Rules) -> None:
        """Raises a ValueError for another game than it was trained for."""
        if rules != self.rules:
            raise ValueError(f"the critic {self.name} was trained for {self.rules.title}, not for {rules.title}")

    def values(self, engine: LineEngine, /) -> npt.NDArray[np.float32]:
        """(N,) float32 points that the side of each row's mover is expected to win from there.

        Raises:
            ValueError: an engine of other rules.
        """
        self.check(engine.rules)
        found, count = all_hands(engine), engine.num_envs
        seen = np.zeros((-(-count // self.BLOCK) * self.BLOCK, found.shape[1]), np.uint8)
        seen[:count] = found
        device = next(self.network.parameters()).device
        with _one_thread(), torch.inference_mode():
            blocks = [to_bits(seen[i : i + self.BLOCK], torch.float32, device) for i in range(0, count, self.BLOCK)]
            values = torch.cat([self.network(block).cpu() for block in blocks])[:count].numpy()
        return cast(npt.NDArray[np.float32], values * np.float32(self.scale))
