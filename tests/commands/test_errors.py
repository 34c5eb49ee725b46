"""Whatever is wrong is said in one line with status 2 (1 if the machine fails), and nothing is written."""

import shutil
import sys
from pathlib import Path

import pytest

import acerl_np
from acerl_np.support.workers import MAX_THREADS

DATA = Path(__file__).parents[1] / "data"
IMPORT = "floor import hall.json --out l.json"
JUDGED = "--on DMH-01 --trials 1"
EXPORTED = "records check exported.csv --layout layout.json"
FLEET = "floor edit supply-loop --vehicles 2 --out l.json"

GENERAL = {
    "": "the following arguments are required: COMMAND",
    "fly": "invalid choice: 'fly'",
    "evalute EDD --trials 3": "'warm'); did you mean 'evaluate'? (see acerl-np -h)",
    "train --set population=many": "population: read many; expected a whole number from 2 to 1,000,000",
    "train --generation 3": "unrecognized arguments: --generation",
    "train --set hidden=12,x": "hidden: read 12,x; expected at most 10 layer sizes from 1 to 4096",
    "train --set noise-sdt=1": "noise_sdt: no setting of acerl; expected one that acerl-np train --settings "
    "lists; did you mean 'noise_std'?",
    "train dmh-tran.csv": "dmh-tran.csv: no such task record",
    "train --hold-out=half": "read half; expected a share above 0 and below 1 such as",
    "train --hold-out=0": "--hold-out: read 0.0; expected a share above 0 and below 1 such as",
    "train --hold-out=1": "--hold-out: read 1.0; expected a share",
    "train --hold-out=-1": "--hold-out: read -1.0; expected a share",
    "train --hold-out=nan": "--hold-out: read nan; expected a share",
    "train --population 3": "--population; expected --set population=3 (see",
    "train --population=3": "; expected --set population=3 (see",
    "evaluate EDD EDD": "EDD: given twice; expected each policy once",
    "train --preset bets": "did you mean 'best'? ",
    "train DMH-01 DMH-01": "instance 'DMH-01' is given twice",
    "train DMH-01 dmh-train": "instance 'DMH-01' is given twice",
    "train --layout dmh": "given without task records",
    "train --config missing.toml": "missing.toml: expected a file, found nothing",
    "train --resume missing.npz": "missing.npz: expected a file, found nothing",
    "evaluate SPT": "policy 'SPT': unknown; expected one of FCFS",
    "evaluate missing.npz": "missing.npz: expected a file, found nothing",
    "evaluate EDD --on dmh-train,DMH-01": "instance 'DMH-01' is given twice; expected different",
    "evaluate EDD --trials 0": "--trials: read 0",
    "evaluate --on week.csv": "the following arguments are required: POLICY",
    "evaluate EDD week.csv": "week.csv: a record among the policies; expected it with --on",
    "evaluate EDD --tirals 3": "acerl-np evaluate: error: unrecognized arguments: --tirals 3; did "
    "you mean '--trials'? (see acerl-np evaluate -h)",
    "evaluate edd-neerest": "; did you mean 'edd-nearest'?",
    "evaluate EDD DHM-07": "policy 'DHM-07': unknown; expected one of FCFS",
    "records make DMH-01 --magntude=1 --out x": "acerl-np records make: error: unrecognized arguments: "
    "--magntude=1; did you mean '--magnitude'? (see acerl-np records make -h)",
    "list rules week.csv": "unrecognized arguments: week.csv",
    "warm all": "part: read all; expected one of training",
    "warm rules best serch": "did you mean 'search'?",
    "policy bound DMH-01 --effort 0": "--effort: read 0; expected a number from 0.001 to 10",
    "policy": "the following arguments are required: ACTION",
    "policy show missing.npz": "expected a file, found nothing",
    "evaluate EDD --on week.csv,next.csv --past past.csv": "--past: read 1 files of assignments for 2 "
    "records; expected one each",
}

RANDOM = {
    "train DMH-01 --breakdowns 9,x": "--breakdowns: read 9,x; expected FILE.csv, listed, none or MTBF,MTTR",
    "evaluate EDD --breakdowns 0,1": "mean_time_between_failures: read 0.0",
    "evaluate EDD --breakdowns 9,nan": "mean_time_to_repair: read NaN",
    "evaluate EDD --on week.csv --breakdowns a.csv --breakdowns b.csv": "read a.csv and b.csv; expected one",
    "policy bound DMH-01 --breakdowns 9,9": "DMH-01: vehicles break down at random",
}

SEEDS = {
    "train --seeds x": "--seeds: read x; expected FIRST:LAST such as 0:5",
    "train --seeds 5:5": "--seeds: read 5:5; expected 1 to 10,000 seeds",
    "train --seeds=-1:2": "--seeds: read -1:2",
    "train --seeds 0:20000": "--seeds: read 0:20000",
    "train --seeds 1:2:3": "--seeds: read 1:2:3",
    "train --seeds 0:2 --seed 1": "seed: given besides seeds",
    "train --seeds 0:2 --resume x.npz": "resume: given besides --seeds",
    "train --processes 0": "processes: read 0",
    "train --processes 1 --set silence=0": "silence: read 0.0; expected a number from 0.001",
    "train --seeds 0:2 --set silence=nan": "silence: read nan; expected a number from 0.001",
}

DRAWN = "records make --layout dmh --tasks 3 --out x"
RECORDS = {
    "records make --layout dmh --tasks 0 --out x": "tasks: read 0",
    "records make --tasks 3 --out x": "--layout: missing; expected a layout, or RECORDS to vary",
    "records make DMH-01 --out x": "--magnitude, --demand-factor: expected one of the two",
    "records make DMH-01 --magnitude 1 --tasks 3 --out x": "--tasks: given with RECORDS",
    "records make DMH-01 --magnitude 1,x --out x": "--magnitude: read 1,x; expected a whole number",
    "records make --layout dmh --tasks 100000 --rate 0.01 --out x": "would take",
    f"{DRAWN} --rate 0": "rate: read 0.0",
    f"{DRAWN} --arrivals bursts:0": "burst size: read 0",
    f"{DRAWN} --role goods-in=st1": "--role: given without RECORDS and --arrivals poisson",
    "records make --layout dmh --arrivals shift --role oven=x --out x": "--role: read oven=x; expected ROLE=",
    f"{DRAWN} --slack -1": "slack: read -1.0",
    f"{DRAWN} --seed -1": "seed: read -1",
    f"{DRAWN} --count 0": "--count: read 0; expected a whole",
    f"{DRAWN} --count 2 --names same": "gives one name twice",
    f"{DRAWN} --names a/b": "--names: read a/b",
    f"{DRAWN} --names q{{q}}": "--names: read q{q}; expected no braces but those of {k}",
    f"{DRAWN} --names {{name}}-{{k}}": "no braces but those of {k}",
    f"{DRAWN} --names breakdowns": "--names: read 'breakdowns'",
    f"{DRAWN} --sites oven": "expected one of parking, warehouse",
    f"{DRAWN} --sites parking": "expected at least two",
    f"{DRAWN} --arrivals often": "--arrivals: read often; expected one of uniform",
    f"{DRAWN} --demand 2:1": "demand: read 2 to 1; expected two",
    f"{DRAWN} --demand nan:1": "demand: read nan to 1",
    f"{DRAWN} --demand x": "--demand: read x; expected LOW:HIGH",
    f"{DRAWN} --handling-time 0:1e6": "numbers from 0 to 100000",
    "records make DMH-01 --magnitude 1 --names {k}} --out x": "no braces but those of {name}, {n}, {k}",
    "records make DMH-01 DMH-02 --magnitude 1 --names same --out x": "gives one name twice",
    "records check": "nothing to work on",
    "records check --breakdowns none": "--breakdowns: given without records",
    "records check DMH-01 --breakdowns none.csv": "none.csv: expected a file, found nothing",
    "records check week.csv --layout dmh --format json": "unknown site 'A'",
    "records convert week.csv --out a.csv --write-mapping ./a.csv": "another option writes, too",
    "records check none.csv": "none.csv: no such task record",
    "records check week.csv --split shift": "a pause in seconds",
    "evaluate EDD --on DMH-01 --past none.csv": "none.csv: expected a file, found nothing",
    "records convert --audit none.jsonl --out x.csv": "--layout: missing",
    "records convert --audit none.jsonl --layout dmh --out x.csv": "none.jsonl: ",
    "records convert --audit none.jsonl --layout dmh --mapping x.toml --out x.csv": "--mapping: given with",
    "records convert past.csv --audit none.jsonl --layout dmh --out x.csv": "IN: read both",
    "records convert --out x.csv": "IN: read neither",
    "records check 'none*.csv'": "none*.csv: no file matches; expected task records",
}

EXPORT = {
    "--columns tsk=A": "expected KNOWN=COLUMN",
    "--columns task": "expected KNOWN=COLUMN",
    "--columns pickup=Quelle": "no column 'Quelle'",
    "--encoding morse": "such as utf-8",
    "--split 25:00": "expected shift, day",
    "--split 0": "expected shift, day",
    "--split 06:00/06:00": "expected shift, day",
    "--mapping none.toml": "none.toml",
    "--mapping broken.toml": "not TOML",
    "--mapping odd.toml": '"colums": unknown key; expected one of columns',
    "--mapping kind.toml": "columns.task",
}

FLOOR = {
    "floor": "the following arguments are required: ACTION",
    "floor import bad.csv --out l.json": "bad.csv: begins with",
    "floor import hall.json": "the following arguments are required: -o/--out",
    IMPORT: "hall.json: no vehicles in it, and a layout needs a fleet; expected --vehicles N --start SITE "
    "(one of n1, pick, n3, drop, n5, ...)",
    f"{IMPORT} --vehicles 2": "--start: missing beside --vehicles",
    f"{IMPORT} --vehicles 0 --start n1": "--vehicles: read 0; expected a whole number from 1 to",
    f"{IMPORT} --vehicles 1 --start nix": "--start: read 'nix'; expected sites, nodes or stations such as",
    f"{FLEET} --speed 0": "--speed: read 0; expected",
    f"{FLEET} --speed nan": "--speed: read nan",
    f"{FLEET} --capacity -1": "--capacity: read -1",
    f"{IMPORT} --start": "acerl-np floor import: error: argument --start: expected one argument",
    f"{IMPORT} --layout-id cellar": '0 with layoutId "cellar"',
    "floor import plant.xml --out l.json --layout-id a": "plant.xml: --layout-id: given for a plant model",
    "floor check cross-asles": "; did you mean 'cross-aisles'?",
    "floor check hall.json": 'hall.json: "metaInformation": unknown key',
    "plot floor dmh --out floor.txt": "floor.txt: ends in 'txt'; expected a picture's name in png, svg",
}

RATES = "idle=1,empty=3,loaded=7,charge=10"
BATTERY = {
    "--battery capacity=10,empt=3": "--battery",
    "--battery capacity=1e3": "argument --battery: read capacity=1e3; expected KEY=N",
    "--battery idle=1": "--battery.capacity: missing",
    f"--battery capacity=9000,{RATES}": "battery: no chargers; expected at least one",
    "--battery hours=1": "--battery: read hours=1; expected hours=H,minutes=M alone",
    "--battery hours=0,minutes=1": "--battery: hours: read 0; expected a number from 0.01",
    "--chargers oven": "--chargers: read 'oven'; expected sites, nodes or stations",
    "--chargers park:0": "--chargers: read 'park:0'",
    "--chargers park,rack-1,park": "chargers[2].site: 'park' again",
    "--parking x": "--parking: read x; expected a whole number from 0",
    "--parking -1": "--parking: read -1; expected a whole number from 0",
}

WHATIF = {
    "--on week.csv": "nothing to vary: give at least one of --vehicles, --demand-factor,",
    "week.csv --vehicles 1": "week.csv: a record among the policies; expected it with --on",
    "--on week.csv --vehicles 0": "vehicles: read 0; expected a whole number from 1 to 1,000",
    "--on week.csv --vehicles 3:x": "argument --vehicles: read 3:x; expected values such as 3:8",
    "--on week.csv --vehicles 3 --target late>2%": "target: read late>2%; expected a measure below",
    "--on week.csv --vehicles 3 --out a.jpg": "a.jpg: ends in 'jpg'; expected a picture's name",
    "--on week.csv --vehicles 3 --out week.csv": "week.csv: ends in 'csv'",
    "--on week.csv --breakdown-rate 2": "breakdown_rate: read 2 on a floor without random breakdowns",
    "--on week.csv,week.csv --vehicles 3": "instance 'week' is given twice",
}

REPLAY = {
    "replay XYZ week.csv": "policy 'XYZ': unknown; expected one of FCFS",
    "replay none.npz week.csv": "none.npz: expected a file, found nothing",
    "replay week.csv --past week.csv": "week.csv: line 1: missing columns 'vehicle', 'start'",
    "replay EDD": "read 1 names (EDD); expected POLICY RECORD",
    "replay EDD week.csv --out week.csv": "--out: read 'week.csv'; expected a name that ends in .html",
    "replay EDD week.csv --out net": "--out: read 'net'; expected a name that ends in .html",
    "replay EDD week.csv --trial -1": "--trial: read -1; expected a whole number from 0 to",
    "replay EDD week.csv --seed x": "argument --seed: read x; expected a whole number",
    "replay EDD week.csv --horizon -1": "horizon",
    "replay EDD STD week.csv --past past.csv": "--past: 3 episodes; expected at most 2",
    "replay EDD STD DMH-02 --lookahead 2 --futures DMH-01": "--lookahead: 4 episodes",
    "replay week.csv --past past.csv --lookahead 3": "--lookahead: no trained",
    "replay EDD week.csv --layout none.json": "none.json: no such layout",
}

LOOKAHEAD = {
    "EDD --lookahead 2": "EDD: lookahead: EDD has no records of its own; expected history=",
    "EDD --futures DMH-02": "--futures: given without --lookahead",
    "EDD --lookahead 0 --futures DMH-02": "--futures: given with --lookahead 0; expected",
    "EDD --lookahead 0,weights=even": "--lookahead: read 0,weights=even; expected 1 or more futures",
    "EDD --lookahead -1": "--lookahead: futures: read -1; expected a whole number from 0",
    "EDD --lookahead x": "--lookahead: futures: read x; expected a whole number from 0",
    "EDD --lookahead 2,wieghts=even": "--lookahead: read wieghts; expected N, then one of weights, "
    "bases, reach; did you mean 'weights'?",
    "EDD --lookahead 2,reach=0.5": "--lookahead: reach: read 0.5; expected a number from 1",
    "EDD --lookahead 2,bases=2 --futures DMH-02": "--lookahead: read bases=2; expected an index policy",
    "EDD --lookahead 2 --futures DMH-01": "EDD, lookahead 2: DMH-01: no historical record but itself",
    "EDD --lookahead 2 --futures nothing.csv": "nothing.csv: no such task record",
}

EVERYWHERE = {
    "--threads 0": (
        "train, evaluate EDD, policy bound DMH-01",
        "--threads: read 0; expected a whole number from 1 to",
    ),
    f"-j {MAX_THREADS + 1}": (
        "train, policy bound",
        f"--threads: read {MAX_THREADS + 1}; expected",
    ),
    "--mapping=": (
        "train, evaluate EDD, policy bound, floor check dmh, records check",
        "argument --mapping: read ''; expected the name of a file, or none",
    ),
    "--commitment pickup:x": (
        "evaluate EDD, replay EDD DMH-01",
        "--commitment: read pickup:x; expected assignment, pickup or pickup:N",
    ),
    "--objective late@x": ("evaluate EDD, policy bound", "--objective: read @x; expected weights"),
}

PLOT = {
    "curves nowhere": "nowhere: not there; expected the folder of a run",
    "curves .": "no curves.csv and no history.csv",
    "curves run --only other": "--only: read 'other'; expected some of run",
    "curves run --out a.jpg": "a.jpg: ends in 'jpg'; expected a picture's name",
    "gantt EDD DMH-01": "invalid choice: 'gantt'",
}

everywhere = {
    f"{words} {more}": message
    for more, (several, message) in EVERYWHERE.items()
    for words in several.split(", ")
}
WRONG = {
    **{"general": GENERAL, "random": RANDOM, "seeds": SEEDS, "records": RECORDS},
    **{"floor": FLOOR, "replay": REPLAY, "everywhere": everywhere},
    "export": {f"{EXPORTED} {words}": EXPORT[words] for words in EXPORT},
    "whatif": {f"whatif {words}": WHATIF[words] for words in WHATIF},
    "battery": {f"{FLEET} {words}": BATTERY[words] for words in BATTERY},
    "lookahead": {f"evaluate {words} {JUDGED}": LOOKAHEAD[words] for words in LOOKAHEAD},
}


@pytest.fixture
def files(folder):
    """Further files, some of them unusable."""
    shutil.copy(DATA / "hall.lif.json", "hall.json")
    shutil.copy(DATA / "plant.xml", "plant.xml")
    Path("bad.csv").write_text("x,y\n1,2\n")
    Path("exported.csv").write_text("nr,from,to,created,due\nt0,A,B,0,60\n")
    Path("broken.toml").write_text("columns = ")
    Path("odd.toml").write_text("colums = {}")
    Path("kind.toml").write_text("columns = {task = 3}")
    Path("run").mkdir()
    header = "generation,decisions,instance,makespan,tardiness,satisfied\n"
    Path("run/curves.csv").write_text(header + "0,0,A,9,1,1\n8,90,A,8,1,1\n")
    acerl_np.IndexPolicy.of_weights(approach=-1.0, lateness=0.5).save("index.npz")
    Path("index.npz").rename("index.png")


def find_unsaid(run, cases):
    """Command lines that are refused, but not with the words that they should be."""
    lines = {words: run(words, 2).err for words in cases}
    return {words: line for words, line in lines.items() if cases[words] not in line}


@pytest.mark.parametrize("part", WRONG)
def test_bad_arguments_are_one_line_and_status_2(files, run, processes, part):
    assert find_unsaid(run, WRONG[part]) == {}


def test_what_cannot_be_drawn_is_refused_in_a_line(files, run):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    assert find_unsaid(run, {f"plot {words}": PLOT[words] for words in PLOT}) == {}


def test_an_extra_that_is_missing_is_named(files, run, monkeypatch):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    words = ["plot floor dmh --out a.png", "plot curves run"]
    cases = dict.fromkeys(words, "pip install matplotlib")
    assert find_unsaid(run, cases) == {}
