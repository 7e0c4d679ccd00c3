"""The one list of mutants, by component, and the tests that must kill them.

Only mutants that change what a component answers are listed: one that is merely slower is for the
cycle figures to find.
"""

from sim import (
    core_mutants,
    engine_mutants,
    insertion_mutants,
    link_mutants,
    probing_mutants,
    tree_mutants,
    word_mutants,
)

__all__ = ["MUTANTS", "TESTS"]

_INSERTING = "tests/formal/test_stream_rules.py"
_PROBING = "tests/formal/test_probing_rules.py"
_WHOLE = "tests/formal/test_engine_rules.py"
_ENGINE = ["tests/rtl/test_insertion_engine.py"]

MUTANTS = (
    insertion_mutants.MUTANTS | probing_mutants.MUTANTS | word_mutants.MUTANTS
    | core_mutants.MUTANTS | tree_mutants.MUTANTS | engine_mutants.MUTANTS | link_mutants.MUTANTS
)

#: Component -> arguments of the pytest runs that must kill its mutants, the quickest first.
TESTS = {
    "merger": [["tests/rtl/test_merger.py"], [_INSERTING, "-k", "a_merger or merged_tuples"]],
    "wide_merger": [["tests/rtl/test_wide_merger.py"], ["tests/formal/test_wide_merging.py"]],
    "splitter": [["tests/rtl/test_splitter.py"], _ENGINE],
    "indexer": [["tests/rtl/test_indexer.py"], [_INSERTING, "-k", "indexer"]],
    "insertion_engine": [["tests/rtl/test_memory.py"], _ENGINE, [_WHOLE, "-k", "insertion"]],
    "boundary_generator": [
        ["tests/rtl/test_boundary_generator.py"], [_PROBING, "-k", "boundary_generator"],
    ],
    "partitioner": [["tests/rtl/test_partitioner.py"], [_PROBING, "-k", "partitioner or search"]],
    "prober": [["tests/rtl/test_prober.py"], [_PROBING, "-k", "seeker or prober"]],
    "probing_engine": [
        ["tests/rtl/test_probing_engine.py"], [_PROBING, "-k", "packer or dealer or collector"],
        [_WHOLE, "-k", "probing"],
    ],
    "word_prober": [
        ["tests/rtl/test_word_prober.py"], [_PROBING, "-k", "word_prober or searcher"],
    ],
    "banked_memory": [["tests/rtl/test_banked_memory.py"]],
    "join_core": [["tests/rtl/test_join_core.py"]],
    "slot_table": [["tests/rtl/test_slot_table.py"]],
    "distribution_tree": [["tests/rtl/test_distribution_tree.py"]],
    "collection_tree": [["tests/rtl/test_collection_tree.py"]],
    "punctuator": [["tests/rtl/test_punctuator.py", "-k", "punctuator"]],
    "combiner": [["tests/rtl/test_punctuator.py", "-k", "combiner"]],
    "core_input": [["tests/rtl/test_core_input.py"], ["tests/formal/test_core_input_rules.py"]],
    "nested_loop_core": [
        ["tests/rtl/test_nested_loop_core.py"], ["tests/formal/test_nested_loop_rules.py"],
    ],
    "engine": [
        ["tests/rtl/test_engine.py"],
        ["tests/formal/test_whole_rules.py", "-k", "ends_one or answer and nested"],
    ],
    "frame_receiver": [
        ["tests/boards/test_frame_receiver.py"], ["tests/formal/test_receiver_rules.py"],
    ],
    "frame_transmitter": [
        ["tests/boards/test_frame_transmitter.py"], ["tests/formal/test_transmitter_rules.py"],
    ],
}
