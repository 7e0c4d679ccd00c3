"""Functional coverage: bins are declared before a run, hit during it, and printed after it."""

from itertools import product

__all__ = ["Coverage"]


class Coverage:
    """The bins of a cross product of named axes.

    >>> cover = Coverage("merger", kind=("uniform", "equal"), stall=(0.0, 0.4))
    >>> cover.hit(kind="equal", stall=0.4)
    """

    def __init__(self, name, *, skip=lambda **bin: False, **axes):
        self.name = name
        self.axes = tuple(axes)
        points = (dict(zip(axes, point, strict=True)) for point in product(*axes.values()))
        self.hits = {tuple(point.values()): 0 for point in points if not skip(**point)}

    def hit(self, **point):
        """Count one bin; a bin that was not declared is an error."""
        bin_ = tuple(point[axis] for axis in self.axes)
        if bin_ not in self.hits:
            raise KeyError(f"{self.name} has no bin {point}")
        self.hits[bin_] += 1

    @property
    def missed(self):
        return [bin_ for bin_, hits in self.hits.items() if not hits]

    def report(self):
        """One line: how many of the declared bins were hit."""
        total = len(self.hits)
        hit = total - len(self.missed)
        axes = " x ".join(self.axes)
        return f"coverage {self.name}: {hit} of {total} bins ({axes}), {100 * hit // total} %"

    def check(self):
        """Print the report; assert that every declared bin was hit."""
        print(self.report())
        assert not self.missed, f"{self.report()}; missed {self.missed}"
