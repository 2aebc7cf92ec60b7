"""What setup installs: the pins of pyproject.toml agree with constraints/, and help needs no set-up."""

import re
import shutil
import subprocess
import tomllib

import pytest


def pins_of_constraints(repository, flavour):
    lines = (repository / "constraints" / f"{flavour}.txt").read_text().splitlines()
    return dict(normalised(*line.split("==")) for line in lines if line and not line.startswith("#"))


def normalised(name, version):
    return re.sub(r"[-_.]+", "-", name).lower(), version


@pytest.mark.parametrize(("flavour", "extras"), [("cpu", ("cpu", "eval", "dev")), ("gpu", ("gpu", "eval", "dev"))])
def test_each_requirement_has_its_exact_version_in_the_constraints(repository, flavour, extras):
    project = tomllib.loads((repository / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(line for extra in extras for line in project["optional-dependencies"][extra])]
    pinned = pins_of_constraints(repository, flavour)
    missing, other = [], []
    for line in wanted:
        name, version = normalised(re.match(r"[\w.-]+", line)[0], line.partition("==")[2])
        if name not in pinned:
            missing.append(line)
        elif version and version != pinned[name]:
            other.append(f"{line}, constraints/{flavour}.txt has {pinned[name]}")
    assert (missing, other) == ([], [])


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["setup", "--help"]])
def test_help_before_anything_is_set_up_prints_and_installs_nothing(repository, tmp_path, words):
    done = subprocess.run(
        ["bash", "run_codea1.sh", *words],
        cwd=repository,
        env={"PATH": "/usr/bin:/bin", "CODE_A1_VENV": str(tmp_path / "venv")},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "train --help" in done.stdout
    assert not (tmp_path / "venv").exists()


SHIM = """#!/bin/bash
echo "$(basename "$0") $*" >> "$LOG"
case "$*" in
    *"-m venv "*) mkdir -p "${@: -1}/bin"; cp "$0" "${@: -1}/bin/python"; echo "${@: -1}" > "${@: -1}/bin/activate" ;;
    *"-m code_a1_recipe "*) printf '%s\n' "$PWD" "$CODE_A1_COMMAND" > "$LOG.place" ;;
    *--only-binary*) exit "${FLASH_STATUS:-0}" ;;
    *flash-attn*) exit "${COMPILE_STATUS:-0}" ;;
    *Python.h*) exit "${HEADER_STATUS:-0}" ;;
esac
"""
SMI = """#!/bin/bash
[ -z "${SMI_STATUS:-}" ] || exit "$SMI_STATUS"
case "$*" in
    *driver_version*) echo "$DRIVER" ;;
    *compute_cap*) printf '9.0\\n%s\\n' "$CAPABILITY" ;;
    -L) echo "GPU 0: x" ;;
esac
"""


NVCC = "#!/bin/bash\necho release ${NVCC_RELEASE:-13.0}\n"


def set_up(repository, tmp_path, *words, folder=None, **changes):
    """Run the script with stand-ins for Python, pip and the driver; its result, and what was called.

    Without words it sets up for GPUs. An empty word is none.
    """
    commands = tmp_path / "bin"
    commands.mkdir(exist_ok=True)
    programs = {"python3.11": SHIM, "python3.12": SHIM, "nvidia-smi": SMI, "nvcc": NVCC, "cc": "#!/bin/bash\n"}
    for name, text in programs.items():
        (commands / name).write_text(text)
        (commands / name).chmod(0o755)
    environment = {
        "PATH": f"{commands}:/usr/bin:/bin", "LOG": str(tmp_path / "log"), "CODE_A1_VENV": str(tmp_path / "venv"),
        "DRIVER": "580.95.05", "CAPABILITY": "8.6",
    }  # fmt: skip
    done = subprocess.run(
        ["bash", repository / "run_codea1.sh", *filter(None, words or ("setup", "--gpu"))],
        cwd=folder or repository, env=environment | changes, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    log = tmp_path / "log"
    return done, log.read_text().splitlines() if log.exists() else []


def test_on_gpus_the_recipe_comes_first_and_flash_attn_alone_and_last(repository, tmp_path):
    done, calls = set_up(repository, tmp_path)
    assert done.returncode == 0, done.stderr
    installed = [call for call in calls if "pip install" in call]
    assert calls[0].startswith("python3.12 ")  # flash-attn is built for it
    assert ".[gpu,eval]" in installed[0]
    assert "flash-attn" not in installed[0]
    assert "--only-binary :all:" in installed[1]
    assert "flash-attn==2.8.3" in installed[1]
    assert "1: torch, verl, vLLM, Ray and the recipe (4 GB to download" in done.stderr


def test_without_a_wheel_of_flash_attn_the_set_up_says_what_is_done_instead_and_goes_on(repository, tmp_path):
    done, _ = set_up(repository, tmp_path, FLASH_STATUS="1")
    assert done.returncode == 0
    assert "torch's own flash attention is used" in done.stderr
    assert (tmp_path / "venv" / ".code-a1-run").is_file()


def test_the_gpu_stack_installs_on_a_machine_without_a_driver(repository, tmp_path):
    """An image is built without a card; ``setup --gpu`` ended there without a word."""
    done, calls = set_up(repository, tmp_path, SMI_STATUS="127")
    assert done.returncode == 0, done.stderr
    assert "no GPU is seen here, so neither driver nor GPUs are checked" in done.stderr
    assert any(".[gpu,eval]" in call for call in calls)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"DRIVER": "570.86.10"}, "the NVIDIA driver is 570.86.10; CUDA 13 needs 580 or newer"),
        ({"CAPABILITY": "7.5"}, "compute capability 7.5; bfloat16 needs 8.0"),
        ({"HEADER_STATUS": "1"}, "Python.h of python3.12 is missing"),
        ({"CC": "no-such-compiler"}, "no C compiler (cc)"),
    ],
)
def test_what_would_fail_later_is_refused_before_anything_is_downloaded(repository, tmp_path, changes, words):
    done, calls = set_up(repository, tmp_path, **changes)
    assert done.returncode == 2
    assert words in done.stderr
    assert not any("pip install" in call for call in calls)


def test_a_machine_that_sees_no_gpu_may_be_set_up_for_one(repository, tmp_path):
    done, _ = set_up(repository, tmp_path, DRIVER="")
    assert done.returncode == 0
    assert "neither driver nor GPUs are checked" in done.stderr


@pytest.mark.parametrize(("changes", "flavour"), [({}, "gpu"), ({"SMI_STATUS": "9"}, "cpu")])
def test_an_nvidia_gpu_decides_which_stack_is_set_up_and_an_environment_keeps_its_own(
    repository, tmp_path, changes, flavour
):
    done, calls = set_up(repository, tmp_path, "setup", **changes)
    assert done.returncode == 0, done.stderr
    assert any(f".[{flavour},eval]" in call for call in calls)
    stamp = tmp_path / "venv" / ".code-a1-run"
    assert stamp.read_text().split()[0] == flavour
    (tmp_path / "log").unlink()
    other = {"SMI_STATUS": "9"} if flavour == "gpu" else {}
    done, calls = set_up(repository, tmp_path, "train", "key=value", **other)
    assert done.returncode == 0, done.stderr
    assert calls == ["python -P -m code_a1_recipe train key=value"]


def test_without_words_it_trains_and_paths_begin_at_the_callers_folder(repository, tmp_path):
    set_up(repository, tmp_path)
    (tmp_path / "log").unlink()
    mine = tmp_path / "mine"
    mine.mkdir()
    done, calls = set_up(repository, tmp_path, "", folder=mine)
    assert done.returncode == 0, done.stderr
    assert calls == ["python -P -m code_a1_recipe train"]
    assert (tmp_path / "log.place").read_text() == f"{mine}\nbash {repository}/run_codea1.sh\n"


@pytest.mark.parametrize("carry", [shutil.move, shutil.copytree])
def test_an_environment_that_came_with_a_moved_or_copied_checkout_is_refused(repository, tmp_path, carry):
    """Its scripts and its editable install would run the old checkout."""
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(repository / "constraints", first / "constraints")
    for name in ("run_codea1.sh", "pyproject.toml"):
        shutil.copy(repository / name, first)
    done, _ = set_up(first, tmp_path, "setup", CODE_A1_VENV="")
    assert done.returncode == 0, done.stderr
    (tmp_path / "log").unlink()
    carry(first, second)
    for words in (("setup",), ("cpu",)):
        done, calls = set_up(second, tmp_path, *words, CODE_A1_VENV="")
        assert (done.returncode, calls) == (2, [])
        assert f"{second}/.venv was made in another place, which its scripts name; remove it" in done.stderr


def test_one_flavour_is_not_installed_over_the_other(repository, tmp_path):
    set_up(repository, tmp_path, "setup", "--cpu")
    (tmp_path / "log").unlink()
    done, calls = set_up(repository, tmp_path, "setup", "--gpu")
    assert (done.returncode, calls) == (2, [])
    assert f"{tmp_path}/venv was set up for cpu, not for gpu; remove it" in done.stderr
    done, calls = set_up(repository, tmp_path, "setup")  # keeps the flavour, also on a machine with a GPU
    assert (done.returncode, calls) == (0, [])
    assert "is already set up for cpu" in done.stderr


@pytest.mark.parametrize("python", ["/no/such/python", "false"])
def test_a_python_that_is_named_and_cannot_be_used_is_refused_and_not_replaced(repository, tmp_path, python):
    done, calls = set_up(repository, tmp_path, PYTHON=python)
    assert (done.returncode, calls) == (2, [])
    assert f"error: PYTHON must name a Python 3.11 or 3.12, got {python} (" in done.stderr


COMPILE = {"FLASH_STATUS": "1", "CODE_A1_COMPILE_FLASH_ATTN": "1"}


@pytest.mark.parametrize(
    ("changes", "is_compiled", "words"),
    [
        (COMPILE, True, "3: compiling flash-attn for this machine's GPUs"),
        (COMPILE | {"COMPILE_STATUS": "1"}, True, "could not be compiled: torch's own flash attention is used"),
        (COMPILE | {"NVCC_RELEASE": "12.9"}, False, "CODE_A1_COMPILE_FLASH_ATTN=1 compiles it with a CUDA 13 toolkit"),
    ],
)
def test_flash_attn_is_compiled_only_where_that_is_asked_for_and_can_work(
    repository, tmp_path, changes, is_compiled, words
):
    done, calls = set_up(repository, tmp_path, **changes)
    assert done.returncode == 0, done.stderr
    assert words in done.stderr
    assert any("--no-build-isolation" in call for call in calls) == is_compiled
    assert (tmp_path / "venv" / ".code-a1-run").is_file()


def test_too_little_room_for_the_stack_of_gpus_is_said_before_anything_is_downloaded(repository, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "df").write_text("#!/bin/bash\nprintf 'x\\nx 1 1 19922943 1 /\\n'\n")
    (tmp_path / "bin" / "df").chmod(0o755)
    done, calls = set_up(repository, tmp_path)
    assert done.returncode == 2
    assert "18 GB are free where" in done.stderr
    assert not any("pip install" in call for call in calls)
