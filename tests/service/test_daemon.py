"""The worker daemon and its client, as processes."""

from tests.helpers import in_splits, pairs_of
from tests.service.micro_batches import Source, streams


def run_epoch(client, job):
    return sorted(pairs_of(client.run(job)))


def test_epochs_give_their_pairs_and_a_repeated_one_the_same_again(daemons, tmp_path):
    source = Source(tmp_path, streams(), in_splits(40, 44, [(9, 3), (0, 0), (2, 12)]), "rows 9,7")
    client = daemons.client()
    for epoch, wanted in enumerate(source.expected()):
        assert run_epoch(client, source.job(epoch)) == wanted
        assert run_epoch(client, source.job(epoch)) == wanted
        assert client.report["epoch"] == epoch
        assert client.report["pairs"] == len(wanted)
        if epoch == 4:
            daemons.kill()
            assert run_epoch(client, source.job(epoch)) == wanted
            assert client.report["recovered"]
