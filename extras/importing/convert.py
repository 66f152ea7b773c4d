"""`tandem convert`: a bundle for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tandem.extras.importing.publishing import page
from tandem.models.bundle import Bundle
from tandem.models.command import BundleFolder, report
from tandem.models.errors import ConfigError
from tandem.models.folders import is_vacant, whole_folder


def convert(
    path: BundleFolder,
    out: Annotated[Path, typer.Option(help="Folder to write, such as opus-mt-de-en; there must be nothing in it.")],
) -> None:
    """Write a Transformer's bundle as Hugging Face's MarianMT, which transformers runs and CTranslate2 converts.

    Its norms must stand after their blocks (norm = "post"), as that form has them; the model computes what it did.

    Example: tandem convert bundles/mine --out mine-marian
    """
    from tandem.extras.importing.converting import marian_files, write_marian  # needs PyTorch

    if not is_vacant(out):
        raise ConfigError(f"--out must be a new or empty folder, but there is something in {out}")
    bundle = Bundle.load(path)
    files = marian_files(bundle)
    for line in files.left_out:
        report(line)
    with whole_folder(out) as folder:
        write_marian(files, folder, page(bundle.manifest, library="transformers"))
    print(f"{out}: {sum(one.stat().st_size for one in out.iterdir()) / 1e6:.1f} MB")
