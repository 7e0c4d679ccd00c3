"""Children and separators of one inner node, in trees whose nodes are rows of arrays."""

from host.indexes.compiling import compiled

__all__ = ["add_child", "join_under", "split_node"]


@compiled
def add_child(separators, children, fill, node, place, separator, child):  # type: ignore[no-untyped-def]
    """Put `child` behind the one at `place`, with `separator` between them; there is room."""
    held = fill[node]
    for at in range(held - 1, place, -1):
        separators[node, at] = separators[node, at - 1]
        children[node, at + 1] = children[node, at]
    separators[node, place] = separator
    children[node, place + 1] = child
    fill[node] = held + 1


@compiled
def split_node(separators, children, fill, node, new, place, separator, child):  # type: ignore[no-untyped-def]
    """Move the upper half of a full node to `new`, then put the child; what is between the two."""
    half = fill[node] // 2
    between = separators[node, half - 1]
    for at in range(half):
        children[new, at] = children[node, half + at]
    for at in range(half - 1):
        separators[new, at] = separators[node, half + at]
    fill[node] = fill[new] = half
    if place < half:
        add_child(separators, children, fill, node, place, separator, child)
    else:
        add_child(separators, children, fill, new, place - half, separator, child)
    return between


@compiled
def join_under(separators, children, fill, root, left, separator, right):  # type: ignore[no-untyped-def]
    """Make `root` a node above two."""
    children[root, 0], children[root, 1] = left, right
    separators[root, 0] = separator
    fill[root] = 2
