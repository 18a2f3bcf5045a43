"""Pictures of a table: as text, as SVG, as pixels. They know a plain snapshot (`engine.snapshot(i)`), never an engine.

`text(snapshot)` is what render mode "ansi" returns, `rgb(snapshot)` what "rgb_array" returns. `line_of` gives the line
itself, `place` lays it out in turns. `belief` draws plain probabilities: what a seat thinks that the others hold.
"""

from domino_env.render.belief import belief
from domino_env.render.line import Laid, line_of
from domino_env.render.markup import svg
from domino_env.render.pixels import rgb
from domino_env.render.plain import text
from domino_env.render.snake import Grid, Placed, Snake, place

__all__ = ["Grid", "Laid", "Placed", "Snake", "belief", "line_of", "place", "rgb", "svg", "text"]
