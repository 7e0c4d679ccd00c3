"""Which part of a condition is done where."""

from dataclasses import dataclass, replace

from host.bands import ExactBands, Rank, exact_bands
from host.floatbands import FloatBands, float_bands
from host.joinkeys import ConstantKeys, Equality, HashedKeys, JoinKeys, OrderedKeys
from host.sql.expressions import Call, Constant, Node, sides_of
from host.sql.logic import all_of, conjuncts, is_implied
from hw.spec.predicates import Predicate
from hw.spec.tuples import Side

__all__ = ["Plan", "planned"]

Bands = ExactBands | FloatBands


@dataclass(frozen=True)
class Plan:
    """A condition, taken apart.

    keys        what tuples are stored and searched by
    equalities  parts `left value = right value`
    primary     the bands that the keys search, None if they are hashes or all alike
    second      the next best bands; they are checked in the residual, unless `both` are searched
    filters     conjuncts about the left stream alone, and about the right one
    residual    conjuncts that the keys do not settle
    why         one sentence on the choice of the keys
    both        whether tuples have a second key, by which the second bands are searched
    """

    keys: JoinKeys
    equalities: tuple[Equality, ...] = ()
    primary: Bands | None = None
    second: Bands | None = None
    filters: tuple[tuple[Node, ...], tuple[Node, ...]] = ((), ())
    residual: tuple[Node, ...] = ()
    why: str = ""
    both: bool = False

    def searching_both(self) -> "Plan":
        """The same with the second bands searched beside the first keys."""
        assert self.second is not None
        rest = tuple(part for part in self.residual if part not in self.second.parts)
        return replace(self, residual=rest, both=True)


_NO_PAIRS = "no part is about both streams: every pair that the filters leave is wanted"
_WHY = {
    Rank.EQUALITY: "an equality is the narrowest search",
    Rank.BAND: "a band bounds the search from both sides",
    Rank.BANDS: "several bands bound the search",
    Rank.INEQUALITY: "an inequality bounds the search from one side",
    Rank.EXCLUSION: "nothing bounds the search but what is left out",
}


def planned(condition: Node) -> Plan:
    """The plan of a condition in normal form (see host.sql.logic)."""
    parts = conjuncts(condition)
    if any(isinstance(part, Constant) and not part.value for part in parts):
        return Plan(ConstantKeys(predicate=Predicate(())), why="the condition is never true")
    parts = [part for part in parts if not isinstance(part, Constant)]
    left, right = (tuple(p for p in parts if sides_of(p) == {side}) for side in Side)
    pairs = [part for part in parts if len(sides_of(part)) == 2]
    bands, texts = _searchable(pairs)
    equalities = tuple(
        [Equality(b.left, b.right, all_of(b.parts), b) for b in bands
         if isinstance(b, ExactBands) and b.rank is Rank.EQUALITY] + texts)
    plan = _chosen(bands, equalities) if pairs else Plan(ConstantKeys(), why=_NO_PAIRS)
    settled = () if plan.primary is None else plan.primary.parts
    residual = tuple(part for part in pairs if part not in settled and not is_implied(part))
    return Plan(plan.keys, equalities, plan.primary, plan.second, (left, right), residual,
                plan.why)


def _searchable(parts: list[Node]) -> tuple[list[Bands], list[Equality]]:
    """Bands, those about the same values together, best first; and equalities of texts."""
    bands: list[Bands] = []
    texts: list[Equality] = []
    for part in parts:
        found = exact_bands(part) or float_bands(part)
        if found is not None:
            _add(bands, found)
        elif isinstance(part, Call) and part.name == "=" and part.args[0].type.text:
            a, b = sorted(part.args, key=lambda arg: sorted(sides_of(arg)))
            if (sides_of(a), sides_of(b)) == ({Side.LEFT}, {Side.RIGHT}):
                texts.append(Equality(a, b, part))
    plain = [band.as_exact() or band if isinstance(band, FloatBands) else band for band in bands]
    return sorted(plain, key=lambda band: band.rank), texts


def _add(bands: list[Bands], found: Bands) -> None:
    for place, known in enumerate(bands):
        if type(known) is type(found):
            joined = known.joined(found)  # type: ignore[arg-type]
            if joined is not None:
                bands[place] = joined
                return
    bands.append(found)


def _chosen(bands: list[Bands], equalities: tuple[Equality, ...]) -> Plan:
    """Keys, primary, second, why."""
    if len(equalities) > 1 or (equalities and equalities[0].bands is None):
        others = [band for band in bands if band.rank is not Rank.EQUALITY]
        why = ("several equalities are searched at once by a hash" if len(equalities) > 1
               else "texts are searched by a hash")
        return Plan(HashedKeys(equalities), second=next(iter(others), None), why=why)
    if not bands:
        return Plan(ConstantKeys(), why="no part can be searched: every pair is checked")
    primary, *others = bands
    return Plan(OrderedKeys(primary), primary=primary, second=next(iter(others), None),
                why=_WHY[primary.rank])
