"""The ablations of TDPO."""

import pytest

from run_scripts import ablations
from run_scripts.results import main
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.tdpo import judged, search


def test_every_change_replaces_something_that_exists_and_is_taken_back():
    before = search.RADII, judged.GROW, search.SearchLearner._search_line
    for changes in (*ablations.CHANGES_ALONG_THE_WAY.values(), *ablations.CHANGES_AT_THE_END.values()):
        with ablations.replaced(changes):
            pass
    assert (search.RADII, judged.GROW, search.SearchLearner._search_line) == before
    with ablations.replaced(ablations.CHANGES_AT_THE_END["fixed radius"]):
        assert judged.Trial(theta=None, tolerated_loss=1.0, radius=0.2).judge(gain=1.0)[0].radius == 0.2
    with pytest.raises(AttributeError), ablations.replaced({"search.NO_SUCH_CONSTANT": 1}):
        pass


@pytest.mark.slow
def test_smoke_trains_with_the_changes(smoke, cells_of):
    out = smoke("ablations", "--only", "dead-time as shipped", "dead-time no linear")
    shown = [row[0] for row in cells_of(out / "ablations-along-the-way.md") if len(row) > 1]
    assert shown == ["as shipped", "no linear part"]
    with_linear_part, without = (
        checkpoint.load_newest(next(out.glob(f"runs/dead-time_{name}*/checkpoints")))["policy"]["theta"].size
        for name in ("as", "no")
    )
    assert with_linear_part > without


def test_jobs_are_refused(tmp_path, capsys):
    assert main(ablations.RESULT, ["--jobs", "2", "--scale", "smoke", "--runs", str(tmp_path)]) == 2
    assert "leave --submit and --jobs out" in capsys.readouterr().err
