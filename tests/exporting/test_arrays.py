import pickle
import zipfile

import numpy as np
import pytest
from controllers import NETWORKS, make_controller

from tdpo_baselines.exporting import arrays


def act(model, observations: np.ndarray) -> np.ndarray:
    """Act as the documentation of the layout says."""
    hidden = {"tanh": np.tanh, "relu": lambda x: np.maximum(x, 0)}[str(model["hidden"])]
    num = sum(key.startswith("weights_") for key in model)
    x = observations
    for k in range(num):
        x = x @ model[f"weights_{k}"] + model[f"biases_{k}"]
        x = hidden(x) if k < num - 1 else x
    x = x + observations @ model["linear"] if "linear" in model else x
    x = np.tanh(x) if model["is_squashed"] else x
    return np.clip(model["centre"] + model["scale"] * x, model["low"], model["high"])


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("network", NETWORKS)
def test_arrays_act_like_the_policy(network, precision, tmp_path):
    controller = make_controller(network, precision=precision, limit=2.5)
    arrays.write(tmp_path, controller)
    model = np.load(tmp_path / "policy.npz", allow_pickle=False)
    assert model["weights_0"].dtype == controller.dtype and model["config"] == "{}" and model["iteration"] == 7
    rows = controller.observations
    tolerance = 1e-4 if precision == "float" else 1e-12
    np.testing.assert_allclose(act(model, rows), controller.policy.act(rows), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("network", NETWORKS)
def test_what_was_written_is_read(network, precision, tmp_path):
    controller = make_controller(network, precision=precision)
    arrays.write(tmp_path, controller)
    policy, config, iteration = arrays.read(tmp_path / "policy.npz")
    assert (config, iteration) == ("{}", 7) and policy.sizes == controller.policy.sizes
    assert policy.style.hidden == controller.policy.style.hidden
    assert policy.style.has_linear_part == controller.policy.style.has_linear_part
    expected = controller.policy.theta.astype(controller.dtype)
    assert np.array_equal(policy.theta, expected) and policy.theta.dtype == np.float64


class Harmful:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


NAN = np.full((3, 2), np.nan)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weights_0": NAN}, "weights_0 must be finite"),
        ({"weights_0": np.zeros((3, 2), dtype=int)}, "weights_0 must be finite floating-point numbers"),
        ({"biases_0": np.zeros(5)}, "biases must have an entry"),
        ({"weights_1": np.zeros((7, 1)), "biases_1": np.zeros(1)}, "do not fit those of the next one"),
        ({"linear": np.zeros((1, 1))}, "linear must have shape"),
        ({"scale": np.zeros(9)}, "centre and scale must be"),
        ({"low": np.array(["a"])}, "low must be"),
        ({"hidden": "exec"}, "hidden must be tanh or relu"),
        ({"iteration": np.zeros(3)}, "is not an exported policy, or is damaged"),
        ({"config": None}, "it has no array 'config"),
    ],
)
def test_invalid_contents_are_refused(changes, message, tmp_path):
    path = tmp_path / "policy.npz"
    arrays.write(tmp_path, make_controller("ddpg-tanh"))
    with np.load(path) as found:
        contents = {name: value for name, value in {**found, **changes}.items() if value is not None}
    np.savez(path, **contents)
    with pytest.raises(ValueError, match=message):
        arrays.read(path)


def test_pickled_contents_are_refused_and_not_executed(tmp_path):
    path, mark = tmp_path / "policy.npz", tmp_path / "done"
    np.savez(path, weights_0=np.array([Harmful(mark)], dtype=object))
    pickled = tmp_path / "pickled.npz"
    pickled.write_bytes(pickle.dumps(Harmful(mark)))
    for file in (path, pickled):
        with pytest.raises(ValueError, match="is not an exported policy, or is damaged"):
            arrays.read(file)
    assert not mark.exists()


def test_truncated_altered_and_oversized_files_are_refused(tmp_path, monkeypatch):
    path, broken = tmp_path / "policy.npz", tmp_path / "broken.npz"
    arrays.write(tmp_path, make_controller("ddpg-tanh"))
    whole = path.read_bytes()
    for contents in (b"", whole[: len(whole) // 2], whole[:200] + bytes([whole[200] ^ 255]) + whole[201:]):
        broken.write_bytes(contents)
        with pytest.raises(ValueError, match="is not an exported policy, or is damaged"):
            arrays.read(broken)
    with zipfile.ZipFile(broken, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("weights_0.npy", bytes(arrays.MAX_BYTES + 1))
    assert broken.stat().st_size < 10**6
    with pytest.raises(ValueError, match="more than the 268,435,456 allowed"):
        arrays.read(broken)
