import shutil

import pytest


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("precision", ["double", "float"])
def test_times_of_every_network_are_ordered(benchmark, monkeypatch, precision):
    export_speed = benchmark("export_speed")
    monkeypatch.setattr(export_speed, "NUM_CALLS", 1000)
    for network in export_speed.NETWORKS:
        cells = export_speed.measure(network, precision, ("-O2",)).split("|")
        median, most, worst = map(float, cells[4:7])
        assert cells[1].strip() == network and 0 < median <= most <= worst
