"""watersmeet explain: the plan of a join from the schemas of its files."""

import argparse
import json

from host.commands.join import join_keywords, open_sources
from host.explain import as_json, as_text, explain
from host.inputs import plain_schema
from host.options import JoinOptions

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    left, right = open_sources(arguments)
    options = JoinOptions(
        left=plain_schema(left.schema), right=plain_schema(right.schema), **join_keywords(arguments)
    )
    lines = explain(options)
    if arguments.json:
        print(json.dumps(as_json(lines), indent=2, ensure_ascii=False))
    else:
        print(as_text(lines))
    return 0
