"""What is run: command lines, in a folder that holds copies of inputs/ and fixtures/."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BAD", "CASES", "DESIGNED", "DESIGNS", "FAMILIES", "GIVEN", "SUPERSEDED", "Case"]

FAMILIES = ("labels", "laplace", "noise", "quantizer")


@dataclass(frozen=True)
class Case:
    """command: a command line; with --json its object is compared, else its text when `text`.

    exact: numbers must be the same to the last bit, as those read from files alone; else to 1e-9.
    search: they come from a search that stops within a tolerance: a processor with other arithmetic may end 1e-4 away.
    many: its optimum is not unique, and another processor may end at another one: the law itself is not compared there.
    repaired: its certificate is compared as a law: a repair is rounded at 1e-34, and labels state their loss since.
    open_keys: the values of these keys may differ (they depend on what is installed).
    files: that are written, compared as bytes.
    """

    command: str
    exact: bool = False
    search: bool = False
    many: bool = False
    repaired: bool = False
    text: bool = False
    open_keys: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


# name of a fixture -> the command that wrote it (with --save); run again, it must write the same bytes
DESIGNED = {
    "noise-pdp": "design noise --n 8 --shifts 1,2,3 --directed --epsilon 1.5 --delta 0.1212",
    "noise-dp": "design noise --n 6 --max-shift 2 --epsilon 1 --delta 0.01 --notion dp",
    "noise-pure": "design noise --n 8 --max-shift 3 --epsilon 1.5 --notion pure",
    "noise-each-epsilon": "design noise --n 8 --shifts 1,2 --epsilon 1=0.5,2=1 --cost squared --zero-mean",
    "noise-vector": "design noise --sizes 3x3 --shifts 0,1;1,0 --epsilon 0,1=0.5;1,0=1 --cost squared",
    "noise-least-delta": "design noise --n 8 --max-shift 3 --epsilon 1.5 --minimise delta --budget 0.4425",
    "noise-equal": "design noise --n 5 --shifts 1 --epsilon 1 --delta 0.05 --notion dp --equal 1=5,2=4",
    "noise-literal": "design noise --n 5 --max-shift 2 --epsilon 1 --delta 0.1 --method literal --seed 3 --gap 0",
    "noise-raw": "design noise --n 8 --max-shift 3 --epsilon 1.5 --raw",
    "quantizer-exact": "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1",
    "quantizer-levels": "design quantizer --levels 3 --knots 5 --epsilon 1 --starts 1",
    "quantizer-mvu": "design quantizer --levels 3 --epsilon 1.5 --method mvu --starts 1",
    "quantizer-optm": "design quantizer --bins=-4,0.2,0.6,4 --epsilon 1 --method optm --density normal:0.5,0.1",
    "quantizer-product": "design quantizer --levels 3 --epsilon 1 --method product --starts 1",
    "quantizer-absolute": "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --metric absolute",
    "quantizer-squared": "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --metric squared --cost mse --c 1.5",
    "quantizer-raw": "design quantizer --bins=-3,-0.5,0.5,3 --epsilon 1 --knots 3 --raw",
    "labels-bins": "design labels --prior prior.csv --epsilon 1",
    "labels-printed": "design labels --prior prior.csv --epsilon 0.5 --method printed --loss absolute",
    "labels-lp": "design labels --prior prior.csv --epsilon 1 --method lp --loss absolute",
    "labels-lp-dp": "design labels --prior uniform:0..4 --epsilon 1 --method lp --neighbours 0-1,1-2,2-4 --notion dp "
    "--delta 0.01",
    "labels-lp-metric": "design labels --prior uniform:0..4 --epsilon 0.5 --method lp --notion metric --loss poisson",
    "labels-lp-unbiased": "design labels --prior uniform:0..3 --outputs=-3..6 --epsilon 1 --method lp "
    "--constraint unbiased",
    "labels-lp-consecutive": "design labels --prior uniform:0..4 --epsilon 1 --method lp --neighbours consecutive "
    "--constraint row-monotone --constraint symmetric --loss zero-one",
    "labels-unbiased": "design labels --prior prior.csv --epsilon 1 --method unbiased",
    "labels-raw": "design labels --prior uniform:0..4 --epsilon 1 --method lp --raw",
}  # fmt: skip
# a case -> the keys whose recorded values no longer hold, and why. Everything else of it still does; the objective too.
_OUTPUTS = "outputs of less error by a search that is not confined to symmetric ones and moves the knots at outputs"
_UNBIASED = "outputs of the same loss by another program: cones over intervals, whose bound is proven to 1e-7"
SUPERSEDED = {
    "design labels-unbiased": (("d", "solver", "outputs", "channel", "mechanism", "bias"), _UNBIASED),
    "design quantizer-levels": (
        ("bins", "mae", "mae_51", "mse", "objective", "gap", "difference", "mechanism", "bias"),
        _OUTPUTS,
    ),
    "design noise-least-delta": (("bound",), "a search that stops a node's program at the incumbent, 5e-14 apart"),
    "design noise --epsilon": (("required",), "notions without an epsilon take none: --notion zcdp --rho 0.1"),
    "compare noise --epsilon": (("required",), "as for design noise"),
    "design labels --epsilon": (("required",), "as for design noise"),
    "compare labels --epsilon": (("required",), "as for design noise"),
    "frontier noise --epsilon": (("required",), "the least epsilon of errors needs none: --budget"),
    "ledger unbiased": (("outputs_used", "bound"), _UNBIASED),
}
_SEARCHES = ("labels-unbiased", "quantizer-levels", "quantizer-mvu", "quantizer-product")
DESIGNS = {
    f"design {name}": Case(
        f"{command} --save fresh-{name}.json --json",
        search=name in _SEARCHES,
        many=name == "labels-unbiased",
        repaired=name.startswith(("quantizer", "labels")),
    )
    for name, command in DESIGNED.items()
}
GIVEN = (
    "given-noise-pdp", "given-noise-repaired", "given-noise-vector-dp", "given-channel-pure",
    "given-channel-dp-directed", "given-channel-pdp", "given-channel-biased", "given-quantizer-pure",
    "given-quantizer-metric", "given-quantizer-dp", "given-quantizer-pdp", "given-quantizer-biased",
)  # fmt: skip
# a true answer (a label, an input, a row) of each fixture that is not scalar noise
_ANSWERS = {
    "noise-vector": "1,2", "given-noise-vector-dp": "1,2", "labels-bins": "5", "labels-printed": "1", "labels-lp": "8",
    "labels-unbiased": "2", "quantizer-squared": "1.5",
}  # fmt: skip


def _answer(name: str) -> str:
    if name in _ANSWERS:
        return _ANSWERS[name]
    if "-quantizer" in name or name.startswith("quantizer"):
        return "0.25"
    return "1"


def _of_fixtures() -> dict[str, Case]:
    found = {}
    for name in (*DESIGNED, *GIVEN):
        file, answer = f"{name}.json", _answer(name)
        found[f"audit {name}"] = Case(f"audit {file} --json", exact=True)
        found[f"audit {name} at another epsilon"] = Case(f"audit {file} --epsilon 0.3 --json", exact=True)
        found[f"verify {name}"] = Case(f"verify-certificate {file} --json", exact=True)
        draws = f"sample {file} --count 12 --insecure-seed 7"
        found[f"sample {name}"] = Case(f"{draws} --answer {answer} --json", exact=True)
    return found


CASES: dict[str, Case] = {
    **_of_fixtures(),
    "sample noise-pdp, no answer": Case("sample noise-pdp.json --count 5 --insecure-seed 1", exact=True, text=True),
    "sample vector, text": Case("sample noise-vector.json --count 5 --insecure-seed 1", exact=True, text=True),
    "sample matrix.csv": Case("sample matrix.csv --count 9 --answer 0 --insecure-seed 1 --json", exact=True),
    "audit pmf.csv": Case("audit pmf.csv --max-shift 1 --epsilon 1 --json", exact=True),
    "audit pmf.csv directed": Case("audit pmf.csv --shifts 1,2 --directed --epsilon 1 --json", exact=True),
    "audit matrix.csv": Case("audit matrix.csv --pairs 0-1,1-2 --epsilon 0.5 --json", exact=True),
    "audit matrix.csv, all rows": Case("audit matrix.csv --json", exact=True),
    "audit stays without epsilon": Case("audit pmf.csv --max-shift 2 --json", exact=True),
    "compose noise-pure": Case("compose noise-pure.json --times 20 --delta 1e-6 --interval 1e-3 --json"),
    "compose quantizer-exact": Case("compose quantizer-exact.json --times 5 --epsilon 3 --interval 1e-3 --json"),
    "evaluate rqm": Case("evaluate quantizer --mechanism rqm --bins=-2.7,-0.9,0.9,2.7 --q 0.22 --json"),
    "evaluate erm": Case("evaluate quantizer --mechanism erm --bins=-5.1,-0.1,0.1,5.1 --gamma 0.026 --json"),
    "evaluate pbm": Case("evaluate quantizer --mechanism pbm --levels 4 --epsilon 1 --json"),
    "evaluate randomized response": Case("evaluate quantizer --mechanism randomized-response --epsilon 1 --json"),
    "evaluate biased": Case(
        "evaluate quantizer --mechanism biased --bins=-2.7,-0.9,0.9,2.7 --q 0.22 --beta 0.4 --json"
    ),
    "design laplace": Case("design laplace --epsilon 1 --bits 5 --json"),
    "design laplace delta": Case("design laplace --epsilon 0.1 --bits 8 --low 0 --high 100 --code delta --json"),
    "design laplace point": Case("design laplace --epsilon 1 --bits 6 --point 0.5 --json"),
    "design laplace unreachable": Case("design laplace --epsilon 1 --bits 1 --json"),
    "compare noise": Case(
        "compare noise --n 8 --max-shift 3 --epsilon 1.5 --delta 0.1 --solvers highs,ortools:glop,nonsense --json"
    ),
    "compare noise, all failed": Case("compare noise --n 4 --max-shift 1 --epsilon 1 --solvers nonsense --json"),
    "compare list": Case("compare --suite small --list --json"),
    "compare suite": Case(
        "compare --suite small --solvers highs --instances noise-lp-*,mvu-* --json",
        open_keys=("ratio", "shifted_mean_seconds", "within"),
    ),
    "frontier noise": Case(
        "frontier noise --n 3 --max-shift 1 --epsilon 1 --delta 0,0.1 --notion dp --level 0.3 --out fn --json"
    ),
    # every family reports its exact deltas and its solver's seconds now; only noise did when these were recorded
    "frontier quantizer": Case(
        "frontier quantizer --levels 2 --epsilon 1 --starts 1 --out fq --json",
        search=True,
        open_keys=("pdp_delta", "dp_delta"),
    ),
    "frontier labels": Case(
        "frontier labels --prior uniform:0..4 --epsilon 1 --out fl --json",
        open_keys=("pdp_delta", "dp_delta", "seconds"),
    ),
    "frontier laplace": Case("frontier laplace --epsilon 1 --bits 5 --ell 2 --out fd --json"),
    "frontier table": Case("frontier table --epsilon 1 --delta 0 --bits 2 --task count --n 4 --out ft --json"),
    "reproduce": Case("reproduce --paper modulo-noise --only table1 --results reproduced --json"),
    "solvers": Case("solvers --json", open_keys=("installed", "version", "capabilities", "licence")),
    "verify": Case("verify --small --json"),
    "privatise": Case(
        "privatise labels sales.csv --column amount --epsilon 2 --labels 0..7 --out private.csv --seed 5 --json",
        files=("private.csv", "private.csv.json"),
    ),
    "privatise, another split": Case(
        "privatise labels sales.csv --column 2 --epsilon 1 --labels 0..5 --snap --loss absolute --split 1/4 "
        "--projection simplex --out other.csv --seed 5 --json",
        files=("other.csv", "other.csv.json"),
    ),
    "dql decode gamma": Case("dql decode --seed-file dql.key gamma.bits --json", exact=True),
    "dql decode delta": Case("dql decode --seed-file dql.key --epsilon 0.5 --ell 1.6 delta.bits --json", exact=True),
    "dql decode, text": Case("dql decode --seed-file dql.key gamma.bits", exact=True, text=True),
    "dql decode, file": Case("dql decode --seed-file dql.key delta.bits n.csv --json", exact=True, files=("n.csv",)),
    "dql encode": Case(
        "dql encode --epsilon 1 --ell 2 --seed-file dql.key --column amount numbers.csv fresh.bits --json",
        open_keys=("bytes", "bits_per_scalar"),
    ),
    "dql keygen": Case("dql keygen fresh.key --json"),
    "results list": Case("results list --ledger old.db --limit 0 --json", exact=True),
    "results list, some": Case("results list --ledger old.db --model labels --status optimal --json", exact=True),
    "results export": Case("results export some.csv --ledger old.db --spec ledger.toml --json", exact=True),
    **{
        f"dry run {family}": Case(f"sweep sweep_{family}.toml --dry-run --ledger none.db --json") for family in FAMILIES
    },
}

# Requests that fail, and some that say little: the exit code and, with --json, the kind of error are compared.
BAD = (
    "", "--help", "-h", "--version", "nonsense", "design", "design --help", "design nonsense", "results", "frontier",
    "compare --help", "dql", "design noise", "design noise --help", "design noise --colour red", "sample",
    "design noise --epsilon 1 --json", "design noise --n 4 --max-shift 1 --epsilon 0 --json",
    "design noise --n 4 --max-shift 1 --epsilon nan --json", "design noise --n 4 --max-shift 1 --epsilon one --json",
    "design noise --n four --max-shift 1 --epsilon 1 --json",
    "design noise --n 4 --sizes 5 --shifts 1 --epsilon 1 --json",
    "design noise --n 4 --shifts 9 --epsilon 1 --json", "design noise --n 4 --max-shift 0 --epsilon 1 --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --delta 2 --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --notion fancy --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --cost fancy --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --solver nonsense --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --solver cvxpy:mosek --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --minimise delta --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --budget 0.5 --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --notion pure --delta 0.1 --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --minimise delta --budget 0 --delta 0.1 --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --equal 1=9 --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --time-limit 0 --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --save missing/noise.json --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --plot picture.txt --json",
    "design noise --n 4 --max-shift 1 --epsilon 1 --method fancy --json",
    "design quantizer --epsilon 1 --json", "design quantizer --levels 4 --bins=-1,1 --epsilon 1 --json",
    "design quantizer --bins=-1.5,1.5 --epsilon 0.1 --json", "design quantizer --bins=-0.5,0.5 --epsilon 1 --json",
    "design quantizer --bins=3,-3 --epsilon 1 --json", "design quantizer --levels 1 --epsilon 1 --json",
    "design quantizer --levels 4 --epsilon 1 --method fancy --json",
    "design quantizer --levels 4 --epsilon 1 --density fancy --json",
    "design quantizer --levels 4 --epsilon 1 --starts 9 --json",
    "design quantizer --bins=-3,3 --epsilon 1 --method optm --cost mse --json",
    "design quantizer --bins=-3,3 --epsilon 1 --metric fancy --json",
    "design labels --epsilon 1 --json", "design labels --prior missing.csv --epsilon 1 --json",
    "design labels --prior uniform:4..0 --epsilon 1 --json", "design labels --prior uniform:0..4 --epsilon 31 --json",
    "design labels --prior uniform:0..4 --epsilon 1 --loss fancy --json",
    "design labels --prior uniform:0..4 --epsilon 1 --delta 0.1 --json",
    "design labels --prior uniform:0..4 --epsilon 1 --notion dp --delta 0.1 --json",
    "design labels --prior uniform:0..4 --epsilon 1 --method lp --outputs 3 --json",
    "design labels --prior uniform:0..4 --epsilon 1 --method lp --neighbours 0-9 --json",
    "design labels --prior uniform:0..4 --epsilon 1 --method lp --constraint fancy --json",
    "design labels --prior uniform:0..3 --epsilon 1 --method lp --constraint unbiased --json",
    "design labels --prior uniform:0..4 --epsilon 1 --method unbiased --loss absolute --json",
    "design labels --prior uniform:0..4 --epsilon 1 --save missing/labels.json --json",
    "design laplace --epsilon 1 --bits 0 --json", "design laplace --epsilon 1 --bits 5 --code fancy --json",
    "design laplace --epsilon 1 --bits 5 --low 2 --high 1 --json",
    "design laplace --epsilon 1 --bits 5 --low 0 --point 1 --json",
    "evaluate quantizer --mechanism fancy --json", "evaluate quantizer --mechanism rqm --bins=-2,2 --json",
    "evaluate quantizer --mechanism pbm --levels 4 --json",
    "audit missing.json --json", "audit broken.json --json", "audit pmf.csv --json", "audit prior.csv --json",
    "audit matrix.csv --pairs 0-7 --json", "audit noise-pdp.json --max-shift 1 --json",
    "audit noise-pdp.json --epsilon=-1 --json", "audit false-claim.json --json",
    "verify-certificate false-claim.json --json", "verify-certificate broken.json --json",
    "verify-certificate missing.json --json", "verify-certificate pmf.csv --json",
    "sample noise-pdp.json --count=-1 --json", "sample noise-pdp.json --answer 99 --json",
    "sample labels-bins.json --answer 3 --json", "sample labels-bins.json --json",
    "sample quantizer-exact.json --answer 2 --json", "sample noise-pdp.json --insecure-seed=-1 --json",
    "compose noise-pure.json --times 0 --delta 1e-6 --json", "compose noise-pure.json --times 2 --json",
    "compose noise-pure.json --times 2 --delta half --json",
    "compare --suite fancy --json", "compare --suite small --solvers nonsense --json",
    "compare --suite small --instances fancy --json",
    "compare noise --n 4 --max-shift 1 --epsilon 1 --solvers , --json",
    "frontier noise --n 4 --max-shift 1 --epsilon 1:2 --json",
    "frontier noise --n 4 --max-shift 1 --epsilon 1 --notion fancy --json",
    "frontier noise --n 4 --max-shift 1 --epsilon 1 --out pmf.csv --json",
    "frontier quantizer --levels 1.5 --epsilon 1 --json",
    "frontier labels --prior 0..4 --epsilon 1 --method fancy --json",
    "frontier laplace --epsilon 1 --bits 0 --json", "frontier table --task fancy --json",
    "reproduce --paper fancy --json", "reproduce --paper modulo-noise --only fancy --json",
    "verify --solvers nonsense --json",
    "privatise labels missing.csv --column amount --epsilon 1 --out p.csv --json",
    "privatise labels sales.csv --column colour --epsilon 1 --out p.csv --json",
    "privatise labels sales.csv --column amount --epsilon 1 --labels 0..5 --out p.csv --json",
    "privatise labels sales.csv --column amount --epsilon 1 --labels 0..7 --out sales.csv --json",
    "dql decode --seed-file wrong.key gamma.bits --json",
    "dql decode --seed-file dql.key --epsilon 2 gamma.bits --json",
    "dql decode --seed-file dql.key damaged.bits --json", "dql decode --seed-file pmf.csv gamma.bits --json",
    "dql encode --epsilon 1 --ell 1 --seed-file dql.key --column amount numbers.csv x.bits --json",
    "dql encode --epsilon 1 --ell 2 --seed-file dql.key numbers.csv x.bits --json", "dql keygen dql.key --json",
    "sweep missing.toml --json", "sweep broken.json --json", "sweep unknown_key.toml --json",
    "sweep bad_value.toml --json", "results list --ledger missing.db --json", "results list --ledger pmf.csv --json",
    "results show ffff --ledger old.db --json", "results show xyz --ledger old.db --json",
    "results export table.txt --ledger old.db --json", "results export missing/table.csv --ledger old.db --json",
)  # fmt: skip
