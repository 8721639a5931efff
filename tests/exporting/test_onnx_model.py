import sys

import numpy as np
import pytest
from controllers import NETWORKS, make_controller

from tdpo_baselines.exporting import onnx_model


@pytest.mark.parametrize("precision", ["double", "float"])
@pytest.mark.parametrize("network", NETWORKS)
def test_onnxruntime_acts_like_the_policy(network, precision, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    controller = make_controller(network, precision=precision, limit=2.5)
    onnx_model.write(tmp_path, controller)
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    rows = controller.observations
    (actions,) = session.run(["action"], {"observation": rows.astype(controller.dtype)})
    tolerance = 1e-4 if precision == "float" else 1e-12
    assert actions.dtype == controller.dtype and np.abs(actions).max() == 2.5
    np.testing.assert_allclose(actions, controller.policy.act(rows), rtol=tolerance, atol=tolerance)
    assert session.get_modelmeta().custom_metadata_map == {"parameters_sha256": controller.policy.sha256}


def test_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ValueError, match=r'needs the package onnx; run pip install ".\[export\]"'):
        onnx_model.write(tmp_path, make_controller())
    assert not list(tmp_path.iterdir())
