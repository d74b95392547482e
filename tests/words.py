"""How we write, checked by patterns: pages, messages, help and docstrings against words.toml.

Run `python tests/words.py` for a list of places; the exit code says whether there are any.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
#: Strings of fewer words are names, keys and labels.
PROSE = 4


@dataclass(frozen=True)
class Rule:
    say: str
    pattern: re.Pattern[str]
    unless: re.Pattern[str] | None
    wrong: tuple[str, ...]
    right: tuple[str, ...]
    skip: tuple[str, ...]

    def finds(self, sentence: str) -> bool:
        """Tell whether a sentence breaks the rule."""
        found = self.pattern.search(sentence)
        return bool(found) and not (self.unless and self.unless.search(sentence))


@functools.cache
def rules() -> tuple[list[Rule], dict[str, int]]:
    """Return the rules, and the longest sentence for each kind of text."""
    given = tomllib.loads((ROOT / "tests" / "words.toml").read_text())
    made = [
        Rule(
            say=each["say"],
            pattern=re.compile(each["pattern"], re.IGNORECASE),
            unless=re.compile(each["unless"], re.IGNORECASE) if "unless" in each else None,
            wrong=tuple(each["wrong"]),
            right=tuple(each["right"]),
            skip=tuple(each.get("skip", ())),
        )
        for each in given["rule"]
    ]
    longest = {"page": given["longest"], "source": given["longest"]}
    return made, longest | {"proofs": given["longest_proof"]}


def sentences(text: str) -> list[str]:
    """Return the sentences of a paragraph without its code, formulas and addresses."""
    text = re.sub(r"<!-- .*? -->", "", text)  # marks of evidence
    text = re.sub(r"`+[^`]+`+", "CODE", text)
    text = re.sub(r":math:CODE", "MATH", text)
    text = re.sub(r"\$\$.*?\$\$", " MATH ", text, flags=re.DOTALL)
    text = re.sub(r"\$[^$]+\$", "MATH", text)
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\([^)]*\)", r"\1", text, flags=re.DOTALL)
    text = re.sub(r"[*_]{1,2}(?=\S)(.+?)(?<=\S)[*_]{1,2}", r"\1", text, flags=re.DOTALL)
    text = " ".join(text.split())
    return [part for part in re.split(r"(?<=[.!?])\)?\s+(?=[\"'(]?[A-Z0-9\"])", text) if part]


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, items and cells of a page with their lines; listings are left out."""
    held: list[str] = []
    start, fenced, math = 1, False, False
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        bare = line.strip()
        if bare.startswith("```"):
            fenced = not fenced
            bare = ""
        elif fenced:
            continue
        if bare.count("$$") == 1:
            math = not math
        opens = re.match(r"([-*]|\d+\.|#+) ", bare) is not None
        if held and not math and (not bare or opens or bare.startswith("|")):
            yield start, "\n".join(held)
            held = []
        if bare.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", bare):
                if not re.fullmatch(r"[\s:-]*", cell):
                    yield number, cell
        elif bare:
            start = start if held else number
            held.append(re.sub(r"^([-*]|\d+\.|#+) ", "", bare))
    if held:
        yield start, "\n".join(held)


def _shown(node: ast.AST) -> str | None:
    """Return the text of a literal or f-string, a placeholder for each of its values."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = [v.value if isinstance(v, ast.Constant) else "CODE" for v in node.values]
        return "".join(str(part) for part in parts)
    return None


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs of all strings of a module that are prose: docstrings and messages."""
    tree = ast.parse(source)
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    parts = {id(value) for node in joined for value in node.values}
    for node in ast.walk(tree):
        text = None if id(node) in parts else _shown(node)
        if text is None or len(text.split()) < PROSE or len(re.findall(r"[{};]\s*\n", text)) > 2:
            continue  # style sheets and scripts are not prose
        line = getattr(node, "lineno", 1)
        text = re.sub(r"::\n\n( +)\S.*?(?=\n\n(?!\1)|\Z)", "", text, flags=re.DOTALL)  # listings
        for block in re.split(r"\n\s*\n", text):
            for part in re.split(r"\n(?=\s*(?:[-*] |>>> |[\w, ]+ : ))", block):
                part = re.sub(r"^\s*[\w, ]+ : [^\n]+\n", "", part)  # a name and its type
                if not part.lstrip().startswith((">>>", "Paper:")):
                    yield line, part


def texts() -> Iterator[tuple[str, str, int, str]]:
    """Yield (kind, file, line, paragraph) of all that users read."""
    pages = [ROOT / name for name in PAGES] + sorted((ROOT / "docs").rglob("*.md"))
    for page in pages:
        kind = "proofs" if "proofs" in page.parts else "page"
        for line, paragraph in paragraphs(page.read_text()):
            yield kind, str(page.relative_to(ROOT)), line, paragraph
    for module in sorted((ROOT / "src" / "fastmix").rglob("*.py")):
        for line, paragraph in strings(module.read_text()):
            yield "source", str(module.relative_to(ROOT)), line, paragraph


def complaints(kind: str, paragraph: str) -> Iterator[str]:
    """Yield what is wrong with a paragraph."""
    made, longest = rules()
    for sentence in sentences(paragraph):
        for rule in made:
            if kind not in rule.skip and rule.finds(sentence):
                yield f"{rule.say}: {sentence[:160]}"
        # Docstrings are terse lists more often than sentences: there each part counts by itself.
        for part in re.split(r"[:;] ", sentence) if kind == "source" else [sentence]:
            words = len(re.findall(r"[^\W\d_][\w'-]+", part))  # numbers are not words
            if words > longest[kind]:
                yield f"{words} words in one sentence, more than {longest[kind]}: {part[:100]}"


def main() -> int:
    found = [
        f"{file}:{line}: {complaint}"
        for kind, file, line, paragraph in texts()
        for complaint in complaints(kind, paragraph)
    ]
    sys.stdout.writelines(f"{line}\n" for line in found)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
