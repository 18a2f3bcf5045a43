"""The rules of a game as data: one frozen, validated record and the presets of the rulebooks.

Clauses: S (sport dominoes), K1 (Puerto Rico), K2 (kozyol), K4 (small sets). Any field can be overridden by keyword;
what cannot be played is refused with the choices named.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from domino_env.tiles import HIGH, NUM_TILES

_CHOICES: dict[str, tuple[str, ...]] = {
    "name": ("sport_book", "sport_club", "puerto_rico", "kozyol", "tiny_pairs"),
    "lead": ("rotation", "double_six", "winner"),
    "block_score": ("difference", "loser_total", "both_totals"),
    "equal_block": ("nothing", "credit"),
    "out_score": ("losers", "others"),
    "chain": ("one",),
    "memory": ("perfect",),
}


@dataclass(frozen=True)
class Rules:
    """What distinguishes one game on an open line from another.

    Raises ``ValueError`` on construction where the fields cannot be played together.
    """

    name: str = "sport_book"  # the preset that these are, or of which they are a variant
    seats: int = 4  # 2 or 4
    pairs: bool = True  # seats 0 and 2 against 1 and 3; False: each for itself, scored as B5
    hand_size: int = 7  # tiles a seat is dealt (S1)
    max_pip: int = 6  # double-`max_pip` set, 2..6 (K4)
    lead: str = (
        "rotation"  # S2 rotation | K1 double_six: its holder, with it | K2 winner: 1-1 first, then by the result
    )
    lone_blank: int = 0  # what a hand of 0-0 alone counts (S8)
    block_score: str = "difference"  # S7 book: difference | S7 club: loser_total | K1: both_totals
    equal_block: str = "nothing"  # S7 an equal block: 0 to 0, or both pairs are credited with the total
    out_score: str = "losers"  # S6 the losers' pips | K1: the pips of all others, the partner too
    redeal: bool = False  # S4 five doubles or six of a suit are dealt again
    chain: str = "one"  # tiles a turn; only "one" in the games of this version
    labelled_ends: bool = False  # with equal ends both the left and the right action are legal
    memory: str = "perfect"  # the blind games' switch; on an open line all is remembered
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
        if self.seats not in (2, 4):
            raise ValueError(f"seats={self.seats} cannot be played; line games have 2 or 4 seats")
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

    @property
    def tiles(self) -> list[int]:
        """Numbers of the tiles of the set, ascending."""
        return [t for t in range(NUM_TILES) if HIGH[t] <= self.max_pip]

    @property
    def num_tiles(self) -> int:
        """Tiles in the set: 28 for the double-six."""
        return (self.max_pip + 1) * (self.max_pip + 2) // 2

    @property
    def leftover(self) -> int:
        """Tiles that nobody is dealt and nobody sees."""
        return self.num_tiles - self.seats * self.hand_size

    @property
    def num_sides(self) -> int:
        """Sides that score: 2 pairs, or every seat for itself."""
        return 2 if self.pairs else self.seats

    def side_of(self, seat: int) -> int:
        """The side a seat plays for: its pair, or itself."""
        return seat % 2 if self.pairs else seat

    @property
    def max_plies(self) -> int:
        """No deal has more actions: between two lays at most seats - 1 may pass."""
        return self.seats * self.seats * self.hand_size

    def overrides(self) -> dict[str, Any]:
        """Fields that differ from the preset of this name."""
        base = PRESETS[self.name]
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != getattr(base, f.name)}


PRESETS: Mapping[str, Rules] = {
    rules.name: rules
    for rules in (
        Rules(name="sport_book", lone_blank=10, redeal=True),
        Rules(name="sport_club", block_score="loser_total", equal_block="credit", redeal=True),
        Rules(name="puerto_rico", out_score="others", block_score="both_totals"),
        Rules(name="kozyol", lead="winner", block_score="loser_total", lone_blank=25, match_to=101),
        Rules(name="tiny_pairs", hand_size=2, max_pip=3),
    )
}


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
    return replace(rules, **overrides) if overrides else rules
