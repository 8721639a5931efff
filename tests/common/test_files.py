import errno
import fcntl
import os
import resource

import pytest

from tdpo_baselines.common import files


def make(kind, path, target):
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"link": target, "device": "/dev/zero"}[kind])


KINDS = ("pipe", "folder", "link", "device")


@pytest.mark.parametrize("kind", KINDS)
def test_only_regular_files_are_read_and_nothing_blocks(tmp_path, kind):
    (tmp_path / "target").write_text("{}")
    make(kind, tmp_path / "file", tmp_path / "target")
    with pytest.raises(ValueError, match="cannot read .*file: (it is|Is a)"):
        files.read_json(tmp_path / "file", follow_links=False)


def test_link_that_a_user_names_is_followed(tmp_path):
    (tmp_path / "target").write_text('{"a": 1}')
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert files.read_json(tmp_path / "link") == {"a": 1}


def test_file_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(ValueError, match="1,099,511,627,776 bytes, more than the 16,777,216 allowed"):
        files.read_json(tmp_path / "file")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[1]", "must hold a JSON object of options, got list"),
        ("[" * 100_000, "not valid JSON"),
        ('{"a":' * 30 + "1" + "}" * 30, "nested more than 20 deep"),
        ('{"a": 1%s}' % ("0" * 400), "a whole number has 401 digits"),
        ('{"a": 1%s}' % ("0" * 9000), "a whole number has 9001 digits"),
    ],
)
def test_odd_json_is_explained(tmp_path, content, message):
    (tmp_path / "c.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        files.read_json(tmp_path / "c.json")


def test_bytes_that_are_no_text_are_no_json():
    with pytest.raises(ValueError, match="x is not valid JSON"):
        files.parse_json(b"\xff\xfe\xfd", "x")


def test_missing_file_is_explained(tmp_path):
    with pytest.raises(ValueError, match="cannot read .*: No such file"):
        files.read_json(tmp_path / "none.json")


def test_line_without_end_is_refused_without_reading_all_of_it(tmp_path):
    with open(tmp_path / "file", "wb") as file:
        file.truncate(2**40)
    with pytest.raises(ValueError, match="a line of more than 65536 bytes"):
        list(files.read_lines(tmp_path / "file"))


def test_file_is_replaced_and_stays_open_to_append(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with files.replace(path, ["a\n", "b\n"]) as file:
        assert path.read_text() == "a\nb\n"
        file.write("c\n")
    assert path.read_text() == "a\nb\nc\n" and os.listdir(tmp_path) == ["file"]


def test_replacing_syncs_the_file_before_and_the_folder_after(tmp_path, monkeypatch):
    events, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda f: (events.append(os.path.isdir(f"/proc/self/fd/{f}")), fsync(f)))
    monkeypatch.setattr(os, "replace", lambda *paths: (events.append("replace"), replace(*paths)))
    files.replace(tmp_path / "file", ["a"]).close()
    assert events == [False, "replace", True]


@pytest.mark.parametrize("name", ["file", ".file.partial"])
def test_replacing_never_writes_through_a_link(tmp_path, name):
    (tmp_path / "target").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "target")
    files.replace(tmp_path / "run" / "file", ["a"]).close()
    assert (tmp_path / "target").read_text() == "precious" and (tmp_path / "run" / "file").read_text() == "a"


def test_failed_replacement_leaves_the_file_alone(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def parts():
        yield "a"
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        files.replace(path, parts())
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]


@pytest.mark.parametrize("kind", [*KINDS, "hard link"])
def test_nothing_but_an_own_file_is_appended_to(tmp_path, kind):
    target, path = tmp_path / "target", tmp_path / "file"
    target.write_text("precious")
    os.link(target, path) if kind == "hard link" else make(kind, path, target)
    with pytest.raises(OSError):
        files.open_to_append(path)
    assert target.read_text() == "precious"


@pytest.mark.parametrize("kind", KINDS)
def test_lock_is_never_opened_through_a_trick(tmp_path, kind):
    (tmp_path / "target").write_text("precious")
    make(kind, tmp_path / ".lock", tmp_path / "target")
    with pytest.raises(ValueError, match="cannot open .*lock.*; remove it or pass another --log_dir"):
        files.lock(tmp_path, "--log_dir")
    assert (tmp_path / "target").read_text() == "precious"


def test_folder_is_locked_once(tmp_path):
    message = "another process is training in .*; wait for it or pass another --out"
    with files.lock(tmp_path, "--out"), pytest.raises(ValueError, match=message):
        files.lock(tmp_path, "--out")
    files.lock(tmp_path, "--out").close()


def test_file_system_without_locks_is_warned_of(tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", fail)
    files.lock(tmp_path, "--log_dir").close()
    assert "cannot be locked (No locks available); do not start a second run there" in capsys.readouterr().err


def test_folder_is_never_made_through_a_link(tmp_path):
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="link is a symbolic link"):
        files.make_folder(tmp_path / "link")
    files.make_folder(tmp_path / "target")


def test_lack_of_descriptors_is_named(tmp_path):
    (tmp_path / "c.json").write_text("{}")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as newest:
        resource.setrlimit(resource.RLIMIT_NOFILE, (newest.fileno() + 1, limits[1]))
        try:
            with pytest.raises(ValueError, match="cannot read .*c.json: Too many open files"):
                files.read_json(tmp_path / "c.json")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
