"""stream_join can be called as the design has it, by position as well as by name."""

from inspect import signature

from spark_bridge import stream_join


def test_the_arguments_come_in_the_order_of_the_design():
    promised = (
        "left right on window time lateness select workers backend device index order emit "
        "aggregates state_dir"
    )
    assert [*signature(stream_join).parameters][:15] == promised.split()
    kinds = {p.name: p.kind.name for p in signature(stream_join).parameters.values()}
    assert {kinds[name] for name in promised.split()} == {"POSITIONAL_OR_KEYWORD"}
