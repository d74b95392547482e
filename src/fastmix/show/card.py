"""Cards for notebooks: a fit and a certificate at a glance."""

from collections.abc import Sequence

from fastmix.show.html import STYLE, badge, escape, number, paragraphs, table


def fit_card(
    name: str,
    guarantee: str,
    private: bool,
    rows: Sequence[tuple[str, float, float | None]],
    longest: int = 12,
) -> str:
    """Return a fitted estimator as HTML."""
    errors = any(std is not None for _, _, std in rows)
    cells = [
        [label, number(value), *([f"± {number(1.96 * (std or 0.0), 3)}"] if errors else [])]
        for label, value, std in rows[:longest]
    ]
    header = ["", "coefficient", *(["95%"] if errors else [])]
    more = len(rows) - longest
    rest = f'<p class="soft">and {more} more</p>' if more > 0 else ""
    return _card(
        f"<b>{escape(name)}</b> {badge(private)}<p>{escape(guarantee)}</p>"
        f"{table(header, cells)}{rest}"
    )


def certificate_card(explanation: Sequence[str], private: bool) -> str:
    """Return a certificate in plain words as HTML."""
    return _card(f"<b>{escape(explanation[0])}</b> {badge(private)}{paragraphs(explanation[1:])}")


def _card(body: str) -> str:
    return (
        f"<style>{STYLE}</style>"
        '<div class="fastmix" style="padding: .8rem 1rem; max-width: 46rem; border: 1px solid '
        f'var(--line); border-radius: .5rem; font-size: 14px">{body}</div>'
    )
