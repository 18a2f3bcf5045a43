"""One page that needs nothing but itself: tables, pictures as inline SVG or PNG, no scripts, nothing fetched."""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

NONE = "–"  # where there is no figure

_STYLE = """
:root { color-scheme: light; }
body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222; background: #fff;
  font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2.5rem 0 .3rem; padding-top: .6rem; border-top: 1px solid #ccc; }
nav { font-size: .9rem; } nav a { margin-right: .9rem; white-space: nowrap; }
a { color: #1f4e8c; }
p { margin: .4rem 0; max-width: 52rem; } p.missing { color: #7a3b00; } ul.notes { color: #444; font-size: .9rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .8rem 0; font-size: .85rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .2rem; }
th { text-align: left; vertical-align: bottom; } td { vertical-align: top; }
th, td { padding: .2rem .7rem .2rem 0; border-bottom: 1px solid #e3e3e3; }
td.figure { text-align: right; white-space: nowrap; }
figure { margin: 1rem 0; } figcaption { font-size: .85rem; color: #444; max-width: 52rem; }
svg, img { max-width: 100%; height: auto; }
@media print { h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""
_FIGURE = re.compile(r"[×+\-−]?[\d,]+(\.\d+)?(e[+\-]\d+)?( ?%)?( \[.*\]| ±[\d.]+)?\*?( natural)?$")


@dataclass(frozen=True)
class Sheet:
    """A table in words."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()

    def html(self) -> str:
        """As HTML; what reads as a figure stands to the right."""
        head = "".join(f"<th>{_text(one)}</th>" for one in self.head)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>\n" for row in self.rows)
        caption = f"<caption>{_text(self.title)}</caption>" if self.title else ""
        table = f"<div class=wide><table>{caption}<thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table></div>\n"
        return table + _notes(self.notes)


@dataclass(frozen=True)
class Picture:
    """A drawing and what it shows, for who cannot see it."""

    words: str
    content: bytes  # PNG, or SVG as matplotlib writes it

    def html(self, number: int) -> str:
        """As HTML; names inside an SVG get the number, so that several stand on one page."""
        words = html.escape(self.words, quote=True)
        if self.content.startswith(b"\x89PNG"):
            inner = f'<img alt="{words}" src="data:image/png;base64,{base64.b64encode(self.content).decode()}">'
        else:
            inner = _inline(self.content.decode(), f"p{number}-", words)
        return f"<figure>{inner}<figcaption>{_text(self.words)}</figcaption></figure>\n"


@dataclass(frozen=True)
class Part:
    """A part of a report: what there is to say, or why there is nothing."""

    name: str  # a word, its key
    title: str
    about: str  # what it is, in a sentence or two
    data: dict[str, Any] = field(default_factory=dict)  # for JSON
    sheets: Sequence[Sheet] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    missing: str = ""  # one line: why it cannot be had

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        if self.missing:
            return {"title": self.title, "missing": self.missing}
        return {"title": self.title, **self.data, "notes": list(self.notes)}


def page(title: str, lead: Sequence[str], parts: Sequence[Part]) -> str:
    """The page.

    Args:
        title: of it; lead: what stands below, a paragraph each.
    """
    links = "".join(f'<a href="#{part.name}">{n}. {_text(part.title)}</a>' for n, part in enumerate(parts, 1))
    out = [
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<style>{_STYLE}</style></head><body>\n'
        f"<h1>{_text(title)}</h1>\n",
        *(f"<p>{_text(one)}</p>\n" for one in lead),
        f"<nav>{links}</nav>\n",
    ]
    drawn = 0
    for number, part in enumerate(parts, 1):
        out.append(f'<section id="{part.name}"><h2>{number}. {_text(part.title)}</h2>\n<p>{_text(part.about)}</p>\n')
        if part.missing:
            out.append(f"<p class=missing>Not here: {_text(part.missing)}</p>\n")
        out += [sheet.html() for sheet in part.sheets]
        for one in part.pictures:
            drawn += 1
            out.append(one.html(drawn))
        out.append(_notes(part.notes) + "</section>\n")
    return "".join(out) + "</body></html>\n"


def _text(words: str) -> str:
    return html.escape(words, quote=False)


def _cell(words: str) -> str:
    kind = " class=figure" if words == NONE or _FIGURE.match(words) else ""
    return f"<td{kind}>{_text(words)}</td>"


def _notes(notes: Iterable[str]) -> str:
    listed = "".join(f"<li>{_text(note)}</li>" for note in notes)
    return f"<ul class=notes>{listed}</ul>\n" if listed else ""


def _inline(svg: str, prefix: str, words: str) -> str:
    """An SVG for the inside of a page: without its head and the addresses in it, with names of its own."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    return svg.strip().replace("<svg", f'<svg role="img" aria-label="{words}"', 1)


# -- pictures ---------------------------------------------------------------------------------------------------------


def drawn(words: str, size: tuple[float, float], draw: Callable[[Any], None]) -> Picture:
    """A picture as SVG, the same bytes each time.

    Args:
        words: what it shows; size: inches; draw: called with a figure of matplotlib.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure)
    out = io.BytesIO()
    with rc_context({"svg.hashsalt": "signals"}):  # names hang on what is drawn alone
        figure.savefig(out, format="svg", metadata={"Date": None})
    return Picture(words, out.getvalue())


def raster(words: str, figure: Any, dpi: int = 80) -> Picture:
    """A figure as PNG: for one that is full of pictures already."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=dpi, metadata={"Software": None})
    return Picture(words, out.getvalue())
