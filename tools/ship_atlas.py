"""Ship the atlas: measure all computed entries, and copy the NADs that the book ships.

``nads_book.atlas.compute_entry(entry, FOLDER)`` computes each of `nads_book.atlas.ATLAS`; then
``python tools/ship_atlas.py FOLDER``.
"""

import argparse
import shutil
import sys
from pathlib import Path

from compress_nads import compress
from nads_book.atlas import ATLAS, compute_entry
from nads_book.atlas.assembly import assemble, write_atlas
from nads_book.atlas.similarity import NADS_FOLDER
from nads_book.experiments.stored import study_path

parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
)
parser.add_argument("folder", type=Path)
folder = parser.parse_args().folder

computed = {}
for name, entry in ATLAS.items():
    if not (folder / f"{name}.npz").exists():
        sys.exit(f"{folder} has no {name}: compute it with nads_book.atlas.compute_entry")
    computed[name] = compute_entry(entry, folder)
write_atlas(assemble(computed), study_path("atlas.json").parent)
shipped = NADS_FOLDER
shipped.mkdir(exist_ok=True)
for name in computed:
    compress(Path(shutil.copy(folder / f"{name}.npz", shipped)))
total = sum(path.stat().st_size for path in shipped.glob("*.npz"))
print(f"{len(computed)} entries, {total / 1e6:.1f} MB of NADs -> {shipped}")
