"""Places in a device's memory that comes and goes in pieces of any size."""

__all__ = ["Arena"]


class Arena:
    """Hands out runs of places, lowest first; `size` is how many there are."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = [(0, size)]  # (first, places) ascending, never touching

    def take(self, places: int) -> int | None:
        """The first of so many free places in a row, or None if the arena must grow."""
        for number, (first, room) in enumerate(self._free):
            if room >= places:
                self._free[number : number + 1] = (
                    [(first + places, room - places)] if room > places else []
                )
                return first
        return None

    def give_back(self, first: int, places: int) -> None:
        """Free what was taken."""
        joined: list[tuple[int, int]] = []
        for begin, room in sorted([*self._free, (first, places)]):
            if joined and sum(joined[-1]) == begin:
                joined[-1] = (joined[-1][0], joined[-1][1] + room)
            else:
                joined.append((begin, room))
        self._free = joined

    def grow(self, size: int) -> None:
        """Add places at the end."""
        self.give_back(self.size, size - self.size)
        self.size = size
