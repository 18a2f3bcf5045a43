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

    @property
    def nbytes(self) -> int:
        """Bytes of the packed form."""
        return self.size // 8

    def table(self) -> str:
        """The layout as a Markdown table, generated from the slices."""
        lines = ["| slice | bits | meaning |", "|---|---|---|"]
        for name, part in self.slices.items():
            lines.append(f"| `{name}` | {part.start}..{part.stop - 1} | {self.meanings[name]} |")
        return "\n".join(lines)


def layout_of(rules: Rules) -> Layout:
    """The observation layout of a game; 256 bits (32 bytes) at four seats, 192 at two."""
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
    return Layout(slices, meanings, len(words) * _WORD)


def unpack(packed: np.ndarray) -> np.ndarray:
    """Bits of packed observations: (..., nbytes) uint8 -> (..., size) uint8 of 0 and 1."""
    flat = np.unpackbits(packed.reshape(-1), bitorder="little")  # a third faster than row by row
    return flat.reshape(*packed.shape[:-1], 8 * packed.shape[-1])
