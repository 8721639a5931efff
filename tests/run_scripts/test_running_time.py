import pytest

from run_scripts import running_time


def test_time_is_that_of_the_second_half(tmp_path):
    rows = ["iteration,total_timesteps,wall_time", "1,1000,50", "2,2000,52", "3,3000,54", "4,4000,56"]
    (tmp_path / "progress.csv").write_text("\n".join(rows) + "\n")
    assert running_time.seconds_per_million(tmp_path) == pytest.approx(2000)


@pytest.mark.slow
def test_smoke_draws_bars(smoke, pictures_in, cells_of):
    out = smoke("running_time", "--only", "pendulum-20hz CMA", "pendulum-20hz PPO1")
    (row,) = cells_of(out / "running-time-seconds.md")
    assert row[0] == "pendulum-20hz" and sum(bool(cell.strip()) for cell in row[1:]) == 2
    assert pictures_in(out) == ["running-time-curves.png", "running-time.png"]
