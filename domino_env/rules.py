"""The rules of a game as data: one frozen, validated record and the presets of the rulebooks.

Clauses: S (sport dominoes), K1 (Puerto Rico), K2 (kozyol), K4 (small sets), B (blitz), R (blind games). Any field
can be overridden by keyword; what cannot be played is refused with the choices named.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any

from domino_env.tiles import (
    HIGH,
    NUM_ACTIONS,
    NUM_ROW_ACTIONS,
    NUM_TILES,
    action_index,
    action_name,
    row_action_index,
    row_action_name,
)

_CHOICES: dict[str, tuple[str, ...]] = {
    "name": ("sport_book", "sport_club", "puerto_rico", "kozyol", "tiny_pairs", "blitz", "blind_blitz", "blind"),
    "lead": ("rotation", "double_six", "winner", "blank", "low", "high", "lot"),
    "block_score": ("difference", "loser_total", "both_totals"),
    "equal_block": ("nothing", "credit"),
    "out_score": ("losers", "others"),
    "chain": ("none", "both", "one"),
    "memory": ("perfect", "peek"),
}
_ROW_GAMES = ("blind_blitz", "blind")
_LEADS = {  # the leads of each kind of game
    "line": ("rotation", "double_six", "winner"),
    "blitz": ("low",),  # B2
    "blind": ("blank", "low", "high", "lot"),  # R3
}
_SEATS = {"line": (2, 4), "blitz": (4, 5, 6, 7, 8), "blind": (2, 3, 4)}
_HANDS = {  # seats -> tiles a seat is dealt
    "line": {},  # of any seats what hand_size says
    "blitz": {4: 7, 5: 5, 6: 4, 7: 4, 8: 3},  # B1
    "blind": {2: 8, 3: 8, 4: 7},  # R1
}

GUARD_TURNS = 400  # R8: a blind deal of so many turns is broken off


@dataclass(frozen=True)
class Rules:
    """What distinguishes one game from another.

    Raises ``ValueError`` on construction where the fields cannot be played together.
    """

    name: str = "sport_book"  # the preset that these are, or of which they are a variant
    seats: int = 4  # 2 or 4; 4 to 8 in blitz, 2 to 4 in the blind games
    pairs: bool = True  # seats 0 and 2 against 1 and 3; False: each for itself, scored as B5
    hand_size: int = 7  # tiles a seat is dealt (S1)
    max_pip: int = 6  # double-`max_pip` set, 2..6 (K4)
    # S2 rotation | K1 double_six: its holder, with it | K2 winner: 1-1 first, then by the result | B2, R3 blank, low,
    # high: the holder of 0-0 (else of the lowest tile), of the lowest, of the highest, with it | R3 lot: a lot decides
    lead: str = "rotation"
    lone_blank: int = 0  # what a hand of 0-0 alone counts (S8)
    block_score: str = "difference"  # S7 book: difference | S7 club: loser_total | K1: both_totals
    equal_block: str = "nothing"  # S7 an equal block: 0 to 0, or both pairs are credited with the total
    out_score: str = "losers"  # S6 the losers' pips | K1: the pips of all others, the partner too
    redeal: bool = False  # S4 five doubles or six of a suit are dealt again
    # Tiles a turn: none: one tile and no more | B3 both: as many as one likes | one: the same, after the first only on
    # the end that the turn grew. Blitz has both or one, all others none
    chain: str = "none"
    labelled_ends: bool = False  # with equal ends both the left and the right action are legal
    memory: str = "perfect"  # R9 the own row in every observation | peek: in the first alone; an open line has perfect
    match_to: int | None = None  # K2 a match is won at this score; None: a match is a number of fours (S10)

    def __post_init__(self) -> None:
        for field, choices in _CHOICES.items():
            if getattr(self, field) not in choices:
                raise ValueError(f"{field}={getattr(self, field)!r} is unknown; choose from {', '.join(choices)}")
        for field in ("seats", "hand_size", "max_pip", "lone_blank"):
            value = getattr(self, field)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ValueError(f"{field}={value!r} must be a whole number")
        for field in ("pairs", "redeal", "labelled_ends"):
            if not isinstance(getattr(self, field), bool):
                raise ValueError(f"{field}={getattr(self, field)!r} must be True or False")
        if self.match_to is not None and (
            isinstance(self.match_to, bool) or not isinstance(self.match_to, int) or self.match_to < 1
        ):
            raise ValueError(f"match_to={self.match_to!r} must be a positive whole number or None")
        self._check_kind()
        if self.pairs and self.seats != 4:
            raise ValueError(f"pairs=True needs 4 seats, not seats={self.seats}; set pairs=False")
        if not 2 <= self.max_pip <= 6:
            raise ValueError(f"max_pip={self.max_pip} is not a set; sets are double-2 to double-6")
        if not 0 <= self.lone_blank <= 1000:
            raise ValueError(f"lone_blank={self.lone_blank} must be in 0..1000")
        if self.hand_size < 1 or self.leftover < 0:
            raise ValueError(
                f"{self.seats} seats of hand_size={self.hand_size} do not fit the {self.num_tiles} tiles of a "
                f"double-{self.max_pip} set; hand_size may be 1..{self.num_tiles // self.seats}"
            )
        if self.lead == "double_six" and (self.max_pip < 6 or self.leftover):
            raise ValueError("lead='double_six' needs a double-six set dealt out whole, so that someone holds 6-6")
        if self.lead == "winner" and self.leftover:
            raise ValueError("lead='winner' needs a set dealt out whole, so that someone holds 1-1")
        if self.redeal and self.hand_size > 7:
            raise ValueError(f"redeal=True is for hands of 7 tiles or fewer, not hand_size={self.hand_size}")

    def _check_kind(self) -> None:
        """What the game's kind allows: seats, leads, and the fields that only other games have."""
        kind, seats = self.kind, _SEATS[self.kind]
        games = {"line": "line games", "blitz": "games of blitz", "blind": "blind games"}[kind]
        if self.seats not in seats:
            numbers = "2 or 4" if kind == "line" else f"{seats[0]} to {seats[-1]}"
            raise ValueError(f"seats={self.seats} cannot be played; {games} have {numbers} seats")
        if self.lead not in _LEADS[kind]:
            raise ValueError(f"lead={self.lead!r} is of other games; {games} choose from {', '.join(_LEADS[kind])}")
        only: dict[str, tuple[Any, ...]] = {"chain": ("both", "one") if kind == "blitz" else ("none",)}
        if kind != "blind":
            only |= {"memory": ("perfect",)}
        if kind == "blind":
            only |= {"pairs": (False,)}
        if kind != "line":
            only |= {"redeal": (False,), "lone_blank": (0,), "match_to": (None,)}
        for field, values in only.items():
            value = getattr(self, field)
            if value not in values:
                allowed = " or ".join(f"{field}={one!r}" for one in values)
                raise ValueError(f"{field}={value!r} cannot be played in {self.name}; {games} have {allowed}")

    @property
    def kind(self) -> str:
        """The kind of game: "line" (one tile a turn on an open line), "blitz" or "blind"."""
        return "blind" if self.rows else "blitz" if self.name == "blitz" else "line"

    @property
    def chains(self) -> bool:
        """Whether a seat may lay several tiles in a turn (B3)."""
        return self.chain != "none"

    @property
    def rows(self) -> bool:
        """Whether this is a blind game: tiles lie face down in rows, the rest is a stock (R1, R2)."""
        return self.name in _ROW_GAMES

    @property
    def looked(self) -> bool:
        """Whether the owner has seen its tiles when play begins (R2)."""
        return self.name != "blind"

    @cached_property
    def tiles(self) -> tuple[int, ...]:
        """Numbers of the tiles of the set, ascending."""
        return tuple(t for t in range(NUM_TILES) if HIGH[t] <= self.max_pip)

    @property
    def num_tiles(self) -> int:
        """Tiles in the set: 28 for the double-six."""
        return (self.max_pip + 1) * (self.max_pip + 2) // 2

    @property
    def leftover(self) -> int:
        """Tiles that nobody is dealt and nobody sees; in the blind games they are the stock (R1)."""
        return self.num_tiles - self.seats * self.hand_size

    @property
    def num_sides(self) -> int:
        """Sides that score: 2 pairs, or every seat for itself."""
        return 2 if self.pairs else self.seats

    def side_of(self, seat: int) -> int:
        """The side a seat plays for: its pair, or itself."""
        return seat % 2 if self.pairs else seat

    @property
    def num_actions(self) -> int:
        """Actions there are: 57, in the blind games 59."""
        return NUM_ROW_ACTIONS if self.rows else NUM_ACTIONS

    def action_name(self, action: int) -> str:
        """Text of an action of this game: "3-4L", "3-4R", "pass", and in the blind games "turn" and "draw"."""
        return row_action_name(action) if self.rows else action_name(action)

    def action_index(self, text: str) -> int:
        """Id of an action written as by :meth:`action_name`."""
        return row_action_index(text) if self.rows else action_index(text)

    @property
    def max_plies(self) -> int:
        """No deal has more actions.

        On a line at most seats - 1 pass between two lays; in blitz, after it, the seat that laid may also stop. In the
        blind games a turn has two actions (the last tile is turned; decline or draw) and two more for each tile that is
        laid.
        """
        if self.rows:
            return 2 * (GUARD_TURNS + self.num_tiles)
        return (self.seats + self.chains) * self.seats * self.hand_size

    def overrides(self) -> dict[str, Any]:
        """Fields that differ from the preset of this name."""
        base = PRESETS[self.name]
        changed = {f.name: getattr(self, f.name) for f in fields(self)}
        usual = _HANDS[self.kind].get(self.seats, base.hand_size)
        return {
            name: value
            for name, value in changed.items()
            # The hand follows the seats where nothing else is said.
            if value != (usual if name == "hand_size" else getattr(base, name))
        }

    @property
    def title(self) -> str:
        """The preset's name and what differs from it, as texts have it: "sport_book lone_blank=3"."""
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.overrides().items())])


PRESETS: Mapping[str, Rules] = {
    rules.name: rules
    for rules in (
        Rules(name="sport_book", lone_blank=10, redeal=True),
        Rules(name="sport_club", block_score="loser_total", equal_block="credit", redeal=True),
        Rules(name="puerto_rico", out_score="others", block_score="both_totals"),
        Rules(name="kozyol", lead="winner", block_score="loser_total", lone_blank=25, match_to=101),
        Rules(name="tiny_pairs", hand_size=2, max_pip=3),
        Rules(name="blitz", pairs=False, lead="low", chain="both"),
        Rules(name="blind_blitz", pairs=False, lead="blank"),
        Rules(name="blind", pairs=False, lead="lot"),
    )
}


def describe_rules(rules: Rules) -> dict[str, Any]:
    """A game as plain data, to be kept beside what was made of it: preset, what differs from it, and every field."""
    return {"name": rules.name, "overrides": rules.overrides(), "fields": asdict(rules)}


def get_rules(rules: str | Rules = "sport_book", /, **overrides: Any) -> Rules:
    """A preset by its name, or a ``Rules`` as given, with fields overridden.

    Raises:
        ValueError: unknown preset, unknown field, or a combination that cannot be played.
    """
    if isinstance(rules, str):
        if rules not in PRESETS:
            raise ValueError(f"unknown rules {rules!r}; choose from {', '.join(PRESETS)}")
        rules = PRESETS[rules]
    elif not isinstance(rules, Rules):
        raise ValueError(f"rules must be the name of a preset or a Rules, not {rules!r}")
    known = {f.name for f in fields(Rules)} - {"name"}
    for key in overrides:
        if key not in known:
            raise ValueError(f"rules have no field {key!r}; fields are {', '.join(sorted(known))}")
    if "seats" in overrides and "hand_size" not in overrides:
        usual = [size for seats, size in _HANDS[rules.kind].items() if seats == overrides["seats"]]
        overrides["hand_size"] = usual[0] if usual else rules.hand_size  # B1, R1
    return replace(rules, **overrides) if overrides else rules
