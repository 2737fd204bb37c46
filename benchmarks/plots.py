"""Small plots as SVG, without a library: lines, and tables of coloured cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

COLOURS = ("#444444", "#999999", "#c98a1b", "#7a5195", "#2563a8", "#58a4d8", "#bbbbbb", "#c0392b", "#e67e66", "#2e8b57")
WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 190, 46, 34, 70
CELL = 58


class Lines(NamedTuple):
    """A panel. lines: points (x, y) by name."""

    title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]


class Cells(NamedTuple):
    """A panel. values: by (row, column); None where there is none."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Mapping[tuple[str, str], float | None]


def line_plot(panels: Sequence[Lines], x_label: str, names: Sequence[str]) -> str:
    """Panels side by side, each with its own axes, and one legend. names: of all lines, in the order of the colours."""
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    parts = [_line_panel(panel, LEFT + i * (WIDTH + GAP), x_label, colours) for i, panel in enumerate(panels)]
    below = TOP + HEIGHT + 52
    for i, name in enumerate(names):
        x, y = LEFT + (i % 4) * 165, below + 18 * (i // 4)
        parts.append(f'<path d="M{x} {y - 4}h18" stroke="{colours[name]}" stroke-width="2.5"/>')
        parts.append(f'<text x="{x + 24}" y="{y}">{escape(name)}</text>')
    width = max(LEFT + len(panels) * (WIDTH + GAP), LEFT + 4 * 165)
    return _document(width, below + 18 * ((len(names) + 3) // 4), parts)


def _line_panel(panel: Lines, left: int, x_label: str, colours: Mapping[str, str]) -> str:
    points = [point for line in panel.lines.values() for point in line]
    right = max((x for x, _ in points), default=1) or 1
    low, high = min((y for _, y in points), default=0), max((y for _, y in points), default=1)
    high = high if high > low else low + 1
    bottom = TOP + HEIGHT

    def place(x: float, y: float) -> str:
        return f"{left + WIDTH * x / right:.1f},{bottom - HEIGHT * (y - low) / (high - low):.1f}"

    parts = [
        f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{escape(panel.title)}</text>',
        f'<path d="M{left} {TOP}V{bottom}H{left + WIDTH}" fill="none" stroke="#888"/>',
        f'<text x="{left - 6}" y="{TOP + 4}" text-anchor="end">{high:.2f}</text>',
        f'<text x="{left - 6}" y="{bottom}" text-anchor="end">{low:.2f}</text>',
        f'<text x="{left}" y="{bottom + 18}">0</text>',
        f'<text x="{left + WIDTH}" y="{bottom + 18}" text-anchor="end">{right:,.0f} {escape(x_label)}</text>',
    ]
    for name, line in panel.lines.items():
        path = " ".join(place(x, y) for x, y in line)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colours[name]}" stroke-width="2"/>')
    return "".join(parts)


def cell_plot(panels: Sequence[Cells], row_label: str, column_label: str, note: str, per_row: int = 3) -> str:
    """Panels, `per_row` side by side. A cell has its number, and is blue above 0 and red below: strong where large."""
    values = [abs(value) for panel in panels for value in panel.values.values() if value is not None]
    largest = max(values, default=1.0) or 1.0
    wide = max(len(panel.columns) for panel in panels) * CELL + 70
    high = max(len(panel.rows) for panel in panels) * 24 + 64
    parts = [
        _cell_panel(panel, 40 + i % per_row * wide, TOP + i // per_row * high, largest)
        for i, panel in enumerate(panels)
    ]
    bottom = TOP + (len(panels) + per_row - 1) // per_row * high
    label = f"rows: {row_label}; columns: {column_label}. {note}"
    parts.append(f'<text x="20" y="{bottom}">{escape(label)}</text>')
    return _document(40 + per_row * wide, bottom + 14, parts)


def _cell_panel(panel: Cells, left: float, top: float, largest: float) -> str:
    parts = [f'<text x="{left}" y="{top - 8}" font-weight="bold">{escape(panel.title)}</text>']
    for i, row in enumerate(panel.rows):
        y = top + 24 * i
        parts.append(f'<text x="{left - 6}" y="{y + 16}" text-anchor="end">{escape(row)}</text>')
        parts += [
            _cell(left + CELL * j, y, panel.values.get((row, column)), largest)
            for j, column in enumerate(panel.columns)
        ]
    below = top + 24 * len(panel.rows) + 14
    for j, column in enumerate(panel.columns):
        x = left + CELL * (j + 0.5)
        parts.append(f'<text x="{x:.0f}" y="{below:.0f}" text-anchor="middle">{escape(column)}</text>')
    return "".join(parts)


def _cell(x: float, y: float, value: float | None, largest: float) -> str:
    colour = "#2563a8" if (value or 0) > 0 else "#c0392b"
    opacity = 0.0 if value is None else 0.08 + 0.72 * abs(value) / largest
    text = "" if value is None else f"{value:+.2f}"
    return (
        f'<rect x="{x}" y="{y}" width="{CELL - 2}" height="22" fill="{colour}" fill-opacity="{opacity:.2f}" '
        f'stroke="#ccc"/><text x="{x + CELL / 2 - 1:.0f}" y="{y + 15}" text-anchor="middle">{text}</text>'
    )


def _document(width: float, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" '
        f'font-size="12" fill="#444"><rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )
