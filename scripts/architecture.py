"""Draw docs/architecture.svg from the imports of the package: its layers, who uses whom, and the way of one generation.

    python scripts/architecture.py            write the picture
    python scripts/architecture.py --check    say whether the picture is current, and every import goes down

Layers are the packages and modules directly in `esgroup`, lowest first, in the order of `LAYERS`. An import, also one
inside a function or for types only, must lead to a lower layer or stay within its own; within a layer, modules must not
import each other in a circle.
"""

from __future__ import annotations

import argparse
import ast
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "esgroup"
PICTURE = ROOT / "docs" / "architecture.svg"

LAYERS = (
    "version", "checks", "lazy", "space", "kernels", "groups", "options", "restarts", "files", "domains", "stopping",
    "running", "plots", "distributions", "gradients", "surrogates", "strategies", "rankings", "search", "newton",
    "variational", "torch", "optuna", "driver", "problem_registry", "compare", "command", "__main__", "__init__",
)  # fmt: skip

# the stations of one generation, in order: a layer and what happens there
GENERATION = (
    ("search", "ask()"),
    ("strategies", "sample: z, tags"),
    ("groups", "x = mean + sigma D A z"),
    ("driver", "evaluate f(x), anywhere"),
    ("search", "tell(): ledger"),
    ("rankings", "scores"),
    ("strategies", "update: delta, M, sigma"),
    ("groups", "A <- A h(M)"),
    ("kernels", "kernels"),
)


class Import(NamedTuple):
    """A module that imports another, both as dotted names below `esgroup`."""

    module: str
    target: str
    for_types: bool = False  # only

    @property
    def layers(self) -> tuple[str, str]:
        return layer_of(self.module), layer_of(self.target)


def layer_of(module: str) -> str:
    return module.split(".")[0]


def modules() -> dict[str, Path]:
    """All modules by their dotted names; a package by its own name, `esgroup` itself as __init__."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = path
    return found


def imports() -> list[Import]:
    """Every import of one module of the package by another."""
    known, found = modules(), []
    for name, path in known.items():
        tree = ast.parse(path.read_text())
        types = {id(inner) for node in ast.walk(tree) if is_for_types(node) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            only = id(node) in types
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "esgroup":
                base = (node.module or "").removeprefix("esgroup").removeprefix(".")
                for alias in node.names:
                    inner = f"{base}.{alias.name}".removeprefix(".")
                    found.append(Import(name, inner if inner in known else base or "__init__", only))
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.split(".")[0] == "esgroup":
                        target = alias.name.removeprefix("esgroup").removeprefix(".") or "__init__"
                        found.append(Import(name, target, only))
    return [one for one in dict.fromkeys(found) if one.module != one.target]


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def faults(found: list[Import]) -> list[str]:
    """What is wrong with the imports, as texts."""
    unknown = {layer_of(name) for name in modules()} - set(LAYERS)
    texts = [f"{name} is not among the layers" for name in sorted(unknown)]
    for one in found:
        low, high = one.layers[1], one.layers[0]
        if low in LAYERS and high in LAYERS and LAYERS.index(low) > LAYERS.index(high):
            texts.append(f"{one.module} imports {one.target}, which is above it")
    return texts + [f"modules import each other in a circle: {' -> '.join(circle)}" for circle in circles(found)]


def circles(found: list[Import]) -> list[list[str]]:
    """One circle of imports for each module that is in one.

    A package's own __init__ does not count, nor do imports for types only: both halves of a class may name each other.
    """
    graph: dict[str, set[str]] = {}
    packages = {name for name, path in modules().items() if path.name == "__init__.py"}
    for one in found:
        if not one.for_types and one.module not in packages and one.target not in packages:
            graph.setdefault(one.module, set()).add(one.target)
    done: set[str] = set()
    circles: list[list[str]] = []

    def visit(module: str, path: list[str]) -> None:
        if module in path:
            circles.append([*path[path.index(module) :], module])
        elif module not in done:
            for target in sorted(graph.get(module, ())):
                visit(target, [*path, module])
            done.add(module)

    for module in sorted(graph):
        visit(module, [])
    return circles


def edges(found: list[Import]) -> list[tuple[str, str]]:
    """Which layer uses which, without those that follow from others."""
    direct = {one.layers for one in found if one.layers[0] != one.layers[1]}

    below: dict[str, set[str]] = {}
    for layer in LAYERS:  # from the lowest, so that those below are known
        used = {b for a, b in direct if a == layer}
        below[layer] = used.union(*(below.get(b, set()) for b in used))
    return sorted((a, b) for a, b in direct if not any(b in below[c] for d, c in direct if d == a and c in below))


# ---- the picture --------------------------------------------------------------------------------------------------

SHOWN = tuple(layer for layer in LAYERS if (PACKAGE / layer).is_dir())
ROW, WIDTH, LEFT, RIGHT = 46, 620, 150, 200
INK, PALE, TEXT, RULE = "#1b4965", "#e8f0f5", "#33414a", "#b0563b"


def subject(layer: str) -> str:
    """The first sentence of a package's docstring, as far as it fits."""
    text = ast.get_docstring(ast.parse((PACKAGE / layer / "__init__.py").read_text())) or ""
    first = text.splitlines()[0].split(". ")[0].rstrip(".") if text else ""
    while len(first) > 72:
        first = first.rpartition("," if "," in first else ":" if ":" in first else " ")[0]
    return first


def svg(found: list[Import]) -> str:
    """The picture: layers from top to bottom, uses at the left, the stations of one generation at the right."""
    rows = {layer: i for i, layer in enumerate(reversed(SHOWN))}
    height = ROW * len(rows) + 74
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" '
        'font-family="Helvetica, Arial, sans-serif">',
        f'<rect width="{LEFT + WIDTH + RIGHT}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="30" font-size="16" fill="{TEXT}" font-weight="bold">esgroup: imports go down only</text>',
        f'<text x="{LEFT + WIDTH + 24}" y="30" font-size="13" fill="{RULE}">one generation</text>',
    ]
    for layer, row in rows.items():
        y = 48 + ROW * row
        parts += [
            f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{ROW - 10}" rx="5" fill="{PALE}"/>',
            f'<text x="{LEFT + 12}" y="{y + 23}" font-size="14" fill="{INK}" font-weight="bold">{layer}</text>',
            f'<text x="{LEFT + 128}" y="{y + 23}" font-size="12.5" fill="{TEXT}">{escaped(subject(layer))}</text>',
        ]
    shown = [(a, b) for a, b in edges(found) if a in rows and b in rows]
    for k, (user, used) in enumerate(sorted(shown, key=lambda edge: rows[edge[1]] - rows[edge[0]])):
        start, end = 48 + ROW * rows[user] + 22, 48 + ROW * rows[used] + 12
        bulge = min(LEFT - 8, 16 + 15 * (rows[used] - rows[user]) + 3 * (k % 4))
        parts.append(
            f'<path d="M {LEFT} {start} C {LEFT - bulge} {start}, {LEFT - bulge} {end}, {LEFT - 5} {end}" '
            f'fill="none" stroke="{INK}" stroke-opacity="0.55" stroke-width="1.3"/>'
        )
        parts.append(f'<path d="M {LEFT - 7} {end - 3.5} L {LEFT - 1} {end} L {LEFT - 7} {end + 3.5} z" fill="{INK}"/>')
    parts += stations(rows)
    return "\n".join([*parts, "</svg>", ""])


def stations(rows: dict[str, int]) -> list[str]:
    parts, x, taken = [], LEFT + WIDTH + 18, dict.fromkeys(rows, 0)
    counts = {layer: sum(1 for name, _ in GENERATION if name == layer) for layer in rows}
    for number, (layer, text) in enumerate(GENERATION, start=1):
        y = 48 + ROW * rows[layer] + 18 + (18 * taken[layer] - 9 * (counts[layer] - 1))
        taken[layer] += 1
        parts += [
            f'<circle cx="{x}" cy="{y}" r="8" fill="{RULE}"/>',
            f'<text x="{x}" y="{y + 4}" font-size="10.5" fill="white" text-anchor="middle">{number}</text>',
            f'<text x="{x + 14}" y="{y + 4}" font-size="12" fill="{TEXT}">{escaped(text)}</text>',
        ]
    return parts


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; status 1 if anything is wrong")
    arguments = parser.parse_args()
    found = imports()
    wrong = faults(found)
    if arguments.check:
        current = PICTURE.exists() and PICTURE.read_text() == svg(found)
        wrong += [] if current else [f"{PICTURE.relative_to(ROOT)} is not current: run scripts/architecture.py"]
    else:
        PICTURE.write_text(svg(found))
        print(f"wrote {PICTURE.relative_to(ROOT)}: {len(found)} imports, {len(edges(found))} uses between layers")
    for text in wrong:
        print(text, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
