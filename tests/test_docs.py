"""The documents are true: every named thing exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from bench import reference

from tollbar import study
from tollbar.cli import COMMANDS
from tollbar.decide import size
from tollbar.report import glossary
from tollbar.study import plan
from tollbar.study.scenario_file import read_scenario

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text("utf-8")
REFERENCE = ROOT / "docs" / "generated" / "commands.md"
DOCUMENTS = sorted(
    str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")) if path.is_file()
)
CODE_OF_ENGINE = sorted(str(path.relative_to(ROOT)) for path in [ROOT / "engine/src", *ROOT.glob("engine/*/src")])
QUESTIONS = re.findall(r"^(tollbar (?:ask|run) .+)$", README.partition("## Questions")[2], re.MULTILINE)
QUESTIONS = [line for line in QUESTIONS if "--resume" not in line]


def test_the_reference_is_written_from_the_commands_and_studies() -> None:
    text = REFERENCE.read_text("utf-8")
    assert reference.written() == text
    assert set(COMMANDS) == set(re.findall(r"^\| `tollbar (\w+)", text, re.MULTILINE))
    assert {*study.shipped(), *study.SETS_OF_SOURCES} <= set(re.findall(r"^\| `([a-z-]+)` \| ", text, re.MULTILINE))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_targets_in_documents_are_in_the_makefile(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    used = re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / name).read_text("utf-8"), re.MULTILINE)
    assert set(used) <= targets


@pytest.mark.parametrize("name", ["windows.md", "your-own-server.md"])
def test_a_scenario_in_a_document_can_be_read(name: str, tmp_path: Path) -> None:
    found = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / name).read_text("utf-8"), re.DOTALL)
    scenarios = [text for text in found if "[[step]]" in text]
    assert scenarios
    for text in scenarios:
        (tmp_path / "scenario.toml").write_text(text, "utf-8")
        assert read_scenario(tmp_path / "scenario.toml").step


def test_readme_shows_a_short_answer_and_a_picture() -> None:
    shown = README.split("<!-- ask -->")[1].split("<!-- /ask -->")[0].strip().splitlines()[1:-1]
    assert len(shown) <= 8
    tables = (ROOT / "docs" / "reading.md").read_text("utf-8").split("<!-- quick")[1].split("<!-- /quick -->")[0]
    for text in ("\n".join(shown), tables):
        assert all(word in text for word in ("× baseline", "96 % interval", "verdict", "standing"))
    (picture,) = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    assert (ROOT / picture).read_bytes().startswith(b"\x89PNG")


def test_readme_has_questions() -> None:
    assert len(QUESTIONS) >= 6


@pytest.mark.parametrize("line", [line for line in QUESTIONS if "--url" not in line and ".toml" not in line])
def test_each_question_of_readme_can_be_asked(line: str) -> None:
    _, command, *words = shlex.split(line)
    if command == "run":
        asked = study.load(words)
    else:
        question = study.of_words(words[0], words[1:], None)
        asked = (study.read(study.ASKED, question.text(4), where=line),)
    planned = plan.make(asked, seed=0)
    for one in planned.studies:
        assert any(cell.against not in (None, cell.key) for cell in one.cells)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_of_documents_lead_to_files(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    for path in re.findall(r"`(docs/[\w/-]+\.md)`", text):
        assert (ROOT / path).exists(), path
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), path
        assert not anchor or anchor in _anchors(target.read_text("utf-8")), f"{path}#{anchor}"


def _anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to headings."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("folder", ["src", "bench", *CODE_OF_ENGINE])
def test_documents_that_code_names_exist(folder: str) -> None:
    for path in (ROOT / folder).rglob("*"):
        if path.suffix in {".py", ".toml", ".rs", ".mjs", ".go", ".java", ".cs", ".jinja"}:
            for named in re.findall(r"\bdocs/(?:generated/)?[\w-]+\.(?:md|toml)\b", path.read_text("utf-8")):
                assert (ROOT / named).exists(), f"{path}: {named}"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_in_documents_exist(name: str) -> None:
    for path in re.findall(r"`((?:src|engine|tests|bench)/[\w./-]+)`", (ROOT / name).read_text("utf-8")):
        assert (ROOT / path).exists(), path


# Suffixes of the files in which a runner's folder locks its platform's dependencies.
LOCKS = (".csproj", ".lock", ".sha256", ".toml", ".xml")


@pytest.mark.parametrize(
    ("name", "words"),
    [("studies", "A study file is executable input"), ("runners", "then start `./mine` as you")],
)
def test_documents_state_in_bold_that_a_study_starts_programs(name: str, words: str) -> None:
    bold = re.findall(r"\*\*([^*]+)\*\*", (ROOT / f"docs/{name}.md").read_text("utf-8"))
    assert any(words in one for one in bold)


def test_no_lock_names_a_host() -> None:
    """Dependencies are locked by name, version and hash, whatever host serves them."""
    for lock in ("requirements.lock", "requirements-dev.lock"):
        assert "://" not in (ROOT / lock).read_text("utf-8")
    hosts = set(re.findall(r"https://([\w.-]+)/", (ROOT / "engine" / "Cargo.lock").read_text("utf-8")))
    assert hosts <= {"github.com"}
    runners = [path for path in (ROOT / "src" / "tollbar" / "catalog" / "runners").rglob("*") if path.suffix in LOCKS]
    assert len(runners) > 3
    assert [] == [path for path in runners if "://" in path.read_text("utf-8")]


def test_the_mix_that_readme_sizes_is_the_documented_one() -> None:
    (shown,) = re.findall(r"^```toml\n(.*?)^```", (ROOT / "docs" / "size.md").read_text("utf-8"), re.M | re.S)
    assert shown.startswith("[mix]")
    assert shown in (ROOT / "docs" / "mix.toml").read_text("utf-8")
    assert ["logins", "requests", "handshakes"] == [term.name for term in size.read(ROOT / "docs" / "mix.toml").terms]


def test_the_glossary_is_the_one_of_a_report() -> None:
    assert glossary.markdown() == (ROOT / "docs" / "glossary.md").read_text("utf-8")
    assert len(glossary.words()) <= 30
