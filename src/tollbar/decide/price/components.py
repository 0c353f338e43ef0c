"""Components of an inventory, kept as assets as soon as they are read.

msgspec makes its objects inside out: a component looks for the collector when it is complete, and drops its content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import fields

from tollbar.core.errors import TollbarError
from tollbar.decide.price import keys, limits
from tollbar.decide.price.parts import (
    KEYS,
    NOTHING,
    Asset,
    is_nothing,
    made_of,
    places_of,
    platform_of,
    scalar,
    shown,
)

ASSET = "cryptographic-asset"
# Texts in a place with cryptographic assets.
_SIGNS = (b'"cryptographic-asset"', b'"cryptoProperties"')


class NamedPart(Struct, frozen=True):
    name: Raw = NOTHING


class BomMetadata(Struct):
    component: Raw = NOTHING
    tools: Raw = NOTHING


class BomDocument(Struct, rename="camel"):
    bom_format: Raw = NOTHING
    spec_format: Raw = NOTHING
    spec_version: Raw = NOTHING
    metadata: Raw = Raw(b"{}")
    components: Raw = NOTHING
    formulation: Raw = NOTHING
    declarations: Raw = NOTHING
    annotations: Raw = NOTHING
    vulnerabilities: Raw = NOTHING

    def __post_init__(self) -> None:
        if is_nothing(self.metadata):
            self.metadata = Raw(b"{}")


class BomComponent(Struct):
    """A component, of which no more is kept than is asked for later."""

    name: Raw = NOTHING
    type: Raw = NOTHING
    ref: Raw = msgspec.field(default=NOTHING, name="bom-ref")
    crypto: Raw = msgspec.field(default=NOTHING, name="cryptoProperties")
    evidence: Raw = NOTHING
    pedigree: Raw = NOTHING
    properties: Raw = NOTHING
    components: tuple[BomComponent, ...] | None = ()

    def __post_init__(self) -> None:
        FOUND.get().look(self)
        # Empty fields keep the object as small as its content.
        self.name = self.type = self.ref = self.crypto = self.evidence = self.pedigree = self.properties = NOTHING


class ComponentHolder(Struct):
    """A part of a document that has components."""

    components: tuple[BomComponent, ...] | None = ()

    def __post_init__(self) -> None:
        FOUND.get().count_holder()


class BomDeclarations(Struct):
    targets: ComponentHolder | None = None


_KEYS = tuple(
    dict.fromkeys(
        [
            *(
                one.encode_name
                for kind in (BomDocument, BomComponent, BomMetadata, BomDeclarations)
                for one in fields(kind)
            ),
            *KEYS,
        ]
    )
)


class FoundAssets:
    """The assets that were met so far."""

    def __init__(self, where: str) -> None:
        self.assets: list[Asset] = []
        self.by_reference: dict[str, Asset] = {}
        self.twice: set[str] = set()
        self.others = 0
        self.unread: dict[str, None] = {}
        self._where = where
        self._components = self._holders = self._made_assets = self._places = self._followed = 0
        self._references: set[str] = set()
        self._texts: dict[str, str] = {}
        self._said: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = {}
        # Assets of each component that is still referenced, by its identity.
        self._made: dict[int, list[Asset]] = {}
        self._names: dict[int, str] = {}

    def look(self, component: BomComponent) -> None:
        """Keep the facts of a component as soon as it is read; its inner components come before it.

        Raises TollbarError.
        """
        self._components += 1
        self._refuse_more(self._components, limits.MOST_COMPONENTS, "components")
        self.pass_over("pedigree", component.pedigree)
        # Whatever has a reference counts, be it a library or an asset with a fault.
        reference = str(scalar(component.ref) or "")
        if reference:
            (self.twice if reference in self._references else self._references).add(reference)
        if component.components:
            self._names[id(component)] = shown(str(scalar(component.name) or ""))
        if is_nothing(component.crypto) and scalar(component.type) != ASSET:
            self.others += 1
            return
        try:
            made = self._assets(component)
            if reference:
                self.by_reference[reference] = made[0]
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            self._count_asset()
            name = scalar(component.name)
            made = [Asset("unknown", shown(name) if isinstance(name, str) else "no name", fault=str(error))]
        self._made[id(component)] = made

    def count_holder(self) -> None:
        """Count a part of a document that has components, or may have. Raises TollbarError."""
        self._holders += 1
        self._refuse_more(self._holders, limits.MOST_COMPONENTS, "parts of formulations")

    def pass_over(self, place: str, raw: Raw) -> None:
        """Note a place that is not read, if it has cryptographic assets."""
        if is_nothing(raw):
            return
        content = bytes(memoryview(raw))
        if any(sign in content for sign in _SIGNS):
            self.unread[place] = None

    def has_made(self, component: BomComponent) -> bool:
        """Return true if a component that is still referenced is an asset."""
        return id(component) in self._made

    def take(self, components: Sequence[BomComponent]) -> None:
        """Append the kept assets in order; one without a place gets its parent component as its place."""
        ahead: list[tuple[Sequence[BomComponent], str]] = [(components, "")]
        while ahead:
            inner, parent = ahead.pop()
            for one in inner:
                for asset in self._made.pop(id(one), ()):
                    self.assets.append(replace(asset, places=(parent,)) if parent and not asset.places else asset)
                if one.components:
                    ahead.append((one.components, self._names[id(one)]))

    def _assets(self, component: BomComponent) -> list[Asset]:
        """Return the assets of a component: one, or for a protocol one for each cipher suite and group."""
        name = scalar(component.name) if not is_nothing(component.name) else ""
        if name is None:
            raise ValueError("`name` must be a text of at most 64 KiB")
        if is_nothing(component.crypto):
            raise ValueError("`cryptoProperties` is missing")
        places = () if is_nothing(component.evidence) else places_of(component.evidence)
        platform = platform_of(places)
        made = []
        for kind, own, said, refers in made_of(component.crypto, shown(str(name)) or "no name", component.properties):
            self._count_asset()
            # Each asset of a protocol has all of its places, so a small file may have millions of pairs.
            self._places += len(places)
            self._refuse_more(self._places, limits.MOST_PLACES, "places where assets occur")
            texts = self._once({key: self._shared(text) for key, text in said.items() if text})
            to = {key: refs for key, refs in refers.items() if refs}
            made.append(Asset(kind, own, texts, to, places, platform))
        # All groups of a suite share one object of references.
        several = {id(refs): len(refs) for one in made for refs in one.refers.values()}
        self._followed += sum(several.values())
        self._refuse_more(self._followed, limits.MOST_REFERENCES, "references")
        return made

    def key_twice(self, content: bytes) -> str | None:
        """Return a key that an object of the text has twice; None: none is repeated.

        Raises TollbarError.
        """
        try:
            return keys.twice(content, _KEYS)
        except keys.TooManyError:
            raise self._more(limits.MOST_KEYS, "objects and keys") from None

    def _shared(self, text: str) -> str:
        """Return the part of a text that is read, as one object for all assets that have it."""
        text = text[: limits.MOST_OF_PROPERTY]
        return self._texts.setdefault(text, text)

    def _once(self, said: Mapping[str, str]) -> Mapping[str, str]:
        """Return the properties as one object for all assets that have them, so that they are looked up once."""
        return self._said.setdefault(tuple(said.items()), said)

    def _count_asset(self) -> None:
        self._made_assets += 1
        self._refuse_more(self._made_assets, limits.MOST_ASSETS, "assets")

    def _refuse_more(self, count: int, most: int, what: str) -> None:
        if count > most:
            raise self._more(most, what)

    def _more(self, most: int, what: str) -> TollbarError:
        hint = "price it in parts, for example `jq '.components |= .[:1000]' FILE | tollbar price -`"
        return TollbarError(f"has more than {most:,} {what}, the limit", where=self._where, hint=hint)


FOUND: ContextVar[FoundAssets] = ContextVar("FOUND")
