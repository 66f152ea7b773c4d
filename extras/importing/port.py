"""What the core finds here."""

from __future__ import annotations

from tandem.service.ports import Extra

EXTRA = Extra(
    name="importing",
    commands={
        "import": (
            "tandem.extras.importing.command:import_model",
            "Make a bundle of a public model that you have downloaded",
        ),
        "convert": (
            "tandem.extras.importing.convert:convert",
            "Write a Transformer's bundle as Hugging Face's MarianMT, which transformers runs and CTranslate2 converts",
        ),
        "publish": (
            "tandem.extras.importing.publishing:publish",
            "Upload a bundle to Hugging Face, from where `tandem pull` brings it",
        ),
    },
    needs={"convert": ("fetching",), "publish": ("fetching",)},
    packages={"[hf]": ("huggingface_hub",)},
    sources={
        "firefox": "tandem.extras.importing.sources.firefox:FIREFOX",
        "hf": "tandem.extras.importing.sources.hub:HUB",
    },
)
