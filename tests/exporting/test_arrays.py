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
