import functools
import io
import sys
import threading

import gymnasium
import pytest

from tdpo_baselines.options import callables, registry


def make_pendulum(g: float = 10.0, colour=()):
    return gymnasium.make("Pendulum-v1", g=g)


def test_name_tells_the_callable_and_its_source():
    def inner():
        return 1

    first = callables.name_of(inner)

    def inner():
        return 2

    assert first.startswith("callable/") and "test_name_tells_the_callable_and_its_source.locals.inner-" in first
    assert callables.name_of(inner) != first and callables.name_of(make_pendulum) == callables.name_of(make_pendulum)
    partial = functools.partial(make_pendulum, g=3.0)
    assert callables.name_of(partial) != callables.name_of(make_pendulum) and "make_pendulum" in callables.name_of(
        partial
    )


def test_callable_without_source_and_callable_object_have_names():
    namespace = {"__name__": "typed"}
    exec("def make(): pass", namespace)
    assert callables.name_of(namespace["make"]) == "callable/typed.make-unknown"

    class Maker:
        def __call__(self):
            return make_pendulum()

    assert "Maker-" in callables.name_of(Maker())


def test_registered_callable_is_an_environment_with_its_parameters_as_options():
    name = callables.register(make_pendulum)
    options = registry.resolve_options(name, {"g": "3.5", "delay_steps": "2"})
    assert options == {"delay_steps": 2, "g": 3.5, "max_episode_steps": None}
    assert registry.make_environment(name, options).horizon == 200  # the time limit of what it returns
    assert registry.make_gymnasium(name, options).unwrapped.g == 3.5
    assert registry.module_of(name) == ""


def test_time_limit_may_be_an_option():
    def make():
        return gymnasium.make("Pendulum-v1").unwrapped

    name = callables.register(make)
    with pytest.raises(ValueError, match="has no time limit; pass --set env.max_episode_steps=N"):
        registry.make_environment(name, registry.resolve_options(name, {}))
    assert registry.make_environment(name, registry.resolve_options(name, {"max_episode_steps": 7})).horizon == 7


def test_callable_that_makes_no_environment_is_refused():
    name = callables.register(lambda: 3)
    with pytest.raises(ValueError, match="must inherit from the gymnasium.Env class"):
        registry.make_environment(name, {})


def test_callable_arrives_in_another_process_under_its_name():
    name, pipe = callables.name_of(make_pendulum), io.BytesIO(callables.pickle(make_pendulum) + b"more")
    gymnasium.registry.pop(name, None)
    callables.unpickle(callables.read(pipe))
    assert name in gymnasium.registry and pipe.read() == b"more"


def test_what_cannot_be_sent_or_loaded_is_refused():
    lock = threading.Lock()
    with pytest.raises(ValueError, match="can be sent to other processes.*create such objects inside"):
        callables.pickle(lambda: lock)
    with pytest.raises(ValueError, match="env cannot be loaded by the ranks"):
        callables.unpickle(b"nothing")


def test_module_that_a_user_names_is_found_in_the_present_folder_after_the_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "own_module.py").write_text("HERE = True")
    (tmp_path / "numpy.py").write_text("HERE = True")
    assert callables.import_named("own_module").HERE
    assert not hasattr(callables.import_named("numpy"), "HERE") and sys.path[-1] == str(tmp_path)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1\ny = undefined\n", r"NameError: name 'undefined' is not defined \(MODULE.py, line 2\)$"),
        ("def make(:\n", r"SyntaxError: .*MODULE.py, line 1\)$"),
        ("import no_such_library\n", r"ModuleNotFoundError: No module named 'no_such_library' \(MODULE.py, line 1\)$"),
    ],
)
def test_module_that_fails_is_explained_with_file_and_line(tmp_path, monkeypatch, code, message):
    module = f"fails_{abs(hash(code))}"
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / f"{module}.py").write_text(code)
    with pytest.raises(ValueError, match=message.replace("MODULE", module)):
        callables.import_named(module)


def test_option_that_every_environment_has_is_no_name_of_a_parameter():
    with pytest.raises(ValueError, match="has an option delay_steps; give the parameter another name"):
        callables.register(lambda delay_steps=3: None)
