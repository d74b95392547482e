"""The report: one HTML page that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from reproduction.data import SETS
from reproduction.experiments.methods import DEFAULT, LABELS, order
from reproduction.experiments.problems import TITLES
from reproduction.report.conclusions import conclusions
from reproduction.report.figures import draw_figures, inline_svg, save_figures
from reproduction.report.published import DATASETS, SPEED, STATISTICS, relative_difference, within
from reproduction.report.summary import Summary, read_summary, write_means

__all__ = ["KEPT", "write_docs", "write_report"]

#: Means over fewer trials than this conclude nothing firmly.
_FEW = 10
#: Sections: experiment, title, how it was set up.
_SECTIONS = (
    ("figure1", "Figure 1: the price of privacy in noise",
     "Noise σ that a sketch of k rows needs, for known eigenvalues: λ_min = n/(8d), and 5/6 of it "
     "after the fast sketch; these are the paper's. It gives neither d, k nor δ. Our choices: "
     "d = {d}, k = 6 max(d, log(4/ϱ)), δ = 1/n². Other choices move all curves."),
    ("figure2", "Figure 2: accuracy against privacy",
     "Excess empirical risk, mean and 95% band over {trials} trials, T = {steps}, δ = 1/n², "
     "ϱ = δ/10, rows and targets scaled to norm 1 as in the paper. FastIHM of the paper has "
     "k₂ = r max(d, log(4T/ϱ)). The red curve is PrivateLinearRegression as you get it, with "
     "intervals; docs/accuracy.md compares all methods."),
    ("table-speed", "The table of Figure 2: runtimes",
     "Seconds of processor time on one thread, medians, all methods in turn, ε = 1 ({origin}). A "
     "single fit includes what only the first one of a process pays, the "
     "calibration of its noise. Other work on the machine lengthens all of them, so compare "
     "ratios. The paper's methods do all the work that the paper counts, and form their sketches "
     "as written; the default is another algorithm, and its time includes intervals "
     "(docs/methods.md)."),
    ("airline", "The Airline appendix: accuracy and runtime as k₂ grows",
     "The same as Figure 2, over {trials} trials, on many rows and few columns. One number scales "
     "all columns, as in the paper, so weekdays and months beside times up to 2400 have next to no "
     "signal. In your own fits, bounds_X scales every column by its own bounds."),
    ("table-datasets", "The table of data statistics",
     "Rows are sampled at random and synthetic sets drawn anew; both are scaled by their largest "
     "row and target, which change from draw to draw: in the correlated set only the ratio of the "
     "eigenvalues can be compared."),
    ("sketches", "Lemmas 9 and 10: what sketches do to the data",
     "χ is the least number for which the smallest and the largest eigenvalue move by at most χ of "
     "themselves, and m̂ ≤ χ‖X‖, in every draw. Where X is singular, λ_min is left out. "
     "Kerdock sketches have the next power of two of rows, sparse ones the next multiple of four."),
    ("theorem2", "Theorem 2 beside the measured risk",
     "The bound is of the order Õ: here all its constants and logarithms are 1, and χ is the one "
     "measured for the SRHT. It shows how the risk scales, not how large it is."),
    ("orders", "Theorems 1.2 and 2.3: orders of running time",
     "Algorithms 1 and 2 as printed (fastmix.paper), processor time on one thread, over a grid of "
     "n, d, k₁ and k₂, T = 2."),
    ("hessians", "The private Hessian: noise of each step, steps without bias",
     "Algorithm 2 without its shrinkage term, as in the paper's experiments, over {trials} trials. "
     "The paper's Algorithm 3 uses the largest η of all steps; the authors' code uses each step's "
     "own. A debiased step is shorter by a public factor, E W⁻¹ over E W⁻² of a Wishart matrix. "
     "Both cost no privacy."),
    ("crossover", "Where a fast sketch pays",
     "The paper's IHM and FastIHM, ε = 1, r = 4, sphere, processor time on one thread. IHM's T "
     "Gaussian sketches have the distribution of Wishart matrices, which one Gram matrix gives: so "
     "drawn, it needs one pass over the data and no sketch at all."),
)  # fmt: skip


#: Small tables that are kept beside the page of the documentation.
KEPT = (
    *("figure1", "speed", "datasets", "runs", "draws"),
    *("sketches", "hessians", "orders", "crossover"),
)
#: First words of the names of figures, where they are not the topic.
_PREFIXES = {"airline": ("airline", "tradeoff"), "sketches": ("sketches",)}


def write_report(folder: str | Path, out: str | Path | None = None) -> Path:
    """Write the page and the figures of a folder of results.

    Parameters
    ----------
    folder : path
        Folder that ``python -m reproduction`` wrote.
    out : path, optional
        The page; by default ``report.html`` in that folder.

    Returns
    -------
    Path
        The page.
    """
    folder = Path(folder)
    summary = read_summary(folder)
    drawn = draw_figures(summary)
    save_figures(drawn, folder / "figures")
    path = folder / "report.html" if out is None else Path(out)
    _render("page.html", path, _content(summary, drawn))
    return path


def write_docs(folder: str | Path, docs: str | Path) -> Path:
    """Write the results as a Markdown page, with its figures and small tables beside it.

    Parameters
    ----------
    folder : path
        Folder that ``python -m reproduction`` wrote.
    docs : path
        Folder for ``reproduction.md`` and ``reproduction/``.

    Returns
    -------
    Path
        The page.
    """
    folder, beside = Path(folder), Path(docs) / "reproduction"
    summary = read_summary(folder)
    drawn = draw_figures(summary)
    save_figures(drawn, beside)
    for name in KEPT:
        if (folder / f"{name}.csv").exists() and folder != beside:
            (beside / f"{name}.csv").write_text((folder / f"{name}.csv").read_text())
    write_means(summary, beside / "risk.csv")
    path = Path(docs) / "reproduction.md"
    _render("page.md", path, _content(summary, drawn))
    return path


def _render(template: str, path: Path, content: dict[str, Any]) -> None:
    text = Path(__file__).with_name(template).read_text(encoding="utf-8")
    page = Environment(
        autoescape=template.endswith(".html"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    path.write_text(page.from_string(text).render(**content), encoding="utf-8")


def _content(summary: Summary, drawn: dict[str, str]) -> dict[str, Any]:
    claims = conclusions(summary)
    sections = []
    for topic, title, text in _SECTIONS:
        prefixes = _PREFIXES.get(topic, (topic,))
        names = {name: _caption(name) for name in drawn if name.split("-")[0] in prefixes}
        images = [
            Markup(inline_svg(name, drawn[name], escape(caption, quote=True)))
            for name, caption in names.items()
        ]
        tables = {"table-speed": _speed_table, "table-datasets": _dataset_table}
        table = tables[topic](summary) if topic in tables else _risk_table(summary, topic)
        own = [claim for claim in claims if claim.topic == topic]
        if images or own or table["rows"]:
            steps, d = summary.config["steps"], summary.config["figure1"]["d"]
            sections.append(
                {
                    "id": topic,
                    "title": title,
                    "text": text.format(
                        steps=steps, d=d, trials=_trials(summary, topic), origin=_timed(summary)
                    ),
                    "images": images,
                    "names": names,
                    "claims": own,
                    "table": table,
                }
            )
    used = {*summary.risk["figure2"], *summary.risk["airline"], *summary.datasets}
    ran = [topic for topic in ("figure2", "airline") if summary.risk[topic]]
    wanted = {name for topic in ran for name in _wanted(summary, topic)}
    return {
        "sections": sections,
        "claims": claims,
        "agreeing": sum(claim.agrees is True for claim in claims),
        "failing": sum(claim.agrees is False for claim in claims),
        "alarms": sum(claim.agrees is None for claim in claims),
        "absent": sorted(TITLES[name] for name in wanted - used if name in SETS),
        "rough": _rough(summary),
        "runs": list({run["command"]: run for run in reversed(summary.runs)}.values())[::-1],
        "machine": summary.runs[-1],
        "seed": summary.config["seed"],
    }


def _wanted(summary: Summary, topic: str) -> Iterator[str]:
    """Yield the sets that an experiment looks for: that of flights stops at the first it has."""
    for chosen in summary.config[topic]:
        yield chosen["set"]
        if topic == "airline" and chosen["set"] in summary.risk[topic]:
            return


def _rough(summary: Summary) -> str:
    """Return what stands beside the conclusions of a run with few trials, such as --quick."""
    least = min(
        (min(_counts(summary, topic), default=_FEW) for topic in summary.risk), default=_FEW
    )
    if least < _FEW:
        return f" in this quick run with {least} trials"
    return " in this quick run" if summary.config.get("trials", _FEW) < _FEW else ""


def _counts(summary: Summary, topic: str) -> set[int]:
    """Return how many trials the means of an experiment are over."""
    sets = summary.hessians if topic == "hessians" else summary.risk.get(topic, {})
    curves = (c for methods in sets.values() for c in methods.values())
    return {mean.trials for curve in curves for mean in curve.values()}


def _trials(summary: Summary, topic: str) -> str:
    """Return the least and the most of them in words."""
    counts = _counts(summary, topic)
    return " to ".join(str(count) for count in sorted({min(counts), max(counts)})) if counts else ""


def _timed(summary: Summary) -> str:
    """Return commit, day and load of the table of runtimes."""
    origins = {words: None for (table, _), words in summary.origins.items() if table == "speed"}
    return " and ".join(origins)


def _caption(name: str) -> str:
    kind, _, rest = name.partition("-")
    words = {
        "figure1": "Noise against epsilon, n =",
        "tradeoff": "Accuracy against runtime:",
        "sketches": "Distortion against rows of the sketch:",
        "theorem2": "Theorem 2 and measured risk:",
        "hessians": "Risk with variants of the private Hessian:",
        "orders": "Measured and fitted seconds, Algorithm",
        "crossover": "Seconds of one fit against",
    }
    return f"{words.get(kind, 'Excess risk:')} {TITLES.get(rest, rest)}".strip()


def _risk_table(summary: Summary, topic: str) -> dict[str, Any]:
    rows = []
    for name, methods in summary.risk.get(topic, {}).items():
        for method, ratio in sorted(methods, key=order):
            rows += [
                [TITLES[name], LABELS[method], ratio or "", "" if e is None else f"{e:g}",
                 f"{mean.value:.3e}", f"{mean.half:.1e}", mean.trials]
                for e, mean in methods[method, ratio].items()
            ]  # fmt: skip
    head = ["data", "method", "r", "ε", "excess risk", "± 95%", "trials"]
    return {"head": head, "rows": rows, "fold": True}


def _speed_table(summary: Summary) -> dict[str, Any]:
    rows = []
    for name, times in (s for sets in summary.seconds.values() for s in sets.items()):
        literal = times.get(("ihm_paper", None))
        for (method, ratio), seconds in times.items():
            compared = method not in (DEFAULT, "ihm_paper")
            printed = SPEED.get(name, {}).get(ratio) if compared else None
            rows.append(
                [TITLES[name], LABELS[method], ratio or "", f"{seconds:.3g}",
                 f"{literal / seconds:.2f}" if literal else "",
                 "" if printed is None else f"{printed:.2f}"]
            )  # fmt: skip
    head = ["data", "method", "r", "seconds", "times faster than literal IHM", "paper"]
    return {"head": head, "rows": rows, "fold": False}


def _dataset_table(summary: Summary) -> dict[str, Any]:
    rows = []
    for name, row in summary.datasets.items():
        for statistic in STATISTICS:
            value = row[statistic]
            printed = DATASETS.get(name, {}).get(statistic)
            gap = relative_difference(name, statistic, value)
            verdict = "yes" if name in DATASETS and within(name, statistic, value) else "no"
            rows.append(
                [TITLES[name], statistic, f"{value:.7g}",
                 printed or ("< 0.001" if name in DATASETS else ""),
                 "" if gap is None else f"{gap:+.2%}",
                 verdict if name in DATASETS else ""]
            )  # fmt: skip
    head = ["data", "statistic", "here", "paper", "difference", "within 1% or the last digit"]
    return {"head": head, "rows": rows, "fold": False}
