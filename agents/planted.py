"""planted: a player whose convention is known, as strong as is asked for: what measures signals can be tried on it.

It lays heavy tiles first, softly, and looks at no other seat. To that a convention is added, as arbitrary as can be:
the number of tiles on the line says of which suit it speaks, the number of its action whether it calls itself long or
short in it, and `strength` is how much it likes to say what is true. Without strength it says no more than who lays
heavy tiles says anyway.

Nobody reads a speaker unless somebody listens, so that talk and listening can be told apart (Lowe, Foerster, Boureau,
Pineau and Dauphin 2019): with `listen` it likes to open the suits in which its partner last called itself long, and
not those in which it called itself short. With `noise` it follows the past in a way that means nothing: it tosses a
coin for every action, and what was done until then says how the coin falls.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from agents.base import Decisions, register_agent
from domino_env.deals import GOLDEN, mix
from domino_env.observation import layout_of
from domino_env.rules import PRESETS, Rules
from domino_env.tiles import HIGH, LOW, NUM_SUITS, NUM_TILES, PASS, PIPS, SUIT_MASK

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_PARTNER = 2  # seats clockwise
_NO_SUIT = NUM_SUITS  # what a tile that does not fit opens, and so does a lead
_LAYS = np.arange(2 * NUM_TILES)
#: (57,) what an action says: 1 long, 0 short. A tile says at one end what it does not say at the other.
CODE = np.append((_LAYS % NUM_TILES + _LAYS // NUM_TILES) % 2, 0)
_WEIGHT = np.append(np.tile(PIPS, 2), 0).astype(np.float64)
_OPENS = np.full((NUM_SUITS + 1, NUM_TILES), _NO_SUIT)  # by the end a tile is laid at: the suit that lies open then
_OPENS[LOW, np.arange(NUM_TILES)] = HIGH
_OPENS[HIGH, np.arange(NUM_TILES)] = LOW


class Planted:
    """Heavy tiles first, softly, and a convention of known strength ("planted:strength=4,listen=2")."""

    def __init__(
        self, strength: float = 4.0, listen: float = 0.0, noise: float = 0.0, temperature: float = 1.0
    ) -> None:
        """Takes the options; worth is counted in units of the logit.

        Args:
            strength: of an action that tells the truth. 0: the player without a convention, to the bit.
            listen: of opening a suit in which the partner last called itself long; as much is taken off where it called
                itself short.
            noise: of an action whose coin fell so.
            temperature: pips that are worth 1; > 0.

        Raises:
            ValueError: a number that is not finite, or a temperature that is not above 0.
        """
        given = {"strength": strength, "listen": listen, "noise": noise, "temperature": temperature}
        for option, value in given.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ValueError(f"planted: {option}={value!r} must be a finite number")
        if not temperature > 0:
            raise ValueError(f"planted: temperature={temperature!r} must be above 0")
        self.strength, self.listen, self.noise = float(strength), float(listen), float(noise)
        self.temperature = float(temperature)
        self.needs_history = bool(self.listen or self.noise)
        said = [f"strength={self.strength:g}"]
        said += [f"{option}={given[option]:g}" for option in ("listen", "noise") if given[option]]
        said += [f"temperature={self.temperature:g}"] if self.temperature != 1 else []
        self.name = f"planted:{','.join(said)}"

    def check(self, rules: Rules) -> None:
        """Refuse a game with several tiles a turn or without an open hand, and one to listen in without a partner."""
        if rules.chains or rules.rows:
            games = ", ".join(name for name, one in PRESETS.items() if not one.chains and not one.rows)
            raise ValueError(f"planted plays games with one tile a turn on an open line ({games}), not {rules.name}")
        if self.listen and not rules.pairs:
            raise ValueError(f"planted: listen={self.listen:g} needs a partner, and {rules.name} is played without")

    def act(self, batch: Decisions) -> Ints:
        """(N,) int64: drawn by `probabilities`, with one number of `batch.rng` a row."""
        if batch.rng is None:
            raise ValueError("the planted player needs batch.rng")
        upto = self.probabilities(batch).cumsum(axis=1)
        # Times the last, which is 1 but for rounding: an action of probability 0 is never drawn.
        mark = batch.rng.random(len(batch)) * upto[:, -1]
        return (upto > mark[:, None]).argmax(axis=1)

    def probabilities(self, batch: Decisions) -> Floats:
        """(N, actions) float64: softmax of the worth of the legal actions, exactly 0 for the others.

        Raises:
            ValueError: a game that it does not play, or no history where it listens or makes noise.
        """
        rules = PRESETS["sport_book"] if batch.rules is None else batch.rules
        self.check(rules)
        layout = layout_of(rules)
        if batch.obs.ndim != 2 or batch.obs.shape[1] != layout.size:
            raise ValueError(f"observations of {rules.name} are (N, {layout.size}), not {batch.obs.shape}")
        worth = np.tile(_WEIGHT / self.temperature, (len(batch), 1))
        if self.strength:
            suit = asked(batch.obs, rules)
            worth += self.strength * (_long(batch.obs[:, layout.slices["hand"]], suit, rules)[:, None] == CODE)
        if self.needs_history:
            if batch.history is None:
                raise ValueError(f"{self.name} needs batch.history")
            past = batch.history[:, : int((batch.history >= 0).sum(axis=1).max(initial=0))].astype(np.int64)
            if self.listen:
                said = claims(past, rules)
                for end, part in (("end_left", slice(0, NUM_TILES)), ("end_right", slice(NUM_TILES, PASS))):
                    worth[:, part] += self.listen * np.take_along_axis(said, _OPENS[_end(batch, layout, end)], axis=1)
            if self.noise:
                worth += self.noise * _coins(past)
        worth = np.where(batch.mask != 0, worth, -np.inf)
        chance = np.exp(worth - worth.max(axis=1, keepdims=True))
        return chance / chance.cumsum(axis=1)[:, -1:]


def asked(obs: npt.NDArray[np.uint8], rules: Rules) -> Ints:
    """(N,) the suit of which a seat speaks that moves now: the number of tiles on the line, all suits in turn."""
    layout = layout_of(rules)
    laid = np.zeros(len(obs), np.int64)
    for name, part in layout.slices.items():
        if name.startswith("played_"):
            laid += obs[:, part].sum(axis=1, dtype=np.int64)
    return laid % (rules.max_pip + 1)


def _long(hand: npt.NDArray[np.uint8], suit: Ints, rules: Rules) -> Ints:
    """(N,) 1 where a hand (N, 28) holds at least as large a share of the suit (N,) as the set does; else 0."""
    members = SUIT_MASK[suit][:, None] >> np.arange(NUM_TILES).astype(np.uint32) & 1
    held, size = (hand * members).sum(axis=1, dtype=np.int64), hand.sum(axis=1, dtype=np.int64)
    return (held * (rules.max_pip + 2) >= 2 * size).astype(np.int64)


def claims(past: Ints, rules: Rules, place: int = _PARTNER) -> Ints:
    """What a seat last said of each suit.

    Args:
        past: (N, T) public events as of `Decisions.history`.
        place: how many seats clockwise it sits from who looks.
    Returns:
        (N, 8) int64: 1 long, -1 short, 0 nothing; the last suit, none, is 0. Whether the seat had another move cannot
        be seen: a forced one counts as said.
    """
    said, laid = np.zeros((len(past), NUM_SUITS + 1), np.int64), np.zeros(len(past), np.int64)
    for event in past.T:
        lays = (event >= 0) & (event & 63 != PASS)
        rows = np.flatnonzero(lays & (event >> 12 == place))
        said[rows, laid[rows] % (rules.max_pip + 1)] = 2 * CODE[event[rows] & 63] - 1
        laid += lays
    return said


def _end(batch: Decisions, layout: Any, name: str) -> Ints:
    """(N,) the suit of an end, 7 before the lead."""
    end = batch.obs[:, layout.slices[name]]
    return np.where(end.any(axis=1), end.argmax(axis=1), _NO_SUIT)


def _coins(past: Ints) -> Ints:
    """(N, 57) 0 or 1 for every action, a hash of all that was done before (N, T)."""
    state = np.zeros(len(past), np.uint64)
    for event in past.T:
        state = np.where(event >= 0, mix(state + GOLDEN * (event + 2).astype(np.uint64)), state)
    number = np.arange(1, PASS + 2).astype(np.uint64)
    return (mix(state[:, None] + GOLDEN * number) >> np.uint64(63)).astype(np.int64)


register_agent("planted", Planted)
