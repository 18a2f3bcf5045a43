"""Sheets: which figure stands in which column, of findings that are made up."""

import math
from typing import Any

import numpy as np
import pytest

from agents import make_agent
from domino_env import get_rules
from experiments.signaling import sheets
from experiments.signaling.conventions import ANY, MEANINGS, Cell, Conventions, Row
from experiments.signaling.decoding import decode
from experiments.signaling.ends import FreeChannel
from experiments.signaling.information import measure
from experiments.signaling.listening import listening, twins
from experiments.signaling.maxims import maxims
from experiments.signaling.moves import MOVES
from experiments.signaling.page import NONE, Sheet
from experiments.signaling.record import play as record_of
from experiments.signaling.statistics import NOTHING, Estimate
from experiments.signaling.worth import Worth, Worths


def of(mean: float) -> Estimate:
    return Estimate(mean, mean - 0.1, mean + 0.1, 0.05, 50, 50)


def columns(sheet: Sheet) -> list[dict[str, str]]:
    """The rows by their heads; every row is as long as the head."""
    return [dict(zip(sheet.head, row, strict=True)) for row in sheet.rows]


def test_a_share_without_an_interval_is_its_mean() -> None:
    assert sheets.percent(of(0.25)) == "25.0% [15.0%, 35.0%]" and sheets.percent(NOTHING) == NONE
    assert sheets.percent(Estimate(0.25, math.nan, math.nan, math.nan, 1, 4)) == "25.0%"


def test_conventions() -> None:
    lifts = [(1.2, 0.01, 1.2), (0.8, 0.01, 1.2), (1.5, 0.06, 1.5), (math.nan, math.nan, 1.0)]
    cells = [
        Cell("", NOTHING if math.isnan(lift) else of(lift), NOTHING, NOTHING, of(innocent), NOTHING, NOTHING, p)
        for lift, p, innocent in lifts
    ]
    cells += [Cell("", *[NOTHING] * 6)] * (len(MEANINGS) - len(cells))
    figures = ("share", "frequency", "told", "excess", "convention", "partner", "opponents", "rise", "price", "value")
    row: dict[str, Any] = {name: of(number / 8) for number, name in enumerate(figures)} | {"cells": tuple(cells)}
    rows = [
        Row(kind="squares", text="makes both ends the same suit", public=True, count=1234, reply=reply, p=p, **row)
        for reply, p in (("repeats_partner", 0.01), ("", 0.06))
    ]
    game = get_rules()
    found = Conventions(game, ("a", "a", "a", "a"), "b", decisions=9, left_out=0, deals=9, least=9, table=tuple(rows))
    first, second = columns(sheets.of_conventions(found)[0])
    assert first == {
        "kind of move": "makes both ends the same suit", "made": "1,234", "where it could be": "12%",
        "I": "+0.250 ±0.100", "ΔI": "+0.375 ±0.100", "G": "+0.500 ±0.100", "partner listens": "+0.625 ±0.100",
        "opponents listen": "+0.750 ±0.100", "the partner's reply": f"{MOVES['repeats_partner'].text} (+87.5%)",
        "price": "+1.000 ±0.100", "points": "+1.125 ±0.100*", "verdict": "signal",
    }  # fmt: skip
    assert (second["the partner's reply"], second["points"], second["verdict"]) == (NONE, "+1.125 ±0.100", "noise")
    brief = sheets.of_conventions(found, brief=True)[0]
    assert columns(brief)[0]["G"] == "+0.500" and columns(brief)[0]["points"] == "+1.125*"
    assert "--json" in brief.notes[-1] and "domino signal report" in brief.notes[-1]
    assert list(sheets.of_conventions(found)[1].rows[0][1:5]) == ["×1.20* natural", "×0.80*", "×1.50", NONE]


def test_worth() -> None:
    kinds = (Worth(ANY, of(0.5), 900, 300, 75), Worth("squares", NOTHING, 900, 0, 0))
    found = Worths("a", "b", ("greedy", "club"), "sport_book", 0, 50, 200, kinds)  # 2 * 50 deals against either
    assert [tuple(row) for row in sheets.of_worth(found)[0].rows] == [
        ("any move", "+0.500 [0.400, 0.600]", "1.50", "25%"),
        ("makes both ends the same suit", NONE, "0.00", NONE),
    ]


def test_listening_says_what_its_parts_are_not() -> None:
    play = make_agent("planted:strength=4,listen=3")
    record = record_of(play, "tiny_pairs", 5)
    whom = twins(play.name)
    found = {who: listening(record, play, make_agent(name), places=(2,)) for who, name in whom.items()}
    changed, parts = sheets.of_listening(found)
    assert changed.notes == ["it does not read the opponents: without hearing them it is itself, so 0 is what it is"]
    assert "not the sum of the other two" in parts.notes[0] and "charged with all that others told" in parts.notes[1]


def test_void_is_said_once() -> None:
    """It is the complement of holds."""
    moments = record_of("random", "tiny_pairs", 10).moments
    found = decode(moments, ["random"] * 4, "uniform", targets=("holds", "void"))
    loss = [one.calibration["true"].loss for one in found.targets.values()]
    assert loss[0] == pytest.approx(loss[1]) and list(found.to_dict()["targets"]) == ["holds", "void"]
    sheet = sheets.of_decoding(found)[0]
    assert [row[0] for row in sheet.rows] == ["holds"] and any("complement of holds" in note for note in sheet.notes)
    alone = sheets.of_decoding(decode(moments, ["random"] * 4, "uniform", targets=("void",)))[0]
    assert [row[0] for row in alone.rows] == ["void"] and not any("complement" in note for note in alone.notes)


def test_what_is_left_out_of_what_a_move_tells() -> None:
    moments = record_of("random", "tiny_pairs", 10).moments
    info = measure(moments, ["random"] * 4, "uniform")
    assert info.least_ess is None and not any(info.left_out.values()) and not sheets.of_information(info)[0].notes
    info.ess[:] = 900.0
    info.ess[:2] = 40.0, 300.0, 40.0
    info.told[info.ess < 200] = np.nan
    assert info.least_ess == 300 and info.left_out == {"partner": 2, "left": 0, "right": 2}
    words = "2 decisions for the partner, 2 decisions for the right opponent"
    assert sheets.left_out(info.left_out) == words and words in sheets.of_information(info)[0].notes[0]


def test_maxims() -> None:
    """Sides in the order of the figures, and how much is lacking where nothing is known."""
    record = record_of("club", "sport_book", 30)
    found = maxims(boards=2, record=record, taught=("cover_lead", "mixed_lead"), weights=(), least=23)
    worths, told = sheets.of_maxims(found)
    assert worths.title == "points a deal, 2 boards, club that … against club as it is"
    covers, mixed = found.answers
    assert covers.count >= 23 > max(covers.free, mixed.count)
    rows = columns(told)
    assert rows[0]["follows it"].endswith("]") and rows[1]["follows it"] == f"unknown, {mixed.count} of 23 decisions"
    assert rows[0]["and where it may be broken"].endswith(f"unknown, {covers.free} of 23 decisions")
    assert rows[1]["than uniform"] == NONE and "it takes 23 such decisions" in told.notes[0]


def test_channel() -> None:
    def channel(player: str, bits: float) -> FreeChannel:
        figures = [of(bits + number) for number in range(4)]
        meanings = {"double": of(bits + 4), "long": of(bits + 5)}
        return FreeChannel(get_rules("tiny_pairs"), (player,) * 4, 30, 20, 10, 0, *figures, meanings)

    sheet = sheets.of_channel(channel("own", 0), channel("control", 10))[0]
    assert list(sheet.head) == ["", "own", "control"] and "10 decisions with both ends alike, 30 deals" in sheet.title
    assert [row[1:] for row in sheet.rows] == [(str(of(n)), str(of(10 + n))) for n in range(6)]
    assert list(sheets.of_channel(channel("own", 0))[0].head) == ["", "own"]
