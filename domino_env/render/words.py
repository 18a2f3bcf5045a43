"""The words around the table, in the languages a person may ask for."""

from domino_env.render.line import Snapshot

_ENGLISH = {
    "deal": "deal {}",
    "score": "score",
    "pair": "seats {}",
    "leads": "leads",
    "pass": "pass",
    "no": "no {}",
    "turn": "to move",
    "moves": "last moves",
    "out": "{} is out",
    "block": "blocked by {}",
    "guard": "stopped",
    "pair_wins": "{} win",
    "seat_wins": "{} wins",
    "nobody": "nobody wins",
    "points": "points {}",
    "left": "pips left {}",
}
_RUSSIAN = {
    "deal": "раздача {}",
    "score": "счёт",
    "pair": "места {}",
    "leads": "заход",
    "pass": "пас",
    "no": "нет {}",
    "turn": "ходит",
    "moves": "ходы",
    "out": "{} выходит",
    "block": "{} закрывает: бой",
    "guard": "остановлено",
    "pair_wins": "{}: выигрыш",
    "seat_wins": "{}: выигрыш",
    "nobody": "ничья",
    "points": "очки {}",
    "left": "осталось {}",
}
_LANGUAGES = {"en": _ENGLISH, "ru": _RUSSIAN}

Words = dict[str, str]


def words_of(lang: str) -> Words:
    """The phrases of a language, some with one gap; ValueError where it is not spoken here."""
    if lang not in _LANGUAGES:
        raise ValueError(f"lang must be one of {', '.join(_LANGUAGES)}, got {lang!r}")
    return _LANGUAGES[lang]


def side_names(snapshot: Snapshot, words: Words = _ENGLISH) -> list[str]:
    """Names of those who score: "seats 0+2" and "seats 1+3" in pairs, else every seat."""
    seats = range(snapshot["seats"])
    if snapshot["pairs"]:
        return [words["pair"].format("+".join(str(seat) for seat in seats[side::2])) for side in (0, 1)]
    return [f"seat_{seat}" for seat in seats]


def result_of(snapshot: Snapshot, words: Words = _ENGLISH) -> list[str]:
    """Four short lines on how the deal ended, who won, the points and the pips left; none while it goes on."""
    deal = snapshot["deal"]
    if not snapshot["over"] or deal is None:
        return []
    winner = words["nobody"]
    if deal["winner"] is not None:
        wins = words["pair_wins" if snapshot["pairs"] else "seat_wins"]
        winner = wins.format(side_names(snapshot, words)[deal["winner"]])
    return [
        words[deal["outcome"]].format(f"seat_{deal['by']}"),
        winner,
        words["points"].format(" : ".join(str(points) for points in deal["points"])),
        words["left"].format(" ".join(str(pips) for pips in deal["pips_left"])),
    ]
