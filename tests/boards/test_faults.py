"""Ten thousand faults on the line to a simulated board: nothing wrong, nothing lost, no hang."""

import pytest

from tests.boards.conversation import converse

pytestmark = pytest.mark.sim


def test_ten_thousand_faults_change_nothing():
    faults, echoed, resets = converse(10_000, seed=5)
    assert faults >= 10_000
    assert echoed > 10_000
    assert resets > 0
