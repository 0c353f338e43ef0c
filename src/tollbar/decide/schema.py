"""The JSON Schemas of the documents: `python -m tollbar.decide.schema FOLDER` writes them into a folder."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tollbar.decide.check.document import CheckDocument
from tollbar.decide.choose.document import ChooseDocument
from tollbar.decide.compare.document import GatherDocument
from tollbar.decide.look.document import LookDocument
from tollbar.decide.price.document import PriceDocument
from tollbar.decide.size.document import SizeDocument
from tollbar.decide.tune.document import TuneDocument
from tollbar.decide.upgrade.document import UpgradeDocument
from tollbar.report.json_forms.comparison import ComparisonDocument
from tollbar.report.json_forms.form import Document
from tollbar.report.json_forms.whole_run import RunDocument, SourceDocument

DECISIONS: Mapping[str, type[Document]] = {
    "check": CheckDocument,
    "choose": ChooseDocument,
    "gather": GatherDocument,
    "look": LookDocument,
    "price": PriceDocument,
    "size": SizeDocument,
    "tune": TuneDocument,
    "upgrade": UpgradeDocument,
}
DOCUMENTS: Mapping[str, type[Document]] = {
    "run": RunDocument,
    "source": SourceDocument,
    "comparison": ComparisonDocument,
    **DECISIONS,
}


def json_schema(form: type[Document]) -> str:
    """Return a document's JSON Schema."""
    return json.dumps(form.model_json_schema(mode="serialization"), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tollbar.decide.schema FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, form in DOCUMENTS.items():
        (folder / f"{name}.json").write_text(json_schema(form), "utf-8")
