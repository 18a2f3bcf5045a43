"""What one seat sees, as named slices of one vector of bits, and its packed form.

The vector is seat-relative: "left" is the next seat clockwise. It holds nothing that the seat cannot see, so it is
byte-equal under any re-arrangement of the hidden hands.
"""

from dataclasses import dataclass

import numpy as np

from domino_env.rules import Rules

SCORE_STEPS = (1, 5, 10, 20, 35, 50, 75, 100, 150)  # points ahead or behind at which a bit of the score is set
_SEATS = {
    "me": "the seat itself",
    "left": "the left neighbour",
    "partner": "the partner",
    "across": "the seat across",
    "right": "the right neighbour",
}
_WORD = 32


@dataclass(frozen=True)
class Layout:
    """Where each part of an observation lies.

    Packed, bit b of the vector is bit ``b % 8`` of byte ``b // 8`` (``np.unpackbits(..., bitorder="little")``).
    """

    slices: dict[str, slice]
    meanings: dict[str, str]
    size: int  # bits; bits outside every slice are always 0
    labelled: bool = False  # the ends are told apart: the mirror of a line is another position

    @property
    def nbytes(self) -> int:
        """Bytes of the packed form."""
        return self.size // 8

    def table(self) -> str:
        """The layout as a Markdown table, generated from the slices."""
        lines = ["| slice | bits | meaning |", "|---|---|---|"]
        for name, part in self.slices.items():
            bits = f"{part.start}..{part.stop - 1}" if part.stop > part.start else "none"
            lines.append(f"| `{name}` | {bits} | {self.meanings[name]} |")
        return "\n".join(lines)


def layout_of(rules: Rules) -> Layout:
    """The observation layout of a game: 256 bits (32 bytes) at four seats, 192 at two; blitz and blind have more."""
    if rules.rows:
        return _row_layout(rules)
    if rules.chains:
        return _chain_layout(rules)
    names = ("me", "left", "partner" if rules.pairs else "across", "right")[: rules.seats]
    steps = ", ".join(map(str, SCORE_STEPS))
    words: list[list[tuple[str, int, str]]] = [
        [
            ("hand", 28, "tile t is in the own hand"),
            ("leader", rules.seats, "who led this deal: the seat itself, then clockwise"),
        ]
    ]
    for i, who in enumerate(names):
        words.append([(f"played_{who}", 28, f"tile t was laid by {_SEATS[who]}")])
        if i == 0:
            words[-1].append(("deal", 4, "deal of the four, where the episode is a match; else 0"))
    words.append(
        [
            ("end_left", 7, "suit of the left end; all 0 before the first tile"),
            ("end_right", 7, "suit of the right end"),
            ("score_ahead", 9, f"ahead in the match by at least {steps}; 0 in single deals"),
            ("score_behind", 9, "the same, behind"),
        ]
    )
    words.append([(f"passed_{who}", 7, f"suit k was an end when {_SEATS[who]} passed") for who in names])
    words.append([(f"size_{who}", rules.hand_size, f"{_SEATS[who]} holds at least 1, 2, … tiles") for who in names])
    step = 8 if rules.hand_size <= 8 else 16  # the last two words have a byte, or two, for each seat
    slices, meanings = {}, {}
    for w, word in enumerate(words):
        start = w * _WORD
        for name, bits, meaning in word:
            slices[name] = slice(start, start + bits)
            meanings[name] = meaning
            start += 8 if name.startswith("passed") else step if name.startswith("size") else bits
    return Layout(slices, meanings, len(words) * _WORD, rules.labelled_ends)


def _chain_layout(rules: Rules) -> Layout:
    """The layout of blitz: words of 32 bits, then a byte for each seat's passes and one for its tiles."""
    seats = rules.seats
    others = ["left", "partner" if rules.pairs else "across"] if seats == 4 else ["left"]
    others += [f"left_{i}" for i in range(2, seats - 1)] if seats > 4 else []
    names = {"me": _SEATS["me"], **{name: _SEATS.get(name, f"neighbour {name[-1]} clockwise") for name in others}}
    names["right"] = _SEATS["right"]
    steps = ", ".join(map(str, SCORE_STEPS))
    words: list[list[tuple[str, int, int, str]]] = [[("hand", 0, 28, "tile t is in the own hand")]]
    for i, (name, who) in enumerate(names.items()):
        words.append([(f"played_{name}", 0, 28, f"tile t was laid by {who}")])
        if i == 0:
            words[-1].append(("deal", 28, 4, "deal of the four, where the episode is a match; else 0"))
    words.append(
        [
            ("end_left", 0, 7, "suit of the left end; all 0 before the first tile"),
            ("end_right", 7, 7, "suit of the right end"),
            ("score_ahead", 14, 9, f"ahead in the match by at least {steps}; 0 in single deals"),
            ("score_behind", 23, 9, "the same, behind"),
        ]
    )
    words.append(
        [
            ("leader", 0, seats, "who led this deal: the seat itself, then clockwise"),
            ("mover", 8, seats, "who is to move: the seat itself, then clockwise"),
            ("laid", 16, 1, "the mover has laid a tile in this turn, so it may stop"),
            ("grown", 17, 2, 'with `chain="one"`: the end that this turn grows, left or right'),
        ]
    )
    slices = {
        name: slice(w * _WORD + at, w * _WORD + at + bits) for w, word in enumerate(words) for name, at, bits, _ in word
    }
    meanings = {name: meaning for word in words for name, _, _, meaning in word}
    start, block = len(words) * _WORD, -(-seats // 4) * _WORD
    for i, (name, who) in enumerate(names.items()):
        slices[f"passed_{name}"] = slice(start + 8 * i, start + 8 * i + 7)
        meanings[f"passed_{name}"] = f"suit k was an end when {who} passed"
    for i, (name, who) in enumerate(names.items()):
        slices[f"size_{name}"] = slice(start + block + 8 * i, start + block + 8 * i + rules.hand_size)
        meanings[f"size_{name}"] = f"{who} holds at least 1, 2, … tiles"
    return Layout(slices, meanings, start + 2 * block, rules.labelled_ends)


def _row_layout(rules: Rules) -> Layout:
    """The layout of a blind game: words of 32 bits, then 16 bits for each place of each row."""
    names = [name for name in ("me", "left", "across", "right") if name != "across" or rules.seats == 4][: rules.seats]
    seats, places = rules.seats, rules.hand_size + rules.leftover
    steps = ", ".join(map(str, SCORE_STEPS))
    words: list[list[tuple[str, int, str]]] = [
        [
            ("turned", 28, "tile t lies turned and must be laid now"),
            ("leader", seats, "who led this deal: the seat itself, then clockwise"),
        ],
        [("played", 28, "tile t was laid"), ("mover", seats, "who is to move: the seat itself, then clockwise")],
        [
            ("end_left", 7, "suit of the left end; all 0 before the first tile"),
            ("end_right", 7, "suit of the right end"),
            ("score_ahead", 9, f"ahead in the match by at least {steps}; 0 in single deals"),
            ("score_behind", 9, "the same, behind"),
        ],
        [
            ("stock", rules.leftover, "the stock holds at least 1, 2, … tiles"),
            ("idle", seats, "at least 1, 2, … turns have passed since a tile was laid or drawn (R8)"),
        ],
    ]
    for i, who in enumerate(names):
        words.append([(f"shown_{who}", 28, f"tile t lies open with {_SEATS[who]} (R7)")])
        if i == 0:
            words[-1].append(("deal", 4, "deal of the four, where the episode is a match; else 0"))
    slices, meanings = {}, {}
    for w, word in enumerate(words):
        start = w * _WORD
        for name, bits, meaning in word:
            start = w * _WORD + 28 if name in ("leader", "mover", "idle", "deal") else start
            slices[name] = slice(start, start + bits)
            meanings[name] = meaning
            start += bits
    start = len(words) * _WORD
    for who in names:
        slices[f"row_{who}"] = slice(start, start + 16 * places)
        meanings[f"row_{who}"] = (
            f"16 bits for each tile that lies face down with {_SEATS[who]}, the next to be turned first: its smaller "
            "half's suit (7) and its larger half's (7) if the viewer knows it, a tile lies here, everyone knows it"
        )
        start += 16 * places
    return Layout(slices, meanings, -(-start // _WORD) * _WORD, rules.labelled_ends)


def score_bits(score: np.ndarray, side: np.ndarray) -> np.ndarray:
    """The slices `score_ahead` and `score_behind` of a side, against the best of the others.

    Args:
        score: (n, sides) points; side: (n,).
    Returns:
        (n,) uint32, the first step ahead is bit 0.
    """
    each = np.arange(len(side))
    others = score.copy()
    others[each, side] = np.iinfo(np.int64).min
    ahead = score[each, side] - others.max(axis=1)
    bits = np.zeros(len(side), np.uint32)
    for i, step in enumerate(SCORE_STEPS):
        bits |= (ahead >= step).astype(np.uint32) << np.uint32(i)
        bits |= (-ahead >= step).astype(np.uint32) << np.uint32(len(SCORE_STEPS) + i)
    return bits


def unpack(packed: np.ndarray) -> np.ndarray:
    """Bits of packed observations: (..., nbytes) uint8 -> (..., size) uint8 of 0 and 1."""
    flat = np.unpackbits(packed.reshape(-1), bitorder="little")  # a third faster than row by row
    return flat.reshape(*packed.shape[:-1], 8 * packed.shape[-1])
