import os
import pickle
import resource
import shutil

import numpy as np
import pytest

from tdpo_baselines.common.parallel.tensorflow_setup import load_tensorflow
from tdpo_baselines.storage import bundle, checkpoint


def state(value):
    policy, progress = {"theta": np.full(1000, value)}, {"iteration": np.asarray(3)}
    return {"policy": policy, "progress": progress, "config": '{"a": 1}'}


def save_three(folder):
    for iteration in (10, 20, 30):
        checkpoint.save(folder, iteration, state(float(iteration)), keep=3)


def data_file(folder, iteration):
    return folder / f"iteration-{iteration:09d}" / "state.data-00000-of-00001"


def test_round_trip_is_exact(tmp_path):
    odd = {"payoff": np.asarray(-np.inf), "big": np.asarray(2**60), "rows": np.zeros((0, 3), np.float32)}
    odd |= {"number": 0.1, "count": 2**60 + 1}
    saved = {**state(0.1), "odd": odd}
    checkpoint.save(tmp_path, 1, saved, keep=2)
    loaded = checkpoint.load_newest(tmp_path)
    assert loaded.pop("config") == saved.pop("config") and loaded.keys() == saved.keys()
    found = checkpoint.flatten(loaded)
    for name, array in checkpoint.flatten(saved).items():
        assert np.array_equal(found[name], array) and found[name].dtype == np.asarray(array).dtype


def test_tensorflow_alone_reads_it_by_component_and_name(tmp_path):
    checkpoint.save(tmp_path, 1, state(0.1), keep=1)
    reader = load_tensorflow().train.load_checkpoint(str(tmp_path / "iteration-000000001" / "state"))
    assert reader.get_tensor("policy/theta/.ATTRIBUTES/VARIABLE_VALUE")[0] == 0.1
    assert reader.get_tensor("config/.ATTRIBUTES/VARIABLE_VALUE") == b'{"a": 1}'


def test_what_tensorflow_writes_is_read_and_the_other_way_round(tmp_path):
    saved = {**state(0.5), "odd": {"empty": np.zeros((0, 3), np.float32), "flags": np.array([True, False])}}
    checkpoint.save(tmp_path, 1, saved, keep=1)
    tf = load_tensorflow()
    theta, flags = tf.Variable(np.zeros(1000)), tf.Variable([False, False])
    both = tf.train.Checkpoint(policy=tf.train.Checkpoint(theta=theta), odd=tf.train.Checkpoint(flags=flags))
    reader = tf.train.load_checkpoint(str(tmp_path / "iteration-000000001" / "state"))
    for name, variable in (("policy/theta", theta), ("odd/flags", flags)):
        variable.assign(reader.get_tensor(f"{name}/.ATTRIBUTES/VARIABLE_VALUE"))
    path = both.write(str(tmp_path / "iteration-000000002" / "state"))
    found = checkpoint.load(tmp_path / "iteration-000000002")
    assert path and found["policy"]["theta"][0] == 0.5 and found["odd"]["flags"].tolist() == [True, False]


def test_flat_names_join_component_and_name():
    assert checkpoint.flatten({"a": {"x": 1, "y": 2}, "b": {"x": 3}}) == {"a/x": 1, "a/y": 2, "b/x": 3}


def test_only_the_newest_are_kept_and_nothing_partial_remains(tmp_path):
    (tmp_path / ".partial-99").mkdir()
    for iteration in range(6):
        checkpoint.save(tmp_path, iteration, state(1.0), keep=2)
    assert sorted(os.listdir(tmp_path)) == ["iteration-000000004", "iteration-000000005"]


@pytest.mark.parametrize("damage", ["cut in half", "empty", "flipped bit", "no index", "missing data"])
def test_damaged_newest_is_skipped_with_a_warning(tmp_path, capsys, damage):
    save_three(tmp_path)
    path = data_file(tmp_path, 30)
    content = bytearray(path.read_bytes())
    if damage == "cut in half":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "flipped bit":
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    elif damage == "no index":
        (path.parent / "state.index").unlink()
    else:
        path.unlink()
    assert checkpoint.load_newest(tmp_path)["policy"]["theta"][0] == 20.0
    assert "torn or corrupt" in capsys.readouterr().err


def test_when_none_can_be_read_it_is_an_error_and_not_a_fresh_start(tmp_path):
    save_three(tmp_path)
    for iteration in (10, 20, 30):
        data_file(tmp_path, iteration).write_bytes(b"")
    with pytest.raises(OSError, match="none of the checkpoints"):
        checkpoint.load_newest(tmp_path)


def test_saving_removes_unreadable_newer_ones_instead_of_itself(tmp_path):
    save_three(tmp_path)
    checkpoint.save(tmp_path, 15, state(15.0), keep=1)
    assert os.listdir(tmp_path) == ["iteration-000000015"]


def test_no_checkpoint_is_none(tmp_path):
    assert checkpoint.load_newest(tmp_path) is None


def test_failed_write_leaves_the_ones_before_intact(tmp_path, monkeypatch):
    save_three(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device; the ones before it are intact"):
        checkpoint.save(tmp_path, 40, state(40.0), keep=1)
    assert sorted(os.listdir(tmp_path)) == [f"iteration-{i:09d}" for i in (10, 20, 30)]


def test_pickled_file_in_its_place_is_never_executed(tmp_path):
    marker = tmp_path / "executed"

    class Trap:
        def __reduce__(self):
            return os.mkdir, (str(marker),)

    folder = tmp_path / "iteration-000000001"
    folder.mkdir()
    for name in ("state.index", "state.data-00000-of-00001", "checkpoint"):
        (folder / name).write_bytes(pickle.dumps(Trap()))
    with pytest.raises(OSError, match="none of the checkpoints"):
        checkpoint.load_newest(tmp_path)
    assert not marker.exists()


def test_folder_removed_while_it_is_written_is_not_made_anew(tmp_path, monkeypatch):
    folder = tmp_path / "run" / "checkpoints"
    folder.mkdir(parents=True)
    write = bundle.write

    def remove_and_write(inner, values):
        shutil.rmtree(tmp_path / "run")
        write(inner, values)

    monkeypatch.setattr(bundle, "write", remove_and_write)
    with pytest.raises(OSError, match="No such file or directory; its folder has disappeared"):
        checkpoint.save(folder, 1, {"policy": {"theta": np.zeros(3)}}, keep=1)
    assert not (tmp_path / "run").exists()


def test_folder_of_another_run_under_the_same_name_is_left_alone(tmp_path, monkeypatch):
    folder = tmp_path / "run" / "checkpoints"
    folder.mkdir(parents=True)
    write = bundle.write

    def start_again_and_write(inner, values):
        monkeypatch.setattr(bundle, "write", write)
        shutil.rmtree(tmp_path / "run")
        folder.mkdir(parents=True)
        save_three(folder)
        write(inner, values)

    monkeypatch.setattr(bundle, "write", start_again_and_write)
    with pytest.raises(OSError, match="No such file or directory"):
        checkpoint.save(folder, 1, state(1.0), keep=1)
    assert sorted(os.listdir(folder)) == [f"iteration-{i:09d}" for i in (10, 20, 30)]
    assert checkpoint.load_newest(folder)["policy"]["theta"][0] == 30.0


def test_folder_that_is_not_ours_any_more_is_not_written(tmp_path):
    save_three(tmp_path)
    with pytest.raises(OSError, match="another folder is in its place; its folder has disappeared"):
        checkpoint.save(tmp_path, 40, state(1.0), keep=1, is_ours=lambda: False)
    assert sorted(os.listdir(tmp_path)) == [f"iteration-{i:09d}" for i in (10, 20, 30)]


def test_entries_of_the_user_stay_and_stop_nothing(tmp_path):
    save_three(tmp_path)
    shutil.copytree(tmp_path / "iteration-000000010", tmp_path / "iteration-mybackup")
    (tmp_path / "iteration-latest").symlink_to(tmp_path / "iteration-000000030")
    (tmp_path / "iteration-000000099").symlink_to(tmp_path / "iteration-mybackup")
    (tmp_path / "iteration-000000010" / "notes.txt").write_text("mine")
    (tmp_path / "iteration-000000030" / "notes.txt").write_text("mine too")
    checkpoint.save(tmp_path, 30, state(40.0), keep=1)
    kept = [f"iteration-{i:09d}-kept-{os.getpid()}" for i in (10, 30)]
    links = ["iteration-000000099", "iteration-latest"]
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "iteration-000000030", *links, "iteration-mybackup"])
    assert [os.listdir(tmp_path / name) for name in kept] == [["notes.txt"]] * 2
    assert checkpoint.load_newest(tmp_path)["policy"]["theta"][0] == 40.0
    assert checkpoint.load(tmp_path / "iteration-mybackup")["policy"]["theta"][0] == 10.0


def test_folder_may_have_characters_of_patterns_in_its_name(tmp_path):
    folder = tmp_path / "a[1]*?"
    folder.mkdir()
    checkpoint.save(folder, 1, state(7.0), keep=1)
    assert checkpoint.load_newest(folder)["policy"]["theta"][0] == 7.0


def test_skipped_names_are_not_read_and_size_is_limited(tmp_path):
    checkpoint.save(tmp_path, 1, {**state(1.0), "replay": {"rows": np.zeros(10_000)}}, keep=1)
    assert "replay" not in checkpoint.load_newest(tmp_path, skip=checkpoint.REPLAY, max_bytes=10_000)
    with pytest.raises(OSError, match="none of the checkpoints"):
        checkpoint.load_newest(tmp_path, max_bytes=10_000)


def test_lack_of_descriptors_while_saving_is_named_and_nothing_is_lost(tmp_path):
    save_three(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as newest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (newest.fileno() + 3, limits[1]))
        try:
            with pytest.raises(OSError, match="Too many open files; the ones before it are intact"):
                checkpoint.save(tmp_path, 40, state(1.0), keep=1)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [path.name for path in sorted(tmp_path.glob("iteration-*"))] == [f"iteration-{i:09d}" for i in (10, 20, 30)]
    checkpoint.save(tmp_path, 40, state(40.0), keep=1)
    assert os.listdir(tmp_path) == ["iteration-000000040"]
