"""What other systems call the columns of a record, in German and English."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

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


def find_synonyms(header: Sequence[str]) -> dict[str, list[str]]:
    """Return which columns of a header may mean each column of a record; of several a user chooses."""
    free = {k: _squeeze(name) for k, name in enumerate(header)}
    found: dict[str, list[str]] = {}
    for known, words in WORDS.items():
        fits = [k for k, name in free.items() if re.fullmatch(words, name)]
        free = {k: name for k, name in free.items() if k not in fits}
        if fits:
            found[known] = [_name(header, k) for k in fits]
    return found


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
