import dataclasses
import json
from types import SimpleNamespace

import pytest

from envs.ranges import NEUTRAL
from tdpo_baselines.storage import checkpoint
from tdpo_baselines.storage.run_folder import RunConfig, RunFolder, versions

CONFIG = RunConfig("tdpo", "leg", 3, {"gamma": 0.9, "hidden_sizes": [4]}, {"contact": "compliant"}, [{"timesteps": 5}])


def changed(**values) -> RunConfig:
    return dataclasses.replace(CONFIG, **values)


def begun(path) -> RunFolder:
    """Return a folder in which something was computed."""
    folder = RunFolder(path)
    folder.open(CONFIG, is_resumed=False)
    folder.progress_path.write_text("iteration\n")
    folder.unlock()
    return folder


def test_config_survives_the_file(tmp_path):
    folder = RunFolder(tmp_path / "new" / "run")
    folder.open(CONFIG, is_resumed=False)
    assert folder.read_config() == CONFIG


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (changed(seed=5), "seed: 3 here, 5 asked for"),
        (changed(environment="pendulum-nlr"), "environment: leg here, pendulum-nlr asked for"),
        (changed(options={"gamma": 0.99, "hidden_sizes": [4]}), "gamma: 0.9 here, 0.99 asked for"),
        (changed(options={"hidden_sizes": [4]}), "gamma: 0.9 here, None asked for"),
        (changed(env_options={}), "env.contact: compliant here, None asked for"),
        (changed(stages=[]), "stage1.timesteps: 5 here, None asked for"),
        (changed(stages=[{"timesteps": 5}, {"timesteps": 6}]), "stage2.timesteps: None here, 6 asked for"),
    ],
)
def test_folder_of_another_run_is_refused_and_left_alone(tmp_path, other, difference):
    folder = begun(tmp_path)
    assert CONFIG.differences(other) == [difference]
    with pytest.raises(ValueError, match=rf"holds another run \({difference}\); pass another --log_dir"):
        RunFolder(tmp_path).open(other, is_resumed=True)
    assert folder.read_config() == CONFIG


def test_software_may_differ_and_tuples_equal_lists(tmp_path):
    begun(tmp_path)
    options = {"gamma": 0.9, "hidden_sizes": (4,)}
    RunFolder(tmp_path).open(changed(options=options, made_with={"numpy": "2.0"}), is_resumed=True)
    assert RunFolder(tmp_path).read_config().made_with == {"numpy": "2.0"}


def test_run_from_before_an_option_did_what_was_done_then():
    before, now = {"gamma": 0.9}, {"gamma": 0.9, "time_limit": "auto"}
    assert changed(options=before).differences(changed(options=now)) == ["time_limit: bootstrap here, auto asked for"]
    assert not changed(options=before).differences(changed(options=now | {"time_limit": "bootstrap"}))
    assert not changed(options=before).differences(changed(options=before))


def test_run_from_before_randomisation_had_the_model_as_it_is():
    before = changed(env_options={"contact": "compliant"})
    now = before.env_options | NEUTRAL
    assert not before.differences(changed(env_options=now))
    assert before.differences(changed(env_options=now | {"mass": 1.2})) == ["env.mass: 1.0 here, 1.2 asked for"]


def test_run_is_not_overwritten_without_resume(tmp_path):
    begun(tmp_path)
    with pytest.raises(ValueError, match="holds a run already; continue it with --resume or pass another --log_dir"):
        RunFolder(tmp_path).open(CONFIG, is_resumed=False)
    RunFolder(tmp_path).open(CONFIG, is_resumed=True)


def test_two_processes_cannot_train_in_one_folder(tmp_path):
    holder = RunFolder(tmp_path)
    holder.open(CONFIG, is_resumed=False)
    with pytest.raises(ValueError, match="another process is training in"):
        RunFolder(tmp_path).open(CONFIG, is_resumed=False)
    holder.unlock()
    RunFolder(tmp_path).open(CONFIG, is_resumed=False)


def test_folder_that_cannot_be_written_is_refused():
    with pytest.raises(ValueError, match="cannot write to log_dir /proc/nowhere"):
        RunFolder("/proc/nowhere").create()


def test_space_is_required_for_what_is_not_there_yet(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=20e6))
    folder = RunFolder(tmp_path)
    folder.create()
    with pytest.raises(ValueError, match="need about 22 MB in log_dir .* 20 MB are free; make room"):
        folder.require_space(22_000_000)
    (folder.checkpoints / "iteration-000000001").mkdir()
    (folder.checkpoints / "iteration-000000001" / "state").write_bytes(bytes(3_000_000))
    folder.require_space(22_000_000)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "is not a run's config"),
        (
            '{"algorithm": 3, "environment": "", "seed": 0, "options": {}, "env_options": {}}',
            "algorithm is not of type",
        ),
        ("[", "is not valid JSON"),
    ],
)
def test_config_that_is_not_one_is_explained(tmp_path, content, message):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        RunFolder(tmp_path).read_config()


@pytest.mark.parametrize("damage", ["lost", "empty", "link"])
def test_lost_config_is_found_in_the_newest_checkpoint(tmp_path, capsys, damage):
    folder = begun(tmp_path)
    checkpoint.save(folder.checkpoints, 1, {"config": CONFIG.to_json()}, keep=1)
    folder.config_path.unlink()
    if damage == "empty":
        folder.config_path.write_text("")
    elif damage == "link":
        folder.config_path.symlink_to("/dev/zero")
    with pytest.raises(ValueError, match="config.json"):
        folder.read_config()
    assert folder.find_config() == CONFIG
    assert "the config of its newest checkpoint is used" in capsys.readouterr().err
    RunFolder(tmp_path).open(CONFIG, is_resumed=True)
    assert folder.read_config() == CONFIG


def test_lost_config_without_a_checkpoint_is_an_error(tmp_path):
    folder = begun(tmp_path)
    folder.config_path.unlink()
    with pytest.raises(ValueError, match="it has no config.json"):
        folder.find_config()


def test_folder_that_was_replaced_is_not_ours(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.open(CONFIG, is_resumed=False)
    assert folder.is_ours()
    (tmp_path / "run").rename(tmp_path / "old")
    assert not folder.is_ours()
    RunFolder(tmp_path / "run").open(CONFIG, is_resumed=False)
    assert not folder.is_ours()


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("stages", [5], "stage1 is not an object of options with timesteps"),
        ("seed", True, "seed is not of type int"),
        ("made_with", {"num_timesteps": "many"}, "made_with.num_timesteps is not a whole number"),
        ("init", {"sha256": "a"}, "init has no 'from'"),
        ("environment", "leg\x1b[2J", "environment is not a printable text"),
    ],
)
def test_odd_field_is_named(tmp_path, field, value, message):
    values = json.loads(CONFIG.to_json()) | {field: value}
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(ValueError, match=message):
        RunFolder(tmp_path).read_config()


def test_folder_without_a_config_is_no_run(tmp_path):
    with pytest.raises(ValueError, match="is not a run folder: it has no config.json"):
        RunFolder(tmp_path).read_config()


@pytest.mark.parametrize("state", [{}, {"config": "{}"}, {"config": "nonsense"}, {"config": json.dumps([1])}])
def test_checkpoint_without_a_config_is_refused(state):
    with pytest.raises(ValueError, match="the checkpoint is not one of a run"):
        RunConfig.from_checkpoint(state)


def test_checkpoint_carries_the_config():
    assert RunConfig.from_checkpoint({"config": CONFIG.to_json()}) == CONFIG


def test_rank_appends_to_its_own_log(tmp_path):
    for text in ("one\n", "two\n"):
        RunFolder(tmp_path).note(7, text)
    assert (tmp_path / "rank_007.log").read_text() == "one\ntwo\n"


def test_versions_name_the_software_that_determines_the_numbers():
    found = versions()
    assert all(
        found[name] for name in ("tdpo_baselines", "python", "numpy", "numba", "tensorflow", "gymnasium", "mujoco")
    )
