"""The steps of a reproduction: what is computed at a time, in this process or in several of this machine.

A step is an artifact, artifacts that share their computation, one part of these, or the errata of a paper. In
several processes steps begin in the order of how long they take (`Paper.seconds`), the longest first. A worker writes
into a folder of its own; this process moves what is complete into the results, so a worker that is stopped leaves
nothing there. Each worker has one thread, and the bytes are those of a single process.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from workbench.errors import WorkbenchError
from workbench.io.figures import save_figure
from workbench.io.files import write_whole
from workbench.io.result import Row
from workbench.papers import load
from workbench.papers.artifact import Artifact, InParts, Paper, rounded

__all__ = ["ERRATA", "Progress", "Reproduction", "Step", "heartbeat", "in_order", "separate", "write_artifact"]

Progress = Callable[[int, int, str], None]
ERRATA = "errata"


@dataclass(frozen=True)
class Step:
    """names: artifacts of a paper that one process computes one after the other, or ERRATA; key: of a part of each,
    when they are artifacts in parts."""

    paper: str
    names: tuple[str, ...]
    key: Any = None


@dataclass(frozen=True)
class Outcome:
    """What came of an artifact: its seconds and a row for every printed number; of a part what it found, of errata
    the content of their file."""

    name: str
    seconds: float
    rows: Sequence[Row] = ()
    data: Any = None


def in_order(papers: Sequence[Paper], names: Iterable[tuple[Paper, str]], *, errata: bool) -> list[Step]:
    """The steps of one process: every artifact, then the errata, paper by paper."""
    chosen = list(names)
    steps: list[Step] = []
    for paper in papers:
        steps += [Step(paper.name, (name,)) for other, name in chosen if other is paper]
        if errata and paper.errata is not None:
            steps.append(Step(paper.name, (ERRATA,)))
    return steps


def separate(papers: Sequence[Paper], steps: Iterable[Step]) -> tuple[list[Step], list[Step]]:
    """The steps of several processes, longest first, and those that come after them, alone: they measure
    time, or have processes of their own."""
    by_name = {paper.name: paper for paper in papers}
    weighed: dict[Step, float] = {}
    alone: list[Step] = []
    joined: set[tuple[str, str]] = set()
    wanted = list(steps)
    for step in wanted:
        paper, (name,) = by_name[step.paper], step.names
        if paper.on_demand or name in paper.timed or name in paper.resumed:
            alone.append(step)
            continue
        if (paper.name, name) in joined:
            continue
        group: Iterable[str] = next((names for names in paper.together if name in names), (name,))
        members = tuple(other.names[0] for other in wanted if other.paper == paper.name and other.names[0] in group)
        joined |= {(paper.name, member) for member in members}
        for key, sharing in _parts(paper, members).items():
            weighed[Step(paper.name, tuple(sharing), key)] = sum(sharing.values())
    return sorted(weighed, key=lambda step: -weighed[step]), alone


def _parts(paper: Paper, members: Sequence[str]) -> dict[Any, dict[str, float]]:
    """Which artifacts are computed together, and about how long each takes: by the key of their parts, the last, which
    is the longest, first; None is the key of whole ones."""
    parts: dict[Any, dict[str, float]] = {}
    for name in members:
        compute = paper.artifacts.get(name)
        keys: Sequence[Any] = compute.keys[::-1] if isinstance(compute, InParts) else [None]
        for key in keys:
            parts.setdefault(key, {})[name] = paper.seconds.get(name, 1.0) / len(keys)
    return parts


@dataclass
class Reproduction:
    """Steps taken so far.

    names: (paper, artifact) of all artifacts wanted, in order; done: how many of them are finished; rows: theirs.
    """

    papers: Sequence[Paper]
    names: Sequence[tuple[str, str]]
    results: Path
    full: bool
    progress: Progress
    done: int = 0
    known: dict[tuple[str, str], Sequence[Row]] = field(default_factory=dict)

    @property
    def rows(self) -> list[Row]:
        """Those of the artifacts finished so far, in the order of the papers."""
        return [row for key in self.names for row in self.known.get(key, ())]

    def run(self, steps: Sequence[Step], jobs: int) -> None:
        """All steps, on `jobs` processes where that many can be used. Raises WorkbenchError."""
        apart, alone = separate(self.papers, steps)
        processes = min(jobs, len(apart))
        if processes > 1:
            self.take_in_processes(apart, processes)
        self.take(alone if processes > 1 else steps)

    def take(self, steps: Iterable[Step]) -> None:
        """One step after the other, in this process. Raises WorkbenchError."""
        for step in steps:
            paper, (name,) = self._paper(step), step.names
            if name == ERRATA:
                self._tell(f"{paper.name}: checking the errata ...")
                self._keep_errata(paper.name, _errata(paper).data)
                continue
            label = self._label(paper.name, name)
            self._tell(f"{label} ...")
            with heartbeat(self._tell, label):
                outcome = _computed(paper, name, self.full, self.results)
            self._finished(paper.name, outcome)

    def take_in_processes(self, steps: Sequence[Step], jobs: int) -> None:
        """On `jobs` processes of this machine; told of each as it ends. Raises WorkbenchError."""
        from workbench.sweeps.workers import on_processes

        waiting = list(steps)
        parts: dict[tuple[str, str], dict[Any, Outcome]] = {}

        def under_way() -> str:
            names = [f"{step.paper} {', '.join(step.names)}" for step in waiting[:jobs]]
            return "; ".join(dict.fromkeys(names))

        with TemporaryDirectory(prefix="workbench-reproduce-") as folder:
            tasks = [(step, self.full, folder) for step in steps]
            self._tell(f"On {jobs} processes, longest first: {under_way()} ...")
            beat = heartbeat(lambda line: self._tell(f"[{self.done}/{len(self.names)}] {under_way()}{line}"), "")
            with beat, closing(on_processes(tasks, jobs, _work, ahead=1)) as stream:
                for at, outcomes in stream:
                    step = steps[at]
                    waiting.remove(step)
                    if outcomes is None:
                        names = f"{step.paper} {', '.join(step.names)}"
                        raise WorkbenchError(f"The processes that computed {names} died again and again.")
                    for outcome in outcomes:
                        if step.key is None:
                            self._receive(step, outcome, Path(folder))
                            continue
                        ended = parts.setdefault((step.paper, outcome.name), {})
                        ended[step.key] = outcome
                        self._join(self._paper(step), outcome.name, ended)

    def _join(self, paper: Paper, name: str, ended: dict[Any, Outcome]) -> None:
        """Put an artifact together once all of its parts have ended."""
        compute = paper.artifacts[name]
        assert isinstance(compute, InParts)
        if len(ended) < len(compute.keys):
            return
        begin = time.perf_counter()
        artifact = compute.join([ended[key].data for key in compute.keys], self.full)
        rows = _written(paper.name, name, artifact, self.results)
        seconds = sum(outcome.seconds for outcome in ended.values()) + time.perf_counter() - begin
        self._finished(paper.name, Outcome(name, seconds, rows))

    def _receive(self, step: Step, outcome: Outcome, folder: Path) -> None:
        """Move what a worker wrote into the results, the record last."""
        if outcome.name == ERRATA:
            self._keep_errata(step.paper, outcome.data)
            self._tell(f"{step.paper}: the errata are checked")
            return
        for ending in ("csv", "png", "svg", "json"):
            file = folder / step.paper / f"{outcome.name}.{ending}"
            if file.exists():
                write_whole(self.results / step.paper / file.name, file.read_bytes())
        self._finished(step.paper, outcome)

    def _finished(self, paper: str, outcome: Outcome) -> None:
        agree = sum(row["verdict"].startswith("agrees") for row in outcome.rows)
        count = f", {agree} of {len(outcome.rows)} printed numbers agree" if outcome.rows else ""
        self._tell(f"{self._label(paper, outcome.name)} done in {outcome.seconds:.1f} s{count}")
        self.known[paper, outcome.name] = outcome.rows
        self.done += 1

    def _keep_errata(self, paper: str, content: str) -> None:
        write_whole(self.results / paper / "errata.json", content.encode())

    def _paper(self, step: Step) -> Paper:
        return next(paper for paper in self.papers if paper.name == step.paper)

    def _label(self, paper: str, name: str) -> str:
        return f"[{self.done + 1}/{len(self.names)}] {paper} {name}"

    def _tell(self, line: str) -> None:
        self.progress(self.done, len(self.names), line)


def _work(task: tuple[Step, bool, str]) -> list[Outcome]:
    """What a worker does with a step."""
    step, full, folder = task
    paper = load(step.paper)
    if step.key is not None:
        return [_part(paper, name, step.key, full) for name in step.names]
    return [_errata(paper) if name == ERRATA else _computed(paper, name, full, Path(folder)) for name in step.names]


def _part(paper: Paper, name: str, key: Any, full: bool) -> Outcome:
    compute = paper.artifacts[name]
    assert isinstance(compute, InParts)
    begin = time.perf_counter()
    data = compute.part(key, full)
    return Outcome(name, time.perf_counter() - begin, data=data)


def _errata(paper: Paper) -> Outcome:
    assert paper.errata is not None
    begin = time.perf_counter()
    content = json.dumps([asdict(e) for e in paper.errata()], indent=1, ensure_ascii=False) + "\n"
    return Outcome(ERRATA, time.perf_counter() - begin, data=content)


def _computed(paper: Paper, name: str, full: bool, results: Path) -> Outcome:
    """Compute one artifact and write it into the results' folder of its paper."""
    begin = time.perf_counter()
    kept = results / paper.name / f"{name}.partial.jsonl"
    artifact = paper.artifacts[name](full, kept) if name in paper.resumed else paper.artifacts[name](full)
    seconds = time.perf_counter() - begin
    rows = _written(paper.name, name, artifact, results)
    kept.unlink(missing_ok=True)
    return Outcome(name, seconds, rows)


def _written(paper: str, name: str, artifact: Artifact, results: Path) -> list[Row]:
    """Write an artifact; a row for every printed number in it."""
    write_artifact(artifact, results / paper)
    return [
        {
            "paper": paper,
            "artifact": name,
            "what": c.what,
            "place": c.place,
            "printed": c.printed,
            "ours": c.ours,
            "difference": c.difference,
            "tolerance": c.tolerance,
            "verdict": c.verdict,
            "surprising": c.surprising,
            "remark": c.remark,
            "apart": c.apart,
        }
        for c in artifact.comparisons
    ]


def write_artifact(artifact: Artifact, folder: Path) -> None:
    """Write an artifact's table, figure and record into a folder."""
    shown = artifact.shown()
    table = shown.to_csv(index=False, float_format="%.12g", lineterminator="\n")
    write_whole(folder / f"{artifact.name}.csv", table.encode())
    if artifact.draw is not None:
        figure = artifact.draw(shown)
        save_figure(figure, folder / f"{artifact.name}.png")
        save_figure(figure, folder / f"{artifact.name}.svg")
    record = {
        "name": artifact.name,
        "title": artifact.title,
        "caption": artifact.caption,
        "figure": artifact.draw is not None,
        "comparisons": [
            {
                **{name: value for name, value in asdict(c).items() if name != "apart" or value},
                "ours": c.shown,
                "difference": rounded(c.shown - c.printed, 4),
                "tolerance": float(f"{c.tolerance:.6g}"),
                "verdict": c.verdict,
                "surprising": c.surprising,
            }
            for c in artifact.comparisons
        ],
    }
    write_whole(folder / f"{artifact.name}.json", (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())


@contextmanager
def heartbeat(tell: Callable[[str], None], name: str, every: float = 30.0) -> Iterator[None]:
    """Say every so many seconds that something is still running."""
    done, begin = threading.Event(), time.perf_counter()

    def beat() -> None:
        while not done.wait(every):
            tell(f"{name} ... {time.perf_counter() - begin:.0f} s so far")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
