"""The project's own promises: pinned requirements, one CI command, plain words at setup."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHECK = ROOT / "tools" / "check_machine.py"
INSTALL_JAVA = "install it (Debian: apt-get install openjdk-17-jdk-headless) or set JAVA_HOME.\n"


def requirements():
    """The logical lines of requirements.txt: comments dropped, continued lines joined."""
    text = re.sub(r"(?m)^\s*#.*$", "", (ROOT / "requirements.txt").read_text())
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def test_every_requirement_has_a_version_and_a_hash():
    hashed = re.compile(
        r"[a-z0-9-]+(\[[a-z,]+\])?==\S+( ; [^#]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*"
    )
    assert [line for line in requirements() if not hashed.fullmatch(line)] == []


def test_every_direct_dependency_is_locked_at_its_pin():
    locked = {line.split()[0].lower() for line in requirements()}
    direct = re.sub(r"\[.*?\]", "", (ROOT / "requirements.in").read_text().lower())
    pins = {line for line in direct.splitlines() if line and not line.startswith("#")}
    assert pins - locked == set()


@pytest.mark.parametrize("name", ["requirements.in", "requirements.txt"])
def test_requirements_name_no_index_and_no_path(name):
    text = (ROOT / name).read_text()
    assert re.findall(r"(?i)\S*(?:://|/|index-url|find-links|trusted-host)\S*", text) == []


def test_ci_calls_make_test_and_nothing_else():
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111 == 0o111
    assert script.read_text().splitlines() == [
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        'cd "$(dirname "${BASH_SOURCE[0]}")/.."',
        "exec make test",
    ]


def test_the_license_is_apache_2():
    text = (ROOT / "LICENSE").read_text()
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text
    assert "Copyright The Watersmeet authors" in text


def test_make_alone_explains_every_target():
    run = subprocess.run(["make", "-C", ROOT], capture_output=True, text=True, check=True)
    named = set(re.findall(r"(?m)^make (\w+) +\S", run.stdout))
    assert {"setup", "test", "quick", "demo", "soak", "bench", "lock", "clean", "help"} <= named


def program(folder, name, says=""):
    """A program ``name`` that prints ``says`` on stderr, as ``java -version`` does."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    path.chmod(0o755)
    return path


def check(**environment):
    run = subprocess.run(
        [sys.executable, CHECK], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == ""
    return run.returncode, run.stderr


def test_a_machine_without_java_hears_what_to_install(tmp_path):
    assert check(PATH=str(tmp_path)) == (
        1,
        f"Watersmeet needs a JDK 17 for Spark: {INSTALL_JAVA}",
    )


def test_a_java_home_without_java_is_named(tmp_path):
    program(tmp_path, "java", 'openjdk version "17.0.15" 2025-04-15')
    assert check(PATH=str(tmp_path), JAVA_HOME="/nowhere") == (
        1,
        f"Watersmeet needs a JDK 17 for Spark, and JAVA_HOME=/nowhere has none: {INSTALL_JAVA}",
    )


@pytest.mark.parametrize(
    ("says", "release"),
    [('java version "1.8.0_402"', 8), ('openjdk version "11.0.22" 2024-01-16', 11)],
)
def test_an_old_java_is_named_with_its_version(tmp_path, says, release):
    java = program(tmp_path, "java", says)
    assert check(PATH=str(tmp_path)) == (
        1,
        f"Watersmeet needs a JDK 17 for Spark, and {java} is version {release}: {INSTALL_JAVA}",
    )


def test_a_java_that_does_not_say_its_version_counts_as_none(tmp_path):
    program(tmp_path, "java", "No Java runtime present")
    assert check(PATH=str(tmp_path)) == (
        1,
        f"Watersmeet needs a JDK 17 for Spark: {INSTALL_JAVA}",
    )


def test_a_machine_without_a_compiler_hears_what_to_install(tmp_path):
    program(tmp_path, "java", 'openjdk version "17.0.15" 2025-04-15')
    assert check(PATH=str(tmp_path)) == (
        1,
        "Watersmeet needs a C++ compiler: install g++ (Debian: apt-get install g++).\n",
    )


@pytest.mark.parametrize("says", ['openjdk version "17" 2021-09-14', 'openjdk version "25.0.1"'])
def test_a_machine_with_everything_hears_nothing(tmp_path, says):
    java = program(tmp_path / "jdk" / "bin", "java", says)
    program(tmp_path, "g++")
    assert check(PATH=str(tmp_path), JAVA_HOME=str(java.parents[1])) == (0, "")
    assert check(PATH=f"{tmp_path}:{java.parent}") == (0, "")


def test_a_python_without_venv_hears_what_to_install(tmp_path):
    (tmp_path / "ensurepip.py").write_text("raise ImportError('as on Debian')\n")
    assert check(PATH=str(tmp_path), PYTHONPATH=str(tmp_path)) == (
        1,
        "Watersmeet needs Python's venv module: "
        "install it (Debian: apt-get install python3.11-venv).\n",
    )


def test_make_without_python_3_11_hears_what_to_install(tmp_path):
    for name in ("python3.11", "python3"):
        program(tmp_path, name).write_text("#!/bin/sh\nexit 1\n")
    run = subprocess.run(
        ["/usr/bin/env", "make", "-C", ROOT, "machine"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode != 0
    assert run.stderr.splitlines()[0] == (
        "Watersmeet needs Python 3.11: "
        "install it (Debian: apt-get install python3.11 python3.11-venv)."
    )
