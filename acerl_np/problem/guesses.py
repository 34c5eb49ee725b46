"""What the columns and dates of another system probably mean, by their German and English names."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import datetime

from acerl_np.problem.fields import DateFormat
from acerl_np.problem.json_tree import is_name

PLACE = "location|station|point|node|site|place|bin|(lager)?ort|(lager)?platz|stelle|punkt|id|name"
AT = rf"( ?({PLACE}))*"
WORDS = {
    "pickup": rf"(({PLACE}) )?(pick ?up|abhol(ung)?|aufnahme|entnahme|bereitstell(ung)?|(be)?lade|quelle?"
    rf"|source|origin|absender|sender|von|from|vlpla|load|start){AT}|(from|von) .+",
    "delivery": rf"(({PLACE}) )?(delivery|drop ?(off)?|abgabe|(an|aus)?liefer(ung)?|(ab|ent)lade|ziel|senke"
    rf"|empfanger|dest(ination)?|target|sink|receiver|nach|to|nlpla|unload){AT}|(to|nach) .+",
    "expiry_time": (
        r".*(fallig|termin|deadline|expir|latest|spatest).*|soll ?(zeit|uhrzeit|datum|ende)?|due.*"
        r"|.* due( .*)?|liefer ?(zeit|datum|uhrzeit)|bis( .*)?"
    ),
    "arrival_time": (
        r".*(erstell|angelegt|anlage|eingang|eingeg|freigabe|creat|releas|arriv|ankunft|erfass|entered).*"
        r"|(order|auftrags?|transport|start)? ?(zeit|datum|uhrzeit|time|date|zeitpunkt)"
        r"|zeitstempel|time ?stamp|date ?time"
    ),
    "task": (
        r"(ta|transport|fahr|lager)? ?(auftrag|order|task|job|movement)?s? ?(nr|no|num|number|nummer|id)"
        r"|(transport|fahr|lager)? ?(auftrag|order|task|job)|ta|tanum"
    ),
}
"""Names of columns, squeezed by `_squeeze`, as regular expressions; the first that fits takes a column.

Demands, handling times and priorities are not among them: their units differ, of priorities the direction.
"""

DATE = re.compile(r"\b(datum|date|tag|day)|(datum|date|tag)\b")
CLOCK = re.compile(r"\b(uhrzeit|zeit|time|clock)|(uhrzeit|zeit|time)\b")
STAMP = re.compile(r"date ?time|time ?stamp|zeitstempel|zeitpunkt")

CLOCK_TEXT = re.compile(r"\s*[0-2]?[0-9]:[0-5][0-9](:[0-5][0-9])?( ?[AP]M)?\s*", re.IGNORECASE)
DATE_TEXT = re.compile(
    r"\s*([0-9]{1,2}\.[0-9]{1,2}\.[0-9]{2,4}|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2,4})"
    r"([T ]0?0:00(:00)?)?\s*"
)

NUMBER_TEXT = re.compile(r"\s*[0-9][0-9.,]*\s*")

EMPTY = re.compile(r"\s*(?:[-–—]\s*)?")
"""A field of a time or a number that says nothing."""

DATES = ("%d.%m.%Y", "%d.%m.%y", "%Y/%m/%d", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y%m%d")
CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p", "%H%M%S", "%H%M", "%H:%M:%S.%f")
FORMATS = (*(f"{date} {clock}" for date in DATES for clock in CLOCKS), *CLOCKS[2:4])


def guess_columns(header: Sequence[str], below: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return what the columns of a record are probably called in a file, by known column.

    `below` are rows. Dates and times of day in two columns are one: "Datum+Uhrzeit".
    """
    names = [_squeeze(name) for name in header]
    free = dict(enumerate(names))
    found: dict[str, list[int]] = {}
    for known, words in WORDS.items():
        fits = [k for k, name in free.items() if re.fullmatch(words, name)]
        if known.endswith("time"):
            fits = _pair(fits, names)
        for k in fits[: 2 if known.endswith("time") else 1]:
            found.setdefault(known, []).append(k)
            del free[k]
    arrival, expiry = found.get("arrival_time", []), found.get("expiry_time", [])
    dated = next((k for k in arrival if _is_text(DATE_TEXT, k, below)), None)
    if dated is not None and len(expiry) == 1 and _is_text(CLOCK_TEXT, expiry[0], below):
        found["expiry_time"] = [dated, *expiry]  # due on the same day
    return {
        known: "+".join(_name(header, k) for k in positions)
        for known, positions in sorted(found.items())
    }


HANDLING = re.compile(
    r"(.* )?((handling|handhabungs?|lastwechsel|umschlags?|service|transfer|(be|ent|ab|auf|um)lade"
    r"|(un|off)?load(ing)?|(uber|ab|auf)(gabe|nahme))"
    r"( ?(zeit|dauer|time|duration|seconds|sekunden)| s(ec|ek)?)( .*)?|handling|handhabung|lastwechsel)"
)
"""Names of columns that may hold handling times, squeezed."""


def name_handling(
    header: Sequence[str], below: Sequence[Sequence[str]], ignored: Sequence[str]
) -> tuple[str, ...]:
    """Return ignored columns, first those that probably hold handling times, with what would read them."""
    likely = [
        name.strip()
        for k, name in enumerate(header)
        if HANDLING.fullmatch(_squeeze(name)) and _is_text(NUMBER_TEXT, k, below)
    ]
    named = [f"{name} (seconds? --columns handling_time=COLUMN)" for name in likely]
    return (*named, *(name for name in ignored if name not in likely))


def _pair(fits: Sequence[int], names: Sequence[str]) -> list[int]:
    """Return a moment's column, or those of its date and its time of day, the date first."""
    stamps = [k for k in fits if STAMP.search(names[k])]
    dates = [k for k in fits if DATE.search(names[k]) and k not in stamps]
    clocks = [k for k in fits if CLOCK.search(names[k]) and k not in stamps and k not in dates]
    if stamps or not (dates and clocks):
        return [*stamps, *fits][:1]
    return [dates[0], clocks[0]]


def _is_text(form: re.Pattern[str], k: int, below: Sequence[Sequence[str]]) -> bool:
    """Whether the first field of a column that is filled looks so."""
    filled = (row[k] for row in below if len(row) > k and not EMPTY.fullmatch(row[k]))
    return form.fullmatch(next(filled, "")) is not None


def _name(header: Sequence[str], k: int) -> str:
    """Return a column as a mapping names it: by its place where its name does not tell."""
    name = header[k].strip()
    alike = [other for other in header if other.strip().lower() == name.lower()]
    return name if is_name(name) and len(alike) == 1 and "+" not in name else f"column {k + 1}"


def _squeeze(name: str) -> str:
    """Return a column's name in plain small letters, words apart: "Fällig-Datum" is "fallig datum"."""
    name = unicodedata.normalize("NFC", name).strip("\ufeff \t")
    apart = re.sub(r"(?<=[a-zäöü])(?=[A-ZÄÖÜ])", " ", name)
    plain = apart.lower().translate(str.maketrans("äöü", "aou")).replace("ae", "a")
    return re.sub(r"[\W_]+", " ", plain).strip()


def guess_format(texts: Sequence[str]) -> str | None:
    """Return the date format that reads all but a few of these texts; None if it is none, or several.

    Where days and months may be swapped, the one is meant by which the texts lie closer together.
    """
    texts = [text.strip() for text in texts if text.strip()]
    found = {}
    for form in FORMATS:
        if len(_read_dates(texts[:20], form)) >= max(1, 0.5 * len(texts[:20])):
            found[form] = _read_dates(texts, form)
    most = max(map(len, found.values()), default=0)
    best = [form for form, dates in found.items() if len(dates) == most]
    if len(best) == 2 and best[0] == best[1].translate(str.maketrans("dm", "md")):
        first, last = (max(found[form]) - min(found[form]) for form in best)
        best = [best[first > last]] if first != last else []
    return best[0] if len(best) == 1 and most >= 0.8 * len(texts) else None


def _read_dates(texts: Sequence[str], form: str) -> list[datetime]:
    """Return those of the texts that are dates of this format."""
    moments = map(DateFormat(form, False).read, texts)
    return [moment for moment in moments if moment is not None]
